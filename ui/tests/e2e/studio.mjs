// A real studio for tests: `longtake serve --ui` in folders of its own.
import { spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ui = join(dirname(fileURLToPath(import.meta.url)), "../..");
const START_MILLIS = 60_000;

/** Start the program; its projects, cache and settings lie in a folder that goes with `close`. `env` adds to its environment. */
export async function startStudio(binary, { home = mkdtempSync(join(tmpdir(), "longtake-ui-")), bind = "127.0.0.1:0", env = () => ({}) } = {}) {
  const folder = (name) => {
    mkdirSync(join(home, name), { recursive: true });
    return join(home, name);
  };
  const child = spawn(binary, ["serve", "--ui", "--ui-dir", join(ui, "dist"), "--bind", bind], {
    env: {
      ...process.env,
      XDG_DATA_HOME: folder("data"),
      XDG_CACHE_HOME: folder("cache"),
      XDG_CONFIG_HOME: folder("config"),
      LONGTAKE_DATA: folder("data/longtake"),
      LONGTAKE_CACHE: folder("cache/longtake"),
      LONGTAKE_MODELS: process.env.LONGTAKE_MODELS ?? join(homedir(), ".local/share/longtake/models"),
      LONGTAKE_PROJECTS: folder("films"),
      ...env(home),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log = [];
  const url = await new Promise((found, failed) => {
    const timer = setTimeout(() => failed(new Error(`no address after ${START_MILLIS} ms:\n${log.join("")}`)), START_MILLIS);
    const read = (part) => {
      log.push(part.toString());
      const match = /https?:\/\/[^\s"]+\?token=[0-9a-zA-Z_-]+/.exec(log.join(""));
      if (!match) return;
      clearTimeout(timer);
      found(match[0]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", (code) => failed(new Error(`the studio ended with ${code}:\n${log.join("")}`)));
  });
  const ended = new Promise((done) => child.on("exit", done));
  let next;
  return {
    entry: url,
    url: new URL("/", url).href,
    home,
    log: () => log.join(""),
    kill: async (signal = "SIGKILL") => {
      child.kill(signal);
      await ended;
    },
    /** Start it again at the same address and in the same folders. */
    restart: async () => {
      next = await startStudio(binary, { home, env, bind: new URL(url).host });
      return next;
    },
    close: async () => {
      if (next) return next.close();
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 5_000);
      await ended;
      clearTimeout(timer);
      rmSync(home, { recursive: true, force: true });
    },
  };
}
