import { EllipsisVertical, MessageSquarePlus } from "lucide-react";
import { memo } from "react";
import { useTranslation } from "react-i18next";
import type { Lint, Shot, ShotStatus } from "../../api/shapes";
import { go } from "../../app/route";
import { IconButton } from "../../parts/Button";
import { GrowText } from "../../parts/Field";
import { Menu } from "../../parts/Menu";
import { Thumb } from "../../parts/Thumb";
import { cx } from "../../parts/cx";
import { LengthInput } from "./LengthInput";
import { LineRow } from "./LineRow";
import { LintLines } from "./LintLines";
import { addLine, setShot, textOrNull } from "./changes";
import { useStory } from "./context";
import { framingKept, framingShown } from "../board/framing";
import { select } from "./selection";
import { useRowMenu } from "./useRowMenu";

interface Props {
  shot: Shot;
  number: string;
  cast: string;
  fps: number;
  status: ShotStatus | undefined;
  lint: Lint[] | undefined;
  chosen: boolean;
}

/** A shot as a part of the written script. */
export const ShotRow = memo(function ShotRow({ shot, number, cast, fps, status, lint, chosen }: Props) {
  const { t } = useTranslation();
  const { edit } = useStory();
  const menu = useRowMenu("shot", shot.id);
  const lines = shot.lines ?? [];
  return (
    <article
      aria-label={t("story.shot_number", { number })}
      data-row={`shot:${shot.id}`}
      onFocusCapture={() => select({ kind: "shot", id: shot.id })}
      onPointerDown={() => select({ kind: "shot", id: shot.id })}
      className={cx("group/shot grid grid-cols-[6.5rem_minmax(0,1fr)] gap-x-4 rounded-md px-3 py-2.5", chosen ? "bg-raised" : "hover:bg-panel")}
    >
      <div className="flex flex-col gap-1.5">
        <button type="button" onClick={() => go("board", { at: shot.id })} aria-label={t("story.show_on_board", { number })} className="overflow-hidden rounded-sm">
          <Thumb hash={status?.picture} width={208} alt="" colour={shot.colour} className="aspect-video w-full" />
        </button>
        <span className="numeric truncate text-xs text-quiet" title={shot.id}>
          {number} · {shot.id}
        </span>
      </div>
      <div className="flex min-w-0 flex-col gap-1">
        <div className="flex items-center gap-2">
          <GrowText
            label={t("shot.framing")}
            value={framingShown(t, shot.framing)}
            placeholder={t("shot.framing_hint")}
            single
            className="grow text-sm text-quiet"
            onCommit={(text) => edit(setShot(shot.id, "/framing", textOrNull(framingKept(t, text))))}
          />
          <LengthInput label={t("shot.length")} value={shot.length} fps={fps} onCommit={(length) => edit(setShot(shot.id, "/length", length))} />
          <IconButton icon={MessageSquarePlus} size="sm" label={t("story.add_line")} onClick={() => edit(addLine(shot, undefined, lines.at(-1)?.speaker ?? ""))} />
          <Menu items={menu}>
            <IconButton icon={EllipsisVertical} size="sm" label={t("story.shot_menu", { number })} />
          </Menu>
        </div>
        <GrowText
          label={t("shot.action")}
          value={shot.action ?? ""}
          placeholder={t("shot.action_hint")}
          className="text-base text-loud"
          onCommit={(text) => edit(setShot(shot.id, "/action", textOrNull(text)))}
        />
        {lines.length > 0 && (
          <div className="mt-1 flex max-w-2xl flex-col gap-1">
            {lines.map((line, at) => (
              <LineRow key={at} shot={shot} line={line} at={at} cast={cast} />
            ))}
          </div>
        )}
        {lint && <LintLines lint={lint} />}
      </div>
    </article>
  );
});
