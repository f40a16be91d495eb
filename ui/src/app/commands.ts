import type { LucideIcon } from "lucide-react";
import { useEffect } from "react";
import { create } from "zustand";

/** Something that can be asked for by key and in the palette. */
export interface Action {
  id: string;
  title: string;
  group: string;
  icon?: LucideIcon;
  /** Chord such as `Mod+K`, `Alt+Up`, `F2`. */
  keys?: string;
  /** Whether the chord also works while text is typed. */
  whileTyping?: boolean;
  enabled?: boolean;
  run: () => void;
}

interface Registry {
  groups: Record<string, Action[]>;
}

export const useActions = create<Registry>(() => ({ groups: {} }));

/** Offer these while the caller is shown. */
export function useOffer(owner: string, actions: Action[]): void {
  useEffect(() => {
    useActions.setState(({ groups }) => ({ groups: { ...groups, [owner]: actions } }));
  });
  useEffect(
    () => () =>
      useActions.setState(({ groups }) => {
        const { [owner]: _gone, ...rest } = groups;
        return { groups: rest };
      }),
    [owner],
  );
}

export function allActions(): Action[] {
  return Object.values(useActions.getState().groups).flat();
}

const NAMES: Record<string, string> = { ArrowUp: "Up", ArrowDown: "Down", ArrowLeft: "Left", ArrowRight: "Right", " ": "Space", "+": "Plus" };

/** The chord of a key press, in the order Mod, Alt, Shift. */
export function chordOf(event: KeyboardEvent): string {
  const name = NAMES[event.key] ?? (event.key.length === 1 ? event.key.toUpperCase() : event.key);
  const shift = event.shiftKey && (event.key.length > 1 || /[a-z]/i.test(event.key));
  return [(event.ctrlKey || event.metaKey) && "Mod", event.altKey && "Alt", shift && "Shift", name].filter(Boolean).join("+");
}

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
}

/** Carry out the action of a key press. */
export function listenForKeys(): () => void {
  const onKey = (event: KeyboardEvent): void => {
    if (event.isComposing || event.defaultPrevented) return;
    const chord = chordOf(event);
    const target = event.target;
    const action = allActions().find((each) => each.keys?.split(" ").includes(chord) && each.enabled !== false);
    if (!action) return;
    if (typing(target) && !action.whileTyping) return;
    // What is being typed has an undo of its own, until it has become an edit.
    if (target instanceof HTMLElement && target.dataset["dirty"] && action.id.startsWith("edit.")) return;
    if (document.querySelector('[role="dialog"][data-state="open"]') && action.id !== "palette") return;
    event.preventDefault();
    action.run();
  };
  window.addEventListener("keydown", onKey);
  return () => window.removeEventListener("keydown", onKey);
}
