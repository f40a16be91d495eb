import { create } from "zustand";

export type ToastLevel = "good" | "info" | "warn" | "bad";

export interface Toast {
  id: number;
  level: ToastLevel;
  message: string;
  at: number;
  /** Text that was refused, for copying. */
  kept?: string;
  seen: boolean;
  shown: boolean;
}

interface Toasts {
  list: Toast[];
}

const KEPT_MAX = 100;
let next = 1;

export const useToasts = create<Toasts>(() => ({ list: [] }));

/** Tell something in passing; it can be read again in the list of messages. */
export function toast(level: ToastLevel, message: string, kept?: string): void {
  const { list } = useToasts.getState();
  const last = list[0];
  // The same said twice in a row is one message.
  if (last?.message === message && last.shown) return;
  const item: Toast = { id: next, level, message, at: Date.now(), seen: false, shown: true };
  if (kept !== undefined) item.kept = kept;
  next += 1;
  useToasts.setState({ list: [item, ...list].slice(0, KEPT_MAX) });
  setTimeout(() => hideToast(item.id), level === "bad" ? 12_000 : 5_000);
}

export function hideToast(id: number): void {
  useToasts.setState(({ list }) => ({ list: list.map((each) => (each.id === id ? { ...each, shown: false } : each)) }));
}

export function markSeen(): void {
  useToasts.setState(({ list }) => ({ list: list.map((each) => (each.seen ? each : { ...each, seen: true })) }));
}
