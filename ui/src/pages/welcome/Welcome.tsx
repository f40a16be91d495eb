import { Clapperboard, Film, FolderOpen, FolderX, Plus, X } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { isOpen } from "../../api/edits";
import { invalidate, put, useQuery } from "../../api/queries";
import type { ProjectState, RecentProject } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { useOffer } from "../../app/commands";
import { go } from "../../app/route";
import { Button, IconButton } from "../../parts/Button";
import { Thumb } from "../../parts/Thumb";
import { whenText } from "../../parts/figures";
import { Empty, Failed, PageHead, Skeleton } from "../../parts/states";
import { select } from "../story/selection";
import { MachineCard } from "./MachineCard";
import { NewProject } from "./NewProject";
import { OpenProject } from "./OpenProject";

/** Go on with a project that the server has opened. */
export function enter(state: ProjectState): void {
  put("project.state", { project: state.project }, state);
  isOpen(state.project);
  invalidate("app.recent");
  select(undefined);
  go("story", { project: state.project });
}

function ProjectCard({ recent }: { recent: RecentProject }) {
  const { t, i18n } = useTranslation();
  const open = useCommand("project.open");
  const forget = useCommand("app.forget");
  const title = recent.title || recent.name;
  return (
    <li className="group/card relative min-w-0">
      <button
        type="button"
        disabled={recent.missing || open.busy}
        onClick={async () => {
          const state = await open.run({ project: recent.path });
          if (state) enter(state);
        }}
        className="w-full overflow-hidden rounded-lg border border-line bg-panel text-left transition-colors hover:border-line-strong disabled:opacity-70"
      >
        {recent.missing ? (
          <span className="flex aspect-video w-full items-center justify-center bg-back text-quiet">
            <FolderX className="size-7" strokeWidth={1.25} aria-hidden />
          </span>
        ) : (
          <Thumb hash={recent.poster} width={480} alt="" className="aspect-video w-full" />
        )}
        <span className="block px-3 py-2.5">
          <span className="block truncate font-medium text-loud">{title}</span>
          <span className="block truncate text-sm text-quiet" title={recent.path}>
            {recent.missing ? t("welcome.missing") : whenText(recent.modified_unix_millis, i18n.language)}
          </span>
        </span>
      </button>
      <IconButton
        icon={X}
        size="sm"
        label={t("welcome.forget", { title })}
        className="absolute top-1.5 right-1.5 bg-film/70 text-[#fff]! opacity-0 group-focus-within/card:opacity-100 group-hover/card:opacity-100 hover:bg-film"
        onClick={async () => {
          if ((await forget.run({ path: recent.path })) !== undefined) invalidate("app.recent");
        }}
      />
    </li>
  );
}

export default function Welcome() {
  const { t } = useTranslation();
  const { data, error, again } = useQuery("app.recent", {});
  const [making, setMaking] = useState(false);
  const [opening, setOpening] = useState(false);
  const sample = useCommand("project.open_sample");
  const openSample = async (): Promise<void> => {
    const state = await sample.run({});
    if (state) enter(state);
  };
  useOffer("welcome", [
    { id: "welcome.new", title: t("welcome.new"), group: t("pages.welcome"), icon: Plus, keys: "Mod+Alt+N", whileTyping: true, run: () => setMaking(true) },
    { id: "welcome.open", title: t("open.title"), group: t("pages.welcome"), icon: FolderOpen, keys: "Mod+O", run: () => setOpening(true) },
    { id: "welcome.sample", title: t("welcome.sample"), group: t("pages.welcome"), icon: Film, run: () => void openSample() },
  ]);
  const actions = (
    <>
      <Button icon={FolderOpen} onClick={() => setOpening(true)}>
        {t("welcome.open")}
      </Button>
      <Button icon={Film} busy={sample.busy} onClick={() => void openSample()}>
        {t("welcome.sample")}
      </Button>
      <Button look="primary" icon={Plus} onClick={() => setMaking(true)}>
        {t("welcome.new")}
      </Button>
    </>
  );
  return (
    <div className="h-full overflow-y-auto">
      <div className="mx-auto flex max-w-7xl flex-col gap-6 px-8 py-8">
        <PageHead title={t("welcome.title")} about={t("welcome.about")}>
          {data && data.length > 0 && actions}
        </PageHead>
        <div className="grid items-start gap-8 @min-[58rem]/main:grid-cols-[minmax(0,1fr)_20rem]">
          <section aria-label={t("welcome.recent")}>
            {error && !data && <Failed what={error} again={again} />}
            {!data && !error && (
              <div className="grid grid-cols-[repeat(auto-fill,minmax(14rem,1fr))] gap-4">
                {[0, 1, 2].map((at) => (
                  <Skeleton key={at} className="h-48" />
                ))}
              </div>
            )}
            {data && data.length === 0 && (
              <Empty icon={Clapperboard} title={t("welcome.none")} actions={actions} className="rounded-lg border border-dashed border-line-strong py-20">
                {t("welcome.none_hint")}
              </Empty>
            )}
            {data && data.length > 0 && (
              <ul className="grid grid-cols-[repeat(auto-fill,minmax(14rem,1fr))] gap-4">
                {data.map((recent) => (
                  <ProjectCard key={recent.path} recent={recent} />
                ))}
              </ul>
            )}
          </section>
          <MachineCard />
        </div>
      </div>
      <OpenProject open={opening} onClose={() => setOpening(false)} onOpened={enter} />
      <NewProject open={making} onClose={() => setMaking(false)} onMade={enter} />
    </div>
  );
}
