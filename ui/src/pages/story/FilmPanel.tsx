import { Sparkles } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { ProjectState } from "../../api/shapes";
import { IconButton } from "../../parts/Button";
import { TextField } from "../../parts/Field";
import { clockText, fpsOf } from "../../parts/figures";
import { typedLength } from "./LengthInput";
import { MusicPanel } from "./MusicPanel";
import { textOrNull } from "./changes";
import { useStory } from "./context";

/** Title, logline, style and the settings of the picture. */
export function FilmPanel({ state }: { state: ProjectState }) {
  const { t } = useTranslation();
  const { edit, rewrite } = useStory();
  const { script } = state;
  const set = (field: string, value: string | null): void => edit({ edit: "set", kind: "film", id: "", field, value });
  const improve = (field: string, title: string) => (
    <IconButton icon={Sparkles} size="sm" label={t("story.improve_what", { what: title })} onClick={() => rewrite({ kind: "film", id: "", field, title })} />
  );
  return (
    <div className="flex flex-col gap-4">
      <TextField
        label={t("film.title")}
        value={script.title}
        onCommit={(text) => set("/title", text.trim())}
        check={(text) => (text.trim() === "" ? t("film.title_fault") : undefined)}
        aside={improve("/title", t("film.title"))}
      />
      <TextField label={t("film.logline")} multiline rows={3} value={script.logline ?? ""} placeholder={t("film.logline_hint")} onCommit={(text) => set("/logline", textOrNull(text) as string | null)} aside={improve("/logline", t("film.logline"))} />
      <TextField label={t("film.style")} multiline rows={3} value={script.style ?? ""} placeholder={t("film.style_hint")} onCommit={(text) => set("/style", textOrNull(text) as string | null)} aside={improve("/style", t("film.style"))} />
      <div className="grid grid-cols-2 gap-3">
        <TextField
          label={t("film.length")}
          value={script.length ?? ""}
          placeholder="3 min"
          hint={t("film.length_now", { time: clockText(state.film.secs) })}
          onPause={false}
          check={(text) => (text.trim() === "" || typedLength(text, fpsOf(script.fps)) ? undefined : t("shot.length_fault"))}
          onCommit={(text) => set("/length", typedLength(text, fpsOf(script.fps)) ?? null)}
        />
        <TextField label={t("film.language")} value={script.language} onPause={false} check={(text) => (/^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$/.test(text.trim()) ? undefined : t("film.language_fault"))} onCommit={(text) => set("/language", text.trim())} />
      </div>
      <dl className="grid grid-cols-2 gap-3 rounded-md border border-line bg-page p-3 text-sm">
        <div>
          <dt className="text-quiet">{t("film.size")}</dt>
          <dd className="numeric text-loud">{script.size?.replace("x", " × ") ?? "—"}</dd>
        </div>
        <div>
          <dt className="text-quiet">{t("film.fps")}</dt>
          <dd className="numeric text-loud">{script.fps ?? "—"}</dd>
        </div>
      </dl>
      <MusicPanel state={state} />
    </div>
  );
}
