import { beforeEach, describe, expect, it, vi } from "vitest";
import { edit, flush, forgetOpen, settle, useEdits, whenRefused } from "../../src/api/edits";
import { keepEdits } from "../../src/api/kept";
import { merged } from "../../src/api/project";
import { useQueries } from "../../src/api/queries";
import type { Edit } from "../../src/api/shapes";
import { script, serve, shot, state } from "./kit";

const P = "/p.longtake";
const set = (value: string): Edit => ({ edit: "set", kind: "shot", id: "a1", field: "/action", value });
const sent = (calls: { name: string; args: Record<string, unknown> }[]): unknown[] =>
  calls.filter((call) => call.name === "project.edit").map((call) => (call.args["edit"] as { value: string }).value);

beforeEach(() => {
  useEdits.setState({ pending: [], reachable: true, why: undefined });
  useQueries.setState({ entries: {} });
  forgetOpen();
  whenRefused(() => undefined);
  localStorage.clear();
  sessionStorage.clear();
});

describe("edits on their way", () => {
  const base = state(script({ a: [shot("a1")] }), 5);
  const action = (): string | undefined => merged(base, useEdits.getState().pending).script.scenes[0]?.shots[0]?.action;

  it("are seen at once and stay until the server's state holds them", async () => {
    serve({ "project.open": () => base, "project.edit": () => ({ revision: 6, label: "x" }) });
    edit(P, set("one"));
    expect(action()).toBe("one");
    await flush();
    expect(action()).toBe("one");
    settle(P, 5);
    expect(action()).toBe("one");
    settle(P, 6);
    expect(useEdits.getState().pending).toEqual([]);
  });

  it("go out one after the other, in order", async () => {
    let revision = 5;
    let inside = 0;
    const { calls } = serve({
      "project.open": () => base,
      "project.edit": async () => {
        inside += 1;
        expect(inside).toBe(1);
        await new Promise((done) => setTimeout(done, 5));
        inside -= 1;
        revision += 1;
        return { revision };
      },
    });
    for (const value of ["one", "two", "three"]) edit(P, set(value));
    await flush();
    expect(sent(calls)).toEqual(["one", "two", "three"]);
    expect(useEdits.getState().pending.map((each) => each.taken)).toEqual([6, 7, 8]);
  });

  it("wait while the server is away and are sent again in order", async () => {
    let away = true;
    const { calls } = serve({
      "project.open": () => {
        if (away) throw new Error("away");
        return base;
      },
      "project.edit": () => ({ revision: 9 }),
    });
    edit(P, set("one"));
    edit(P, set("two"));
    await flush();
    expect(useEdits.getState().reachable).toBe(false);
    expect(useEdits.getState().pending).toHaveLength(2);
    expect(action()).toBe("two");
    away = false;
    await flush();
    expect(sent(calls)).toEqual(["one", "two"]);
    expect(useEdits.getState().reachable).toBe(true);
  });

  it("that are refused are taken back, and the next ones still go", async () => {
    const told = vi.fn();
    whenRefused(told);
    serve({
      "project.open": () => base,
      "project.edit": (args) => {
        if ((args["edit"] as { value: string }).value === "bad") throw new Error("too long");
        return { revision: 6 };
      },
    });
    edit(P, set("bad"));
    edit(P, { edit: "set", kind: "shot", id: "a1", field: "/note", value: "kept" });
    await flush();
    expect(told).toHaveBeenCalledOnce();
    expect(told.mock.calls[0]?.[1]).toBe("too long");
    expect(action()).toBeUndefined();
    expect(merged(base, useEdits.getState().pending).script.scenes[0]?.shots[0]?.note).toBe("kept");
  });

  it("wait when the disk is full, and say so", async () => {
    let full = true;
    vi.stubGlobal("fetch", async (path: string) => {
      if (path.endsWith("project.open")) return Response.json({ ok: base });
      return full ? Response.json({ error: { code: "disk_full", message: "the disk is full" } }, { status: 507 }) : Response.json({ ok: { revision: 6 } });
    });
    edit(P, set("one"));
    await flush();
    expect(useEdits.getState()).toMatchObject({ reachable: false, why: "the disk is full" });
    expect(action()).toBe("one");
    full = false;
    await flush();
    expect(useEdits.getState()).toMatchObject({ reachable: true, why: undefined });
    expect(useEdits.getState().pending[0]?.taken).toBe(6);
  });

  it("carry a name of their own, the same when they are sent again", async () => {
    let away = true;
    const { calls } = serve({
      "project.open": () => base,
      "project.edit": () => {
        if (away) throw new Error("away");
        return { revision: 6 };
      },
    });
    edit(P, set("one"));
    await flush();
    away = false;
    await flush();
    const keys = calls.filter((call) => call.name === "project.edit").map((call) => call.args["edit_key"]);
    expect(keys).toHaveLength(2);
    expect(keys[0]).toBe(keys[1]);
  });

  it("outlive the page", async () => {
    const places = { local: localStorage, session: sessionStorage, locks: undefined };
    serve({
      "project.open": () => {
        throw new Error("away");
      },
    });
    const stop = await keepEdits(places);
    edit(P, set("one"));
    await flush();
    stop();
    useEdits.setState({ pending: [], reachable: true, why: undefined });
    const { calls } = serve({ "project.open": () => base, "project.edit": () => ({ revision: 6 }) });
    const stopAgain = await keepEdits(places);
    await flush();
    stopAgain();
    expect(sent(calls)).toEqual(["one"]);
    expect(localStorage).toHaveLength(0);
  });

  it("of a tab that is gone are taken up, those of a living one are not", async () => {
    const left = (value: string) => JSON.stringify([{ key: value, project: P, edit: set(value) }]);
    localStorage.setItem("longtake.edits.gone", left("orphan"));
    localStorage.setItem("longtake.edits.alive", left("busy"));
    const locks = {
      request: async (name: string, ...rest: unknown[]) => {
        const run = rest.at(-1) as (lock: unknown) => unknown;
        if (rest.length === 1) return undefined;
        return run(name.endsWith("gone") ? {} : null);
      },
    } as unknown as LockManager;
    const { calls } = serve({ "project.open": () => base, "project.edit": () => ({ revision: 6 }) });
    const stop = await keepEdits({ local: localStorage, session: sessionStorage, locks });
    await flush();
    stop();
    expect(sent(calls)).toEqual(["orphan"]);
    expect(localStorage.getItem("longtake.edits.alive")).not.toBeNull();
    expect(localStorage.getItem("longtake.edits.gone")).toBeNull();
  });

  it("of a broken store do no harm", async () => {
    sessionStorage.setItem("longtake.tab", "t");
    localStorage.setItem("longtake.edits.t", "{broken");
    const stop = await keepEdits({ local: localStorage, session: sessionStorage, locks: undefined });
    stop();
    expect(useEdits.getState().pending).toEqual([]);
    expect(localStorage.getItem("longtake.edits.t")).toBeNull();
  });

  it("are not seen twice when the server's state is there before the answer", () => {
    useEdits.setState({ pending: [{ key: "k", project: P, edit: { edit: "add", kind: "shot", scene: "a", body: { id: "n", length: "1 s" } } }] });
    const holds = state(script({ a: [shot("n"), shot("a1")] }), 6);
    expect(merged(holds, useEdits.getState().pending).script.scenes[0]?.shots.map((each) => each.id)).toEqual(["n", "a1"]);
  });
});
