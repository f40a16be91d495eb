import { cpSync, mkdirSync, existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { assert, openSample, toPage, until } from "./kit.mjs";

const MODELS = process.env.LONGTAKE_MODELS ?? join(homedir(), ".local/share/longtake/models");
/** The smallest of the default models. */
const SMALL = "hibari-0.2.1";

/** What the keyboard must reach, and what of it holds others that arrow keys reach. */
const ALL = `a[href], button, input, select, textarea, summary, video[controls], [tabindex]`;
const COMPOSITE = `[role=radiogroup], [role=tablist], [role=tree], [role=grid], [role=listbox], [role=menu], [role=slider], [role=toolbar]`;

export const controls = [
  {
    name: "keyboard: Tab reaches every control of every page, and shows where it is",
    async run({ page, api, ...rest }) {
      await openSample({ page, api, ...rest });
      if (rest.fake) await api("cluster.start");
      for (const name of ["Home", "Story", "Board", "Export", "Queue", "Models", "Cluster", "Settings"]) {
        await toPage(page, name);
        await page.waitForFunction(() => document.querySelector("main [role=status] > .skeleton, main [aria-busy=true]") === null);
        await page.waitForTimeout(300);
        const wanted = await page.evaluate(
          ([all, composite]) => {
            const seen = (each) => each.checkVisibility({ checkOpacity: false, checkVisibilityCSS: true }) && each.getClientRects().length > 0;
            const of = [...document.querySelectorAll(all)].filter((each) => !each.disabled && seen(each) && !each.closest("[aria-hidden=true], [inert]") && each.id !== "main" && !each.matches("[role=tablist], [role=radiogroup], [role=toolbar]"));
            const lost = of.filter((each) => each.tabIndex < 0 && !each.closest(composite) && each.matches("a, button, input, select, textarea"));
            let number = 0;
            for (const each of of) if (each.tabIndex >= 0) each.dataset.tabTest = String((number += 1));
            document.activeElement?.blur();
            window.reached = new Set();
            window.unseen = [];
            window.stopLooking?.();
            const look = () => {
              const one = document.activeElement;
              const style = getComputedStyle(one);
              if (one.dataset.tabTest) window.reached.add(one.dataset.tabTest);
              const shown = (style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
              if (!shown && !one.matches("video, #main")) window.unseen.push(one.outerHTML.slice(0, 120));
            };
            document.addEventListener("focusin", look);
            window.stopLooking = () => document.removeEventListener("focusin", look);
            return { count: number, lost: lost.map((each) => each.outerHTML.slice(0, 160)) };
          },
          [ALL, COMPOSITE],
        );
        assert.deepEqual(wanted.lost, [], `${name}: the keyboard never reaches these`);
        assert.ok(wanted.count > 8, `${name}: ${wanted.count} controls`);
        // Lists that draw only what is in sight have more of them on the way.
        for (let press = 0; press < wanted.count + 600; press += 1) {
          if (press % 20 === 0 && (await page.evaluate(() => window.reached.size)) === wanted.count) break;
          await page.keyboard.press("Tab");
        }
        const { reached, unseen } = await page.evaluate(() => ({ reached: [...window.reached], unseen: window.unseen }));
        const missed = await page.evaluate((done) => [...document.querySelectorAll("[data-tab-test]")].filter((each) => !done.includes(each.dataset.tabTest)).map((each) => each.outerHTML.slice(0, 160)), reached);
        assert.deepEqual(missed, [], `${name}: not reached by Tab`);
        assert.deepEqual(unseen, [], `${name}: focus is not to be seen`);
      }
    },
  },
  {
    name: "queue: paused, gone on, put first, cancelled and run again",
    real: true,
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const jobs = () => api("queue.list");
      const stateOf = (id) => async () => (await jobs()).find((job) => job.id === id)?.state;
      const ids = [];
      for (const name of ["first", "second", "third"]) ids.push((await api("export.start", { project, preset: "web", name })).job);
      const [first, second, third] = ids;
      await toPage(page, "Queue");
      await until(stateOf(first), (state) => state === "running", "the first runs");
      const order = async () => (await jobs()).filter((job) => job.state === "waiting").map((job) => job.id);
      const titles = Object.fromEntries((await jobs()).map((job) => [job.id, job.title]));
      const press = (what, id, after = "") => page.getByRole("button", { name: `${what} ${titles[id]}${after}`, exact: true }).click();
      await press("Move", third, " up");
      await until(order, (now) => String(now) === String([third, second]), "the third goes before the second");
      await press("Move", third, " down");
      await until(order, (now) => String(now) === String([second, third]), "and behind it again");
      await press("Pause", third);
      await until(stateOf(third), (state) => state === "paused", "the third is paused");
      await press("Cancel", second);
      await until(stateOf(second), (state) => state === "cancelled", "the second is cancelled");
      await press("Pause", first);
      await until(stateOf(first), (state) => state === "paused", "what runs is paused", 30_000);
      await press("Resume", first);
      await until(stateOf(first), (state) => state === "running", "it goes on");
      await press("Run", second, " again");
      await until(jobs, (all) => all.some((job) => job.title === titles[second] && job.state === "waiting"), "the second waits again");
      for (const job of (await jobs()).filter((each) => !["done", "cancelled"].includes(each.state))) await api("queue.cancel", { id: job.id });
      await until(jobs, (all) => all.every((job) => job.state !== "running"), "nothing runs", 30_000);
    },
  },
  {
    name: "settings: cache, narrator, folder and switches are kept",
    async run({ page, api, studio, fake }) {
      const settings = async () => (await api("settings.get")).settings;
      await toPage(page, "Settings");
      const cap = page.getByRole("textbox", { name: "At most" }).or(page.getByRole("spinbutton", { name: "At most" }));
      await cap.fill("20");
      await cap.blur();
      await until(settings, (now) => now.cache_cap_bytes === 20e9, "the cache's size");
      await page.getByRole("button", { name: "Empty cache" }).click();
      await page.getByText(/ given back\.$/).first().waitFor();
      const [voice] = await api("voices.list");
      await page.getByRole("combobox", { name: "Narrator's voice" }).selectOption(voice.id);
      await until(settings, (now) => now.narrator === voice.id, "the narrator");
      const before = await settings();
      await page.getByRole("switch", { name: "Go on after a restart" }).click();
      await until(settings, (now) => now.resume_jobs === !before.resume_jobs, "what goes on");
      await page.getByRole("switch", { name: "Tell me when a job ends" }).click();
      await until(settings, (now) => now.notify === !before.notify, "notices");
      if (fake) return;
      const folder = page.getByRole("textbox", { name: "Folder of new projects" });
      await folder.fill(join(studio.home, "a b/場景 🎬"));
      await page.keyboard.press("Enter");
      await until(settings, (now) => now.projects_folder.endsWith("a b/場景 🎬"), "the folder of new projects");
      // Who keeps a key is told where, and that nobody else can read it.
      await page.getByText(/llm\.key, which only this user can read\.$/).waitFor();
    },
  },
  {
    name: "models: one is removed, after it was asked",
    real: true,
    env: (home) => {
      const to = join(home, "models");
      mkdirSync(to, { recursive: true });
      if (existsSync(join(MODELS, SMALL))) cpSync(join(MODELS, SMALL), join(to, SMALL), { recursive: true });
      return { LONGTAKE_MODELS: to };
    },
    async run({ page, api, studio }) {
      const model = async () => (await api("models.list")).find((each) => each.id === SMALL);
      const before = await model();
      assert.ok(before.bytes_here > 0, "the default models are missing: cargo xtask setup");
      await toPage(page, "Models");
      await page.getByRole("button", { name: `Remove ${before.name}` }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
      assert.equal((await model()).state, before.state);
      await page.getByRole("button", { name: `Remove ${before.name}` }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Remove", exact: true }).click();
      await until(model, (now) => now.state === "missing" && now.bytes_here === 0, "it is gone");
      assert.equal(existsSync(join(studio.home, "models", SMALL)) && (await model()).bytes_here > 0, false);
    },
  },
];
