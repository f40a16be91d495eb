import { FolderOpen, MonitorPlay, Play } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { mediaUrl, thumbUrl } from "../../api/client";
import type { ExportedFile, ProjectState } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { Button, IconButton } from "../../parts/Button";
import { Thumb } from "../../parts/Thumb";
import { cx } from "../../parts/cx";
import { bytesText, whenText } from "../../parts/figures";
import { Empty, Failed, Skeleton } from "../../parts/states";

interface Props {
  state: ProjectState;
  films: ExportedFile[] | undefined;
  error: string | undefined;
  shown: string | undefined;
  onShow: (hash: string) => void;
}

/** Plays the films that were written; they stay in the project's folder. */
export function FilmPlayer({ state, films, error, shown, onShow }: Props) {
  const { t, i18n } = useTranslation();
  const reveal = useCommand("export.reveal");
  const figure = (value: number): string => new Intl.NumberFormat(i18n.language, { minimumFractionDigits: 1, maximumFractionDigits: 1 }).format(value);
  const [broken, setBroken] = useState<string>();
  const aspect = state.film.width_px / state.film.height_px || 16 / 9;
  if (error && !films) return <Failed what={error} again={() => location.reload()} />;
  if (!films) return <Skeleton className="aspect-video w-full" />;
  const film = films.find((each) => each.hash === shown) ?? films[0];
  if (!film) {
    return (
      <Empty icon={MonitorPlay} title={t("export.none")} className="rounded-lg border border-dashed border-line-strong py-24">
        {t("export.none_hint")}
      </Empty>
    );
  }
  return (
    <section aria-label={t("export.films")} className="flex min-w-0 flex-col gap-4">
      <div className="overflow-hidden rounded-lg bg-film">
        {broken === film.hash ? (
          <p role="alert" className="flex aspect-video items-center justify-center p-6 text-center text-[#e8e8e8]">
            {t("export.cannot_play")}
          </p>
        ) : (
          <video
            key={film.hash}
            controls
            preload="metadata"
            src={mediaUrl(film.hash)}
            poster={thumbUrl(film.hash, 1280)}
            aria-label={t("export.film_of", { name: film.name })}
            onError={() => setBroken(film.hash)}
            className="mx-auto max-h-[60vh] w-full"
            style={{ aspectRatio: aspect }}
          />
        )}
      </div>
      <ul className="flex flex-col gap-1">
        {films.map((each) => (
          <li key={each.path} className={cx("flex items-center gap-3 rounded-md px-2 py-1.5", each.hash === film.hash ? "bg-raised" : "hover:bg-panel")}>
            <Thumb hash={each.hash} width={160} alt="" className="h-10 w-18 shrink-0 rounded-sm" />
            <div className="min-w-0 grow">
              <p className="truncate text-loud" title={each.path}>
                {each.name}
              </p>
              <p className="numeric text-sm text-quiet">
                {bytesText(each.bytes, i18n.language)} · {whenText(each.made_unix_millis, i18n.language)}
                {each.lufs !== undefined && ` · ${t("export.measured", { lufs: figure(each.lufs), peak: figure(each.true_peak_dbtp ?? 0) })}`}
              </p>
            </div>
            <IconButton icon={Play} label={t("export.play", { name: each.name })} onClick={() => onShow(each.hash)} />
            <Button size="sm" look="quiet" icon={FolderOpen} busy={reveal.busy} aria-label={t("export.open_folder_of", { name: each.name })} onClick={() => void reveal.run({ path: each.path })}>
              {t("export.open_folder")}
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}
