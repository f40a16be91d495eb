import { EllipsisVertical, StickyNote } from "lucide-react";
import { memo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Lint, Scene } from "../../api/shapes";
import { IconButton } from "../../parts/Button";
import { GrowText } from "../../parts/Field";
import { Menu } from "../../parts/Menu";
import { cx } from "../../parts/cx";
import { clockText } from "../../parts/figures";
import { LintLines } from "./LintLines";
import { textOrNull } from "./changes";
import { useStory } from "./context";
import { select } from "./selection";
import { useRowMenu } from "./useRowMenu";

interface Props {
  scene: Scene;
  number: number;
  /** Ids and names of places: `id\tname` with line breaks between. */
  places: string;
  secs: number | undefined;
  lint: Lint[] | undefined;
  chosen: boolean;
}

/** The head of a scene: heading, place, time of day. */
export const SceneRow = memo(function SceneRow({ scene, number, places, secs, lint, chosen }: Props) {
  const { t } = useTranslation();
  const { edit } = useStory();
  const [noting, setNoting] = useState(false);
  const menu = useRowMenu("scene", scene.id);
  const set = (field: string, text: string): void => edit({ edit: "set", kind: "scene", id: scene.id, field, value: textOrNull(text) });
  const known = places === "" ? [] : places.split("\n").map((each) => each.split("\t"));
  const place = scene.place ?? "";
  return (
    <section
      aria-label={t("story.scene_number", { number })}
      data-row={`scene:${scene.id}`}
      onFocusCapture={() => select({ kind: "scene", id: scene.id })}
      onPointerDown={() => select({ kind: "scene", id: scene.id })}
      className={cx("rounded-md px-3 pt-5 pb-2", chosen && "bg-raised")}
    >
      <div className="flex items-start gap-3 border-b border-line pb-1.5">
        <span className="numeric w-6 shrink-0 pt-1 text-right text-sm text-quiet">{number}</span>
        <GrowText
          label={t("story.heading_of", { number })}
          value={scene.heading ?? ""}
          placeholder={t("story.heading_hint")}
          single
          className="grow text-lg font-semibold text-loud"
          onCommit={(text) => set("/heading", text)}
        />
        <span className="numeric pt-1 text-sm text-quiet">{secs === undefined ? "" : clockText(secs)}</span>
        <IconButton icon={StickyNote} size="sm" label={t("story.scene_note")} on={noting || !!scene.note} onClick={() => setNoting(!noting)} />
        <Menu items={menu}>
          <IconButton icon={EllipsisVertical} size="sm" label={t("story.scene_menu", { number })} />
        </Menu>
      </div>
      <div className="mt-1 flex flex-wrap items-center gap-2 pl-9">
        <select
          aria-label={t("story.place_of", { number })}
          value={place}
          onChange={(event) => set("/place", event.target.value)}
          className="h-6 max-w-56 appearance-none truncate rounded-sm bg-transparent px-1.5 text-sm text-quiet hover:bg-hover hover:text-loud"
        >
          <option value="">{t("story.no_place")}</option>
          {known.map(([id, name]) => (
            <option key={id} value={id}>
              {name || id}
            </option>
          ))}
          {place !== "" && !known.some(([id]) => id === place) && <option value={place}>{place}</option>}
        </select>
        <GrowText label={t("story.time_of", { number })} value={scene.time ?? ""} placeholder={t("story.time_hint")} single className="w-40 text-sm text-quiet" onCommit={(text) => set("/time", text)} />
      </div>
      {(noting || scene.note) && (
        <GrowText label={t("story.scene_note")} value={scene.note ?? ""} placeholder={t("story.note_hint")} className="mt-1 ml-9 text-sm text-quiet italic" onCommit={(text) => set("/note", text)} />
      )}
      {lint && (
        <div className="mt-2 pl-9">
          <LintLines lint={lint} />
        </div>
      )}
    </section>
  );
});
