import { AxeBuilder } from "@axe-core/playwright";
import { assert, openSample, toPage, until } from "./kit.mjs";

export const household = [
  {
    name: "settings: theme, language, text size and folders are kept",
    async run({ page, api }) {
      const settings = async () => (await api("settings.get")).settings;
      await toPage(page, "Settings");
      await page.getByRole("radio", { name: "Light" }).click();
      await until(settings, (now) => now.theme === "light", "the theme is kept");
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
      await page.getByRole("radio", { name: "130 %" }).click();
      await until(settings, (now) => now.text_scale === 1.3, "the text size is kept");
      assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).fontSize), "20.8px");
      await page.getByRole("switch", { name: "Draft first" }).click();
      await until(settings, (now) => now.draft_first, "drafts first");
      await page.getByRole("radio", { name: "Deutsch" }).click();
      await until(settings, (now) => now.language === "de", "the language is kept");
      await page.getByRole("heading", { name: "Optionen" }).waitFor();
      await page.reload();
      await page.getByRole("heading", { name: "Optionen" }).waitFor();
      await page.getByRole("radio", { name: "English" }).click();
      await page.getByRole("heading", { name: "Settings" }).waitFor();
    },
  },
  {
    name: "settings: the language model is tested, and a key is never given back",
    async run({ page, api }) {
      await toPage(page, "Settings");
      await page.getByRole("combobox", { name: "Server or model" }).fill("http://127.0.0.1:9/v1");
      await page.keyboard.press("Enter");
      await until(async () => (await api("settings.get")).settings.llm, (llm) => llm === "http://127.0.0.1:9/v1", "kept");
      await page.getByRole("button", { name: "Test", exact: true }).click();
      const answered = page.getByRole("region", { name: "Language model" }).getByRole("status");
      await answered.waitFor({ timeout: 60_000 });
      assert.ok((await answered.textContent()).length > 3);
      await page.getByLabel("Key for the server").fill("sk-secret-1234");
      await page.getByRole("button", { name: "Keep key" }).click();
      await page.waitForTimeout(300);
      assert.ok(!JSON.stringify(await api("settings.get")).includes("sk-secret-1234"));
    },
  },
  {
    name: "settings: a diagnostic bundle",
    async run({ page }) {
      await toPage(page, "Settings");
      await page.getByRole("button", { name: "Make bundle" }).click();
      await page.getByText(/^Written to /).waitFor();
    },
  },
  {
    name: "models: what is here and what it allows; one is checked",
    async run({ page, api }) {
      await toPage(page, "Models");
      const models = await api("models.list");
      for (const model of models) await page.getByRole("listitem", { name: model.name, exact: true }).waitFor();
      const here = models.find((model) => model.state === "installed" || model.state === "unverified");
      if (!here) return;
      await page.getByRole("listitem", { name: here.name, exact: true }).getByRole("button", { name: "Verify" }).click();
      await until(() => api("queue.list"), (jobs) => jobs.some((job) => job.kind === "models.verify" && job.state === "done"), "it was checked", 120_000);
    },
  },
  {
    name: "queue: jobs, their log, and clearing",
    async run({ page, api, ...rest }) {
      await openSample({ page, api, ...rest });
      if (!rest.fake) {
        const model = (await api("models.list")).find((each) => each.state === "installed" || each.state === "unverified");
        if (!model) throw new Error("no model is installed: run cargo xtask setup");
        await api("models.verify", { id: model.id });
        await until(() => api("queue.list"), (jobs) => jobs.some((job) => job.state === "done"), "a job ended", 120_000);
      }
      await toPage(page, "Queue");
      const [job] = (await api("queue.list")).filter((each) => each.state === "done");
      await page.getByRole("button", { name: `Log of ${job.title}` }).first().click();
      await page.getByRole("dialog").locator("pre").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Clear ended jobs" }).click();
      await until(() => api("queue.list"), (jobs) => jobs.every((each) => !["done", "failed", "cancelled", "interrupted"].includes(each.state)), "cleared");
    },
  },
  {
    name: "every page: axe finds nothing, by keyboard from page to page",
    async run({ page, api, ...rest }) {
      await openSample({ page, api, ...rest });
      for (const [at, heading] of ["Your films", "Story", "Board", "Export", "Queue", "Models", "Cluster", "Settings"].entries()) {
        await page.keyboard.press(`Control+Alt+${at + 1}`);
        await page.getByRole("heading", { name: heading, level: 1 }).waitFor({ state: "attached" });
        await page.waitForTimeout(600);
        const { violations } = await new AxeBuilder({ page }).analyze();
        assert.deepEqual(
          violations.map((each) => `${heading}: ${each.id}: ${each.nodes[0]?.html.slice(0, 120)}`),
          [],
        );
      }
    },
  },
  {
    name: "the palette finds and does",
    async run({ page, api, ...rest }) {
      await openSample({ page, api, ...rest });
      await page.keyboard.press("Control+k");
      await page.keyboard.type("models");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Models", level: 1 }).waitFor();
      await page.keyboard.press("?");
      await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
    },
  },
];
