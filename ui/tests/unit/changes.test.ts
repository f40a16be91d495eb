import { describe, expect, it } from "vitest";
import { applyEdit } from "../../src/api/apply";
import type { Edit, Script } from "../../src/api/shapes";
import { addScene, addShot, copyText, moveShot, paste, readCopied, removeShot, renameCast, stepScene, stepShot } from "../../src/pages/story/changes";
import { order, script, shot } from "./kit";

const film = script({ a: [shot("a1"), shot("a2")], b: [shot("b1")] });
const after = (of: Script, edit: Edit | undefined): Record<string, string[]> => order(edit ? applyEdit(of, edit) : of);

describe("changes of the story", () => {
  it("steps a shot through its scene and into the next", () => {
    expect(after(film, stepShot(film, "a1", 1)).a).toEqual(["a2", "a1"]);
    expect(after(film, stepShot(film, "a2", 1))).toEqual({ a: ["a1"], b: ["a2", "b1"] });
    expect(stepShot(film, "a1", -1)).toBeUndefined();
  });

  it("takes the scene away that a moved shot leaves empty", () => {
    expect(after(film, moveShot(film, "b1", "a", "a1"))).toEqual({ a: ["a1", "b1", "a2"] });
  });

  it("does nothing when a shot is dropped where it is", () => {
    expect(moveShot(film, "a2", "a", "a1")).toBeUndefined();
    expect(moveShot(film, "a2", "a", "a2")).toBeUndefined();
  });

  it("lets nothing fade into the first shot, in the same step", () => {
    const fading = script({ a: [shot("a1"), shot("a2", { transition: "cross-fade 1 s" })] });
    const edit = stepShot(fading, "a1", 1);
    const next = edit && applyEdit(fading, edit);
    expect(edit?.edit).toBe("several");
    expect(next?.scenes[0]?.shots.map((each) => [each.id, each.transition])).toEqual([["a2", undefined], ["a1", "cut"]]);
  });

  it("lets nothing follow a shot that is gone", () => {
    const joined = script({ a: [shot("a1"), shot("a2", { continuity: "continue a1" })] });
    const edit = removeShot(joined, "a1");
    expect(edit && applyEdit(joined, edit).scenes[0]?.shots).toEqual([expect.not.objectContaining({ continuity: "continue a1" })]);
  });

  it("keeps the stretch of music when its ends go or change places", () => {
    const scored = { ...script({ a: [shot("a1"), shot("a2"), shot("a3"), shot("a4")] }), music: [{ file: "bed", from: "a1", to: "a3", gain: -14 }] };
    const music = (edit: Edit | undefined) => edit && applyEdit(scored, edit).music;
    expect(music(removeShot(scored, "a1"))).toEqual([{ file: "bed", from: "a2", to: "a3", gain: -14 }]);
    expect(music(removeShot(scored, "a3"))).toEqual([{ file: "bed", from: "a1", to: "a2", gain: -14 }]);
    expect(music(moveShot(scored, "a1", "a", "a4"))).toEqual([{ file: "bed", from: "a3", to: "a1", gain: -14 }]);
    expect(music(moveShot(scored, "a2", "a", undefined))).toEqual(scored.music);
  });

  it("steps scenes, not past the ends", () => {
    expect(Object.keys(after(film, stepScene(film, "b", -1)))).toEqual(["b", "a"]);
    expect(stepScene(film, "b", 1)).toBeUndefined();
  });

  it("gives new shots and scenes ids of their own", () => {
    const one = addShot(film, "a", "a1");
    expect(after(film, one.edit).a).toEqual(["a1", one.id, "a2"]);
    const two = addScene(script({ "scene-1": [shot("shot-1")] }), "scene-1");
    expect(two.id).toBe("scene-2");
    expect(after(script({ "scene-1": [shot("shot-1")] }), two.edit)).toEqual({ "scene-1": ["shot-1"], "scene-2": ["shot-2"] });
  });

  it("never takes the last shot of the film, and a scene with its last one", () => {
    expect(removeShot(script({ a: [shot("a1")] }), "a1")).toBeUndefined();
    expect(after(film, removeShot(film, "b1"))).toEqual({ a: ["a1", "a2"] });
  });

  it("copies and pastes scenes and shots under new ids", () => {
    const copied = readCopied(copyText(film, "scene", "a") ?? "");
    if (!copied) throw new Error("nothing was copied");
    const pasted = paste(film, copied, { scene: "b" });
    expect(after(film, pasted.edit)).toEqual({ a: ["a1", "a2"], b: ["b1"], "a-2": ["a1-2", "a2-2"] });
    const one = readCopied(copyText(film, "shot", "b1") ?? "");
    if (!one) throw new Error("nothing was copied");
    expect(after(film, paste(film, one, { scene: "a", shot: "a1" }).edit).a).toEqual(["a1", "b1-2", "a2"]);
  });

  it("takes nothing else from a clipboard", () => {
    expect(readCopied("some words")).toBeUndefined();
    expect(readCopied('{"longtake_copy":"shot"}')).toBeUndefined();
    expect(readCopied('{"longtake_copy":"scene","scene":{"id":"x","shots":[]}}')).toBeUndefined();
    expect(readCopied(`longtake_copy${"x".repeat(5_000_000)}`)).toBeUndefined();
  });

  it("renames a person everywhere in one step", () => {
    const spoken: Script = { ...script({ a: [shot("a1", { lines: [{ speaker: "MARA", text: "Hi." }, { text: "No." }] })] }), cast: [{ name: "MARA" }, { name: "ELI" }] };
    const edit = renameCast(spoken, "MARA", "MARTHA");
    const next = edit && applyEdit(spoken, edit);
    expect(next?.cast?.[0]?.name).toBe("MARTHA");
    expect(next?.scenes[0]?.shots[0]?.lines?.map((line) => line.speaker)).toEqual(["MARTHA", undefined]);
    expect(renameCast(spoken, "MARA", "ELI")).toBeUndefined();
    expect(renameCast(spoken, "MARA", " ")).toBeUndefined();
  });
});
