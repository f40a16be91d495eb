import { ArrowDown, ArrowUp, EllipsisVertical, Plus, Sparkles, Trash2 } from "lucide-react";
import { memo } from "react";
import { useTranslation } from "react-i18next";
import type { Line, Shot } from "../../api/shapes";
import { IconButton } from "../../parts/Button";
import { GrowText } from "../../parts/Field";
import { Menu } from "../../parts/Menu";
import { addLine, removeLine, setShot, shotIds, stepLine } from "./changes";
import { useStory } from "./context";

interface Props {
  shot: Shot;
  line: Line;
  at: number;
  cast: string;
}

/** One spoken line: who, and the words. `cast` is the names with line breaks between. */
export const LineRow = memo(function LineRow({ shot, line, at, cast }: Props) {
  const { t } = useTranslation();
  const { edit, script, rewrite } = useStory();
  const names = cast === "" ? [] : cast.split("\n");
  const speaker = line.speaker ?? "";
  const latest = (): Shot => {
    const now = script();
    const found = now && shotIds(now).has(shot.id) ? now.scenes.flatMap((scene) => scene.shots).find((each) => each.id === shot.id) : undefined;
    return found ?? shot;
  };
  return (
    <div className="group/line grid grid-cols-[6.5rem_minmax(0,1fr)_1.75rem] @min-[75rem]/main:grid-cols-[8.5rem_minmax(0,1fr)_1.75rem] items-start gap-x-2">
      <select
        aria-label={t("story.speaker")}
        value={speaker}
        onChange={(event) => edit(setShot(shot.id, `/lines/${at}/speaker`, event.target.value === "" ? null : event.target.value))}
        className="mt-px h-6 min-w-0 appearance-none truncate rounded-sm bg-transparent px-1.5 text-right text-sm font-medium tracking-wide text-accent-text hover:bg-hover"
      >
        <option value="">{t("story.narrator")}</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
        {speaker !== "" && !names.includes(speaker) && <option value={speaker}>{speaker}</option>}
      </select>
      <GrowText
        label={t("story.line_of", { who: speaker || t("story.narrator") })}
        value={line.text}
        onCommit={(text) => (text.trim() === "" ? edit(removeLine(latest(), at)) : edit(setShot(shot.id, `/lines/${at}/text`, text)))}
        className="text-base text-loud"
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) edit(addLine(latest(), at, speaker));
        }}
      />
      <Menu
        items={[
          { label: t("story.add_line"), icon: Plus, keys: "Mod+Enter", onPick: () => edit(addLine(latest(), at, speaker)) },
          { label: t("story.rewrite_line"), icon: Sparkles, onPick: () => rewrite({ kind: "shot", id: shot.id, field: `/lines/${at}/text`, title: line.text }) },
          { label: t("story.up"), icon: ArrowUp, disabled: at === 0, onPick: () => edit(stepLine(latest(), at, -1)) },
          { label: t("story.down"), icon: ArrowDown, disabled: at === (shot.lines?.length ?? 0) - 1, onPick: () => edit(stepLine(latest(), at, 1)) },
          null,
          { label: t("story.remove_line"), icon: Trash2, danger: true, onPick: () => edit(removeLine(latest(), at)) },
        ]}
      >
        <IconButton icon={EllipsisVertical} size="sm" label={t("story.line_menu")} className="opacity-0 group-focus-within/line:opacity-100 group-hover/line:opacity-100 data-[state=open]:opacity-100" />
      </Menu>
    </div>
  );
});
