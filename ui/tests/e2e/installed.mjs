// The installed program in a system of its own: its window opens, its page answers, the sample film
// is there. node tests/e2e/installed.mjs PICTURE WORD…: the words go ahead of what is to run there.
// `cargo xtask package --test` starts this.
import assert from "node:assert/strict";
import { Window, asker, startDriver, until } from "./webdriver.mjs";

const [picture, ...through] = process.argv.slice(2);
const driver = await startDriver(
  {
    GDK_BACKEND: "x11",
    LIBGL_ALWAYS_SOFTWARE: "1",
    WEBKIT_DISABLE_DMABUF_RENDERER: "1",
    TAURI_AUTOMATION: "true",
    TAURI_WEBVIEW_AUTOMATION: "true",
  },
  { through },
);
let failed = 1;
try {
  const started = Date.now();
  const window = await Window.open(driver.base, "/usr/bin/longtake-desktop", []);
  await window.find('//h1[normalize-space()="Your films"]', 90);
  const ready = Date.now() - started;
  const api = asker(window);
  const { version, ready: can } = await api("app.state");
  // Nothing was fetched: the first start says so, and offers it.
  assert.deepEqual(can, { language_model: false, voice: false, upscaler: false });
  const models = await api("models.list");
  assert.ok(models.some((model) => model.default && model.state === "missing"));
  const { project, script } = await api("project.open_sample");
  assert.ok(project.startsWith("/srv/") && script.scenes.length > 0, project);
  const { path } = await api("diagnostics.bundle");
  assert.ok(path.startsWith("/srv/"), path);
  driver.picture(picture);
  console.log(`the window of ${version} is ready after ${ready} ms: ${picture}`);

  // The first start fetches the default models, by the clients that the package asks for.
  await api("queue.clear");
  const fetching = Date.now();
  await window.click('//button[normalize-space()="Get what is missing"]');
  await window.click('//button[starts-with(normalize-space(), "Get the default models")]');
  let most = 0;
  await until("the default models", 400, async () => {
    const jobs = (await api("queue.list")).filter((job) => job.kind === "models.pull");
    const failed = jobs.find((job) => job.state === "failed");
    if (failed) throw Object.assign(new Error(`${failed.title}: ${failed.error}`), { final: true });
    most = Math.max(most, ...jobs.map((job) => (job.state === "running" ? job.done : 0)));
    const { ready: now } = await api("app.state");
    return now.language_model && now.voice && now.upscaler;
  });
  assert.ok(most > 0, "the queue shows how far it is");
  await until("no job is left", 30, async () => (await api("queue.list")).every((job) => job.state === "done"));
  driver.picture(picture.replace(".png", "-models.png"));
  await window.close();
  console.log(`the default models are here after ${Math.round((Date.now() - fetching) / 1000)} s`);
  failed = 0;
} catch (error) {
  console.log(`${error.stack ?? error}\n${driver.said()}`);
  try {
    driver.picture(picture.replace(".png", "-failed.png"));
  } catch {
    // There may be no display to look at.
  }
}
driver.stop();
process.exit(failed);
