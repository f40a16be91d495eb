// Drives the window itself, under a display of its own, through WebKit's driver: a premise becomes
// a film that ffprobe accepts.
//
//   LONGTAKE_DESKTOP_BIN=target/debug/longtake-desktop npm run e2e:window
//
// Prints TAP. LONGTAKE_E2E_OUT keeps screenshots.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Window, asker, sleep, startDriver, until } from "./webdriver.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const binary = process.env.LONGTAKE_DESKTOP_BIN;
const out = process.env.LONGTAKE_E2E_OUT;
const STILL = join(root, "assets/samples/stills/dust-bowl-home.jpg");

const button = (name) => `//button[not(@disabled)][normalize-space()="${name}" or @aria-label="${name}"]`;
const labelled = (name) =>
  `//*[self::input or self::textarea][@aria-label="${name}" or @id=//label[normalize-space()="${name}"]/@for]`;

function lacking() {
  if (!binary) return "set LONGTAKE_DESKTOP_BIN";
  const tools = ["xvfb-run", "dbus-run-session", "WebKitWebDriver"];
  const gone = tools.filter((tool) => spawnSync("sh", ["-c", `command -v ${tool}`]).status !== 0);
  if (spawnSync("/usr/bin/python3", ["-c", "import dbus, gi"]).status !== 0) gone.push("python3-dbus", "python3-gi");
  return gone.length > 0 ? `needs ${gone.join(", ")}` : undefined;
}

/** Takes the focus from every window of the display, or gives it to the one under the pointer. */
const FOCUS = `import ctypes, sys
x = ctypes.CDLL("libX11.so.6")
x.XOpenDisplay.restype = ctypes.c_void_p
display = ctypes.c_void_p(x.XOpenDisplay(None))
x.XSetInputFocus(display, ctypes.c_ulong({"none": 0, "pointer": 1}[sys.argv[1]]), 0, ctypes.c_ulong(0))
x.XSync(display, 0)`;
function focus(driver, on) {
  assert.equal(driver.runBeside(["/usr/bin/python3", "-c", FOCUS, on]), 0, "the display's focus");
}

async function premiseToFilm(window, driver, keep) {
  const api = asker(window);
  await window.find('//h1[normalize-space()="Your films"]', 90);
  keep("welcome");

  await window.click(button("New project"));
  await window.fill(`//*[@role="dialog"]${labelled("Title")}`, "Window test");
  await window.click(button("Create project"));
  await window.find('//*[starts-with(@data-row, "shot:")]');
  const [{ path: project }] = await api("app.recent");
  const state = () => api("project.state", { project });

  await window.click(button("Write from a premise"));
  await window.fill(`//*[@role="dialog"]${labelled("Premise")}`, "Two neighbours share one ladder all summer.");
  await window.fill(`//*[@role="dialog"]${labelled("Length asked for")}`, "12 s");
  await window.click(button("Write"));
  await window.click(`//button[not(@disabled)][starts-with(normalize-space(), "Take ")]`, 300);
  const written = await until("the script", 30, async () => {
    const now = await state();
    return now.script.scenes.flatMap((scene) => scene.shots).length > 1 && now;
  });
  keep("story");

  const shots = written.script.scenes.flatMap((scene) => scene.shots);
  const spoken = shots.find((shot) => (shot.lines ?? []).length > 0) ?? shots[0];
  const before = written.revision;
  const field = `(//*[@data-row="shot:${spoken.id}"]//*[self::textarea or @role="textbox"])[last()]`;
  await window.fill(field, "The ladder stands where we left it.");
  await window.run("document.activeElement.blur()");
  await until("the edit", 20, async () => (await state()).revision > before);
  assert.match(JSON.stringify((await state()).script), /The ladder stands where we left it\./);

  await window.click('//a[normalize-space()="Board"]');
  for (const shot of shots) {
    await window.click(`//*[@data-shot="${shot.id}" or @data-card="${shot.id}"]`);
    const chooser = await window.find('//input[@type="file"]');
    await window.ask(`element/${chooser}/value`, "POST", { text: STILL });
    await until(`a still on ${shot.id}`, 30, async () => {
      const now = (await state()).script.scenes.flatMap((scene) => scene.shots);
      return now.find((each) => each.id === shot.id).picture;
    });
  }
  keep("board");

  await window.click(button("Make the whole film"));
  await window.click(button("Start"));
  await window.click('//a[contains(., "Queue")]');
  keep("queue");
  await until("the shots", 240, async () => {
    const job = (await api("queue.list")).find((each) => each.kind === "render.start");
    if (job?.state === "failed") throw new Error(job.error);
    return job?.state === "done";
  });

  await window.click('//a[normalize-space()="Export"]');
  await window.click(button("Export film"));
  // Whoever looks away while the film is written is told when it is there.
  focus(driver, "none");
  const film = await until("the film", 240, async () => {
    const failed = (await api("queue.list")).find((job) => job.state === "failed");
    if (failed) throw new Error(failed.error);
    return (await api("export.list", { project }))[0];
  });
  focus(driver, "pointer");
  const probed = JSON.parse(
    execFileSync("ffprobe", ["-v", "error", "-show_streams", "-show_format", "-of", "json", film.path]).toString(),
  );
  const kinds = probed.streams.map((stream) => stream.codec_type);
  assert.ok(kinds.includes("video") && kinds.includes("audio"), kinds.join());
  assert.ok(Math.abs(Number(probed.format.duration) - (await state()).film.secs) < 0.1, probed.format.duration);

  await window.find("//video", 30);
  await window.run("const video = document.querySelector('video'); video.muted = true; video.play();");
  await until("moving pictures in the window", 20, async () => {
    const at = await window.run(
      "const v = document.querySelector('video'); return { secs: v.currentTime, ready: v.readyState, network: v.networkState, error: v.error?.message, code: v.error?.code }",
    );
    if (!(at.secs > 0.3)) throw new Error(JSON.stringify(at));
    return true;
  });
  keep("export");
}

async function killedInAnEdit(open, keep) {
  const { window, pid } = await open();
  const api = asker(window);
  await window.click(button("Open the sample film"), 90);
  const row = await window.find('//*[starts-with(@data-row, "shot:")]', 30);
  assert.ok(row);
  const [{ path: project }] = await api("app.recent");
  const { script, revision } = await api("project.state", { project });
  const [shot] = script.scenes[0].shots;
  await api("project.edit", {
    project,
    edit: { edit: "set", kind: "shot", id: shot.id, field: "/note", value: "kept" },
  });
  process.kill(pid(), "SIGKILL");
  await sleep(500);

  const again = await open();
  const asked = asker(again.window);
  await again.window.find('//h1[normalize-space()="Your films"]', 90);
  await asked("project.open", { project });
  const after = await asked("project.state", { project });
  assert.equal(after.script.scenes[0].shots[0].note, "kept");
  assert.ok(after.revision >= revision);
  assert.ok(after.undo, "the edit can still be taken back");
  keep("after-kill");
  await again.window.close();
}

/** What the desktop was told while the first test's jobs ran; it has written all of it down. */
async function toldTheDesktop(log) {
  const told = () => readFileSync(log, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  // Of the jobs that ended in front of the window's focus nobody is told what they see.
  const notices = () => told().filter((each) => each.what === "notice");
  await until("the notice of the export", 10, () => notices().length > 0);
  const [{ icon, title, body }, ...more] = notices();
  assert.deepEqual([icon, title, more], ["longtake", "Longtake has finished", []]);
  assert.match(body, /^Export .+\.mp4$/);
  const of = (what, kind) => told().filter((each) => each.what === what && each.of === kind).length;
  for (const kind of ["idle", "sleep"]) {
    assert.ok(of("hold", kind) >= 2, `${kind} was held off while each job ran`);
    await until(`the end of every hold on ${kind}`, 10, () => of("release", kind) === of("hold", kind));
  }
  assert.ok(told().every((each) => each.what !== "hold" || (each.who === "Longtake" && each.mode === "block")));
}

/** A second start ends by itself, and the first window shows the project that it named. */
async function secondStart(open) {
  const { window, driver } = await open();
  const api = asker(window);
  await window.find('//h1[normalize-space()="Your films"]', 90);
  const { project } = await api("project.create", { name: "Opened by name", preset: "wide", fps: "24", language: "en" });
  const shown = (path) => async () => (await window.run("return decodeURIComponent(location.hash.replaceAll('+', ' '))")) === `#/story?project=${path}`;
  assert.equal(driver.runBeside([binary, `${basename(project)}/project.db`], dirname(project)), 0);
  await until("the project of the second start", 20, shown(project));
  await window.find('//*[starts-with(@data-row, "shot:")]', 30);
  await window.run("location.hash = '/welcome'");
  assert.equal(driver.runBeside([binary], dirname(project)), 0);
  await until("the page stays", 5, async () => (await window.run("return location.hash")) === "#/welcome");
  await window.close();

  const named = await open([project]);
  await until("the project named at the start", 60, async () => (await named.window.run("return decodeURIComponent(location.hash.replaceAll('+', ' '))")) === `#/story?project=${project}`);
  await named.window.find('//*[starts-with(@data-row, "shot:")]', 30);
  await named.window.close();
}

/** Where a studio runs already, the window shows that one, and leaves it running. */
async function joinsTheOneThatRuns(open, serve) {
  const server = await serve();
  try {
    const { window } = await open();
    await window.find('//h1[normalize-space()="Your films"]', 90);
    assert.equal(await window.run("return location.origin"), new URL(server.url).origin);
    const made = await asker(window)("project.create", { name: "Joined", preset: "wide", fps: "24", language: "en" });
    await window.close();
    const recent = await server.ask("app.recent");
    assert.equal(recent[0].path, made.project, "the studio goes on without the window");
  } finally {
    await server.stop();
  }
}

async function main() {
  const tests = [
    "window: a premise becomes a film",
    "window: nothing sleeps while jobs run; who looks away is told what ended, once",
    "window: killed in an edit, nothing is lost",
    "window: a second start shows its project in the first window",
    "window: a studio that runs already is joined",
  ];
  console.log(`1..${tests.length}`);
  const reason = lacking();
  if (reason) {
    tests.forEach((name, at) => console.log(`ok ${at + 1} - ${name} # SKIP ${reason}`));
    return 0;
  }
  const home = mkdtempSync(join(tmpdir(), "longtake-window-"));
  const folder = (name) => {
    mkdirSync(join(home, name), { recursive: true });
    return join(home, name);
  };
  const drivers = [];
  // A machine without a sound card has no clock for a film's sound: this one swallows it in time.
  const sound = join(home, "asound.conf");
  writeFileSync(sound, "pcm.!default { type null }\nctl.!default { type null }\n");
  // A driver of its own for each start: it thinks that a killed window is still there.
  const log = join(home, "desktop.jsonl");
  const places = {
    LONGTAKE_DATA: folder("data"),
    LONGTAKE_CACHE: folder("cache"),
    LONGTAKE_PROJECTS: folder("films"),
    LONGTAKE_MODELS: process.env.LONGTAKE_MODELS ?? join(homedir(), ".local/share/longtake/models"),
  };
  const open = async (args = []) => {
    const env = {
      GDK_BACKEND: "x11",
      WEBKIT_DISABLE_DMABUF_RENDERER: "1",
      TAURI_AUTOMATION: "true",
      TAURI_WEBVIEW_AUTOMATION: "true",
      ALSA_CONFIG_PATH: sound,
      ...places,
    };
    const driver = await startDriver(env, { log });
    drivers.push(driver);
    const window = await Window.open(driver.base, binary, args);
    return { window, driver, pid: () => pidOf(binary, home) };
  };
  const keep = (name) => {
    if (!out) return;
    mkdirSync(out, { recursive: true });
    try {
      drivers.at(-1).picture(join(out, `window-${name}.png`));
    } catch {
      // A test does not fail for want of a picture (ImageMagick may not be here).
    }
  };
  let failed = 0;
  const run = async (at, work) => {
    const started = Date.now();
    try {
      await work();
      console.log(`ok ${at} - ${tests[at - 1]} # time=${Date.now() - started}ms`);
    } catch (error) {
      failed += 1;
      const said = `${error.stack ?? error}\n${drivers.at(-1)?.said() ?? ""}`.split("\n").slice(0, 24);
      console.log(`not ok ${at} - ${tests[at - 1]}\n${said.map((line) => `#   ${line}`).join("\n")}`);
    }
  };
  await run(1, async () => {
    const { window, driver } = await open();
    try {
      await premiseToFilm(window, driver, keep);
    } catch (error) {
      keep("failed");
      throw error;
    } finally {
      await window.close().catch(() => undefined);
    }
  });
  await run(2, () => toldTheDesktop(log));
  await run(3, () => killedInAnEdit(open, keep));
  await run(4, () => secondStart(open));
  await run(5, () => joinsTheOneThatRuns(open, () => startServer(places)));
  for (const driver of drivers) driver.stop();
  rmSync(home, { recursive: true, force: true });
  return failed === 0 ? 0 : 1;
}

/** `longtake serve --ui` on the folders of the window. */
async function startServer(places) {
  assert.ok(process.env.LONGTAKE_BIN, "set LONGTAKE_BIN");
  const env = { ...process.env, ...places };
  const child = spawn(process.env.LONGTAKE_BIN, ["serve", "--ui", "--json"], { env, stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise((done) => child.on("exit", done));
  let said = "";
  child.stdout.on("data", (bytes) => (said += bytes));
  const { url, token } = JSON.parse(await until("the server's line", 30, () => said.includes("\n") && said));
  const ask = async (name) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(new URL(`/api/call/${name}`, url), { method: "POST", headers, body: "{}" });
    return (await answer.json()).ok;
  };
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
  };
  return { url, ask, stop };
}

/** The window's process that works in `home`: never another one of the same name. */
function pidOf(program, home) {
  for (const name of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    try {
      const exe = execFileSync("readlink", [`/proc/${name}/exe`]).toString().trim();
      const environment = execFileSync("cat", [`/proc/${name}/environ`]).toString();
      if (exe === program && environment.includes(`LONGTAKE_DATA=${join(home, "data")}`)) return Number(name);
    } catch {
      // It ended meanwhile, or belongs to somebody else.
    }
  }
  throw new Error("cannot find the window's process");
}

process.exit(await main());
