import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronRight, GripVertical } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Lint, Script } from "../../api/shapes";
import { cx } from "../../parts/cx";
import { type DropPlace, useReorder } from "../../parts/useReorder";
import { moveScene, moveShot } from "./changes";
import { useStory } from "./context";
import { runOn } from "./rowActions";
import { type Selection, reveal, useSelection } from "./selection";

const ROW_PX = 30;
type Item = { key: string; kind: "scene" | "shot"; id: string; scene: string; label: string; number: string; open?: boolean };

function itemsOf(script: Script, closed: Set<string>): Item[] {
  return script.scenes.flatMap((scene, at) => {
    const open = !closed.has(scene.id);
    const head: Item = { key: `scene:${scene.id}`, kind: "scene", id: scene.id, scene: scene.id, label: scene.heading || scene.id, number: `${at + 1}`, open };
    const shots = scene.shots.map((shot, each): Item => ({
      key: `shot:${shot.id}`,
      kind: "shot",
      id: shot.id,
      scene: scene.id,
      label: shot.action || shot.depicts || shot.id,
      number: `${at + 1}.${each + 1}`,
    }));
    return open ? [head, ...shots] : [head];
  });
}

/** Scenes and shots as a tree: to go to one, and to put them in another order by hand or by key. */
export function Outline({ script, lint }: { script: Script; lint: Map<string, Lint[]> }) {
  const { t } = useTranslation();
  const tools = useStory();
  const selection = useSelection((each) => each.selection);
  const [closed, setClosed] = useState<Set<string>>(() => new Set(script.scenes.length > 12 ? script.scenes.map((scene) => scene.id) : []));
  const items = useMemo(() => itemsOf(script, closed), [script, closed]);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: items.length, getScrollElement: () => scroller.current, estimateSize: () => ROW_PX, getItemKey: (at) => items[at]?.key ?? at, overscan: 10 });

  const drop = (dragged: string, place: DropPlace): void => {
    const from = items.find((item) => item.key === dragged);
    const over = items.find((item) => item.key === place.over);
    const now = tools.script();
    if (!from || !over || !now) return;
    if (from.kind === "scene") {
      const at = now.scenes.findIndex((scene) => scene.id === over.scene);
      const others = now.scenes.filter((scene) => scene.id !== from.id);
      const before = place.side === "before" && over.kind === "scene" ? others[others.findIndex((scene) => scene.id === now.scenes[at]?.id) - 1]?.id : over.scene;
      tools.edit(moveScene(now, from.id, before));
    } else if (over.kind === "scene") {
      const at = now.scenes.findIndex((scene) => scene.id === over.id);
      const above = now.scenes[at - 1];
      if (place.side === "before" && above) tools.edit(moveShot(now, from.id, above.id, above.shots.filter((shot) => shot.id !== from.id).at(-1)?.id));
      else tools.edit(moveShot(now, from.id, over.id, undefined));
    } else {
      const shots = now.scenes.find((scene) => scene.id === over.scene)?.shots.filter((shot) => shot.id !== from.id) ?? [];
      const at = shots.findIndex((shot) => shot.id === over.id);
      tools.edit(moveShot(now, from.id, over.scene, place.side === "after" ? over.id : shots[at - 1]?.id));
    }
  };
  const reorder = useReorder({ attribute: "data-outline", axis: "y", onDrop: drop });

  const at = items.findIndex((item) => item.kind === selection?.kind && item.id === selection.id);
  useEffect(() => {
    if (at >= 0) virtual.scrollToIndex(at, { align: "auto" });
  }, [at]);

  const toggle = (id: string, open: boolean): void => {
    const next = new Set(closed);
    if (open) next.delete(id);
    else next.add(id);
    setClosed(next);
  };
  const goTo = (item: Item | undefined, focus = false): void => {
    if (item) reveal({ kind: item.kind, id: item.id }, focus);
  };
  const keys = (event: React.KeyboardEvent): void => {
    const item = items[at];
    const on: Selection | undefined = item && { kind: item.kind, id: item.id };
    const handled: Record<string, () => void> = {
      ArrowDown: () => goTo(items[Math.min(at + 1, items.length - 1)]),
      ArrowUp: () => goTo(items[Math.max(at - 1, 0)]),
      Home: () => goTo(items[0]),
      End: () => goTo(items.at(-1)),
      ArrowRight: () => item?.kind === "scene" && toggle(item.id, true),
      ArrowLeft: () => (item?.kind === "scene" ? toggle(item.id, false) : goTo(items.find((each) => each.kind === "scene" && each.id === item?.scene))),
      Enter: () => goTo(item, true),
      Delete: () => on && void runOn(tools, "remove", on),
    };
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const run = handled[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  };

  return (
    <div
      ref={scroller}
      role="tree"
      tabIndex={0}
      aria-label={t("story.outline")}
      aria-activedescendant={at >= 0 ? `outline-${items[at]?.key}` : undefined}
      onKeyDown={keys}
      className="min-h-0 flex-1 overflow-y-auto px-1.5 pb-4 focus-visible:-outline-offset-2"
    >
      <div role="none" className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((each) => {
          const item = items[each.index];
          if (!item) return null;
          const warned = lint.get(item.key);
          const mark = reorder.place?.over === item.key ? reorder.place.side : undefined;
          return (
            <div
              key={item.key}
              id={`outline-${item.key}`}
              data-outline={item.key}
              role="treeitem"
              aria-level={item.kind === "scene" ? 1 : 2}
              aria-selected={each.index === at}
              aria-expanded={item.open}
              style={{ transform: `translateY(${each.start}px)`, height: ROW_PX }}
              onClick={() => goTo(item)}
              className={cx(
                "group/item absolute inset-x-0 top-0 flex items-center gap-1 rounded-sm pr-1.5 text-sm select-none",
                item.kind === "scene" ? "pl-0.5 font-medium text-loud" : "pl-6 text-text",
                each.index === at ? "bg-press" : "hover:bg-hover",
                reorder.dragged === item.key && "opacity-40",
                mark === "before" && "before:absolute before:inset-x-1 before:top-0 before:h-0.5 before:bg-accent",
                mark === "after" && "after:absolute after:inset-x-1 after:bottom-0 after:h-0.5 after:bg-accent",
              )}
            >
              {item.kind === "scene" && (
                <span
                  aria-hidden
                  className="flex size-5 items-center justify-center text-quiet"
                  onClick={(event) => {
                    event.stopPropagation();
                    toggle(item.id, !item.open);
                  }}
                >
                  <ChevronRight className={cx("size-4 transition-transform", item.open && "rotate-90")} />
                </span>
              )}
              <span className="numeric shrink-0 text-xs text-quiet">{item.number}</span>
              <span className="min-w-0 grow truncate">{item.label}</span>
              {warned && <span className={cx("size-1.5 shrink-0 rounded-full", warned.some((lint) => lint.level === "fault") ? "bg-bad" : "bg-warn")} />}
              <span aria-hidden {...reorder.handle(item.key)} className="flex size-5 cursor-grab touch-none items-center justify-center text-quiet opacity-0 group-hover/item:opacity-100">
                <GripVertical className="size-3.5" />
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}
