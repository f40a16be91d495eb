// Pictures of what opens over the pages, of German, of 200 % zoom and of empty pages:
// node tests/e2e/dialogs.mjs OUT. Against the server in memory.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { startFake } from "../fake/server.mjs";
import { openBrowser, pageUrl } from "./browser.mjs";

const [out = "shots"] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const browser = await openBrowser();
let violations = 0;

async function with_(options, steps) {
  const fake = await startFake({ scenes: 6, empty: options.empty ?? false });
  if (options.language) await fetch(`${fake.url}api/call/settings.set`, { method: "POST", body: JSON.stringify({ field: "language", value: options.language }) });
  if (options.theme) await fetch(`${fake.url}api/call/settings.set`, { method: "POST", body: JSON.stringify({ field: "theme", value: options.theme }) });
  const context = await browser.newContext({ viewport: options.viewport ?? { width: 1280, height: 800 } });
  const page = await context.newPage();
  page.on("pageerror", (error) => console.log("page error:", error.message));
  page.on("console", (message) => message.type() === "error" && console.log("console:", message.text()));
  const open = async (name) => {
    await page.goto(pageUrl(fake.url, name, { project: fake.project }));
    await page.waitForSelector("main h1", { state: "attached" });
    await page.waitForTimeout(500);
  };
  const shot = async (name) => {
    await page.waitForTimeout(250);
    await page.screenshot({ path: join(out, `${name}.png`) });
    const found = await new AxeBuilder({ page }).analyze();
    for (const each of found.violations) {
      violations += 1;
      console.log(`axe ${name}: ${each.id} (${each.impact}): ${each.nodes.length} × ${each.nodes[0]?.html.slice(0, 160)} | ${each.nodes[0]?.any[0]?.message ?? ""}`);
    }
  };
  await steps({ page, open, shot, fake });
  await context.close();
  fake.close();
}

await with_({}, async ({ page, open, shot }) => {
  await open("story");
  await page.getByRole("button", { name: "Write from a premise" }).click();
  await shot("dialog-write");
  await page.getByRole("textbox", { name: "Premise" }).fill("A keeper finds a radio.");
  await page.getByRole("button", { name: "Write", exact: true }).click();
  await page.getByText("proposed changes").waitFor();
  await shot("proposal");
  await page.getByRole("button", { name: "Refuse" }).click();
  for (const tab of ["Cast", "Places", "Checks", "Versions"]) {
    await page.getByRole("tab", { name: tab }).click();
    await shot(`story-${tab.toLowerCase()}`);
  }
  await page.getByRole("button", { name: "Find in the script" }).click();
  await page.getByRole("textbox", { name: "Find in the script" }).fill("letter");
  await page.waitForTimeout(500);
  await shot("story-find");
  await page.getByRole("button", { name: "What to do with shot 1.1" }).click();
  await shot("story-menu");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.waitForTimeout(100);
  await page.keyboard.type("re");
  await shot("palette");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await open("board");
  await page.getByRole("button", { name: /missing$/ }).click();
  await shot("dialog-render");
  await page.keyboard.press("Escape");
  await page.locator('[data-card="shot-3"]').click();
  await shot("board-camera");
  await open("queue");
  await page.getByRole("button", { name: /^Log of Make the whole film/ }).click();
  await shot("dialog-log");
  await page.keyboard.press("Escape");
  await open("welcome");
  await page.getByRole("button", { name: "New project" }).click();
  await shot("dialog-new");
});
await with_({ language: "de" }, async ({ open, shot }) => {
  for (const page of ["welcome", "story", "board", "export", "queue", "models", "settings"]) {
    await open(page);
    await shot(`de-${page}`);
  }
});
await with_({ empty: true, theme: "light" }, async ({ open, shot }) => {
  for (const page of ["welcome", "queue", "export"]) {
    await open(page);
    await shot(`empty-${page}`);
  }
});
// 200 % of 1280x800 is a view of 640x400.
await with_({ viewport: { width: 640, height: 400 } }, async ({ open, shot }) => {
  for (const page of ["welcome", "story", "board", "export", "queue", "models", "settings"]) {
    await open(page);
    await shot(`zoom-${page}`);
  }
});
await browser.close();
console.log(`axe violations: ${violations}`);
