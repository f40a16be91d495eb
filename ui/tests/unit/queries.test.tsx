import { act, render, screen, waitFor } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { invalidate, keyOf, put, useQueries, useQuery } from "../../src/api/queries";
import { share } from "../../src/api/share";
import { serve, shot } from "./kit";

beforeEach(() => useQueries.setState({ entries: {} }));

function Voices() {
  const { data, error, loading } = useQuery("voices.list", {});
  return <p>{loading ? "loading" : (error ?? data?.map((voice) => voice.id).join(","))}</p>;
}

const voice = (id: string) => ({ id, title: id, language: "en", licence: "MIT", default: false });

describe("answers kept", () => {
  it("are asked for once however many look, and again when they are out of date", async () => {
    let list = [voice("a")];
    const { calls } = serve({ "voices.list": () => list });
    render(
      <>
        <Voices />
        <Voices />
      </>,
    );
    expect(screen.getAllByText("loading")).toHaveLength(2);
    await waitFor(() => expect(screen.getAllByText("a")).toHaveLength(2));
    expect(calls).toHaveLength(1);
    list = [voice("a"), voice("b")];
    act(() => invalidate("voices.list"));
    await waitFor(() => expect(screen.getAllByText("a,b")).toHaveLength(2));
    expect(calls).toHaveLength(2);
  });

  it("that nobody looks at wait until somebody does", async () => {
    const { calls } = serve({ "voices.list": () => [voice("a")] });
    put("voices.list", {}, [voice("old")]);
    act(() => invalidate("voices.list"));
    expect(calls).toHaveLength(0);
    render(<Voices />);
    expect(screen.getByText("old")).toBeTruthy();
    await waitFor(() => expect(screen.getByText("a")).toBeTruthy());
  });

  it("that somebody else is at are asked for again", async () => {
    let tries = 0;
    vi.stubGlobal("fetch", async () => {
      tries += 1;
      return tries < 3 ? Response.json({ error: { code: "busy", message: "busy" } }, { status: 409 }) : Response.json({ ok: [voice("a")] });
    });
    render(<Voices />);
    await waitFor(() => expect(screen.getByText("a")).toBeTruthy(), { timeout: 3000 });
    expect(tries).toBe(3);
  });

  it("that failed say why", async () => {
    serve({
      "voices.list": () => {
        throw new Error("no voices");
      },
    });
    render(<Voices />);
    await waitFor(() => expect(screen.getByText("no voices")).toBeTruthy());
  });

  it("that go out of date on their way are asked for again", async () => {
    let answer = "one";
    let release: () => void = () => undefined;
    const { calls } = serve({
      "voices.list": async () => {
        const now = answer;
        await new Promise<void>((done) => {
          release = done;
        });
        return [voice(now)];
      },
    });
    render(<Voices />);
    await waitFor(() => expect(calls).toHaveLength(1));
    answer = "two";
    act(() => invalidate("voices.list"));
    release();
    await waitFor(() => expect(calls).toHaveLength(2));
    release();
    await waitFor(() => expect(screen.getByText("two")).toBeTruthy());
  });

  it("have one key whatever the order of the arguments", () => {
    expect(keyOf("project.find", { project: "p", text: "x" })).toBe(keyOf("project.find", { text: "x", project: "p" }));
  });
});

describe("sharing", () => {
  it("keeps what did not change", () => {
    const old = { a: [shot("1"), shot("2")], b: { c: 1 } };
    const next = share(old, { a: [shot("1"), shot("2", { action: "x" })], b: { c: 1 } });
    expect(next.a[0]).toBe(old.a[0]);
    expect(next.a[1]).not.toBe(old.a[1]);
    expect(next.b).toBe(old.b);
    expect(share(old, structuredClone(old))).toBe(old);
  });

  it("sees a field that went away and a list that got shorter", () => {
    expect(share({ a: 1, b: 2 }, { a: 1 })).toEqual({ a: 1 });
    expect(share([1, 2], [1])).toEqual([1]);
    expect(share({ a: undefined }, { b: undefined })).toEqual({ b: undefined });
  });
});
