import { describe, expect, it } from "vitest";
import { de } from "../../src/text/de";
import { en } from "../../src/text/en";

type Texts = { [key: string]: string | Texts };

function flat(texts: Texts, before = ""): Map<string, string> {
  const all = new Map<string, string>();
  for (const [key, value] of Object.entries(texts)) {
    if (typeof value === "string") all.set(before + key, value);
    else for (const [inner, text] of flat(value, `${before}${key}.`)) all.set(inner, text);
  }
  return all;
}

const marks = (text: string): string[] => (text.match(/\{\{\w+\}\}/g) ?? []).sort();

describe("texts", () => {
  const [english, german] = [flat(en), flat(de)];

  it("are the same keys in English and German", () => {
    expect([...german.keys()].sort()).toEqual([...english.keys()].sort());
  });

  it("name the same values in both", () => {
    for (const [key, text] of english) expect(marks(german.get(key) ?? ""), key).toEqual(marks(text));
  });

  it("are not empty, and German is not English left over", () => {
    const same = [...english].filter(([key, text]) => german.get(key) === text && /[a-z]{4,} [a-z]{3,}/.test(text));
    expect(same).toEqual([]);
    for (const [key, text] of [...english, ...german]) expect(text.trim(), key).not.toBe("");
  });
});
