/** Texts being typed, that are not edits yet: asked to become edits before something that needs
 *  them (undo, leaving the page). */
const waiting = new Set<() => void>();

export function holdDraft(commit: () => void): () => void {
  waiting.add(commit);
  return () => {
    waiting.delete(commit);
  };
}

export function commitDrafts(): void {
  for (const commit of [...waiting]) commit();
}
