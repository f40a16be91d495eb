// Pictures of every page in both languages, both themes and two sizes, and at 200 %, with an index to look
// through, and what axe finds on them.
//
//   LONGTAKE_BIN=target/debug/longtake npm run e2e:pictures [-- PAGE…]    the program, sample film
//   npm run e2e:pictures                                                  the server in memory
//
// LONGTAKE_E2E_OUT names the folder; else they go to target/screenshots. Prints TAP.
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { AxeBuilder } from "@axe-core/playwright";
import { startFake } from "../fake/server.mjs";
import { openBrowser, pageUrl } from "./browser.mjs";
import { startStudio } from "./studio.mjs";

const only = process.argv.slice(2);
const out = process.env.LONGTAKE_E2E_OUT ?? join(dirname(fileURLToPath(import.meta.url)), "../../../target/screenshots");
mkdirSync(out, { recursive: true });
const SIZES = [
  { width: 1280, height: 800 },
  { width: 1920, height: 1080 },
];
const PAGES = ["welcome", "story", "board", "export", "queue", "models", "cluster", "settings"].filter((each) => only.length === 0 || only.includes(each));
const LOOKS = ["en", "de"].flatMap((language) => ["dark", "light"].flatMap((theme) => SIZES.map((size) => ({ language, theme, zoom: 1, ...size }))));
LOOKS.push({ language: "de", theme: "light", zoom: 2, ...SIZES[0] });

const studio = process.env.LONGTAKE_BIN ? await startStudio(process.env.LONGTAKE_BIN) : await startFake({ scenes: 6 });
const browser = await openBrowser();
const token = studio.entry ? new URL(studio.entry).searchParams.get("token") : "";
const api = async (name, args = {}) => {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const answer = await (await fetch(`${studio.url}api/call/${name}`, { method: "POST", headers, body: JSON.stringify(args) })).json();
  if ("error" in answer) throw new Error(`${name}: ${answer.error.code}: ${answer.error.message}`);
  return answer.ok;
};
const project = studio.project ?? (await api("project.open_sample")).project;
const { script } = await api("project.state", { project });
const [first, second, third] = script.scenes[0].shots;
if (!studio.entry) await api("cluster.start");
if (studio.entry) {
  // Something to see on the pages of the queue and the export.
  await api("export.start", { project, preset: "web", upscale: false, range: { from: first.id, to: third.id }, name: "three shots" });
  while ((await api("queue.list")).some((job) => job.state === "running" || job.state === "waiting")) await new Promise((done) => setTimeout(done, 500));
}

/** What is wrong with the pictures of a page, by page. */
const faults = new Map(PAGES.map((name) => [name, []]));
for (const { language, theme, zoom, width, height } of LOOKS) {
  const look = `${language}-${theme}-${width}${zoom === 1 ? "" : `-${100 * zoom}`}`;
  // A page at 200 % has half as many of its own pixels.
  const viewport = { width: width / zoom, height: height / zoom };
  const context = await browser.newContext({ viewport, deviceScaleFactor: zoom, reducedMotion: "reduce" });
  await context.addInitScript((wanted) => localStorage.setItem("longtake.prefs", JSON.stringify(wanted)), { theme, language });
  await api("settings.set", { field: "theme", value: theme });
  await api("settings.set", { field: "language", value: language });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  let here = PAGES[0];
  page.on("pageerror", (error) => faults.get(here).push(`${look}: the page reported ${error.message}`));
  if (studio.entry) await page.goto(studio.entry);
  for (const name of PAGES) {
    here = name;
    try {
      await page.goto(pageUrl(studio.url, name, { project }));
      await page.reload();
      await page.waitForSelector("main h1, main h2", { state: "attached" });
      await page.waitForFunction(() => document.querySelector("main [role=status] > .skeleton, main [aria-busy=true]") === null);
      await page.waitForFunction(() => [...document.images].every((each) => each.complete));
      await page.waitForTimeout(400);
      if (name === "story") await page.locator(`[data-row="shot:${second.id}"] textarea`).nth(1).click();
      await page.screenshot({ path: join(out, `${name}-${look}.png`) });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
      if (wide) faults.get(name).push(`${look}: wider than the window`);
      if (await page.evaluate((wanted) => document.documentElement.lang !== wanted, language)) faults.get(name).push(`${look}: not in its language`);
      if (width !== 1280) continue;
      for (const each of (await new AxeBuilder({ page }).analyze()).violations) {
        faults.get(name).push(`${look}: axe ${each.id} (${each.impact}): ${each.nodes.length} × ${each.nodes[0]?.html.slice(0, 160)} | ${each.nodes[0]?.any[0]?.message ?? ""}`);
      }
    } catch (error) {
      faults.get(name).push(`${look}: ${String(error.message ?? error).split("\n").slice(0, 3).join(" ")}`);
    }
  }
  await context.close();
}
await browser.close();
await studio.close();

// One file that shows them all, those of other tests too.
const pictures = readdirSync(out).filter((name) => name.endsWith(".png")).sort();
const shown = pictures.map((name) => `<figure><a href="${name}"><img src="${name}" loading="lazy" width="420" alt=""></a><figcaption>${name}</figcaption></figure>`);
writeFileSync(
  join(out, "index.html"),
  `<!doctype html><meta charset="utf-8"><title>Longtake's pages</title><style>body{font:14px sans-serif;display:flex;flex-wrap:wrap;gap:16px}figure{margin:0}</style>\n${shown.join("\n")}\n`,
);

console.log(`1..${PAGES.length}`);
let failed = 0;
for (const [at, name] of PAGES.entries()) {
  const found = faults.get(name);
  failed += found.length > 0 ? 1 : 0;
  console.log(`${found.length > 0 ? "not ok" : "ok"} ${at + 1} - pictures: ${name} in ${LOOKS.length} looks`);
  for (const fault of found) console.log(`#   ${fault}`);
}
console.log(`# ${pictures.length} pictures: ${join(out, "index.html")}`);
process.exit(failed === 0 ? 0 : 1);
