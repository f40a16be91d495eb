/** Ways into a shot as a script writes them: `cut`, `cross-fade 1 s`, `through-black 1 s`. */
export const BLENDS = ["cut", "cross-fade", "through-black"] as const;
export type Blend = (typeof BLENDS)[number];

export function parseTransition(text: string | undefined): { blend: Blend; length: string } {
  const [word = "cut", ...rest] = (text ?? "cut").trim().split(/\s+/);
  const blend = BLENDS.find((each) => each === word) ?? "cut";
  return { blend, length: rest.join(" ") || "1 s" };
}

/** Null: a cut, which a script does not write. */
export function transitionText(blend: Blend, length: string): string | null {
  return blend === "cut" ? null : `${blend} ${length}`;
}
