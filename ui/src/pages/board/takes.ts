import type { TFunction } from "i18next";
import type { Take } from "../../api/shapes";

/** Where a take comes from. */
export function origin(t: TFunction, take: Take): string {
  switch (take.by) {
    case "own":
      return t(take.kind === "video" ? "takes.own_video" : "takes.own_picture");
    case "library":
      return t("takes.library");
    case "stills":
      return t("takes.chosen_still");
    case "model":
      return t("takes.by_model");
  }
}

/** What tells a take from others of the same origin: its seed, else its file. */
export function detail(t: TFunction, take: Take): string {
  return take.seed === undefined ? take.name : t("takes.seed", { seed: take.seed });
}

/** Both in one line. */
export function madeBy(t: TFunction, take: Take): string {
  return `${origin(t, take)} · ${detail(t, take)}`;
}

/** A shot's seed as the script writes it: `42`, `42 locked`. */
export function parseSeed(text: string | undefined): { value: string; locked: boolean } {
  const [value = "", mark] = (text ?? "").trim().split(/\s+/);
  return { value, locked: mark === "locked" };
}

export function seedText(value: string, locked: boolean): string | null {
  return value === "" ? null : locked ? `${value} locked` : value;
}

/** Whether a typed text is a seed: a whole number that every program reads as it is. */
export function isSeed(text: string): boolean {
  return /^\d{1,16}$/.test(text) && Number(text) <= Number.MAX_SAFE_INTEGER;
}
