import { vi } from "vitest";
import type { ProjectState, Scene, Script, Shot } from "../../src/api/shapes";

export function shot(id: string, more: Partial<Shot> = {}): Shot {
  return { id, length: "4 s", fit: "cover", move: "still", transition: "cut", continuity: "cut", ...more };
}

export function script(scenes: Record<string, Shot[]>): Script {
  return {
    longtake: 1,
    title: "T",
    language: "en",
    scenes: Object.entries(scenes).map(([id, shots]): Scene => ({ id, shots })),
  };
}

export function state(of: Script, revision = 1): ProjectState {
  return {
    project: "/p.longtake",
    name: "p",
    revision,
    script: of,
    pictures: {},
    lint: [],
    snapshots: [],
    shots: {},
    film: { width_px: 1280, height_px: 720, fps: "24", secs: 4 },
    proposal: false,
  };
}

export const order = (of: Script): Record<string, string[]> =>
  Object.fromEntries(of.scenes.map((scene) => [scene.id, scene.shots.map((each) => each.id)]));

type Handler = (args: Record<string, unknown>) => unknown;

/** A server that answers commands by these; a thrown "away" is a lost connection. */
export function serve(handlers: Record<string, Handler>): { calls: { name: string; args: Record<string, unknown> }[] } {
  const calls: { name: string; args: Record<string, unknown> }[] = [];
  vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
    const name = path.replace("/api/call/", "");
    const args = JSON.parse(String(init.body)) as Record<string, unknown>;
    calls.push({ name, args });
    const handler = handlers[name];
    if (!handler) return Response.json({ error: { code: "not_found", message: name } }, { status: 404 });
    try {
      return Response.json({ ok: await handler(args) });
    } catch (error) {
      if (error instanceof Error && error.message === "away") throw new TypeError("fetch failed");
      return Response.json({ error: { code: "bad_input", message: String(error instanceof Error ? error.message : error) } }, { status: 400 });
    }
  });
  return { calls };
}
