import { Bell, Boxes, Clapperboard, Cloud, CloudOff, FileText, Film, House, LayoutGrid, ListVideo, Network, Redo2, Search, Settings, Undo2, WifiOff } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { useEdits } from "../api/edits";
import { useProject } from "../api/project";
import { useQuery } from "../api/queries";
import type { ProjectState } from "../api/shapes";
import { IconButton, Keys, Tip } from "../parts/Button";
import { cx } from "../parts/cx";
import { Progress } from "../parts/states";
import { OF_PROJECT, type Page, go, useRoute } from "./route";
import { MissingFiles } from "./MissingFiles";
import { useSession } from "./session";
import { useToasts } from "./toasts";
import { jobTitle, say } from "../text/say";

export const ICONS: Record<Page, typeof House> = {
  welcome: House,
  story: FileText,
  board: LayoutGrid,
  export: Film,
  queue: ListVideo,
  models: Boxes,
  cluster: Network,
  settings: Settings,
};

function NavItem({ page, mark }: { page: Page; mark?: number }) {
  const { t } = useTranslation();
  const route = useRoute();
  const Icon = ICONS[page];
  const current = route.page === page;
  return (
    <a
      href={`#/${page}`}
      onClick={(event) => {
        event.preventDefault();
        go(page);
      }}
      aria-current={current ? "page" : undefined}
      className={cx(
        "relative flex w-full flex-col items-center gap-0.5 rounded-md py-2 text-xs transition-colors select-none",
        current ? "bg-hover text-loud" : "text-quiet hover:bg-hover hover:text-loud",
      )}
    >
      {current && <span className="absolute top-2 bottom-2 left-0 w-0.5 rounded-full bg-accent" aria-hidden />}
      <Icon className="size-5" strokeWidth={1.5} aria-hidden />
      <span className="max-w-full truncate px-0.5">{t(`pages.${page}`)}</span>
      {mark !== undefined && mark > 0 && (
        <span className="absolute top-1 right-1.5 min-w-4 rounded-full bg-accent px-1 text-center text-[0.625rem] leading-4 font-semibold text-on-accent">
          {mark}
          <span className="sr-only"> {t("queue.open_jobs")}</span>
        </span>
      )}
    </a>
  );
}

function Saved() {
  const { t } = useTranslation();
  const waiting = useEdits((edits) => edits.pending.filter((each) => each.taken === undefined).length);
  const reachable = useEdits((edits) => edits.reachable);
  const why = useEdits((edits) => edits.why);
  const connected = useSession((session) => session.connected);
  const away = connected === false || !reachable;
  const text = waiting > 0 && away ? t("edits.not_saved", { count: waiting }) : away ? t("edits.away") : waiting > 0 ? t("edits.saving") : t("edits.saved");
  const Icon = away ? CloudOff : Cloud;
  return (
    <span role="status" title={why} className={cx("hidden items-center gap-1.5 text-sm whitespace-nowrap @min-[26rem]/head:inline-flex", away ? "text-warn" : "text-quiet")}>
      <Icon className="size-4" strokeWidth={1.75} aria-hidden />
      {text}
    </span>
  );
}

function Running() {
  const { t } = useTranslation();
  const { data } = useQuery("queue.list", {});
  const job = data?.find((each) => each.state === "running");
  if (!job) return null;
  return (
    <button
      type="button"
      onClick={() => go("queue")}
      className="hidden h-8 w-52 flex-col justify-center gap-1 rounded-md px-2 text-left hover:bg-hover @min-[44rem]/head:flex"
    >
      <span className="flex w-full justify-between gap-2 text-xs">
        <span className="truncate text-text">{jobTitle(job)}</span>
        <span className="numeric shrink-0 whitespace-nowrap text-quiet">{job.of > 0 ? `${Math.round((100 * job.done) / job.of)} %` : ""}</span>
      </span>
      <Progress done={job.done} of={job.of} label={t("queue.progress_of", { title: jobTitle(job) })} className="w-full" />
    </button>
  );
}

interface BarProps {
  onPalette: () => void;
  onMessages: () => void;
  onUndo: () => void;
  onRedo: () => void;
}

function ProjectTools({ state, onUndo, onRedo }: { state: ProjectState; onUndo: () => void; onRedo: () => void }) {
  const { t } = useTranslation();
  const waiting = useEdits((edits) => edits.pending.length > 0);
  const undo = state.undo ? t("edits.undo_what", { what: say(state.undo.label, state.undo.label_coded) }) : t("edits.undo");
  const redo = state.redo ? t("edits.redo_what", { what: say(state.redo.label, state.redo.label_coded) }) : t("edits.redo");
  return (
    <div className="flex items-center">
      <IconButton icon={Undo2} label={undo} keys="Mod+Z" disabled={!state.undo && !waiting} onClick={onUndo} />
      <IconButton icon={Redo2} label={redo} keys="Mod+Shift+Z" disabled={!state.redo} onClick={onRedo} />
    </div>
  );
}

function ProjectBar({ project, onUndo, onRedo }: { project: string; onUndo: () => void; onRedo: () => void }) {
  const { t } = useTranslation();
  const { state } = useProject(project);
  return (
    <>
      <h2 className="min-w-0 truncate font-medium text-loud" title={project}>
        {state ? state.script.title || state.name : " "}
      </h2>
      {state && <ProjectTools state={state} onUndo={onUndo} onRedo={onRedo} />}
      {state && <Saved />}
      {state && <MissingFiles state={state} />}
      {!state && <span className="sr-only">{t("common.loading")}</span>}
    </>
  );
}

/** Everything around a page. */
export function Shell({ onPalette, onMessages, onUndo, onRedo, children }: BarProps & { children: ReactNode }) {
  const { t } = useTranslation();
  const { project } = useRoute();
  const connected = useSession((session) => session.connected);
  const unseen = useToasts((state) => state.list.filter((each) => !each.seen).length);
  const jobs = useQuery("queue.list", {}).data;
  const open = jobs?.filter((each) => each.state === "running" || each.state === "waiting").length ?? 0;
  return (
    <div className="grid h-full grid-cols-[4.5rem_minmax(0,1fr)] grid-rows-[3rem_minmax(0,1fr)] bg-page">
      <a href="#main" className="sr-only z-50 rounded-md bg-accent px-3 py-1.5 text-on-accent focus:not-sr-only focus:absolute focus:top-2 focus:left-20" onClick={(event) => {
        event.preventDefault();
        document.getElementById("main")?.focus();
      }}>
        {t("app.skip")}
      </a>
      <nav aria-label={t("app.pages")} className="row-span-2 flex flex-col gap-1 overflow-y-auto border-r border-line bg-back p-1.5">
        <div className="mb-1 flex h-9 shrink-0 items-center justify-center" aria-hidden>
          <Clapperboard className="size-6 text-accent" strokeWidth={1.5} />
        </div>
        <NavItem page="welcome" />
        {project && OF_PROJECT.map((page) => <NavItem key={page} page={page} />)}
        <div className="grow" />
        <NavItem page="queue" mark={open} />
        <NavItem page="models" />
        <NavItem page="cluster" />
        <NavItem page="settings" />
      </nav>
      <header className="@container/head min-w-0 border-b border-line bg-back"><div className="flex h-full items-center gap-3 pr-3 pl-4">
        {project ? <ProjectBar project={project} onUndo={onUndo} onRedo={onRedo} /> : <span className="font-medium text-loud">Longtake</span>}
        <div className="grow" />
        {connected === false && (
          <span role="alert" className="inline-flex items-center gap-1.5 rounded-md bg-warn-wash px-2 py-1 text-sm text-warn">
            <WifiOff className="size-4" aria-hidden />
            {t("app.reconnecting")}
          </span>
        )}
        <Running />
        <Tip text={t("palette.title")} keys="Mod+K">
          <button
            type="button"
            onClick={onPalette}
            aria-label={t("palette.title")}
            className="inline-flex h-8 items-center gap-2 rounded-md border border-line-strong px-2.5 text-sm text-quiet hover:bg-hover hover:text-loud"
          >
            <Search className="size-4" aria-hidden />
            <span className="hidden whitespace-nowrap @min-[56rem]/head:inline">{t("palette.open")}</span>
            <span className="hidden @min-[56rem]/head:inline-flex">
              <Keys keys="Mod+K" />
            </span>
          </button>
        </Tip>
        <div className="relative">
          <IconButton icon={Bell} label={unseen > 0 ? t("toasts.open_unseen", { count: unseen }) : t("toasts.title")} onClick={onMessages} />
          {unseen > 0 && <span className="pointer-events-none absolute top-1.5 right-1.5 size-2 rounded-full bg-accent" aria-hidden />}
        </div>
      </div></header>
      <main id="main" tabIndex={-1} className="min-h-0 min-w-0 outline-none">
        <div className="@container/main relative h-full">{children}</div>
        <div id="float" />
      </main>
    </div>
  );
}
