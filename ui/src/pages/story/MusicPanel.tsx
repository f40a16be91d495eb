import { Music2, Plus, Trash2 } from "lucide-react";
import { useId } from "react";
import { useTranslation } from "react-i18next";
import type { Json, MusicCue, ProjectState } from "../../api/shapes";
import { Button, IconButton } from "../../parts/Button";
import { Labelled, Select, TextField } from "../../parts/Field";
import { NumberInput } from "../../parts/NumberInput";
import { fpsOf } from "../../parts/figures";
import { LengthInput } from "./LengthInput";
import { useStory } from "./context";

function Cue({ cue, files, shots, fps, change, remove }: { cue: MusicCue; files: string[]; shots: string[]; fps: number; change: (part: Partial<MusicCue>) => void; remove: () => void }) {
  const { t } = useTranslation();
  const [inId, outId] = [useId(), useId()];
  const choices = (first: string) => [{ value: "", label: first }, ...shots.map((id) => ({ value: id, label: id }))];
  const fade = (label: string, id: string, field: "fade_in" | "fade_out") => (
    <Labelled label={label} id={id}>
      <LengthInput id={id} label={label} value={cue[field] ?? "0 s"} fps={fps} zero onCommit={(text) => change({ [field]: text.startsWith("0 ") ? undefined : text })} className="h-8 w-full rounded-md" />
    </Labelled>
  );
  return (
    <li className="flex flex-col gap-3 rounded-lg border border-line bg-page p-3">
      <div className="flex items-end gap-1">
        <div className="min-w-0 grow">
          <Select label={t("music.file")} value={cue.file} choices={files.map((name) => ({ value: name, label: name }))} onChange={(file) => change({ file })} />
        </div>
        <IconButton icon={Trash2} label={t("music.remove", { file: cue.file })} onClick={remove} />
      </div>
      <div className="grid grid-cols-2 gap-3">
        <Select label={t("music.from")} value={cue.from ?? ""} choices={choices(t("music.film_start"))} onChange={(id) => change({ from: id || undefined })} />
        <Select label={t("music.to")} value={cue.to ?? ""} choices={choices(t("music.film_end"))} onChange={(id) => change({ to: id || undefined })} />
      </div>
      <div className="grid grid-cols-3 gap-3">
        <NumberInput label={t("shot.gain")} unit="dB" value={cue.gain ?? 0} min={-60} max={24} step={1} onCommit={(gain) => change({ gain })} />
        {fade(t("music.fade_in"), inId, "fade_in")}
        {fade(t("music.fade_out"), outId, "fade_out")}
      </div>
    </li>
  );
}

/** Music under stretches of the film, and the credits after it. */
export function MusicPanel({ state }: { state: ProjectState }) {
  const { t } = useTranslation();
  const { edit } = useStory();
  const creditsId = useId();
  const { script } = state;
  const cues = script.music ?? [];
  const files = Object.entries(state.pictures)
    .filter(([, file]) => file.kind === "sound" && !file.missing)
    .map(([name]) => name)
    .sort((a, b) => Number(b.startsWith("bed")) - Number(a.startsWith("bed")) || a.localeCompare(b));
  const shots = script.scenes.flatMap((scene) => scene.shots.map((shot) => shot.id));
  const set = (field: string, value: unknown): void => edit({ edit: "set", kind: "film", id: "", field, value });
  const put = (list: MusicCue[]): void => set("/music", list.length > 0 ? (JSON.parse(JSON.stringify(list)) as Json) : null);
  const lines = script.credits?.lines.join("\n") ?? "";
  return (
    <section aria-label={t("music.label")} className="flex flex-col gap-3 border-t border-line pt-4">
      <div className="flex items-center justify-between gap-2">
        <h2 className="flex items-center gap-2 font-medium text-loud">
          <Music2 className="size-4 text-quiet" aria-hidden />
          {t("music.label")}
        </h2>
        {files[0] !== undefined && (
          <Button size="sm" look="quiet" icon={Plus} onClick={() => put([...cues, { file: files[0] ?? "", gain: -14, fade_in: "2 s", fade_out: "2 s" }])}>
            {t("music.add")}
          </Button>
        )}
      </div>
      {cues.length === 0 && <p className="text-sm text-quiet">{t("music.none")}</p>}
      <ul className="flex flex-col gap-3">
        {cues.map((cue, at) => (
          <Cue
            key={at}
            cue={cue}
            files={files}
            shots={shots}
            fps={fpsOf(script.fps)}
            change={(part) => put(cues.map((each, index) => (index === at ? { ...each, ...part } : each)))}
            remove={() => put(cues.filter((_, index) => index !== at))}
          />
        ))}
      </ul>
      <TextField
        label={t("music.credits")}
        multiline
        rows={3}
        value={lines}
        placeholder={t("music.credits_hint")}
        onCommit={(text) => {
          const wanted = text.split("\n").map((line) => line.trim()).filter(Boolean);
          set("/credits", wanted.length > 0 ? { length: script.credits?.length ?? "4 s", lines: wanted } : null);
        }}
        aside={
          script.credits && (
            <LengthInput id={creditsId} label={t("music.credits_length")} value={script.credits.length} fps={fpsOf(script.fps)} onCommit={(text) => set("/credits/length", text)} />
          )
        }
      />
    </section>
  );
}
