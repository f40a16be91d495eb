// Frames while a board of 300 shots scrolls, and keys typed into a story of 60 scenes:
// node tests/e2e/speed.mjs. Against the program when LONGTAKE_BIN names it, else against the
// server in memory. Prints milliseconds as JSON.
import { startFake } from "../fake/server.mjs";
import { openBrowser, pageUrl } from "./browser.mjs";
import { startStudio } from "./studio.mjs";
import { makeLarge } from "./tests/large.mjs";

const spread = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (part) => Math.round((sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0) * 10) / 10;
  return { count: sorted.length, median: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1), over_50: sorted.filter((value) => value > 50).length };
};

export async function measure(page, url, project) {
  // Keys: the browser's own event timing, from the press to the next picture.
  await page.goto(pageUrl(url, "story", { project }));
  await page.waitForSelector('[data-row^="shot:"]');
  await page.waitForTimeout(1500);
  await page.evaluate(() => {
    window.keys = [];
    window.long = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (entry.name === "keydown") window.keys.push([entry.processingEnd - entry.processingStart, entry.duration]);
    }).observe({ type: "event", durationThreshold: 16 });
    new PerformanceObserver((list) => window.long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "long-animation-frame" });
  });
  const field = page.locator('[data-row^="shot:"] textarea').nth(1);
  await field.click();
  await field.press("End");
  const presses = [];
  for (const letter of "and then the light went out over the harbour, and nobody said a word about it.") {
    const took = await page.evaluate(
      (wanted) =>
        new Promise((done) => {
          const target = document.activeElement;
          const start = performance.now();
          // As a key does: the value, the event, the picture after it.
          document.execCommand("insertText", false, wanted);
          const after = performance.now();
          requestAnimationFrame(() => requestAnimationFrame(() => done([after - start, performance.now() - start, target.value.length])));
        }),
      letter,
    );
    presses.push(took);
    await page.waitForTimeout(15);
  }
  await page.keyboard.type(" Then it came back, slowly, as if it had only been away.", { delay: 40 });
  await page.waitForTimeout(1500);
  const { keys, long } = await page.evaluate(() => ({ keys: window.keys, long: window.long }));
  const typing = {
    work_per_key: spread(presses.map(([work]) => work)),
    key_to_picture: spread(presses.map(([, whole]) => whole)),
    slow_key_events: keys.length,
    event_timing_max: Math.max(0, ...keys.map(([, duration]) => duration)),
    long_frames: long.map(Math.round),
  };

  // Frames: scroll from top to bottom and back with the wheel's own events.
  await page.goto(pageUrl(url, "board", { project }));
  await page.waitForSelector("[data-card]");
  await page.waitForTimeout(1500);
  await page.mouse.move(500, 500);
  await page.evaluate(() => {
    window.frames = [];
    window.long = [];
    window.going = true;
    new PerformanceObserver((list) => window.long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "long-animation-frame" });
    let last = performance.now();
    const tick = (now) => {
      window.frames.push(now - last);
      last = now;
      if (window.going) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  for (let step = 0; step < 120; step += 1) {
    await page.mouse.wheel(0, step < 60 ? 400 : -400);
    await page.waitForTimeout(16);
  }
  const scrolled = await page.evaluate(() => {
    window.going = false;
    return { frames: window.frames.slice(2), long: window.long, cards: document.querySelectorAll("[data-card]").length };
  });
  return { typing, scrolling: { ...spread(scrolled.frames), long_frames: scrolled.long.map(Math.round), cards_drawn: scrolled.cards } };
}

if (process.argv[1]?.endsWith("speed.mjs")) {
  const studio = process.env.LONGTAKE_BIN ? await startStudio(process.env.LONGTAKE_BIN) : await startFake({ scenes: 60 });
  const browser = await openBrowser();
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(studio.entry ?? studio.url);
  const api = async (name, args = {}) => (await (await page.request.post(`${studio.url}api/call/${name}`, { data: args })).json()).ok;
  const { project } = await api("project.open_sample");
  if (studio.entry) await makeLarge(api, project);
  // The first look at a new film plans all of it; from then on only what changed is looked at.
  await api("project.state", { project });
  const start = Date.now();
  await page.goto(pageUrl(studio.url, "story", { project }));
  await page.reload();
  await page.waitForSelector('[data-row^="shot:"]');
  const warm_start = Date.now() - start;
  console.log(JSON.stringify({ warm_start, ...(await measure(page, studio.url, project)) }, null, 1));
  await browser.close();
  await studio.close();
}
