import i18n from "i18next";

/** Conditions of licences as the list of models states them, in German. */
export const notesDe: Readonly<Record<string, string>> = {
  "keep LICENSE and NOTICE with copies of the weights": "Kopien der Gewichte behalten LICENSE und NOTICE bei sich",
  "keep the copyright notice and the licence text with copies of the weights": "Kopien der Gewichte behalten Urheberhinweis und Lizenztext bei sich",
  "keep the licence text with copies of the weights": "Kopien der Gewichte behalten den Lizenztext bei sich",
  "keep the licence text with copies": "Kopien behalten den Lizenztext bei sich",
  "weights and voices Apache-2.0, their conversion to ONNX MIT; keep both texts with copies": "Gewichte und Stimmen Apache-2.0, ihre Umwandlung nach ONNX MIT; Kopien behalten beide Texte bei sich",
};

/** A licence's condition in the language of the page; one that nobody has put into it stays as it is. */
export function licenceNote(note: string): string {
  return i18n.language === "de" ? (notesDe[note] ?? note) : note;
}
