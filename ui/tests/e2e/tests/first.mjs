import { join } from "node:path";
import { assert, toPage, until } from "./kit.mjs";

const isPull = (job) => job.kind === "models.pull";

export const first = [
  {
    name: "first start: the default models are offered, and why they cannot be fetched is said",
    real: true,
    // Nobody serves packages there.
    env: (home) => ({ LONGTAKE_MODELS: join(home, "no-models"), PIP_INDEX_URL: "http://127.0.0.1:9/simple", PIP_RETRIES: "0", PIP_CONFIG_FILE: "/dev/null" }),
    async run({ page, api }) {
      const { ready } = await api("app.state");
      assert.deepEqual(ready, { language_model: false, pictures: false, voice: false, upscaler: false });
      await page.getByRole("button", { name: "Get what is missing" }).click();
      await page.getByRole("heading", { name: "Models", level: 1 }).waitFor();
      const defaults = (await api("models.list")).filter((model) => model.default);
      assert.ok(defaults.length >= 4 && defaults.every((model) => model.state === "missing" && model.bytes_here === 0));
      await page.getByRole("button", { name: /^Get the default models/ }).click();
      const jobs = await until(async () => (await api("queue.list")).filter(isPull), (all) => all.length === defaults.length && all.every((job) => job.state === "failed"), "each model's fetch ends", 90_000);
      for (const job of jobs) assert.match(job.error, /pip|download|fetch/i);
      // Nothing is called installed, and it can be tried again.
      assert.ok((await api("models.list")).every((model) => model.state === "missing"));
      assert.equal((await api("app.state")).ready.voice, false);
      await toPage(page, "Queue");
      await page.getByRole("button", { name: /^Run .* again$/ }).first().click();
      await until(async () => (await api("queue.list")).filter(isPull), (all) => all.some((job) => job.started_unix_millis > Math.max(...jobs.map((each) => each.started_unix_millis))), "it is tried again", 30_000);
    },
  },
];
