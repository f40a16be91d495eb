import { useEffect, useRef, useState } from "react";
import { holdDraft } from "./drafts";

const PAUSE_MILLIS = 900;

export interface Draft {
  text: string;
  dirty: boolean;
  /** What is wrong with what stands there; it is not committed. */
  fault: string | undefined;
  change: (text: string) => void;
  commit: () => void;
  revert: () => void;
  composing: (on: boolean) => void;
}

interface Options {
  value: string;
  onCommit: (text: string) => void;
  /** Why a text cannot be taken, or undefined. */
  check?: ((text: string) => string | undefined) | undefined;
  /** Whether a pause in typing commits. */
  onPause?: boolean | undefined;
}

/** A text being typed: kept here, so that a key redraws one field, and committed on a pause, on
 *  leaving the field and when the field goes. What others write shows as soon as nothing is typed. */
export function useDraft({ value, onCommit, check, onPause = true }: Options): Draft {
  const [draft, setDraft] = useState<string | null>(null);
  const now = useRef({ draft, value, onCommit, check, ime: false });
  now.current = { ...now.current, value, onCommit, check };
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  const commit = useRef(() => {
    clearTimeout(timer.current);
    const { draft: text, value: old, ime } = now.current;
    if (text === null || ime) return;
    if (now.current.check?.(text) !== undefined) return;
    now.current.draft = null;
    setDraft(null);
    if (text !== old) now.current.onCommit(text);
  }).current;

  useEffect(() => {
    const release = holdDraft(commit);
    return () => {
      release();
      // A field that scrolls out of sight or a page that is left: what was typed counts.
      now.current.ime = false;
      commit();
    };
  }, [commit]);

  const schedule = (): void => {
    clearTimeout(timer.current);
    if (onPause) timer.current = setTimeout(commit, PAUSE_MILLIS);
  };

  return {
    text: draft ?? value,
    dirty: draft !== null && draft !== value,
    fault: draft === null ? undefined : check?.(draft),
    change: (text) => {
      now.current.draft = text;
      setDraft(text);
      schedule();
    },
    commit,
    revert: () => {
      clearTimeout(timer.current);
      now.current.draft = null;
      setDraft(null);
    },
    composing: (on) => {
      now.current.ime = on;
      if (!on) schedule();
    },
  };
}
