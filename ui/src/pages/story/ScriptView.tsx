import { useVirtualizer } from "@tanstack/react-virtual";
import { Plus } from "lucide-react";
import { useEffect, useMemo, useRef } from "react";
import { useTranslation } from "react-i18next";
import type { Lint, ProjectState, Scene, Shot } from "../../api/shapes";
import { Button } from "../../parts/Button";
import { fpsOf, lengthSecs } from "../../parts/figures";
import { SceneRow } from "./SceneRow";
import { ShotRow } from "./ShotRow";
import { useStory } from "./context";
import { runOn } from "./rowActions";
import { useSelection } from "./selection";

type Row = { key: string; scene: Scene; sceneNumber: number; shot?: Shot; shotNumber: number };

function rowsOf(scenes: Scene[]): Row[] {
  return scenes.flatMap((scene, at) => [
    { key: `scene:${scene.id}`, scene, sceneNumber: at + 1, shotNumber: 0 },
    ...scene.shots.map((shot, each) => ({ key: `shot:${shot.id}`, scene, sceneNumber: at + 1, shot, shotNumber: each + 1 })),
  ]);
}

/** The whole script, edited where it stands; only what is in sight is drawn. */
export function ScriptView({ state, lint }: { state: ProjectState; lint: Map<string, Lint[]> }) {
  const { t } = useTranslation();
  const tools = useStory();
  const { script } = state;
  const selection = useSelection((each) => each.selection);
  const reveals = useSelection((each) => each.reveals);
  const rows = useMemo(() => rowsOf(script.scenes), [script.scenes]);
  const cast = useMemo(() => (script.cast ?? []).map((each) => each.name).join("\n"), [script.cast]);
  const places = useMemo(() => (script.places ?? []).map((each) => `${each.id}\t${each.name ?? ""}`).join("\n"), [script.places]);
  const fps = fpsOf(script.fps);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length + 1,
    getScrollElement: () => scroller.current,
    estimateSize: (at) => (rows[at]?.shot ? 132 : 96),
    getItemKey: (at) => rows[at]?.key ?? "end",
    overscan: 5,
  });

  useEffect(() => {
    const { selection: wanted, focus } = useSelection.getState();
    if (!wanted || reveals === 0) return;
    const key = `${wanted.kind}:${wanted.id}`;
    const at = rows.findIndex((row) => row.key === key);
    if (at < 0) return;
    virtual.scrollToIndex(at, { align: "auto" });
    if (!focus) return;
    const wait = setTimeout(() => {
      const row = scroller.current?.querySelector(`[data-row="${CSS.escape(key)}"]`);
      const fields = row?.querySelectorAll("textarea");
      fields?.[wanted.kind === "shot" ? 1 : 0]?.focus();
      useSelection.setState({ focus: false });
    }, 80);
    return () => clearTimeout(wait);
    // Only a request moves the view, not every edit.
  }, [reveals]);

  return (
    <div ref={scroller} className="h-full overflow-y-auto" role="region" aria-label={t("story.script")} tabIndex={-1}>
      <div className="relative mx-auto max-w-4xl px-2" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          return (
            <div
              key={item.key}
              data-index={item.index}
              ref={virtual.measureElement}
              className="absolute top-0 right-2 left-2"
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {row === undefined ? (
                <div className="flex gap-2 px-3 pt-4 pb-24">
                  <Button icon={Plus} onClick={() => void runOn(tools, "add_scene", { kind: "scene", id: script.scenes.at(-1)?.id ?? "" })}>
                    {t("story.add_scene")}
                  </Button>
                </div>
              ) : row.shot ? (
                <ShotRow
                  shot={row.shot}
                  number={`${row.sceneNumber}.${row.shotNumber}`}
                  cast={cast}
                  fps={fps}
                  status={state.shots[row.shot.id]}
                  lint={lint.get(row.key)}
                  chosen={selection?.kind === "shot" && selection.id === row.shot.id}
                />
              ) : (
                <SceneRow
                  scene={row.scene}
                  number={row.sceneNumber}
                  places={places}
                  secs={row.scene.shots.reduce((sum, shot) => sum + (lengthSecs(shot.length, fps) ?? 0), 0)}
                  lint={lint.get(row.key)}
                  chosen={selection?.kind === "scene" && selection.id === row.scene.id}
                />
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}
