import i18n from "i18next";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { TEXTS } from "../../src/api/generated";
import "../../src/text";
import { licenceNote, notesDe } from "../../src/text/notes";
import { say, sayAll } from "../../src/text/say";
import { saidDe } from "../../src/text/said.de";

const marks = (text: string): string[] => (text.match(/\{\{\w+\}\}/g) ?? []).sort();

afterEach(() => i18n.changeLanguage("en"));

describe("what the server says", () => {
  it("has a German text for every code, and no other", () => {
    expect(Object.keys(saidDe).sort()).toEqual(Object.keys(TEXTS).sort());
    expect(Object.keys(TEXTS).length).toBeGreaterThan(80);
  });

  it("names in German only values that the server sends", () => {
    for (const [code, english] of Object.entries(TEXTS)) {
      const german = saidDe[code as keyof typeof TEXTS];
      expect(german.trim(), code).not.toBe("");
      for (const mark of marks(german)) expect(marks(english), code).toContain(mark);
    }
  });

  it("is not English left over", () => {
    const same = Object.entries(TEXTS).filter(([code, english]) => saidDe[code as keyof typeof TEXTS] === english && /[a-z]{3,} [a-z]{3,}/.test(english));
    expect(same).toEqual([]);
  });

  it("comes in the language of the page, with its values as people write them there", async () => {
    const coded = { code: "short_shot", values: { secs: 0.25, where: "shot boats" } } as const;
    expect(say("the shot is seen for 0.25 s", coded)).toBe("the shot is seen for 0.25 s");
    await i18n.changeLanguage("de");
    expect(say("the shot is seen for 0.25 s", coded)).toBe("Einstellung boats: Die Einstellung ist nur 0,25 s zu sehen");
    expect(say("cast Tom added", { code: "row_added", values: { kind: "cast", id: "Tom" } })).toBe("Figur Tom hinzugefügt");
    expect(say("job 3 cannot be paused: it is done", { code: "job_refused", values: { job: 3, what: "paused", state: "done" } })).toBe("Das geht bei Auftrag 3 jetzt nicht: Fertig");
    expect(say("writing the script: cast", { code: "writing_script", values: { stage: "cast" } })).toBe("Skript wird geschrieben: Besetzung");
  });

  it("stays English where it has no code, or one that this page does not know", async () => {
    await i18n.changeLanguage("de");
    expect(sayAll({ text: "something new" })).toBe("something new");
    expect(say("something newer", { code: "from_a_newer_server" as "no_shot", values: {} })).toBe("something newer");
    expect(say("a {{b}}", { code: "no_shot", values: { id: "{{id}} $& <b>" } })).toBe("Es gibt keine Einstellung „{{id}} $& <b>“");
  });
});

describe("licences' conditions", () => {
  // Vitest runs in the pages' folder.
  const models = readFileSync(join(process.cwd(), "../assets/models.toml"), "utf8");
  const notes = [...models.matchAll(/\bnote = "((?:[^"\\]|\\.)+)"/g)].map((found) => found[1] ?? "");

  it("of every model are there in German", async () => {
    expect(notes.length).toBeGreaterThan(4);
    await i18n.changeLanguage("de");
    for (const note of notes) expect(licenceNote(note), note).not.toBe(note);
    for (const note of Object.keys(notesDe)) expect(notes, "no model says it any more").toContain(note);
  });
});
