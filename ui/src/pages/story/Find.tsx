import { Search, X } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useQuery } from "../../api/queries";
import type { Found } from "../../api/shapes";
import { IconButton } from "../../parts/Button";
import { cx } from "../../parts/cx";
import { reveal } from "./selection";

const PAUSE_MILLIS = 200;

/** The words before and after what was found, with it between. */
export function around(text: string, typed: string): [string, string, string] {
  const at = text.toLowerCase().indexOf(typed.toLowerCase());
  if (at < 0) return [text.slice(0, 80), "", ""];
  const from = Math.max(0, at - 24);
  return [(from > 0 ? "…" : "") + text.slice(from, at), text.slice(at, at + typed.length), text.slice(at + typed.length, at + typed.length + 60)];
}

/** Find in the script, and step through what was found. */
export function Find({ project, onClose }: { project: string; onClose: () => void }) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState("");
  const [asked, setAsked] = useState("");
  const [at, setAt] = useState(-1);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  useEffect(() => {
    const wait = setTimeout(() => setAsked(typed.trim()), PAUSE_MILLIS);
    return () => clearTimeout(wait);
  }, [typed]);
  const { data, loading } = useQuery("project.find", { project, text: asked }, { enabled: asked !== "" });
  const found = useMemo(() => data ?? [], [data]);
  const show = (index: number): void => {
    const each: Found | undefined = found[index];
    if (!each) return;
    setAt(index);
    if (each.kind === "shot" || each.kind === "scene") reveal({ kind: each.kind, id: each.id });
    document.getElementById(`found-${index}`)?.scrollIntoView({ block: "nearest" });
  };
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="mx-2 flex h-8 shrink-0 items-center gap-2 rounded-md border border-line-strong bg-page pr-0.5 pl-2">
        <Search className="size-4 text-quiet" aria-hidden />
        <input
          ref={input}
          aria-label={t("story.find")}
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            setAt(-1);
          }}
          onKeyDown={(event) => {
            if (event.key === "Escape") onClose();
            if (event.key === "Enter" && found.length > 0) show((at + (event.shiftKey ? -1 : 1) + found.length) % found.length);
          }}
          placeholder={t("story.find_hint")}
          className="w-full min-w-0 bg-transparent text-loud outline-none"
        />
        <IconButton icon={X} size="sm" className="size-6" label={t("common.close")} onClick={onClose} />
      </div>
      <p role="status" className="px-3.5 py-1.5 text-xs text-quiet">
        {asked === "" ? t("story.find_next") : loading ? t("common.loading") : t("story.found", { count: found.length })}
      </p>
      <ul className="min-h-0 flex-1 overflow-y-auto px-1.5">
        {found.map((each, index) => {
          const [before, match, after] = around(each.text, asked);
          return (
            <li key={`${each.kind}${each.id}${each.field}`} id={`found-${index}`}>
              <button type="button" onClick={() => show(index)} className={cx("w-full rounded-sm px-2 py-1.5 text-left hover:bg-hover", index === at && "bg-press")}>
                <span className="block truncate text-xs text-quiet">
                  {t(`kinds.${each.kind}`)} {each.id}
                </span>
                <span className="line-clamp-2 text-sm text-text">
                  {before}
                  <mark className="rounded-xs bg-accent-wash text-accent-text">{match}</mark>
                  {after}
                </span>
              </button>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
