import { create } from "zustand";
import { randomName } from "../parts/browser";
import { CallError, call, said } from "./client";
import { put } from "./queries";
import type { Edit } from "./shapes";

/** An edit on its way: seen at once, kept until the server's state holds it. */
export interface PendingEdit {
  key: string;
  project: string;
  edit: Edit;
  /** Revision that holds it, once the server has taken it. */
  taken?: number;
}

interface Edits {
  pending: PendingEdit[];
  /** Whether the server took the last one; false: edits wait for it. */
  reachable: boolean;
  /** Why they wait, when the server is there. */
  why: string | undefined;
}

export const useEdits = create<Edits>(() => ({ pending: [], reachable: true, why: undefined }));

type Refused = (edit: PendingEdit, why: string) => void;
let onRefused: Refused = () => undefined;
let running: Promise<void> | undefined;
let again: ReturnType<typeof setTimeout> | undefined;
const RETRY_MILLIS = 2_000;

/** Say what to do when the server refuses an edit: it has been taken back already. */
export function whenRefused(tell: Refused): void {
  onRefused = tell;
}

/** Edits of an earlier page that were never sent go before those of this one. */
export function adopt(earlier: PendingEdit[]): void {
  const known = new Set(useEdits.getState().pending.map((each) => each.key));
  const missed = earlier.filter((each) => !known.has(each.key));
  if (missed.length === 0) return;
  useEdits.setState((state) => ({ pending: [...missed, ...state.pending] }));
  void flush();
}

const opened = new Map<string, Promise<void>>();

/** Open a project once for each connection: a server that was started again knows of none. */
export function ensureOpen(project: string): Promise<void> {
  const before = opened.get(project);
  if (before) return before;
  const opening = call("project.open", { project }).then((state) => put("project.state", { project }, state));
  opened.set(project, opening);
  opening.catch(() => opened.delete(project));
  return opening;
}

export function isOpen(project: string): void {
  opened.set(project, Promise.resolve());
}

/** The server is gone: what was open there may not be when it comes back. */
export function forgetOpen(project?: string): void {
  if (project === undefined) opened.clear();
  else opened.delete(project);
}

/** Do an edit: seen at once, sent after those before it. */
export function edit(project: string, change: Edit): void {
  const pending: PendingEdit = { key: randomName(), project, edit: change };
  useEdits.setState((state) => ({ pending: [...state.pending, pending] }));
  flush();
}

/** Send what waits, in order; resolves when nothing waits or the server is away. */
export function flush(): Promise<void> {
  clearTimeout(again);
  running ??= sendAll().finally(() => {
    running = undefined;
  });
  return running;
}

async function sendAll(): Promise<void> {
  for (;;) {
    const next = useEdits.getState().pending.find((each) => each.taken === undefined);
    if (!next) return;
    try {
      await ensureOpen(next.project);
      const { revision } = await call("project.edit", {
        project: next.project,
        edit: next.edit,
        edit_key: next.key,
      });
      useEdits.setState((state) => ({
        reachable: true,
        why: undefined,
        pending: state.pending.map((each) => (each.key === next.key ? { ...each, taken: revision } : each)),
      }));
    } catch (error) {
      if (error instanceof CallError && error.mayPass) {
        useEdits.setState({ reachable: false, why: error.code === "unreachable" ? undefined : error.message });
        again = setTimeout(() => void flush(), RETRY_MILLIS);
        return;
      }
      useEdits.setState((state) => ({
        reachable: true,
        why: undefined,
        pending: state.pending.filter((each) => each.key !== next.key),
      }));
      onRefused(next, said(error));
    }
  }
}

/** The server's state of a project now holds everything up to `revision`. */
export function settle(project: string, revision: number): void {
  const { pending } = useEdits.getState();
  const left = pending.filter(
    (each) => each.project !== project || each.taken === undefined || each.taken > revision,
  );
  if (left.length !== pending.length) useEdits.setState({ pending: left });
}
