import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { edit as doEdit } from "../../api/edits";
import { scriptNow } from "../../api/project";
import type { ProjectState, Scene, Shot } from "../../api/shapes";
import { clockText } from "../../parts/figures";
import { useReorder } from "../../parts/useReorder";
import { moveShot } from "../story/changes";
import { reveal, useSelection } from "../story/selection";
import { Card } from "./Card";

const GAP_PX = 14;
const FOOT_PX = 66;
const HEAD_PX = 52;

type Row = { key: string; scene: Scene; number: number } & ({ head: true } | { head: false; shots: Shot[]; first: number });

/** Heads of scenes, and rows of as many cards as fit. */
export function rowsOf(scenes: Scene[], columns: number): Row[] {
  return scenes.flatMap((scene, at) => {
    const rows: Row[] = [{ key: `head:${scene.id}`, scene, number: at + 1, head: true }];
    for (let first = 0; first < scene.shots.length; first += columns) {
      rows.push({ key: `row:${scene.id}:${first}`, scene, number: at + 1, head: false, first, shots: scene.shots.slice(first, first + columns) });
    }
    return rows;
  });
}

interface Props {
  state: ProjectState;
  cardPx: number;
  onFiles: (shot: string, files: File[]) => void;
  onRender: (shot: string) => void;
}

/** Cards of all shots, by scene; only rows in sight are drawn, each of a height known before. */
export function CardGrid({ state, cardPx, onFiles, onRender }: Props) {
  const { t } = useTranslation();
  const { project, script } = state;
  const scroller = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const selection = useSelection((each) => each.selection);
  const reveals = useSelection((each) => each.reveals);
  const [rem, setRem] = useState(16);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const measure = (): void => {
      setWidth(element.clientWidth - 32);
      setRem(Number.parseFloat(getComputedStyle(document.documentElement).fontSize));
    };
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);

  const scale = rem / 16;
  const columns = Math.max(1, Math.floor((width + GAP_PX) / (cardPx * scale + GAP_PX)));
  const aspect = state.film.width_px / state.film.height_px || 16 / 9;
  const cardWidth = (width - GAP_PX * (columns - 1)) / columns;
  // A tall frame is shown in a place no higher than it is broad.
  const pictureHeight = Math.round(cardWidth / Math.max(1, aspect));
  const rowHeight = pictureHeight + FOOT_PX * scale + GAP_PX;
  const rows = useMemo(() => rowsOf(script.scenes, columns), [script.scenes, columns]);
  const virtual = useVirtualizer({
    count: width > 0 ? rows.length : 0,
    getScrollElement: () => scroller.current,
    estimateSize: (at) => (rows[at]?.head ? HEAD_PX * scale : rowHeight),
    getItemKey: (at) => rows[at]?.key ?? at,
    overscan: 3,
    paddingStart: 4,
    paddingEnd: 32,
  });
  useEffect(() => virtual.measure(), [rowHeight, scale]);

  const rowAt = (id: string | undefined): number => rows.findIndex((row) => !row.head && row.shots.some((shot) => shot.id === id));
  useEffect(() => {
    const at = rowAt(useSelection.getState().selection?.id);
    if (reveals > 0 && at >= 0) virtual.scrollToIndex(at, { align: "auto" });
  }, [reveals, width > 0]);

  const order = useMemo(() => script.scenes.flatMap((scene) => scene.shots.map((shot) => shot.id)), [script.scenes]);
  const focusCard = (id: string | undefined): void => {
    if (id === undefined) return;
    const card = (): HTMLElement | null | undefined => scroller.current?.querySelector<HTMLElement>(`[data-card="${CSS.escape(id)}"]`);
    // A card in sight takes the focus at once, so that a held key goes on from it.
    card()?.focus();
    reveal({ kind: "shot", id });
    requestAnimationFrame(() => card()?.focus());
  };
  const keys = (event: React.KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey || !(event.target instanceof HTMLElement) || !event.target.dataset["card"]) return;
    const id = event.target.dataset["card"];
    const at = order.indexOf(id);
    const vertical = (step: 1 | -1): string | undefined => {
      const from = rowAt(id);
      const row = rows[from];
      const column = row && !row.head ? row.shots.findIndex((shot) => shot.id === id) : 0;
      for (let to = from + step; to >= 0 && to < rows.length; to += step) {
        const next = rows[to];
        if (next && !next.head) return next.shots[Math.min(column, next.shots.length - 1)]?.id;
      }
      return undefined;
    };
    const to: Record<string, () => string | undefined> = {
      ArrowRight: () => order[at + 1],
      ArrowLeft: () => order[at - 1],
      ArrowDown: () => vertical(1),
      ArrowUp: () => vertical(-1),
      Home: () => order[0],
      End: () => order.at(-1),
    };
    const next = to[event.key];
    if (!next) return;
    event.preventDefault();
    focusCard(next());
  };

  const reorder = useReorder({
    attribute: "data-card",
    axis: columns === 1 ? "y" : "x",
    onDrop: (dragged, place) => {
      const now = scriptNow(project);
      const scene = now?.scenes.find((each) => each.shots.some((shot) => shot.id === place.over));
      if (!now || !scene) return;
      const others = scene.shots.filter((shot) => shot.id !== dragged);
      const at = others.findIndex((shot) => shot.id === place.over);
      const change = moveShot(now, dragged, scene.id, place.side === "after" ? place.over : others[at - 1]?.id);
      if (change) doEdit(project, change);
    },
  });
  const tabStop = selection?.kind === "shot" && order.includes(selection.id) ? selection.id : order[0];

  return (
    <div ref={scroller} role="region" aria-label={t("board.cards")} onKeyDown={keys} className="h-full overflow-y-auto px-4" tabIndex={-1}>
      <div className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          if (!row) return null;
          return (
            <div key={item.key} className="absolute inset-x-0 top-0" style={{ transform: `translateY(${item.start}px)`, height: item.size }}>
              {row.head ? (
                <div className="flex h-full items-end gap-2.5 pb-2.5">
                  <span className="numeric text-sm text-quiet">{row.number}</span>
                  <h2 className="min-w-0 truncate font-semibold text-loud">{row.scene.heading || row.scene.id}</h2>
                  <span className="numeric shrink-0 text-sm text-quiet">
                    {clockText(row.scene.shots.reduce((sum, shot) => sum + (state.shots[shot.id]?.length_secs ?? 0), 0))}
                  </span>
                </div>
              ) : (
                <div className="flex" style={{ gap: GAP_PX }}>
                  {row.shots.map((shot, at) => (
                    <Card
                      key={shot.id}
                      shot={shot}
                      number={`${row.number}.${row.first + at + 1}`}
                      status={state.shots[shot.id]}
                      chosen={selection?.kind === "shot" && selection.id === shot.id}
                      tabStop={tabStop === shot.id}
                      width={cardWidth}
                      pictureHeight={pictureHeight}
                      dragged={reorder.dragged === shot.id}
                      mark={reorder.place?.over === shot.id ? reorder.place.side : undefined}
                      onHandle={reorder.handle}
                      onFiles={onFiles}
                      onRender={onRender}
                    />
                  ))}
                </div>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}
