import { describe, expect, it } from "vitest";
import { applyEdit, setPointer } from "../../src/api/apply";
import { order, script, shot } from "./kit";

describe("an edit seen before the server answers", () => {
  const film = script({ a: [shot("a1", { lines: [{ text: "one" }, { text: "two" }] }), shot("a2")], b: [shot("b1")] });

  it("sets a field and leaves everything else the same object", () => {
    const next = applyEdit(film, { edit: "set", kind: "shot", id: "a2", field: "/action", value: "runs" });
    expect(next.scenes[0]?.shots[1]?.action).toBe("runs");
    expect(next.scenes[0]?.shots[0]).toBe(film.scenes[0]?.shots[0]);
    expect(next.scenes[1]).toBe(film.scenes[1]);
  });

  it("takes a field away with null, and an item of a list", () => {
    const gone = applyEdit(film, { edit: "set", kind: "shot", id: "a1", field: "/lines/0", value: null });
    expect(gone.scenes[0]?.shots[0]?.lines).toEqual([{ text: "two" }]);
    const none = applyEdit(film, { edit: "set", kind: "shot", id: "a1", field: "/lines", value: null });
    expect(none.scenes[0]?.shots[0]).not.toHaveProperty("lines");
  });

  it("adds first without `after`, else behind it", () => {
    const first = applyEdit(film, { edit: "add", kind: "shot", scene: "a", body: { id: "n", length: "1 s" } });
    expect(order(first).a).toEqual(["n", "a1", "a2"]);
    const second = applyEdit(film, { edit: "add", kind: "scene", after: "a", body: { id: "n", shots: [{ id: "n1", length: "1 s" }] } });
    expect(order(second)).toEqual({ a: ["a1", "a2"], n: ["n1"], b: ["b1"] });
    expect(Object.keys(order(second))).toEqual(["a", "n", "b"]);
  });

  it("moves a shot into another scene", () => {
    const moved = applyEdit(film, { edit: "move", kind: "shot", id: "a1", scene: "b", after: "b1" });
    expect(order(moved)).toEqual({ a: ["a2"], b: ["b1", "a1"] });
  });

  it("does several in order", () => {
    const both = applyEdit(film, {
      edit: "several",
      label: "move",
      edits: [
        { edit: "move", kind: "shot", id: "b1", scene: "a", after: "a2" },
        { edit: "remove", kind: "scene", id: "b" },
      ],
    });
    expect(order(both)).toEqual({ a: ["a1", "a2", "b1"] });
  });

  it("leaves the script as it is when a pointer does not fit", () => {
    expect(setPointer({ lines: [{ text: "one" }] }, "/lines/9/text", "x")).toEqual({ lines: [{ text: "one" }] });
    expect(setPointer({ a: "text" }, "/a/b", "x")).toEqual({ a: "text" });
    expect(setPointer({ "a/b": 1 }, "/a~1b", 2)).toEqual({ "a/b": 2 });
  });
});
