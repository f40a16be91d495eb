import i18n from "i18next";
import type { Coded, Job, Said } from "../api/shapes";
import { saidDe } from "./said.de";

/** Stages of writing as the server calls them. */
const STAGES: Record<string, string> = { "logline and title": "Titel und Kurzfassung", scenes: "Szenen", shots: "Einstellungen", lines: "Zeilen", cast: "Besetzung", places: "Orte" };
const KINDS = ["film", "cast", "place", "scene", "shot"] as const;

/** `shot boats` as `Einstellung boats`. */
function place(text: string): string {
  const [word = "", ...rest] = text.split(" ");
  const kind = KINDS.find((each) => each === word);
  return kind ? [i18n.t(`kinds.${kind}`), ...rest].join(" ") : text;
}

function value(name: string, held: string | number): string {
  if (typeof held === "number") return new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 2, useGrouping: false }).format(held);
  if (name === "kind" || name === "where") return place(held);
  if (name === "stage") return STAGES[held] ?? held;
  if (name === "state" && i18n.exists(`queue.states.${held}`)) return i18n.t(`queue.states.${held as "paused"}`);
  return held;
}

/** What the server said, in the language of the page: by its code, else as it came. */
export function say(text: string, coded: Coded | undefined): string {
  const words = i18n.language === "de" && coded ? saidDe[coded.code] : undefined;
  if (words === undefined || !coded) return text;
  const filled = words.replace(/\{\{(\w+)\}\}/g, (mark, name: string) => {
    const held = coded.values[name];
    return held === undefined ? mark : value(name, held);
  });
  const { where } = coded.values;
  return typeof where === "string" ? `${place(where)}: ${filled}` : filled;
}

export const sayAll = (said: Said): string => say(said.text, said.coded);

export const jobTitle = (job: Job): string => say(job.title, job.title_coded);
export const jobStep = (job: Job): string | undefined => (job.step === undefined ? undefined : say(job.step, job.step_coded));
export const jobError = (job: Job): string | undefined => (job.error === undefined ? undefined : say(job.error, job.error_coded));
