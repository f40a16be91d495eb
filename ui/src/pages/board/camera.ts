/** Camera moves as a script writes them: `push 1 -> 1.15 at 40% 60%, ease-in`. */

export const MOVE_KINDS = ["still", "push", "pull", "pan", "tilt", "roll"] as const;
export type MoveKind = (typeof MOVE_KINDS)[number];
export const EASINGS = ["ease-in-out", "linear", "ease-in", "ease-out"] as const;

/** `x`, `y` in percent of the picture; `from`, `to`: zoom of push and pull, percent of pan and
 *  tilt, degrees of roll. */
export interface CameraMove {
  kind: MoveKind;
  from: number;
  to: number;
  x: number;
  y: number;
  zoom: number;
  easing: string;
}

const DEFAULTS: Record<MoveKind, Omit<CameraMove, "kind" | "easing">> = {
  still: { from: 0, to: 0, x: 50, y: 50, zoom: 1 },
  push: { from: 1, to: 1.15, x: 50, y: 50, zoom: 1 },
  pull: { from: 1.15, to: 1, x: 50, y: 50, zoom: 1 },
  pan: { from: 40, to: 60, x: 50, y: 50, zoom: 1.3 },
  tilt: { from: 40, to: 60, x: 50, y: 50, zoom: 1.3 },
  roll: { from: -2, to: 2, x: 50, y: 50, zoom: 1.15 },
};

export function newMove(kind: MoveKind): CameraMove {
  return { kind, easing: "ease-in-out", ...DEFAULTS[kind] };
}

const NUMBER = "(-?\\d+(?:\\.\\d+)?)";
const PATTERN = new RegExp(
  `^(still|push|pull|pan|tilt|roll)(?:\\s+${NUMBER}%?\\s*->\\s*${NUMBER}%?)?(?:\\s+at\\s+${NUMBER}%(?:\\s+${NUMBER}%)?)?(?:\\s+zoom\\s+${NUMBER})?(?:\\s*,\\s*(linear|ease-in|ease-out|ease-in-out))?\\s*$`,
);

/** Undefined: a move of another form (a view), which is edited as text. */
export function parseMove(text: string | undefined): CameraMove | undefined {
  if (!text || text.trim() === "") return newMove("still");
  const parts = PATTERN.exec(text.trim());
  if (!parts) return undefined;
  const kind = parts[1] as MoveKind;
  const move = newMove(kind);
  if (parts[2] !== undefined) [move.from, move.to] = [Number(parts[2]), Number(parts[3])];
  if (parts[4] !== undefined) {
    // A pan names its height and a tilt its breadth with one number.
    if (kind === "pan") move.y = Number(parts[4]);
    else move.x = Number(parts[4]);
    if (parts[5] !== undefined) move.y = Number(parts[5]);
  }
  if (parts[6] !== undefined) move.zoom = Number(parts[6]);
  else if (kind === "still" || kind === "pan" || kind === "tilt" || kind === "roll") move.zoom = 1;
  if (parts[7] !== undefined) move.easing = parts[7];
  return move;
}

const figure = (value: number): string => String(Number(value.toFixed(3)));

/** Null: the camera stands still on the whole picture, which a script does not write. */
export function moveText(move: CameraMove): string | null {
  const at = `at ${figure(move.x)}% ${figure(move.y)}%`;
  const easing = move.easing === "ease-in-out" ? "" : `, ${move.easing}`;
  const zoom = `zoom ${figure(move.zoom)}`;
  switch (move.kind) {
    case "still":
      return move.x === 50 && move.y === 50 && move.zoom === 1 ? null : `still ${at} ${zoom}`;
    case "push":
    case "pull":
      return `${move.kind} ${figure(move.from)} -> ${figure(move.to)} ${at}${easing}`;
    case "pan":
      return `pan ${figure(move.from)}% -> ${figure(move.to)}% at ${figure(move.y)}% ${zoom}${easing}`;
    case "tilt":
      return `tilt ${figure(move.from)}% -> ${figure(move.to)}% at ${figure(move.x)}% ${zoom}${easing}`;
    case "roll":
      return `roll ${figure(move.from)} -> ${figure(move.to)} ${at} ${zoom}${easing}`;
  }
}

/** What the camera sees of the picture: centre in percent, size as a part, turn in degrees. */
export interface View {
  x: number;
  y: number;
  size: number;
  roll: number;
}

/** The first and the last view of a move. */
export function viewsOf(move: CameraMove): [View, View] {
  const view = (x: number, y: number, zoom: number, roll = 0): View => {
    const size = 1 / Math.max(1, zoom);
    // The frame never leaves the picture.
    const kept = (centre: number): number => Math.min(100 - 50 * size, Math.max(50 * size, centre));
    return { x: kept(x), y: kept(y), size, roll };
  };
  const anchored = (zoom: number): View => view(move.x + (50 - move.x) / zoom, move.y + (50 - move.y) / zoom, zoom);
  switch (move.kind) {
    case "still":
      return [view(move.x, move.y, move.zoom), view(move.x, move.y, move.zoom)];
    case "push":
    case "pull":
      return [anchored(move.from), anchored(move.to)];
    case "pan":
      return [view(move.from, move.y, move.zoom), view(move.to, move.y, move.zoom)];
    case "tilt":
      return [view(move.x, move.from, move.zoom), view(move.x, move.to, move.zoom)];
    case "roll":
      return [view(move.x, move.y, move.zoom, move.from), view(move.x, move.y, move.zoom, move.to)];
  }
}

/** Why a move cannot be taken, by the stable word of its text. */
export function moveFault(move: CameraMove): "push" | "pull" | "zoom" | undefined {
  if (move.kind === "push" && move.to <= move.from) return "push";
  if (move.kind === "pull" && move.to >= move.from) return "pull";
  const zooms = move.kind === "push" || move.kind === "pull" ? [move.from, move.to] : [move.zoom];
  return zooms.some((zoom) => zoom < 1 || zoom > 20) ? "zoom" : undefined;
}
