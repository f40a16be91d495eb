import { Plus, Trash2 } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Edit, ProjectState, Shot } from "../../api/shapes";
import { Button, IconButton } from "../../parts/Button";
import { Select, TextField } from "../../parts/Field";
import { Sound } from "../../parts/Sound";
import { addLine, removeLine, setShot } from "../story/changes";
import { RecordVoice } from "./RecordVoice";
import { Section } from "./Section";

/** What is said in a shot, and the recorded voices. */
export function LinesEditor({ state, shot, edit }: { state: ProjectState; shot: Shot; edit: (change: Edit | undefined) => void }) {
  const { t } = useTranslation();
  const lines = shot.lines ?? [];
  const cast = state.script.cast ?? [];
  const sounds = Object.entries(state.pictures).filter(([, file]) => file.kind === "sound" && !file.missing && !file.shipped);
  const voice = (name: string | undefined) => {
    const hash = name === undefined ? undefined : state.pictures[name]?.hash;
    return hash && name && <Sound hash={hash} name={name} />;
  };
  return (
    <Section
      title={t("shot.lines")}
      aside={
        <Button size="sm" look="quiet" icon={Plus} onClick={() => edit(addLine(shot, undefined, lines.at(-1)?.speaker ?? ""))}>
          {t("story.add_line")}
        </Button>
      }
    >
      {lines.length === 0 && <p className="text-sm text-quiet">{t("shot.no_lines")}</p>}
      {lines.map((line, at) => (
        <div key={at} className="flex flex-col gap-2 rounded-md border border-line bg-page p-2.5">
          <div className="flex items-center gap-2">
            <Select
              hideLabel
              label={t("story.speaker")}
              className="grow"
              value={line.speaker ?? ""}
              choices={[{ value: "", label: t("story.narrator") }, ...cast.map((each) => ({ value: each.name, label: each.name }))]}
              onChange={(name) => edit(setShot(shot.id, `/lines/${at}/speaker`, name === "" ? null : name))}
            />
            <IconButton icon={Trash2} size="sm" label={t("story.remove_line")} onClick={() => edit(removeLine(shot, at))} />
          </div>
          <TextField label={t("shot.words")} multiline rows={2} value={line.text} onCommit={(text) => edit(text.trim() === "" ? removeLine(shot, at) : setShot(shot.id, `/lines/${at}/text`, text))} />
          <div className="flex flex-wrap items-end gap-2">
            <RecordVoice project={state.project} name={shot.id} onRecorded={(file) => edit(setShot(shot.id, `/lines/${at}/voice`, file))} />
          </div>
          {(sounds.length > 0 || line.voice) && (
            <Select
              label={t("shot.recorded")}
              value={line.voice ?? ""}
              choices={[{ value: "", label: t("shot.spoken_by_model") }, ...sounds.map(([name]) => ({ value: name, label: name }))]}
              onChange={(name) => edit(setShot(shot.id, `/lines/${at}/voice`, name === "" ? null : name))}
            />
          )}
          {voice(line.voice)}
        </div>
      ))}
    </Section>
  );
}
