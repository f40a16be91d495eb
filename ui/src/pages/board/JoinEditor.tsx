import { useId } from "react";
import { useTranslation } from "react-i18next";
import type { Edit, Script, Shot } from "../../api/shapes";
import { Labelled, Select } from "../../parts/Field";
import { fpsOf } from "../../parts/figures";
import { LengthInput } from "../story/LengthInput";
import { setShot } from "../story/changes";
import { Section } from "./Section";
import { BLENDS, type Blend, parseTransition, transitionText } from "./transition";

const FOLLOWS = ["cut", "continue", "re-anchor"] as const;

/** How the film comes into a shot, and what its picture follows from. */
export function JoinEditor({ script, shot, edit }: { script: Script; shot: Shot; edit: (change: Edit) => void }) {
  const { t } = useTranslation();
  const [blendId, inId, outId] = [useId(), useId(), useId()];
  const fps = fpsOf(script.fps);
  const { blend, length } = parseTransition(shot.transition);
  const [follows = "cut", source = ""] = shot.continuity.split(" ");
  const all = script.scenes.flatMap((scene) => scene.shots.map((each) => each.id));
  const earlier = all.slice(0, all.indexOf(shot.id));
  const field = (label: string, id: string, value: string, commit: (text: string) => void, zero = false) => (
    <Labelled label={label} id={id}>
      <LengthInput id={id} label={label} value={value} fps={fps} zero={zero} onCommit={commit} className="h-8 w-full rounded-md" />
    </Labelled>
  );
  return (
    <Section title={t("shot.transition")}>
      <div className="grid grid-cols-2 gap-3">
        <Select
          label={t("shot.into")}
          value={blend}
          choices={BLENDS.map((each) => ({ value: each, label: t(`blends.${each}`), disabled: all[0] === shot.id && each !== "cut" }))}
          hint={all[0] === shot.id ? t("shot.first_shot") : undefined}
          onChange={(next) => edit(setShot(shot.id, "/transition", transitionText(next as Blend, length)))}
        />
        {blend !== "cut" && field(t("shot.blend_length"), blendId, length, (text) => edit(setShot(shot.id, "/transition", transitionText(blend, text))))}
      </div>
      <div className="grid grid-cols-2 gap-3">
        {field(t("shot.fade_in"), inId, shot.fade_in ?? "0 s", (text) => edit(setShot(shot.id, "/fade_in", text.startsWith("0 ") ? null : text)), true)}
        {field(t("shot.fade_out"), outId, shot.fade_out ?? "0 s", (text) => edit(setShot(shot.id, "/fade_out", text.startsWith("0 ") ? null : text)), true)}
      </div>
      {(earlier.length > 0 || follows !== "cut") && (
        <div className="grid grid-cols-2 gap-3">
          <Select
            label={t("shot.continuity")}
            value={follows}
            choices={FOLLOWS.map((each) => ({ value: each, label: t(`continuity.${each}`) }))}
            onChange={(next) => edit(setShot(shot.id, "/continuity", next === "cut" ? null : `${next} ${source || earlier.at(-1)}`))}
          />
          {follows !== "cut" && (
            <Select label={t("shot.follows")} value={source} choices={earlier.map((id) => ({ value: id, label: id }))} onChange={(id) => edit(setShot(shot.id, "/continuity", `${follows} ${id}`))} />
          )}
        </div>
      )}
    </Section>
  );
}
