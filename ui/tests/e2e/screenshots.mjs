// Pictures of every page in both themes and both sizes, and what axe finds on them:
// node tests/e2e/screenshots.mjs OUT [PAGE…]. Against the server in memory, so that they are alike.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { startFake } from "../fake/server.mjs";
import { openBrowser, pageUrl } from "./browser.mjs";

const [out = "shots", ...only] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const SIZES = [
  { width: 1280, height: 800 },
  { width: 1920, height: 1080 },
];
const PAGES = ["welcome", "story", "board", "export", "queue", "models", "settings"];

const fake = await startFake({ scenes: 6 });
const browser = await openBrowser();
let violations = 0;
for (const theme of ["dark", "light"]) {
  for (const viewport of SIZES) {
    const context = await browser.newContext({ viewport });
    await context.addInitScript((wanted) => localStorage.setItem("longtake.prefs", JSON.stringify({ theme: wanted })), theme);
    await fetch(`${fake.url}api/call/settings.set`, { method: "POST", body: JSON.stringify({ field: "theme", value: theme }) });
    const page = await context.newPage();
    page.on("console", (message) => message.type() === "error" && console.log("console:", message.text()));
    page.on("pageerror", (error) => console.log("page error:", error.message));
    for (const name of PAGES.filter((each) => only.length === 0 || only.includes(each))) {
      await page.goto(pageUrl(fake.url, name, { project: fake.project }));
      await page.reload();
      await page.waitForSelector("main h1, main h2", { state: "attached" });
      await page.waitForTimeout(600);
      if (name === "story") await page.locator('[data-row="shot:shot-2"] textarea').nth(1).click();
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
fake.close();
console.log(`axe violations: ${violations}`);
