import type { TFunction } from "i18next";

// Framings that the studio knows are kept in scripts as their English words, whatever language the page has;
// any other text is kept as it was typed.

const WORDS = {
  wide: "wide",
  full: "full shot",
  medium: "medium",
  medium_close: "medium close",
  close: "close",
  extreme: "extreme close",
  shoulder: "over the shoulder",
  low: "low angle",
  high: "high angle",
  insert: "insert",
} as const;

type Framing = keyof typeof WORDS;

export const FRAMINGS = Object.keys(WORDS) as Framing[];

/** A framing as the page calls it. */
export function framingShown(t: TFunction, text: string | undefined): string {
  const plain = (text ?? "").trim().toLowerCase();
  const known = FRAMINGS.find((each) => WORDS[each] === plain);
  return known ? t(`framings.${known}`) : (text ?? "");
}

/** What a script keeps of a typed framing. */
export function framingKept(t: TFunction, text: string): string {
  const plain = text.trim().toLowerCase();
  const known = FRAMINGS.find((each) => t(`framings.${each}`).toLowerCase() === plain);
  return known ? WORDS[known] : text;
}
