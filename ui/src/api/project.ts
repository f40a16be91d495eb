import { useMemo } from "react";
import { applyEdit } from "./apply";
import { type PendingEdit, edit, useEdits } from "./edits";
import { keyOf, useQueries, useQuery } from "./queries";
import type { Edit, ProjectState, Scene, Script, Shot } from "./shapes";

/** The server's state with the edits that it does not hold yet. */
export function merged(state: ProjectState, pending: PendingEdit[]): ProjectState {
  const mine = pending.filter(
    (each) => each.project === state.project && (each.taken === undefined || each.taken > state.revision),
  );
  if (mine.length === 0) return state;
  return { ...state, script: mine.reduce((script, each) => applyEdit(script, each.edit), state.script) };
}

/** The open project as it is seen: with the edits on their way. */
export function useProject(project: string): {
  state: ProjectState | undefined;
  error: string | undefined;
  again: () => void;
} {
  const { data, error, again } = useQuery("project.state", { project });
  const pending = useEdits((edits) => edits.pending);
  const state = useMemo(() => (data ? merged(data, pending) : undefined), [data, pending]);
  return { state, error, again };
}

/** The project as it stands now, outside of drawing. */
export function projectNow(project: string): ProjectState | undefined {
  const data = useQueries.getState().entries[keyOf("project.state", { project })]?.data;
  return data === undefined ? undefined : merged(data as ProjectState, useEdits.getState().pending);
}

export function scriptNow(project: string): Script | undefined {
  return projectNow(project)?.script;
}

export interface Edits {
  do: (change: Edit) => void;
}

/** Edit by what the script says now. */
export function editScript(project: string, change: (script: Script) => Edit | undefined): void {
  const script = scriptNow(project);
  const wanted = script && change(script);
  if (wanted) edit(project, wanted);
}

export function sceneOf(script: Script, shot: string): Scene | undefined {
  return script.scenes.find((scene) => scene.shots.some((each) => each.id === shot));
}

export function shotOf(script: Script, id: string): Shot | undefined {
  return sceneOf(script, id)?.shots.find((shot) => shot.id === id);
}
