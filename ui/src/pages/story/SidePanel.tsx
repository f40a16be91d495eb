import { useTranslation } from "react-i18next";
import type { ProjectState } from "../../api/shapes";
import { Tabs } from "../../parts/controls";
import { CastPanel } from "./CastPanel";
import { ChecksPanel } from "./ChecksPanel";
import { FilmPanel } from "./FilmPanel";
import { PlacesPanel } from "./PlacesPanel";
import { SnapshotsPanel } from "./SnapshotsPanel";

/** What belongs to the whole film, beside its script. */
export function SidePanel({ state, tab, onTab }: { state: ProjectState; tab: string; onTab: (tab: string) => void }) {
  const { t } = useTranslation();
  const count = (number: number) => (number > 0 ? <span className="numeric rounded-full bg-hover px-1.5 text-xs text-text">{number}</span> : undefined);
  return (
    <Tabs
      label={t("story.side")}
      value={tab}
      onChange={onTab}
      tabs={[
        { value: "film", label: t("film.tab"), content: <FilmPanel state={state} /> },
        { value: "cast", label: t("cast.tab"), mark: count(state.script.cast?.length ?? 0), content: <CastPanel state={state} /> },
        { value: "places", label: t("places.tab"), mark: count(state.script.places?.length ?? 0), content: <PlacesPanel state={state} /> },
        { value: "checks", label: t("lint.tab"), mark: count(state.lint.length), content: <ChecksPanel lint={state.lint} /> },
        { value: "snapshots", label: t("snapshots.tab"), content: <SnapshotsPanel state={state} /> },
      ]}
    />
  );
}
