import { create } from "zustand";

/** What is chosen in the open project; Story and Board share it. */
export interface Selection {
  kind: "scene" | "shot";
  id: string;
}

interface Chosen {
  selection: Selection | undefined;
  /** Counts requests to bring the selection into sight. */
  reveals: number;
  /** Whether the text of what is brought into sight takes the focus. */
  focus: boolean;
  /** Whether the proposal is shown in the place of the script. */
  reviewing: boolean;
}

export const useSelection = create<Chosen>(() => ({ selection: undefined, reveals: 0, focus: false, reviewing: false }));

export function select(selection: Selection | undefined): void {
  const now = useSelection.getState().selection;
  if (now?.kind === selection?.kind && now?.id === selection?.id) return;
  useSelection.setState({ selection });
}

/** Choose it and bring it into sight. */
export function reveal(selection: Selection, focus = false): void {
  useSelection.setState(({ reveals }) => ({ selection, reveals: reveals + 1, focus }));
}

export function review(reviewing: boolean): void {
  useSelection.setState({ reviewing });
}
