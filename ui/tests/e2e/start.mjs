// From the start of a process to a page that can be used: the window's own, under a display of its
// own, and a browser's that is open already. A first start makes folders and opens the sample film;
// those that are measured come after it.
//
//   LONGTAKE_BIN=… LONGTAKE_DESKTOP_BIN=… node tests/e2e/start.mjs [TIMES]
//
// Prints milliseconds as one line of JSON. What WebKit's driver takes to start the window counts.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBrowser } from "./browser.mjs";
import { startStudio } from "./studio.mjs";
import { Window, asker, sleep, startDriver } from "./webdriver.mjs";

const times = Number(process.argv[2] ?? 5);
const { LONGTAKE_BIN: program, LONGTAKE_DESKTOP_BIN: desktop } = process.env;
if (!program || !desktop) throw new Error("set LONGTAKE_BIN and LONGTAKE_DESKTOP_BIN");

// A person can go on.
const READY = '//button[normalize-space()="New project"]';

async function ofWindows() {
  const home = mkdtempSync(join(tmpdir(), "longtake-start-"));
  const folder = (name) => {
    mkdirSync(join(home, name), { recursive: true });
    return join(home, name);
  };
  const driver = await startDriver({
    GDK_BACKEND: "x11",
    WEBKIT_DISABLE_DMABUF_RENDERER: "1",
    TAURI_AUTOMATION: "true",
    TAURI_WEBVIEW_AUTOMATION: "true",
    XDG_DATA_HOME: folder("xdg"),
    XDG_CACHE_HOME: folder("xdg-cache"),
    LONGTAKE_DATA: folder("data"),
    LONGTAKE_CACHE: folder("cache"),
    LONGTAKE_PROJECTS: folder("films"),
  });
  const millis = [];
  try {
    for (let start = 0; start <= times; start += 1) {
      const began = performance.now();
      const window = await Window.open(driver.base, desktop, []);
      await window.find(READY, 90, 10);
      const took = performance.now() - began;
      if (start > 0) millis.push(took);
      else await asker(window)("project.open_sample");
      await window.close();
      await sleep(500);
    }
  } finally {
    driver.stop();
    rmSync(home, { recursive: true, force: true });
  }
  return millis;
}

async function ofPages() {
  const browser = await openBrowser();
  const first = await startStudio(program);
  const millis = [];
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    await page.goto(first.entry);
    await page.request.post(`${first.url}api/call/project.open_sample`, { data: {} });
    await first.kill("SIGTERM");
    for (let start = 0; start < times; start += 1) {
      const began = performance.now();
      const studio = await startStudio(program, { home: first.home });
      await page.goto(studio.entry);
      await page.getByRole("button", { name: "New project" }).first().waitFor();
      millis.push(performance.now() - began);
      await page.goto("about:blank");
      await studio.kill("SIGTERM");
    }
  } finally {
    await browser.close();
    rmSync(first.home, { recursive: true, force: true });
  }
  return millis;
}

console.log(JSON.stringify({ window: await ofWindows(), browser: await ofPages() }));
