import { ImagePlus } from "lucide-react";
import { useId } from "react";
import { useTranslation } from "react-i18next";
import type { Edit, ProjectState, Shot } from "../../api/shapes";
import { Button } from "../../parts/Button";
import { Labelled, Select, TextField } from "../../parts/Field";
import { ClipPlayer } from "../../parts/ClipPlayer";
import { NumberInput } from "../../parts/NumberInput";
import { fpsOf } from "../../parts/figures";
import { LengthInput } from "../story/LengthInput";
import { setShot, several, textOrNull } from "../story/changes";
import { Section } from "./Section";
import { placeMedia } from "./media";

const COLOUR = "\u0000colour";

/** What a shot shows: a picture or video of the project, or one colour. */
export function PictureEditor({ state, shot, edit, onChooseFile }: { state: ProjectState; shot: Shot; edit: (change: Edit | undefined) => void; onChooseFile: () => void }) {
  const { t } = useTranslation();
  const colourId = useId();
  const startId = useId();
  const files = Object.entries(state.pictures).filter(([, file]) => !file.missing && (file.kind === "picture" || file.kind === "video"));
  const shown = shot.picture ?? shot.video?.file ?? (shot.colour ? COLOUR : "");
  const missing = shown !== "" && shown !== COLOUR && state.pictures[shown]?.missing;
  const held = shot.video && state.pictures[shot.video.file];
  const clip = shot.video && held?.hash && !held.missing ? { hash: held.hash, name: shot.video.file } : undefined;
  const fields = ["picture", "video", "colour"] as const;
  const show = (choice: string): void => {
    if (choice !== "" && choice !== COLOUR) return edit(placeMedia(state.script, shot, state.pictures[choice]?.kind === "video" ? "video" : "picture", choice));
    const gone = fields.filter((field) => shot[field] !== undefined).map((field) => setShot(shot.id, `/${field}`, null));
    const wanted = choice === COLOUR ? [...gone, setShot(shot.id, "/colour", "#000000")] : gone;
    return edit(wanted.length === 1 ? wanted[0] : wanted.length > 1 ? several(`picture of ${shot.id}`, wanted) : undefined);
  };
  return (
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
        choices={[{ value: "", label: t("shot.no_file") }, { value: COLOUR, label: t("shot.one_colour") }, ...files.map(([name]) => ({ value: name, label: name }))]}
        onChange={show}
        hint={missing ? <span className="text-bad">{t("shot.file_missing")}</span> : t("board.drop_hint")}
      />
      {shot.colour && (
        <Labelled label={t("shot.one_colour")} id={colourId}>
          <input
            id={colourId}
            type="color"
            value={/^#[0-9a-f]{6}$/i.test(shot.colour) ? shot.colour : shot.colour === "white" ? "#ffffff" : "#000000"}
            onChange={(event) => edit(setShot(shot.id, "/colour", event.target.value))}
            className="h-8 w-16 rounded-md border border-line-strong bg-page p-1"
          />
        </Labelled>
      )}
      {clip && <ClipPlayer hash={clip.hash} name={clip.name} />}
      {shot.video && (
        <div className="grid grid-cols-2 gap-3">
          <Labelled label={t("shot.video_from")} id={startId}>
            <LengthInput id={startId} label={t("shot.video_from")} value={shot.video.from ?? "0 s"} fps={fpsOf(state.script.fps)} zero onCommit={(text) => edit(setShot(shot.id, "/video/from", text))} className="h-8 w-full rounded-md" />
          </Labelled>
          {shot.video.sound === undefined ? (
            <Button className="self-end" onClick={() => edit(setShot(shot.id, "/video/sound", 0))}>
              {t("shot.video_sound_on")}
            </Button>
          ) : (
            <NumberInput label={t("shot.video_sound")} unit="dB" value={shot.video.sound} min={-60} max={24} step={1} onCommit={(gain) => edit(setShot(shot.id, "/video/sound", gain))} />
          )}
        </div>
      )}
      {!shot.colour && (
        <Select
          label={t("shot.fit")}
          value={shot.fit}
          choices={[
            { value: "cover", label: t("shot.cover") },
            { value: "contain", label: t("shot.contain") },
          ]}
          onChange={(fit) => edit(setShot(shot.id, "/fit", fit))}
        />
      )}
      <TextField label={t("shot.depicts")} multiline rows={2} value={shot.depicts ?? ""} placeholder={t("shot.depicts_hint")} onCommit={(text) => edit(setShot(shot.id, "/depicts", textOrNull(text)))} />
    </Section>
  );
}
