import type { Edit, Json, Kind, Scene, Script, Shot } from "./shapes";

/** What an edit does to a script, so that it is seen before the server has answered. An edit that
 *  does not fit leaves the script as it is: the server says why. Edits whose outcome only the
 *  server knows (`take` of a part) change nothing here. */
export function applyEdit(script: Script, edit: Edit): Script {
  switch (edit.edit) {
    case "import_script":
      return edit.script;
    case "restore":
      return edit.script;
    case "several":
      return edit.edits.reduce(applyEdit, script);
    case "take":
      return edit.accepted === "all" ? edit.script : script;
    case "choose_take":
    case "rate_take":
    case "remove_take":
      // Only the server knows the takes.
      return script;
    case "set":
      return setIn(script, edit.kind, edit.id, edit.field, edit.value as Json);
    case "add":
      return add(script, edit);
    case "remove":
      return remove(script, edit.kind, edit.id);
    case "move":
      return move(script, edit);
  }
}

type Row = { [field: string]: Json };

function setIn(script: Script, kind: Kind, id: string, field: string, value: Json): Script {
  const set = <T extends object>(row: T): T => setPointer(row as unknown as Json, field, value) as unknown as T;
  switch (kind) {
    case "film":
      return set(script);
    case "cast":
      return { ...script, cast: (script.cast ?? []).map((each) => (each.name === id ? set(each) : each)) };
    case "place":
      return { ...script, places: (script.places ?? []).map((each) => (each.id === id ? set(each) : each)) };
    case "scene":
      return { ...script, scenes: script.scenes.map((each) => (each.id === id ? set(each) : each)) };
    case "shot":
      return mapShots(script, (shots) =>
        shots.some((each) => each.id === id) ? shots.map((each) => (each.id === id ? set(each) : each)) : shots,
      );
  }
}

/** `body` with the value at a JSON pointer set; null takes it away, as the server does. */
export function setPointer(body: Json, pointer: string, value: Json): Json {
  const steps = pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const put = (place: Json, at: number): Json => {
    const step = steps[at];
    if (step === undefined) return value;
    const last = at === steps.length - 1;
    if (Array.isArray(place)) {
      const index = Number(step);
      if (!Number.isInteger(index) || index < 0 || index > place.length) return place;
      if (last && value === null) return place.filter((_, each) => each !== index);
      const copy = place.slice();
      copy[index] = put(place[index] ?? {}, at + 1);
      return copy;
    }
    if (place === null || typeof place !== "object") return place;
    if (last && value === null) {
      const { [step]: _gone, ...rest } = place;
      return rest;
    }
    return { ...place, [step]: put(place[step] ?? {}, at + 1) };
  };
  return steps.length === 0 ? body : put(body, 0);
}

function mapShots(script: Script, change: (shots: Shot[], scene: Scene) => Shot[]): Script {
  const scenes = script.scenes.map((scene) => {
    const shots = change(scene.shots, scene);
    return shots === scene.shots ? scene : { ...scene, shots };
  });
  return { ...script, scenes };
}

function inserted<T>(list: T[], item: T, after: string | undefined, idOf: (item: T) => string): T[] {
  // The server's state may hold it already, before the answer to the edit has come.
  if (list.some((each) => idOf(each) === idOf(item))) return list;
  const at = after === undefined ? 0 : list.findIndex((each) => idOf(each) === after) + 1;
  return [...list.slice(0, at), item, ...list.slice(at)];
}

function add(script: Script, edit: Edit & { edit: "add" }): Script {
  const body = edit.body as Row;
  switch (edit.kind) {
    case "film":
      return script;
    case "cast":
      return {
        ...script,
        cast: inserted(script.cast ?? [], body as unknown as { name: string }, edit.after, (each) => each.name),
      };
    case "place":
      return {
        ...script,
        places: inserted(script.places ?? [], body as unknown as { id: string }, edit.after, (each) => each.id),
      };
    case "scene": {
      const scene = { shots: [], ...body } as unknown as Scene;
      return { ...script, scenes: inserted(script.scenes, scene, edit.after, (each) => each.id) };
    }
    case "shot":
      return mapShots(script, (shots, scene) =>
        scene.id === edit.scene ? inserted(shots, body as unknown as Shot, edit.after, (each) => each.id) : shots,
      );
  }
}

function remove(script: Script, kind: Kind, id: string): Script {
  switch (kind) {
    case "film":
      return script;
    case "cast":
      return { ...script, cast: (script.cast ?? []).filter((each) => each.name !== id) };
    case "place":
      return { ...script, places: (script.places ?? []).filter((each) => each.id !== id) };
    case "scene":
      return { ...script, scenes: script.scenes.filter((each) => each.id !== id) };
    case "shot":
      return mapShots(script, (shots) =>
        shots.some((each) => each.id === id) ? shots.filter((each) => each.id !== id) : shots,
      );
  }
}

function move(script: Script, edit: Edit & { edit: "move" }): Script {
  const moved = <T>(list: T[], idOf: (item: T) => string): T[] => {
    const item = list.find((each) => idOf(each) === edit.id);
    if (item === undefined) return list;
    const others = list.filter((each) => each !== item);
    return inserted(others, item, edit.after, idOf);
  };
  switch (edit.kind) {
    case "film":
      return script;
    case "cast":
      return { ...script, cast: moved(script.cast ?? [], (each) => each.name) };
    case "place":
      return { ...script, places: moved(script.places ?? [], (each) => each.id) };
    case "scene":
      return { ...script, scenes: moved(script.scenes, (each) => each.id) };
    case "shot": {
      const home = script.scenes.find((scene) => scene.shots.some((shot) => shot.id === edit.id));
      const shot = home?.shots.find((each) => each.id === edit.id);
      if (!home || !shot) return script;
      const target = edit.scene ?? home.id;
      return mapShots(script, (shots, scene) => {
        const others = scene === home ? shots.filter((each) => each !== shot) : shots;
        return scene.id === target ? inserted(others, shot, edit.after, (each) => each.id) : others;
      });
    }
  }
}
