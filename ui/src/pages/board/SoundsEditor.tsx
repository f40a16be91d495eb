import { Plus, Trash2 } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Edit, Json, ProjectState, Shot, ShotSound } from "../../api/shapes";
import { Button, IconButton } from "../../parts/Button";
import { Select } from "../../parts/Field";
import { NumberInput } from "../../parts/NumberInput";
import { Sound } from "../../parts/Sound";
import { setShot } from "../story/changes";
import { Section } from "./Section";

/** Sounds of the place and in the picture. */
export function SoundsEditor({ state, shot, edit }: { state: ProjectState; shot: Shot; edit: (change: Edit | undefined) => void }) {
  const { t } = useTranslation();
  const sounds = shot.sounds ?? [];
  const files = Object.entries(state.pictures).filter(([, file]) => file.kind === "sound" && !file.missing);
  const put = (list: ShotSound[]): void => edit(setShot(shot.id, "/sounds", list.length > 0 ? (list as unknown as Json) : null));
  const [first] = files.find(([name]) => name.startsWith("ambience")) ?? files[0] ?? [];
  return (
    <Section
      title={t("shot.sounds")}
      aside={
        first === undefined ? undefined : (
          <Button size="sm" look="quiet" icon={Plus} onClick={() => put([...sounds, { kind: "ambience", file: first }])}>
            {t("shot.add_sound")}
          </Button>
        )
      }
    >
      {sounds.length === 0 && <p className="text-sm text-quiet">{files.length === 0 ? t("shot.no_sound_files") : t("shot.no_sounds")}</p>}
      {sounds.map((sound, at) => {
        const change = (part: Partial<ShotSound>): void => put(sounds.map((each, index) => (index === at ? { ...each, ...part } : each)));
        return (
          <div key={at} className="grid grid-cols-2 gap-2 rounded-md border border-line bg-page p-2.5">
            <Select
              label={t("shot.sound_kind")}
              value={sound.kind}
              choices={[
                { value: "ambience", label: t("shot.ambience") },
                { value: "effect", label: t("shot.effect") },
              ]}
              onChange={(kind) => {
                const { at: _start, ...rest } = sound;
                const next: ShotSound = kind === "ambience" ? { ...rest, kind: "ambience" } : { ...sound, kind: "effect" };
                put(sounds.map((each, index) => (index === at ? next : each)));
              }}
            />
            <NumberInput label={t("shot.gain")} unit="dB" value={sound.gain ?? 0} min={-60} max={24} step={1} onCommit={(gain) => change({ gain })} />
            <Select label={t("shot.file")} value={sound.file} choices={files.map(([name]) => ({ value: name, label: name }))} onChange={(file) => change({ file })} />
            <div className="flex items-end justify-end">
              <IconButton icon={Trash2} label={t("shot.remove_sound", { file: sound.file })} onClick={() => put(sounds.filter((_, index) => index !== at))} />
            </div>
            {state.pictures[sound.file]?.hash && (
              <div className="col-span-2">
                <Sound hash={state.pictures[sound.file]?.hash ?? ""} name={sound.file} />
              </div>
            )}
          </div>
        );
      })}
    </Section>
  );
}
