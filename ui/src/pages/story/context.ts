import { createContext, useContext } from "react";
import type { Edit, Lint, Script } from "../../api/shapes";

/** What rows of the script ask of their page; the same object as long as the project is open. */
export interface StoryTools {
  project: string;
  edit: (change: Edit | undefined) => void;
  script: () => Script | undefined;
  rewrite: (target: RewriteTarget) => void;
}

export interface RewriteTarget {
  kind: "scene" | "shot" | "cast" | "place" | "film";
  id: string;
  field?: string;
  title: string;
}

export const StoryContext = createContext<StoryTools | undefined>(undefined);

export function useStory(): StoryTools {
  const tools = useContext(StoryContext);
  if (!tools) throw new Error("a story row is shown outside of the story");
  return tools;
}

/** Messages of the linter by the thing they are about. */
export function lintBy(lint: Lint[]): Map<string, Lint[]> {
  const by = new Map<string, Lint[]>();
  for (const each of lint) {
    const key = `${each.kind ?? "film"}:${each.id ?? ""}`;
    by.set(key, [...(by.get(key) ?? []), each]);
  }
  return by;
}
