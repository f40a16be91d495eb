import { useCallback, useEffect } from "react";
import { create } from "zustand";
import { CallError, call, said } from "./client";
import { share } from "./share";
import type { ArgsOf, CommandName, ResultOf } from "./shapes";

/** An answer kept: what came last, whether it may be out of date, and who looks at it. */
export interface Entry {
  name: CommandName;
  args: Record<string, unknown>;
  data?: unknown;
  error?: string;
  stale: boolean;
  loading: boolean;
  watchers: number;
}

interface Queries {
  entries: Record<string, Entry>;
}

export const useQueries = create<Queries>(() => ({ entries: {} }));

/** The key of a query: the same whatever the order of its arguments. */
export function keyOf(name: CommandName, args: object): string {
  const sorted = Object.entries(args)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `${name} ${JSON.stringify(sorted)}`;
}

function patch(key: string, change: (entry: Entry) => Partial<Entry>): void {
  useQueries.setState((state) => {
    const entry = state.entries[key];
    if (!entry) return state;
    return { entries: { ...state.entries, [key]: { ...entry, ...change(entry) } } };
  });
}

let before: (args: Record<string, unknown>) => Promise<void> = () => Promise.resolve();

/** Say what must have happened before something can be asked with these arguments. */
export function beforeAsking(prepare: (args: Record<string, unknown>) => Promise<void>): void {
  before = prepare;
}

const BUSY_TRIES = 4;
const BUSY_MILLIS = 300;

/** Ask again a few times when another one is at it: looking changes nothing. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof CallError) || error.code !== "busy" || tries >= BUSY_TRIES) throw error;
      await new Promise((done) => setTimeout(done, BUSY_MILLIS * tries));
    }
  }
}

async function load(key: string): Promise<void> {
  const entry = useQueries.getState().entries[key];
  if (!entry || entry.loading) return;
  patch(key, () => ({ loading: true, stale: false }));
  try {
    await before(entry.args);
    const meanwhile = useQueries.getState().entries[key];
    if (meanwhile && meanwhile.data !== entry.data && !meanwhile.stale) {
      // What had to happen before brought the answer with it.
      patch(key, () => ({ loading: false }));
      return;
    }
    const data = await patiently(() => call(entry.name, entry.args as ArgsOf<CommandName>));
    patch(key, (now) => ({ data: share(now.data, data), error: undefined, loading: false }));
  } catch (error) {
    patch(key, () => ({ error: said(error), loading: false }));
  }
  // It went out of date while it was on its way.
  if (useQueries.getState().entries[key]?.stale) await load(key);
}

function watch(name: CommandName, args: object): () => void {
  const key = keyOf(name, args);
  useQueries.setState((state) => {
    const entry = state.entries[key] ?? {
      name,
      args: args as Record<string, unknown>,
      stale: true,
      loading: false,
      watchers: 0,
    };
    return { entries: { ...state.entries, [key]: { ...entry, watchers: entry.watchers + 1 } } };
  });
  const entry = useQueries.getState().entries[key];
  if (entry && (entry.stale || entry.error !== undefined)) void load(key);
  return () => patch(key, (now) => ({ watchers: now.watchers - 1 }));
}

/** Mark the answers of `name` (with these arguments among theirs) out of date; those that
 *  something shows are asked for again. */
export function invalidate(name: CommandName, args: Record<string, unknown> = {}): void {
  for (const [key, entry] of Object.entries(useQueries.getState().entries)) {
    if (entry.name !== name) continue;
    if (!Object.entries(args).every(([arg, value]) => entry.args[arg] === value)) continue;
    patch(key, () => ({ stale: true }));
    if (entry.watchers > 0 && !entry.loading) void load(key);
  }
}

/** Everything is out of date: the server was away or lost its past. */
export function invalidateAll(): void {
  for (const name of new Set(Object.values(useQueries.getState().entries).map((entry) => entry.name))) {
    invalidate(name);
  }
}

/** Put an answer that came by another way. */
export function put<N extends CommandName>(name: N, args: ArgsOf<N>, data: ResultOf<N>): void {
  const key = keyOf(name, args);
  useQueries.setState((state) => {
    const old = state.entries[key];
    const entry: Entry = {
      name,
      args: args as Record<string, unknown>,
      data: share(old?.data, data),
      stale: false,
      loading: old?.loading ?? false,
      watchers: old?.watchers ?? 0,
    };
    return { entries: { ...state.entries, [key]: entry } };
  });
}

/** The answer kept, if any. */
export function peek<N extends CommandName>(name: N, args: ArgsOf<N>): ResultOf<N> | undefined {
  return useQueries.getState().entries[keyOf(name, args)]?.data as ResultOf<N> | undefined;
}

/** Change an answer kept, if it is there. */
export function update<N extends CommandName>(
  name: N,
  args: ArgsOf<N>,
  change: (data: ResultOf<N>) => ResultOf<N>,
): void {
  const data = peek(name, args);
  if (data !== undefined) put(name, args, change(data));
}

export interface Query<T> {
  data: T | undefined;
  error: string | undefined;
  loading: boolean;
  again: () => void;
}

/** The answer to a command that only looks, kept and renewed when events say that it changed. */
export function useQuery<N extends CommandName>(
  name: N,
  args: ArgsOf<N>,
  options: { enabled?: boolean } = {},
): Query<ResultOf<N>> {
  const enabled = options.enabled ?? true;
  const key = keyOf(name, args);
  // The key stands for the arguments, which callers make anew at each draw.
  useEffect(() => (enabled ? watch(name, args) : undefined), [key, enabled]);
  const entry = useQueries((state) => state.entries[key]);
  const again = useCallback(() => {
    patch(key, () => ({ stale: true }));
    void load(key);
  }, [key]);
  return {
    data: enabled ? (entry?.data as ResultOf<N> | undefined) : undefined,
    error: entry?.error,
    loading: enabled && (entry === undefined || (entry.data === undefined && entry.error === undefined)),
    again,
  };
}
