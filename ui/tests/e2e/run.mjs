// Drives every page in Chromium and asks the server, not the page, what came of it.
//
//   LONGTAKE_BIN=target/debug/longtake npm run e2e [-- NAME…]     against the program
//   npm run e2e -- --fake [NAME…]                                  against the server in memory
//
// Without LONGTAKE_BIN the tests that need the program are named as skipped. Prints TAP.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { startFake } from "../fake/server.mjs";
import { openBrowser } from "./browser.mjs";
import { startStudio } from "./studio.mjs";
import { board } from "./tests/board.mjs";
import { cluster } from "./tests/cluster.mjs";
import { controls } from "./tests/controls.mjs";
import { drawing } from "./tests/drawing.mjs";
import { exporting } from "./tests/export.mjs";
import { first } from "./tests/first.mjs";
import { household } from "./tests/household.mjs";
import { large } from "./tests/large.mjs";
import { outside } from "./tests/outside.mjs";
import { story } from "./tests/story.mjs";
import { takes } from "./tests/takes.mjs";
import { typing } from "./tests/typing.mjs";
import { welcome } from "./tests/welcome.mjs";
import { writing } from "./tests/writing.mjs";

const TESTS = [...first, ...welcome, ...story, ...writing, ...board, ...takes, ...drawing, ...exporting, ...household, ...cluster, ...controls, ...large, ...typing, ...outside];
const words = process.argv.slice(2);
const fake = words.includes("--fake");
const only = words.filter((word) => !word.startsWith("--"));
const binary = process.env.LONGTAKE_BIN;
const chosen = TESTS.filter((test) => only.length === 0 || only.some((word) => test.name.includes(word)));
const out = process.env.LONGTAKE_E2E_OUT;
if (out) mkdirSync(out, { recursive: true });

const browser = await openBrowser();
let [passed, failed, skipped] = [0, 0, 0];
console.log(`1..${chosen.length}`);
for (const [at, test] of chosen.entries()) {
  if ((fake && test.real) || (!fake && !binary)) {
    skipped += 1;
    console.log(`ok ${at + 1} - ${test.name} # SKIP needs the program: set LONGTAKE_BIN`);
    continue;
  }
  const started = Date.now();
  const studio = fake ? await startFake({ scenes: test.scenes ?? 3 }) : await startStudio(binary, { env: test.env });
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: false });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && /Content Security Policy|Refused to/.test(message.text())) errors.push(message.text());
  });
  const api = async (name, args = {}) => {
    const answer = await (await page.request.post(`${studio.url}api/call/${name}`, { data: args })).json();
    if ("error" in answer) throw new Error(`${name}: ${answer.error.code}: ${answer.error.message}`);
    return answer.ok;
  };
  try {
    await page.goto(studio.entry ?? studio.url);
    await page.waitForSelector("main h1", { state: "attached" });
    await test.run({ page, api, studio, browser, context, fake });
    if (errors.length > 0) throw new Error(`the page reported: ${errors.join("; ")}`);
    passed += 1;
    console.log(`ok ${at + 1} - ${test.name} # time=${Date.now() - started}ms`);
  } catch (error) {
    failed += 1;
    const said = [...String(error.stack ?? error).split("\n").slice(0, 14), ...errors.map((each) => `page: ${each}`)];
    console.log(`not ok ${at + 1} - ${test.name} # time=${Date.now() - started}ms\n${said.map((line) => `#   ${line}`).join("\n")}`);
    if (out) await page.screenshot({ path: join(out, `failed-${test.name.replaceAll(/\W+/g, "-")}.png`) }).catch(() => undefined);
  }
  if (out && !test.real) await page.screenshot({ path: join(out, `${test.name.replaceAll(/\W+/g, "-")}.png`) }).catch(() => undefined);
  await context.close();
  await studio.close();
}
await browser.close();
console.log(`# ${passed} passed, ${failed} failed, ${skipped} not run`);
process.exit(failed === 0 ? 0 : 1);
