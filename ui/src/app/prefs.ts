import { create } from "zustand";
import { call, said } from "../api/client";
import { put } from "../api/queries";
import type { Settings, Theme, UiLanguage as Language } from "../api/shapes";
import { toast } from "./toasts";

export type { Language, Theme };

/** How the studio looks: a copy of the settings, so that the first draw is right already, and what
 *  belongs to this screen alone. */
export interface Prefs {
  theme: Theme;
  language: Language;
  /** Factor on all text. */
  text_size: number;
  /** Least width of a card on the board, in px at 100 %. */
  card_px: number;
  notify: boolean;
}

const KEY = "longtake.prefs";
export const TEXT_SIZES = [0.85, 1, 1.15, 1.3, 1.5] as const;

function kept(): Prefs {
  const language: Language = typeof navigator !== "undefined" && navigator.language.startsWith("de") ? "de" : "en";
  const otherwise: Prefs = { theme: "dark", language, text_size: 1, card_px: 240, notify: false };
  try {
    return { ...otherwise, ...(JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Prefs>) };
  } catch {
    return otherwise;
  }
}

export const usePrefs = create<Prefs>(kept);

export function setPrefs(change: Partial<Prefs>): void {
  usePrefs.setState(change);
  try {
    localStorage.setItem(KEY, JSON.stringify(usePrefs.getState()));
  } catch {
    // Without a store they hold until the page is closed.
  }
}

const light = typeof matchMedia === "undefined" ? undefined : matchMedia("(prefers-color-scheme: light)");

/** Put the theme, the text size and the language on the page, now and at each change. */
export function showPrefs(): void {
  const show = (): void => {
    const { theme, text_size, language } = usePrefs.getState();
    const root = document.documentElement;
    root.dataset["theme"] = theme === "system" ? (light?.matches ? "light" : "dark") : theme;
    root.style.setProperty("--lt-text-size", String(text_size));
    root.lang = language;
  };
  show();
  usePrefs.subscribe(show);
  light?.addEventListener("change", show);
}

/** Take over what the settings of the studio say. */
export function takeSettings(settings: Settings): void {
  const { theme, language, text_scale, notify } = settings;
  setPrefs({ theme, language, text_size: text_scale, notify });
}

type Chosen = Pick<Settings, "theme" | "language" | "text_scale" | "notify">;

/** Choose how the studio looks: seen at once, kept with the settings. */
export function choose<F extends keyof Chosen>(field: F, value: Chosen[F]): void {
  setPrefs(field === "text_scale" ? { text_size: value as number } : { [field]: value });
  call("settings.set", { field, value }).then(
    (state) => put("settings.get", {}, state),
    (error: unknown) => toast("bad", said(error)),
  );
}
