import { Brush, CircleAlert, CircleCheck, CircleDashed, LoaderCircle, MessageSquare, Music2, Play, Video } from "lucide-react";
import { memo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Shot, ShotState, ShotStatus } from "../../api/shapes";
import { IconButton } from "../../parts/Button";
import { Thumb } from "../../parts/Thumb";
import { cx } from "../../parts/cx";
import type { Reorder } from "../../parts/useReorder";
import { select } from "../story/selection";
import { framingShown } from "./framing";

interface Props {
  shot: Shot;
  number: string;
  status: ShotStatus | undefined;
  chosen: boolean;
  tabStop: boolean;
  width: number;
  pictureHeight: number;
  dragged: boolean;
  mark: "before" | "after" | undefined;
  onHandle: Reorder["handle"];
  onFiles: (shot: string, files: File[]) => void;
  onRender: (shot: string) => void;
}

const STATES: Record<ShotState, { icon: typeof CircleCheck; colour: string }> = {
  made: { icon: CircleCheck, colour: "text-good" },
  missing: { icon: CircleDashed, colour: "text-quiet" },
  running: { icon: LoaderCircle, colour: "text-accent-text" },
  failed: { icon: CircleAlert, colour: "text-bad" },
};

/** A shot as a card: its picture, what happens, how long, whether it is made. */
export const Card = memo(
  function Card({ shot, number, status, chosen, tabStop, width, pictureHeight, dragged, mark, onHandle, onFiles, onRender }: Props) {
    const { t } = useTranslation();
    const [over, setOver] = useState(false);
    const state = STATES[status?.state ?? "missing"];
    const said = shot.action || shot.depicts || shot.lines?.[0]?.text || shot.id;
    return (
      <div
        className={cx("relative shrink-0", dragged && "opacity-40", mark && "z-10")}
        style={{ width }}
        onDragOver={(event) => {
          if (!event.dataTransfer.types.includes("Files")) return;
          event.preventDefault();
          event.stopPropagation();
          event.dataTransfer.dropEffect = "copy";
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          event.stopPropagation();
          setOver(false);
          onFiles(shot.id, [...event.dataTransfer.files]);
        }}
      >
        {mark && <span className={cx("absolute top-0 bottom-0 w-0.5 rounded-full bg-accent", mark === "before" ? "-left-2" : "-right-2")} aria-hidden />}
        <div
          role="button"
          tabIndex={tabStop ? 0 : -1}
          data-card={shot.id}
          aria-pressed={chosen}
          aria-label={t("board.card", { number, said, state: t(`board.states.${status?.state ?? "missing"}`) })}
          onClick={() => select({ kind: "shot", id: shot.id })}
          onFocus={() => select({ kind: "shot", id: shot.id })}
          {...onHandle(shot.id)}
          className={cx("block w-full overflow-hidden rounded-md border bg-panel text-left select-none", chosen ? "border-accent" : "border-line hover:border-line-strong", over && "outline-2 outline-accent")}
        >
          <div className="relative overflow-hidden bg-film" style={{ height: pictureHeight }}>
            <Thumb hash={status?.picture} width={width > 320 ? 640 : 320} alt="" colour={status?.picture ? undefined : shot.colour} plain={status?.to_draw} fit={shot.fit === "contain" ? "contain" : "cover"} className="size-full" />
            {over && <span className="absolute inset-0 flex items-center justify-center bg-film/70 text-sm font-medium text-[#fff]">{t("board.drop_here")}</span>}
            {status?.to_draw && !status.picture && (
              <span className="absolute inset-0 flex items-center justify-center gap-1.5 px-3 text-center text-xs text-quiet">
                <Brush className="size-3.5 shrink-0" strokeWidth={1.75} aria-hidden />
                {t("board.to_draw")}
              </span>
            )}
            {status?.draft && <span className="absolute bottom-1.5 left-1.5 rounded-sm bg-film/75 px-1 text-xs leading-4.5 text-[#fff]">{t("board.draft")}</span>}
            <span className="numeric absolute right-1.5 bottom-1.5 rounded-sm bg-film/75 px-1 text-xs leading-4.5 text-[#fff]">{`${Number((status?.length_secs ?? 0).toFixed(1))} s`}</span>
          </div>
          <div className="flex h-16 flex-col justify-center gap-1 px-2.5">
            <div className="flex items-center gap-1.5 text-xs text-quiet">
              <state.icon className={cx("size-3.5", state.colour, status?.state === "running" && "animate-spin")} aria-hidden />
              <span className="numeric">{number}</span>
              <span className="min-w-0 truncate">{framingShown(t, shot.framing)}</span>
              <span className="grow" />
              {shot.video && <Video className="size-3.5" aria-hidden />}
              {shot.lines && shot.lines.length > 0 && <MessageSquare className="size-3.5" aria-hidden />}
              {shot.sounds && shot.sounds.length > 0 && <Music2 className="size-3.5" aria-hidden />}
            </div>
            <p className="truncate text-sm text-text">{said}</p>
          </div>
        </div>
        {chosen && status?.state !== "made" && status?.state !== "running" && (
          <IconButton icon={Play} size="sm" label={t("board.make_one")} className="absolute top-1.5 left-1.5 bg-film/75 text-[#fff]! hover:bg-film" onClick={() => onRender(shot.id)} />
        )}
      </div>
    );
  },
  (before, now) =>
    // The handle is made anew at each draw and does the same.
    (Object.keys(now) as (keyof Props)[]).every((field) => field === "onHandle" || field === "onFiles" || field === "onRender" || before[field] === now[field]),
);
