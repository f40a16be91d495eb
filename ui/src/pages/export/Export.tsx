import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { useProject } from "../../api/project";
import { useQuery } from "../../api/queries";
import type { ProjectState } from "../../api/shapes";
import { useRoute } from "../../app/route";
import { Failed, PageHead, SkeletonRows } from "../../parts/states";
import { ExportForm } from "./ExportForm";
import { FilmPlayer } from "./FilmPlayer";

export default function Export() {
  const { project } = useRoute();
  const { state, error, again } = useProject(project ?? "");
  if (error && !state) return <Failed what={error} again={again} />;
  if (!state) {
    return (
      <div className="p-8">
        <SkeletonRows rows={3} className="h-40" />
      </div>
    );
  }
  return <OpenExport key={state.project} state={state} />;
}

/** How the film is written, what that takes, and the films that were written. */
function OpenExport({ state }: { state: ProjectState }) {
  const { t } = useTranslation();
  const { at } = useRoute();
  const films = useQuery("export.list", { project: state.project });
  const [shown, setShown] = useState<string | undefined>(at);
  useEffect(() => {
    if (at) setShown(at);
  }, [at]);
  return (
    <div className="h-full overflow-y-auto">
      <div className="mx-auto flex max-w-7xl flex-col gap-6 px-8 py-8">
        <PageHead title={t("pages.export")} about={t("export.about")} />
        <div className="grid items-start gap-8 @min-[66rem]/main:grid-cols-[26rem_minmax(0,1fr)]">
          <ExportForm state={state} onMade={setShown} />
          <FilmPlayer state={state} films={films.data} error={films.error} shown={shown} onShow={setShown} />
        </div>
      </div>
    </div>
  );
}
