// A client of the W3C WebDriver protocol, as much of it as driving the window takes.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";

export async function freePort() {
  const server = createServer();
  await new Promise((done, failed) => server.once("error", failed).listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

export const sleep = (millis) => new Promise((done) => setTimeout(done, millis));

/** Asks again until `ask` gives something, at most `secs`, or fails with an error that is `final`. */
export async function until(what, secs, ask, everyMillis = 150) {
  const end = Date.now() + secs * 1000;
  let last = "nothing came";
  while (Date.now() < end) {
    try {
      const got = await ask();
      if (got) return got;
    } catch (error) {
      if (error.final) throw error;
      last = error.message;
    }
    await sleep(everyMillis);
  }
  throw new Error(`waited ${secs} s for ${what}: ${last}`);
}

// Says which display and bus it was given, starts the test's own desktop where a log is named for
// it, then becomes the driver.
const SESSION = `echo "display=$DISPLAY authority=$XAUTHORITY bus=$DBUS_SESSION_BUS_ADDRESS" >&2
if [ -n "$2" ]; then
  export DBUS_SYSTEM_BUS_ADDRESS="$DBUS_SESSION_BUS_ADDRESS"
  /usr/bin/python3 "$3" "$2" &
fi
exec WebKitWebDriver --port="$1"`;
const DESKTOP = fileURLToPath(new URL("desktop.py", import.meta.url));

/**
 * A display, a message bus and WebKit's driver of their own; all end with `stop`. `through` are
 * words of a command that runs what follows it somewhere else, such as in another system's folder.
 * With `log` there is a desktop too, which writes there what it is told: see desktop.py.
 */
export async function startDriver(env, { through = [], log = "" } = {}) {
  const port = await freePort();
  const set = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const inside = (words, more = {}) => [...through, "env", ...set, ...Object.entries(more).map(([name, value]) => `${name}=${value}`), ...words];
  const [program, ...args] = inside(["xvfb-run", "-a", "-s", "-screen 0 1440x900x24", "dbus-run-session", "--", "sh", "-c", SESSION, "sh", String(port), log, DESKTOP]);
  const child = spawn(program, args, { detached: true, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  let display;
  child.stderr.on("data", (bytes) => {
    said = (said + bytes).slice(-4000);
    const [, DISPLAY, XAUTHORITY, bus] = /display=(\S+) authority=(\S+) bus=(\S+)/.exec(said) ?? [];
    if (DISPLAY) display ??= { DISPLAY, XAUTHORITY, DBUS_SESSION_BUS_ADDRESS: bus };
  });
  let gone = null;
  child.on("error", (error) => (gone = error.message));
  child.on("exit", (code) => (gone ??= `ended with ${code}: ${said}`));
  const base = `http://127.0.0.1:${port}`;
  await until("the window's driver", 20, async () => {
    if (gone) throw new Error(gone);
    return (await fetch(`${base}/status`)).ok;
  });
  const stop = () => {
    try {
      process.kill(-child.pid, "SIGTERM");
    } catch {
      // It has ended by itself.
    }
  };
  /** What stands on the display, window frames and all; WebKit's own pictures of a page hang here. */
  const picture = (path) => {
    const [import_, ...args] = inside(["import", "-window", "root", "png:-"], display);
    writeFileSync(path, execFileSync(import_, args, { timeout: 20_000, maxBuffer: 64 << 20 }));
  };
  /** Runs a program on the same display and bus to its end; gives its status. */
  const runBeside = (words, cwd) => {
    const [first, ...rest] = inside(words, display);
    return spawnSync(first, rest, { cwd, timeout: 30_000 }).status;
  };
  return { base, stop, said: () => said, picture, runBeside };
}

export class Window {
  constructor(base, session) {
    this.base = `${base}/session/${session}`;
  }

  static async open(base, binary, args) {
    const options = { "webkitgtk:browserOptions": { binary, args } };
    const { sessionId } = await call(`${base}/session`, "POST", { capabilities: { alwaysMatch: options } });
    return new Window(base, sessionId);
  }

  ask(path, method = "GET", body) {
    return call(`${this.base}/${path}`, method, body);
  }

  /** Runs `text` in the page; `arguments` are `args`. */
  run(text, ...args) {
    return this.ask("execute/sync", "POST", { script: text, args });
  }

  async find(xpath, secs = 15, everyMillis) {
    const ask = async () => (await this.ask("element", "POST", { using: "xpath", value: xpath }))[ELEMENT];
    return until(xpath, secs, ask, everyMillis);
  }

  async click(xpath, secs) {
    return until(`a click on ${xpath}`, secs ?? 15, async () => {
      const id = await this.find(xpath, 1);
      await this.ask(`element/${id}/click`, "POST", {});
      return true;
    });
  }

  /** Puts `text` in the place of a field's. */
  async fill(xpath, text) {
    const id = await this.find(xpath);
    await this.click(xpath);
    await this.run("arguments[0].select()", { [ELEMENT]: id });
    await this.ask(`element/${id}/value`, "POST", { text });
  }

  close() {
    return call(this.base, "DELETE");
  }
}

/** What the page's own session may ask the studio. */
export function asker(window) {
  return async (name, args = {}) => {
    const text = `
      const [name, args] = arguments;
      const request = new XMLHttpRequest();
      request.open("POST", "/api/call/" + name, false);
      request.setRequestHeader("content-type", "application/json");
      request.send(JSON.stringify(args));
      return request.responseText;`;
    const answer = JSON.parse(await window.run(text, name, args));
    if ("error" in answer) throw new Error(`${name}: ${answer.error.code}: ${answer.error.message}`);
    return answer.ok;
  };
}

async function call(url, method, body) {
  const answer = await fetch(url, {
    method,
    headers: { "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(60_000),
  });
  const { value } = await answer.json();
  if (!answer.ok) throw new Error(`${method} ${url.split("/").slice(-2).join("/")}: ${value?.error} ${value?.message}`);
  return value;
}
