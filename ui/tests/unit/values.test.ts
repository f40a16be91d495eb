import { describe, expect, it } from "vitest";
import { chordOf } from "../../src/app/commands";
import { score } from "../../src/app/Palette";
import { parseRoute, routeHash } from "../../src/app/route";
import { rowsOf } from "../../src/pages/board/CardGrid";
import { moveFault, moveText, newMove, parseMove, viewsOf } from "../../src/pages/board/camera";
import { placeMedia, usesOf } from "../../src/pages/board/media";
import { parseTransition, transitionText } from "../../src/pages/board/transition";
import { typedLength } from "../../src/pages/story/LengthInput";
import { textDiff } from "../../src/pages/story/textDiff";
import { randomName } from "../../src/parts/browser";
import { bytesText, clockText, fpsOf, lengthSecs, waitText } from "../../src/parts/figures";
import { script, shot } from "./kit";

describe("camera moves", () => {
  it.each([
    "push 1 -> 1.15 at 40% 60%",
    "pull 1.2 -> 1 at 50% 50%, linear",
    "pan 23% -> 77% at 25% zoom 2, linear",
    "tilt 36% -> 64% at 50% zoom 1",
    "roll -3 -> 3 at 50% 50% zoom 1.2, ease-out",
    "still at 46% 62% zoom 1.1",
  ])("%s is read and written the same", (text) => {
    const move = parseMove(text);
    expect(move && moveText(move)).toBe(text);
  });

  it("leaves other forms to be edited as text", () => {
    expect(parseMove("view 50% 50% zoom 1 -> 40% 40% zoom 2 roll 3")).toBeUndefined();
    expect(parseMove("push up")).toBeUndefined();
  });

  it("writes nothing for a still camera on the whole picture", () => {
    expect(moveText(newMove("still"))).toBeNull();
  });

  it("never lets the frame leave the picture", () => {
    for (const kind of ["push", "pan", "tilt", "still"] as const) {
      for (const view of viewsOf({ ...newMove(kind), x: 100, y: 0, from: kind === "push" ? 1 : 0, to: kind === "push" ? 3 : 100 })) {
        expect(view.x - 50 * view.size).toBeGreaterThanOrEqual(-1e-9);
        expect(view.x + 50 * view.size).toBeLessThanOrEqual(100 + 1e-9);
        expect(view.y - 50 * view.size).toBeGreaterThanOrEqual(-1e-9);
      }
    }
  });

  it("says what cannot be", () => {
    expect(moveFault({ ...newMove("push"), from: 2, to: 1 })).toBe("push");
    expect(moveFault({ ...newMove("pan"), zoom: 0.5 })).toBe("zoom");
    expect(moveFault(newMove("pull"))).toBeUndefined();
  });
});

describe("media on a shot", () => {
  const film = script({ s: [shot("a")] });

  it("knows what a file may be", () => {
    expect(usesOf("image/png", "a 場景#1.png")).toEqual(["picture"]);
    expect(usesOf("", "a.MOV")).toEqual(["video"]);
    expect(usesOf("audio/wav", "x")).toEqual(["voice", "effect", "ambience", "music"]);
    expect(usesOf("application/zip", "a.zip")).toEqual([]);
  });

  it("clears what a picture takes the place of, in the same step", () => {
    const edit = placeMedia(film, shot("a", { video: { file: "v.mp4" }, colour: undefined }), "picture", "p.png");
    expect(edit?.edit).toBe("several");
    expect(edit?.edit === "several" && edit.edits.map((each) => each.edit === "set" && [each.field, each.value])).toEqual([
      ["/video", null],
      ["/picture", "p.png"],
    ]);
    expect(placeMedia(film, shot("a"), "voice", "v.wav")).toBeUndefined();
  });
});

describe("lengths and figures", () => {
  it("reads lengths as typed", () => {
    expect(typedLength("4", 24)).toBe("4 s");
    expect(typedLength("4,5", 24)).toBe("4.5 s");
    expect(typedLength("96 frames", 24)).toBe("96 frames");
    expect(typedLength("2 min", 24)).toBe("2 min");
    expect(typedLength("0", 24)).toBeUndefined();
    expect(typedLength("0", 24, true)).toBe("0 s");
    expect(typedLength("-1", 24)).toBeUndefined();
    expect(typedLength("soon", 24)).toBeUndefined();
    expect(typedLength("999999 s", 24)).toBeUndefined();
  });

  it("counts in seconds", () => {
    expect(lengthSecs("48 frames", 24)).toBe(2);
    expect(lengthSecs("1001/240 s", 24)).toBeCloseTo(4.1708, 3);
    expect(fpsOf("30000/1001")).toBeCloseTo(29.97, 2);
    expect(fpsOf("nonsense")).toBe(24);
  });

  it("says figures as people do", () => {
    expect(clockText(65)).toBe("1:05");
    expect(clockText(3725)).toBe("1:02:05");
    expect(waitText(59)).toBe("59 s");
    expect(waitText(7800)).toBe("2 h 10 min");
    expect(bytesText(98_362_432, "en")).toBe("98 MB");
    expect(bytesText(1_500_000_000, "de")).toBe("1,5 GB");
  });

  it("reads transitions", () => {
    expect(parseTransition("cross-fade 1.5 s")).toEqual({ blend: "cross-fade", length: "1.5 s" });
    expect(parseTransition(undefined).blend).toBe("cut");
    expect(transitionText("cut", "1 s")).toBeNull();
  });
});

describe("text diff", () => {
  it("keeps what both have and gives back both texts", () => {
    const [old, next] = ["The light moves slowly.", "The bright light moves."];
    const pieces = textDiff(old, next);
    const join = (sides: string[]): string => pieces.filter((piece) => sides.includes(piece.side)).map((piece) => piece.text).join("");
    expect(join(["both", "old"])).toBe(old);
    expect(join(["both", "new"])).toBe(next);
    expect(pieces.some((piece) => piece.side === "both" && piece.text.includes("light"))).toBe(true);
  });

  it("does not stop at a megabyte", () => {
    const long = "word ".repeat(200_000);
    expect(textDiff(long, `${long}!`)).toHaveLength(2);
  });
});

describe("random names", () => {
  it("are UUIDs of version 4, each another", () => {
    const names = Array.from({ length: 50 }, randomName);
    for (const name of names) expect(name).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(new Set(names).size).toBe(50);
  });
});

describe("routes and keys", () => {
  it("carries names with slashes, spaces and emoji", () => {
    const route = { page: "story" as const, project: "/films/a b & 場景 🎬.longtake", at: "shot#1" };
    expect(parseRoute(routeHash(route))).toEqual(route);
  });

  it("shows the welcome page where no project is named, and for nonsense", () => {
    expect(parseRoute("#/story").page).toBe("welcome");
    expect(parseRoute("#/nowhere?x").page).toBe("welcome");
  });

  it("names chords", () => {
    expect(chordOf(new KeyboardEvent("keydown", { key: "z", ctrlKey: true, shiftKey: true }))).toBe("Mod+Shift+Z");
    expect(chordOf(new KeyboardEvent("keydown", { key: "ArrowUp", altKey: true }))).toBe("Alt+Up");
    expect(chordOf(new KeyboardEvent("keydown", { key: "?", shiftKey: true }))).toBe("?");
  });

  it("finds commands by parts of their names", () => {
    expect(score("Make the whole film", "make")).toBeGreaterThan(score("Open: Make-up", "make"));
    expect(score("Export film", "xf")).toBeGreaterThan(0);
    expect(score("Export film", "zz")).toBe(0);
  });

  it("breaks scenes into rows of cards", () => {
    const rows = rowsOf([{ id: "a", shots: Array.from({ length: 5 }, (_, at) => shot(`s${at}`)) }], 2);
    expect(rows.map((row) => (row.head ? "head" : row.shots.length))).toEqual(["head", 2, 2, 1]);
  });
});
