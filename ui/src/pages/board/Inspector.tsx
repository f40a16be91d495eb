import { FileText, Play, Sparkles, X } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { mediaUrl } from "../../api/client";
import { edit as doEdit } from "../../api/edits";
import type { Edit, Json, ProjectState, Shot } from "../../api/shapes";
import { go } from "../../app/route";
import { Button, IconButton } from "../../parts/Button";
import { Labelled, TextField } from "../../parts/Field";
import { fpsOf } from "../../parts/figures";
import { Badge } from "../../parts/states";
import { LengthInput } from "../story/LengthInput";
import { RewriteDialog } from "../story/RewriteDialog";
import { setShot, textOrNull } from "../story/changes";
import type { RewriteTarget } from "../story/context";
import { review } from "../story/selection";
import { CameraEditor } from "./CameraEditor";
import { JoinEditor } from "./JoinEditor";
import { LinesEditor } from "./LinesEditor";
import { MakingEditor } from "./MakingEditor";
import { PictureEditor } from "./PictureEditor";
import { FRAMINGS, framingKept, framingShown } from "./framing";
import { Section } from "./Section";
import { SoundsEditor } from "./SoundsEditor";
import { TakesEditor } from "./TakesEditor";
import { TitlesEditor } from "./TitlesEditor";
import { say } from "../../text/say";

interface Props {
  state: ProjectState;
  shot: Shot;
  onChooseFile: () => void;
  onRender: () => void;
  onClose: () => void;
}

const STATE_TONES = { made: "good", missing: "plain", running: "accent", failed: "bad" } as const;

/** Everything about one shot. */
export function Inspector({ state, shot, onChooseFile, onRender, onClose }: Props) {
  const { t } = useTranslation();
  const { project, script } = state;
  const [target, setTarget] = useState<RewriteTarget>();
  const status = state.shots[shot.id];
  const edit = (change: Edit | undefined): void => {
    if (change) doEdit(project, change);
  };
  const set = (field: string, value: Json): void => edit(setShot(shot.id, field, value));
  const fps = fpsOf(script.fps);
  const aspect = state.film.width_px / state.film.height_px || 16 / 9;
  return (
    <div className="flex flex-col">
      <div className="flex items-center gap-2 px-4 py-3">
        <h2 className="min-w-0 grow truncate font-semibold text-loud">{shot.id}</h2>
        {status?.draft && <Badge tone="warn">{t("board.draft")}</Badge>}
        {status && <Badge tone={STATE_TONES[status.state]}>{t(`board.states.${status.state}`)}</Badge>}
        <IconButton icon={FileText} size="sm" label={t("board.to_story")} onClick={() => go("story", { at: shot.id })} />
        <Button size="sm" icon={Play} onClick={onRender}>
          {t("board.make_one")}
        </Button>
        <IconButton icon={X} size="sm" label={t("common.close")} className="@min-[52rem]/main:hidden" onClick={onClose} />
      </div>
      {status?.why && <p className="mx-4 mb-3 rounded-md bg-bad-wash px-3 py-2 text-sm text-bad">{say(status.why, status.why_coded)}</p>}
      <div className="flex flex-col gap-3 px-4 pb-4">
        <CameraEditor value={shot.move} hash={status?.picture} colour={shot.colour} aspect={aspect} secs={status?.length_secs ?? 4} onCommit={(text) => set("/move", text)} />
        {status?.made && (
          <details>
            <summary className="rounded-sm py-1 text-sm text-quiet hover:text-loud">{t(status.draft ? "board.play_draft" : "board.play_made")}</summary>
            <video controls preload="metadata" src={mediaUrl(status.made)} className="w-full rounded-md bg-film" style={{ aspectRatio: aspect }} aria-label={t(status.draft ? "board.play_draft" : "board.play_made")} />
          </details>
        )}
      </div>
      <TakesEditor project={project} shot={shot} aspect={aspect} />
      <PictureEditor state={state} shot={shot} edit={edit} onChooseFile={onChooseFile} />
      <MakingEditor state={state} shot={shot} edit={edit} />
      <Section title={t("shot.story")}>
        <div className="grid grid-cols-[minmax(0,1fr)_auto] gap-3">
          <TextField label={t("shot.framing")} value={framingShown(t, shot.framing)} placeholder={t("shot.framing_hint")} list="framings" onCommit={(text) => set("/framing", textOrNull(framingKept(t, text)))} />
          <Labelled label={t("shot.length")} id={`length-${shot.id}`}>
            <LengthInput id={`length-${shot.id}`} label={t("shot.length")} value={shot.length} fps={fps} onCommit={(text) => set("/length", text)} className="h-8 rounded-md" />
          </Labelled>
        </div>
        <datalist id="framings">
          {FRAMINGS.map((each) => (
            <option key={each} value={t(`framings.${each}`)} />
          ))}
        </datalist>
        <TextField
          label={t("shot.action")}
          multiline
          rows={3}
          value={shot.action ?? ""}
          placeholder={t("shot.action_hint")}
          onCommit={(text) => set("/action", textOrNull(text))}
          aside={<IconButton icon={Sparkles} size="sm" label={t("story.rewrite_shot")} onClick={() => setTarget({ kind: "shot", id: shot.id, title: shot.action || shot.id })} />}
        />
      </Section>
      <LinesEditor state={state} shot={shot} edit={edit} />
      <SoundsEditor state={state} shot={shot} edit={edit} />
      <TitlesEditor shot={shot} edit={edit} fps={fps} />
      <JoinEditor script={script} shot={shot} edit={edit} />
      <Section title={t("shot.note")}>
        <TextField label={t("shot.note_label")} multiline rows={2} value={shot.note ?? ""} onCommit={(text) => set("/note", textOrNull(text))} />
      </Section>
      <RewriteDialog
        target={target}
        project={project}
        onClose={() => setTarget(undefined)}
        onReady={() => {
          setTarget(undefined);
          review(true);
          go("story", { at: shot.id });
        }}
      />
    </div>
  );
}
