// Pictures of every page in both themes and both sizes, and what axe finds on them:
// node tests/e2e/screenshots.mjs OUT [PAGE…]. Against the program with the sample film when
// LONGTAKE_BIN names it, else against the server in memory.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { startFake } from "../fake/server.mjs";
import { openBrowser, pageUrl } from "./browser.mjs";
import { startStudio } from "./studio.mjs";

const [out = "shots", ...only] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const SIZES = [
  { width: 1280, height: 800 },
  { width: 1920, height: 1080 },
];
const PAGES = ["welcome", "story", "board", "export", "queue", "models", "settings"];

const fake = process.env.LONGTAKE_BIN ? await startStudio(process.env.LONGTAKE_BIN) : await startFake({ scenes: 6 });
const browser = await openBrowser();
const token = fake.entry ? new URL(fake.entry).searchParams.get("token") : "";
const api = async (name, args = {}) => {
  const response = await fetch(`${fake.url}api/call/${name}`, { method: "POST", headers: { authorization: `Bearer ${token}`, "content-type": "application/json" }, body: JSON.stringify(args) });
  return (await response.json()).ok;
};
const sample = fake.project ?? (await api("project.open_sample")).project;
if (fake.entry) {
  // Something to see on the pages of the queue and the export.
  const { script } = await api("project.state", { project: sample });
  const [first, , third] = script.scenes[0].shots;
  await api("export.start", { project: sample, preset: "web", upscale: false, range: { from: first.id, to: third.id }, name: "three shots" });
  while ((await api("queue.list")).some((job) => job.state === "running" || job.state === "waiting")) await new Promise((done) => setTimeout(done, 500));
}
const shot = fake.project ? "shot-2" : (await api("project.state", { project: sample })).script.scenes[0].shots[1].id;
let violations = 0;
for (const theme of ["dark", "light"]) {
  for (const viewport of SIZES) {
    const context = await browser.newContext({ viewport });
    await context.addInitScript((wanted) => localStorage.setItem("longtake.prefs", JSON.stringify({ theme: wanted })), theme);
    await api("settings.set", { field: "theme", value: theme });
    const page = await context.newPage();
    if (fake.entry) await page.goto(fake.entry);
    page.on("console", (message) => message.type() === "error" && console.log("console:", message.text()));
    page.on("pageerror", (error) => console.log("page error:", error.message));
    for (const name of PAGES.filter((each) => only.length === 0 || only.includes(each))) {
      await page.goto(pageUrl(fake.url, name, { project: sample }));
      await page.reload();
      await page.waitForSelector("main h1, main h2", { state: "attached" });
      await page.waitForTimeout(fake.entry ? 1500 : 600);
      if (name === "story") await page.locator(`[data-row="shot:${shot}"] textarea`).nth(1).click();
      await page.screenshot({ path: join(out, `${name}-${theme}-${viewport.width}.png`) });
      if (viewport.width === 1280) {
        const found = await new AxeBuilder({ page }).analyze();
        for (const each of found.violations) {
          violations += 1;
          console.log(`axe ${name} ${theme}: ${each.id} (${each.impact}): ${each.nodes.length} × ${each.nodes[0]?.html.slice(0, 160)} | ${each.nodes[0]?.any[0]?.message ?? ""}`);
        }
      }
    }
    await context.close();
  }
}
await browser.close();
await fake.close();
console.log(`axe violations: ${violations}`);
