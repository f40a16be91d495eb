import { applyEdit } from "../../api/apply";
import type { Edit, MusicCue, Script } from "../../api/shapes";

/** A change of the order or the number of shots, with what must change with it so that the script
 *  holds: nothing fades into the first shot, nothing follows a shot that is gone, and music keeps
 *  its stretch. All of it is one step of undo. */
export function mended(script: Script, edit: Edit, label: string): Edit {
  const next = applyEdit(script, edit);
  const fixes = [...firstShot(next), ...followers(next), ...music(script, next)];
  return fixes.length === 0 ? edit : { edit: "several", label, edits: [edit, ...fixes] };
}

const idsOf = (script: Script): string[] => script.scenes.flatMap((scene) => scene.shots.map((shot) => shot.id));

function firstShot(script: Script): Edit[] {
  const first = script.scenes[0]?.shots[0];
  if (!first || (first.transition ?? "cut") === "cut") return [];
  return [{ edit: "set", kind: "shot", id: first.id, field: "/transition", value: null }];
}

function followers(script: Script): Edit[] {
  const ids = new Set(idsOf(script));
  return script.scenes.flatMap((scene) =>
    scene.shots.flatMap((shot): Edit[] => {
      const source = (shot.continuity ?? "cut").split(" ")[1];
      return source === undefined || ids.has(source) ? [] : [{ edit: "set", kind: "shot", id: shot.id, field: "/continuity", value: null }];
    }),
  );
}

function music(before: Script, script: Script): Edit[] {
  const cues = script.music ?? [];
  const [old, now] = [idsOf(before), idsOf(script)];
  const there = new Set(now);
  // The nearest shot that is left, first in the direction in which the music goes.
  const nearest = (id: string, step: 1 | -1): string | undefined => {
    for (const way of [step, -step]) {
      for (let at = old.indexOf(id); at >= 0 && at < old.length; at += way) {
        const each = old[at];
        if (each !== undefined && there.has(each)) return each;
      }
    }
    return undefined;
  };
  let changed = false;
  const kept = cues.map((cue): MusicCue => {
    let { from, to } = cue;
    if (from !== undefined && !there.has(from)) from = nearest(from, 1);
    if (to !== undefined && !there.has(to)) to = nearest(to, -1);
    if (from !== undefined && to !== undefined && now.indexOf(from) > now.indexOf(to)) [from, to] = [to, from];
    if (from === cue.from && to === cue.to) return cue;
    changed = true;
    const { from: _from, to: _to, ...rest } = cue;
    return { ...rest, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
  });
  return changed ? [{ edit: "set", kind: "film", id: "", field: "/music", value: kept }] : [];
}
