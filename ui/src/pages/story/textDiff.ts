/** A stretch of a text that both, the old or the new one only has. */
export interface Piece {
  side: "both" | "old" | "new";
  text: string;
}

const WORDS_MAX = 1_500;

/** In what two texts differ, by words. Texts too long to compare are shown whole, one after the other. */
export function textDiff(old: string, next: string): Piece[] {
  const [a, b] = [words(old), words(next)];
  if (a.length > WORDS_MAX || b.length > WORDS_MAX) {
    return [
      { side: "old", text: old },
      { side: "new", text: next },
    ];
  }
  // Weights of the longest common runs from here to the end; a space counts less than a word.
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i * width + j] =
        a[i] === b[j]
          ? (common[(i + 1) * width + j + 1] ?? 0) + (/\s/.test(a[i] ?? "") ? 1 : 3)
          : Math.max(common[(i + 1) * width + j] ?? 0, common[i * width + j + 1] ?? 0);
    }
  }
  const pieces: Piece[] = [];
  const say = (side: Piece["side"], text: string): void => {
    const last = pieces.at(-1);
    if (last?.side === side) last.text += text;
    else pieces.push({ side, text });
  };
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const [one, two] = [a[i], b[j]];
    if (one !== undefined && one === two) {
      say("both", one);
      i += 1;
      j += 1;
    } else if (two === undefined || (one !== undefined && (common[(i + 1) * width + j] ?? 0) >= (common[i * width + j + 1] ?? 0))) {
      say("old", one ?? "");
      i += 1;
    } else {
      say("new", two);
      j += 1;
    }
  }
  return pieces;
}

const words = (text: string): string[] => text.match(/\s+|[\p{L}\p{N}'’]+|[^\s\p{L}\p{N}]/gu) ?? [];
