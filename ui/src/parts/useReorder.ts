import { type PointerEvent as ReactPointerEvent, useEffect, useRef, useState } from "react";

/** Where a dragged thing would go: before or after the thing `over`. */
export interface DropPlace {
  over: string;
  side: "before" | "after";
}

interface Options {
  /** Attribute of elements that can be dropped at; its value names them. */
  attribute: string;
  axis: "x" | "y";
  onDrop: (dragged: string, place: DropPlace) => void;
  /** Whether `dragged` may go to `over`. */
  accepts?: (dragged: string, over: string) => boolean;
}

export interface Reorder {
  dragged: string | undefined;
  place: DropPlace | undefined;
  /** For the handle of the thing called `id`. */
  handle: (id: string) => { onPointerDown: (event: ReactPointerEvent) => void };
}

const START_PX = 4;
const EDGE_PX = 36;

/** Drag to reorder with pointer events: files dropped from outside keep the browser's own way, and
 *  a desktop window that takes file drops takes nothing from this one. Escape puts all back. */
export function useReorder({ attribute, axis, onDrop, accepts }: Options): Reorder {
  const [state, setState] = useState<{ dragged: string; place: DropPlace | undefined }>();
  const latest = useRef({ onDrop, accepts });
  latest.current = { onDrop, accepts };
  const stop = useRef<() => void>(undefined);
  useEffect(() => () => stop.current?.(), []);

  const start = (id: string, down: ReactPointerEvent): void => {
    if (down.button !== 0) return;
    const from = { x: down.clientX, y: down.clientY };
    let place: DropPlace | undefined;
    let going = false;
    const scroller = scrollerOf(down.currentTarget);

    const move = (event: PointerEvent): void => {
      if (!going && Math.hypot(event.clientX - from.x, event.clientY - from.y) < START_PX) return;
      going = true;
      event.preventDefault();
      if (scroller) {
        const box = scroller.getBoundingClientRect();
        if (event.clientY < box.top + EDGE_PX) scroller.scrollBy({ top: -16 });
        if (event.clientY > box.bottom - EDGE_PX) scroller.scrollBy({ top: 16 });
      }
      const element = document.elementFromPoint(event.clientX, event.clientY)?.closest(`[${attribute}]`);
      const over = element?.getAttribute(attribute);
      if (element && over && over !== id && (latest.current.accepts?.(id, over) ?? true)) {
        const box = element.getBoundingClientRect();
        const part = axis === "y" ? (event.clientY - box.top) / box.height : (event.clientX - box.left) / box.width;
        place = { over, side: part < 0.5 ? "before" : "after" };
      } else if (over !== id) {
        place = undefined;
      }
      setState({ dragged: id, place });
    };
    const end = (): void => {
      stop.current?.();
      if (going && place) latest.current.onDrop(id, place);
    };
    const key = (event: KeyboardEvent): void => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      stop.current?.();
    };
    const click = (event: MouseEvent): void => {
      // The release of a drag is no click on what lies below.
      if (going) event.stopPropagation();
      window.removeEventListener("click", click, true);
    };
    stop.current = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
      window.removeEventListener("pointercancel", cancel);
      window.removeEventListener("keydown", key, true);
      setTimeout(() => window.removeEventListener("click", click, true), 0);
      document.body.style.userSelect = "";
      setState(undefined);
      stop.current = undefined;
    };
    const cancel = (): void => stop.current?.();
    document.body.style.userSelect = "none";
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
    window.addEventListener("pointercancel", cancel);
    window.addEventListener("keydown", key, true);
    window.addEventListener("click", click, true);
  };

  return {
    dragged: state?.dragged,
    place: state?.place,
    handle: (id) => ({ onPointerDown: (event) => start(id, event) }),
  };
}

function scrollerOf(element: Element): Element | undefined {
  for (let at: Element | null = element; at; at = at.parentElement) {
    const { overflowY } = getComputedStyle(at);
    if ((overflowY === "auto" || overflowY === "scroll") && at.scrollHeight > at.clientHeight) return at;
  }
  return undefined;
}
