import type { Edit, Json, Line, Scene, Script, Shot } from "../../api/shapes";
import { mended } from "./mend";

// Edits by what they mean to a maker; each is one step of undo.

/** An id that is not taken yet: the stem, else the stem with a number. */
export function freshId(taken: Set<string>, stem: string): string {
  if (!taken.has(stem)) return stem;
  const base = stem.replace(/-\d+$/, "");
  for (let number = 2; ; number += 1) {
    const id = `${base}-${number}`;
    if (!taken.has(id)) return id;
  }
}

export function shotIds(script: Script): Set<string> {
  return new Set(script.scenes.flatMap((scene) => scene.shots.map((shot) => shot.id)));
}

const sceneIds = (script: Script): Set<string> => new Set(script.scenes.map((scene) => scene.id));
const asJson = (value: unknown): Json => value as Json;

/** Edits that are undone together. */
export function several(label: string, edits: Edit[]): Edit {
  return { edit: "several", label, edits };
}

/** A shot after another one (absent: first in its scene), with the same length. */
export function addShot(script: Script, scene: string, after: string | undefined, length = "4 s"): { edit: Edit; id: string } {
  const id = freshId(shotIds(script), "shot-1");
  const edit: Edit = { edit: "add", kind: "shot", body: asJson({ id, length }), scene };
  if (after !== undefined) edit.after = after;
  return { edit: mended(script, edit, `add ${id}`), id };
}

/** A scene with its shots. */
function putScene(scene: Json, after: string | undefined): Edit {
  const edit: Edit = { edit: "add", kind: "scene", body: scene };
  if (after !== undefined) edit.after = after;
  return edit;
}

export function addScene(script: Script, after: string | undefined): { edit: Edit; id: string } {
  const id = freshId(sceneIds(script), "scene-1");
  const shot = { id: freshId(shotIds(script), "shot-1"), length: "4 s" };
  return { edit: putScene({ id, shots: [shot] }, after), id };
}

/** Without a shot; a scene goes with its last one. Undefined: it is the film's only shot. */
export function removeShot(script: Script, id: string): Edit | undefined {
  const scene = script.scenes.find((each) => each.shots.some((shot) => shot.id === id));
  if (!scene) return undefined;
  if (scene.shots.length > 1) return mended(script, { edit: "remove", kind: "shot", id }, `remove ${id}`);
  return removeScene(script, scene.id);
}

export function removeScene(script: Script, id: string): Edit | undefined {
  return script.scenes.length > 1 ? mended(script, { edit: "remove", kind: "scene", id }, `remove ${id}`) : undefined;
}

/** A shot into a scene, after another shot there (absent: first). The scene that it leaves empty goes. */
export function moveShot(script: Script, id: string, scene: string, after: string | undefined): Edit | undefined {
  const home = script.scenes.find((each) => each.shots.some((shot) => shot.id === id));
  const shot = home?.shots.find((each) => each.id === id);
  if (!home || !shot || after === id) return undefined;
  const at = home.shots.indexOf(shot);
  if (home.id === scene && home.shots[at - 1]?.id === after) return undefined;
  const edit: Edit = { edit: "move", kind: "shot", id, scene };
  if (after !== undefined) edit.after = after;
  const empties = home.id !== scene && home.shots.length === 1;
  const whole: Edit = empties ? several(`move ${id}`, [edit, { edit: "remove", kind: "scene", id: home.id }]) : edit;
  return mended(script, whole, `move ${id}`);
}

/** One place up or down; at a scene's edge into the neighbouring scene. */
export function stepShot(script: Script, id: string, step: 1 | -1): Edit | undefined {
  const sceneAt = script.scenes.findIndex((each) => each.shots.some((shot) => shot.id === id));
  const scene = script.scenes[sceneAt];
  if (!scene) return undefined;
  const at = scene.shots.findIndex((shot) => shot.id === id);
  if (step === -1) {
    if (at > 0) return moveShot(script, id, scene.id, scene.shots[at - 2]?.id);
    const before = script.scenes[sceneAt - 1];
    return before && moveShot(script, id, before.id, before.shots.at(-1)?.id);
  }
  if (at < scene.shots.length - 1) return moveShot(script, id, scene.id, scene.shots[at + 1]?.id);
  const next = script.scenes[sceneAt + 1];
  return next && moveShot(script, id, next.id, undefined);
}

/** A scene after another one (absent: first). */
export function moveScene(script: Script, id: string, after: string | undefined): Edit | undefined {
  const at = script.scenes.findIndex((each) => each.id === id);
  if (at < 0 || after === id || script.scenes[at - 1]?.id === after) return undefined;
  const edit: Edit = { edit: "move", kind: "scene", id };
  if (after !== undefined) edit.after = after;
  return mended(script, edit, `move ${id}`);
}

export function stepScene(script: Script, id: string, step: 1 | -1): Edit | undefined {
  const at = script.scenes.findIndex((each) => each.id === id);
  const last = script.scenes.length - 1;
  if (at < 0 || (step === -1 ? at === 0 : at === last)) return undefined;
  return moveScene(script, id, script.scenes[step === -1 ? at - 2 : at + 1]?.id);
}

/** Everything spoken by `name` goes on being spoken by them under the new name. */
export function renameCast(script: Script, name: string, to: string): Edit | undefined {
  const wanted = to.trim();
  if (wanted === "" || wanted === name || script.cast?.some((each) => each.name === wanted)) return undefined;
  const rename: Edit = { edit: "set", kind: "cast", id: name, field: "/name", value: wanted };
  const spoken = script.scenes.flatMap((scene) =>
    scene.shots.flatMap((shot) =>
      (shot.lines ?? []).flatMap((line, at) => (line.speaker === name ? [setShot(shot.id, `/lines/${at}/speaker`, wanted)] : [])),
    ),
  );
  return spoken.length === 0 ? rename : several(`rename ${name} to ${wanted}`, [rename, ...spoken]);
}

/** Scenes and shots on the clipboard, as text that other programs can hold too. */
export type Copied = { longtake_copy: "shot"; shot: Shot } | { longtake_copy: "scene"; scene: Scene };

export function copyText(script: Script, kind: "scene" | "shot", id: string): string | undefined {
  const scene = script.scenes.find((each) => (kind === "scene" ? each.id === id : each.shots.some((shot) => shot.id === id)));
  if (!scene) return undefined;
  const shot = scene.shots.find((each) => each.id === id);
  const copied: Copied | undefined =
    kind === "scene" ? { longtake_copy: "scene", scene } : shot && { longtake_copy: "shot", shot };
  return copied && JSON.stringify(copied, null, 1);
}

const PASTE_CHARS_MAX = 4_000_000;

/** What the clipboard holds of ours; anything else is undefined. */
export function readCopied(text: string): Copied | undefined {
  if (text.length > PASTE_CHARS_MAX || !text.includes("longtake_copy")) return undefined;
  try {
    const copied = JSON.parse(text) as Partial<{ longtake_copy: string; shot: Shot; scene: Scene }>;
    if (copied.longtake_copy === "shot" && typeof copied.shot?.length === "string") return copied as Copied;
    if (copied.longtake_copy === "scene" && Array.isArray(copied.scene?.shots) && copied.scene.shots.length > 0) return copied as Copied;
  } catch {
    return undefined;
  }
  return undefined;
}

/** What was copied, with ids of its own, after the shot (or scene) that is chosen. */
export function paste(script: Script, copied: Copied, at: { scene: string; shot?: string | undefined }): { edit: Edit; id: string } {
  const taken = shotIds(script);
  if (copied.longtake_copy === "shot") {
    const id = freshId(taken, copied.shot.id);
    const edit: Edit = { edit: "add", kind: "shot", body: asJson({ ...copied.shot, id }), scene: at.scene };
    if (at.shot !== undefined) edit.after = at.shot;
    return { edit: mended(script, edit, `paste ${id}`), id };
  }
  const id = freshId(sceneIds(script), copied.scene.id);
  const shots = copied.scene.shots.map((shot) => {
    const own = freshId(taken, shot.id);
    taken.add(own);
    return { ...shot, id: own };
  });
  return { edit: mended(script, putScene(asJson({ ...copied.scene, id, shots }), at.scene), `paste ${id}`), id };
}

export function setShot(id: string, field: string, value: Json): Edit {
  return { edit: "set", kind: "shot", id, field, value };
}

/** An empty text takes the field away. */
export function textOrNull(text: string): Json {
  return text.trim() === "" ? null : text;
}

/** A spoken line after the one numbered `at` (absent: last). */
export function addLine(shot: Shot, at: number | undefined, speaker: string): Edit {
  const lines = shot.lines ?? [];
  const place = at === undefined ? lines.length : at + 1;
  const line: Line = speaker === "" ? { text: "…" } : { speaker, text: "…" };
  return setShot(shot.id, "/lines", asJson([...lines.slice(0, place), line, ...lines.slice(place)]));
}

export function removeLine(shot: Shot, at: number): Edit {
  const lines = (shot.lines ?? []).filter((_, each) => each !== at);
  return setShot(shot.id, "/lines", lines.length > 0 ? asJson(lines) : null);
}

export function stepLine(shot: Shot, at: number, step: 1 | -1): Edit | undefined {
  const lines = [...(shot.lines ?? [])];
  const to = at + step;
  const [line, other] = [lines[at], lines[to]];
  if (!line || !other) return undefined;
  lines[at] = other;
  lines[to] = line;
  return setShot(shot.id, "/lines", asJson(lines));
}
