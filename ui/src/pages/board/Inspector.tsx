import { FileText, ImagePlus, Play, Sparkles } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { mediaUrl } from "../../api/client";
import { edit as doEdit } from "../../api/edits";
import type { Edit, Json, ProjectState, Shot } from "../../api/shapes";
import { go } from "../../app/route";
import { Button, IconButton } from "../../parts/Button";
import { Labelled, Select, TextField } from "../../parts/Field";
import { fpsOf } from "../../parts/figures";
import { Badge } from "../../parts/states";
import { LengthInput } from "../story/LengthInput";
import { setShot, textOrNull } from "../story/changes";
import { CameraEditor } from "./CameraEditor";
import { LinesEditor } from "./LinesEditor";
import { SoundsEditor } from "./SoundsEditor";
import { TitlesEditor } from "./TitlesEditor";
import { placeMedia } from "./media";
import { BLENDS, type Blend, parseTransition, transitionText } from "./transition";

interface Props {
  state: ProjectState;
  shot: Shot;
  onChooseFile: () => void;
  onRender: () => void;
}

export function Section({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className="flex flex-col gap-3 border-t border-line px-4 py-4">
      <div className="flex min-h-7 items-center justify-between gap-2">
        <h3 className="font-medium text-loud">{title}</h3>
        {aside}
      </div>
      {children}
    </section>
  );
}

const STATE_TONES = { made: "good", missing: "plain", running: "accent", failed: "bad" } as const;

/** Everything about one shot. */
export function Inspector({ state, shot, onChooseFile, onRender }: Props) {
  const { t } = useTranslation();
  const { project, script } = state;
  const status = state.shots[shot.id];
  const edit = (change: Edit | undefined): void => {
    if (change) doEdit(project, change);
  };
  const set = (field: string, value: Json): void => edit(setShot(shot.id, field, value));
  const fps = fpsOf(script.fps);
  const { blend, length } = parseTransition(shot.transition);
  const files = Object.entries(state.pictures).filter(([, file]) => !file.missing && (file.kind === "picture" || file.kind === "video"));
  const shown = shot.picture ?? shot.video?.file ?? "";
  const aspect = state.film.width_px / state.film.height_px || 16 / 9;
  return (
    <div className="flex flex-col">
      <div className="flex items-center gap-2 px-4 py-3">
        <h2 className="min-w-0 grow truncate font-semibold text-loud">{shot.id}</h2>
        {status && <Badge tone={STATE_TONES[status.state]}>{t(`board.states.${status.state}`)}</Badge>}
        <IconButton icon={FileText} size="sm" label={t("board.to_story")} onClick={() => go("story", { at: shot.id })} />
        <Button size="sm" icon={Play} onClick={onRender}>
          {t("board.make_one")}
        </Button>
      </div>
      {status?.why && <p className="mx-4 mb-3 rounded-md bg-bad-wash px-3 py-2 text-sm text-bad">{status.why}</p>}
      <div className="flex flex-col gap-3 px-4 pb-4">
        <CameraEditor value={shot.move} hash={status?.picture} colour={shot.colour} aspect={aspect} secs={status?.length_secs ?? 4} onCommit={(text) => set("/move", text)} />
        {status?.made && (
          <details>
            <summary className="rounded-sm py-1 text-sm text-quiet hover:text-loud">{t("board.play_made")}</summary>
            <video controls preload="metadata" src={mediaUrl(status.made)} className="w-full rounded-md bg-film" style={{ aspectRatio: aspect }} aria-label={t("board.play_made")} />
          </details>
        )}
      </div>
      <Section
        title={t("shot.picture")}
        aside={
          <Button size="sm" icon={ImagePlus} onClick={onChooseFile}>
            {t("board.choose_file")}
          </Button>
        }
      >
        <Select
          label={t("shot.file")}
          value={shown}
          choices={[{ value: "", label: t("shot.no_file") }, ...files.map(([name]) => ({ value: name, label: name }))]}
          onChange={(name) => {
            if (name === "") return set(shot.video ? "/video" : "/picture", null);
            return edit(placeMedia(shot, state.pictures[name]?.kind === "video" ? "video" : "picture", name));
          }}
          hint={t("board.drop_hint")}
        />
        <Select label={t("shot.fit")} value={shot.fit} choices={[{ value: "cover", label: t("shot.cover") }, { value: "contain", label: t("shot.contain") }]} onChange={(fit) => set("/fit", fit)} />
        <TextField label={t("shot.depicts")} multiline rows={2} value={shot.depicts ?? ""} placeholder={t("shot.depicts_hint")} onCommit={(text) => set("/depicts", textOrNull(text))} />
      </Section>
      <Section title={t("shot.story")}>
        <div className="grid grid-cols-[minmax(0,1fr)_auto] gap-3">
          <TextField label={t("shot.framing")} value={shot.framing ?? ""} placeholder={t("shot.framing_hint")} list="framings" onCommit={(text) => set("/framing", textOrNull(text))} />
          <Labelled label={t("shot.length")} id={`length-${shot.id}`}>
            <LengthInput id={`length-${shot.id}`} label={t("shot.length")} value={shot.length} fps={fps} onCommit={(text) => set("/length", text)} className="h-8 rounded-md" />
          </Labelled>
        </div>
        <datalist id="framings">
          {(["wide", "full", "medium", "close", "extreme", "shoulder", "insert"] as const).map((each) => (
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
          aside={<IconButton icon={Sparkles} size="sm" label={t("board.improve")} onClick={() => go("story", { at: shot.id })} />}
        />
      </Section>
      <LinesEditor state={state} shot={shot} edit={edit} />
      <SoundsEditor state={state} shot={shot} edit={edit} />
      <TitlesEditor shot={shot} edit={edit} fps={fps} />
      <Section title={t("shot.transition")}>
        <div className="grid grid-cols-2 gap-3">
          <Select label={t("shot.into")} value={blend} choices={BLENDS.map((each) => ({ value: each, label: t(`blends.${each}`) }))} onChange={(next) => set("/transition", transitionText(next as Blend, length))} />
          {blend !== "cut" && (
            <Labelled label={t("shot.length")} id={`blend-${shot.id}`}>
              <LengthInput id={`blend-${shot.id}`} label={t("shot.blend_length")} value={length} fps={fps} onCommit={(text) => set("/transition", transitionText(blend, text))} className="h-8 w-full rounded-md" />
            </Labelled>
          )}
        </div>
      </Section>
      <Section title={t("shot.note")}>
        <TextField label={t("shot.note_label")} multiline rows={2} value={shot.note ?? ""} onCommit={(text) => set("/note", textOrNull(text))} />
      </Section>
    </div>
  );
}
