import { Bell, Command, FolderX, KeyRound, Keyboard, Moon, Redo2, RotateCw, Sun, Undo2 } from "lucide-react";
import { Tooltip } from "radix-ui";
import { Suspense, lazy, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { call, said } from "../api/client";
import { flush, forgetOpen } from "../api/edits";
import { useProject } from "../api/project";
import { invalidate, useQuery } from "../api/queries";
import { Button } from "../parts/Button";
import { commitDrafts } from "../parts/drafts";
import { Empty, SkeletonRows } from "../parts/states";
import { Failure } from "./Failure";
import { Palette } from "./Palette";
import { ICONS, Shell } from "./Shell";
import { Shortcuts } from "./Shortcuts";
import { Messages, Toasts } from "./Toasts";
import { type Action, listenForKeys, useOffer } from "./commands";
import { choose, usePrefs } from "./prefs";
import { OF_PROJECT, PAGES, type Page, go, leave, useRoute } from "./route";
import { useSession } from "./session";
import { markSeen, toast } from "./toasts";

const SHOWN = {
  welcome: lazy(() => import("../pages/welcome/Welcome")),
  story: lazy(() => import("../pages/story/Story")),
  board: lazy(() => import("../pages/board/Board")),
  export: lazy(() => import("../pages/export/Export")),
  queue: lazy(() => import("../pages/queue/Queue")),
  models: lazy(() => import("../pages/models/Models")),
  cluster: lazy(() => import("../pages/cluster/Cluster")),
  settings: lazy(() => import("../pages/settings/Settings")),
};

/** Take back or do again, after everything typed has reached the server. */
async function history(name: "project.undo" | "project.redo", project: string): Promise<void> {
  commitDrafts();
  await flush();
  try {
    if (name === "project.undo") await call("project.undo", { project });
    else await call("project.redo", { project });
    invalidate("project.state", { project });
  } catch (error) {
    toast("bad", said(error));
  }
}

function useGlobalActions(open: { palette: () => void; keys: () => void; messages: () => void }): { undo: () => void; redo: () => void } {
  const { t } = useTranslation();
  const { project } = useRoute();
  const theme = usePrefs((prefs) => prefs.theme);
  const recent = useQuery("app.recent", {}).data;
  useQuery("settings.get", {});
  const undo = (): void => {
    if (project) void history("project.undo", project);
  };
  const redo = (): void => {
    if (project) void history("project.redo", project);
  };
  const pages: Action[] = PAGES.filter((page) => project || !OF_PROJECT.includes(page)).map((page: Page) => ({
    id: `go.${page}`,
    title: t("palette.go", { page: t(`pages.${page}`) }),
    group: t("palette.pages"),
    icon: ICONS[page],
    keys: `Mod+Alt+${PAGES.indexOf(page) + 1}`,
    whileTyping: true,
    run: () => go(page),
  }));
  const projects: Action[] = (recent ?? [])
    .filter((each) => !each.missing && each.path !== project)
    .slice(0, 8)
    .map((each) => ({
      id: `open.${each.path}`,
      title: t("palette.open_project", { title: each.title || each.name }),
      group: t("palette.projects"),
      run: () => go("story", { project: each.path }),
    }));
  const close = async (): Promise<void> => {
    if (!project) return;
    commitDrafts();
    await flush();
    try {
      await call("project.close", { project });
      forgetOpen(project);
      leave();
    } catch (error) {
      toast("bad", said(error));
    }
  };
  useOffer("app", [
    { id: "close", title: t("palette.close_project"), group: t("palette.projects"), icon: FolderX, enabled: !!project, run: () => void close() },
    { id: "palette", title: t("palette.title"), group: t("palette.app"), icon: Command, keys: "Mod+K", whileTyping: true, run: open.palette },
    { id: "edit.undo", title: t("edits.undo"), group: t("palette.edit"), icon: Undo2, keys: "Mod+Z", whileTyping: true, enabled: !!project, run: undo },
    { id: "edit.redo", title: t("edits.redo"), group: t("palette.edit"), icon: Redo2, keys: "Mod+Shift+Z Mod+Y", whileTyping: true, enabled: !!project, run: redo },
    ...pages,
    ...projects,
    { id: "keys", title: t("shortcuts.title"), group: t("palette.app"), icon: Keyboard, keys: "?", run: open.keys },
    { id: "messages", title: t("toasts.title"), group: t("palette.app"), icon: Bell, run: open.messages },
    {
      id: "theme",
      title: theme === "light" ? t("palette.to_dark") : t("palette.to_light"),
      group: t("palette.app"),
      icon: theme === "light" ? Moon : Sun,
      run: () => choose("theme", theme === "light" ? "dark" : "light"),
    },
  ]);
  return { undo, redo };
}

/** The window is called after the open project. */
function WindowTitle({ project }: { project: string }) {
  const { state } = useProject(project);
  const title = state?.script.title;
  useEffect(() => {
    document.title = title ? `${title} · Longtake` : "Longtake";
    return () => {
      document.title = "Longtake";
    };
  }, [title]);
  return null;
}

/** Shown in the place of all pages: nothing can be asked for. */
function ShutOut() {
  const { t } = useTranslation();
  return (
    <main className="flex h-full items-center justify-center bg-page">
      <Empty
        icon={KeyRound}
        title={t("app.shut_out")}
        actions={
          <Button icon={RotateCw} onClick={() => location.reload()}>
            {t("common.again")}
          </Button>
        }
      >
        {t("app.shut_out_hint")}
      </Empty>
    </main>
  );
}

export function App() {
  const { page, project } = useRoute();
  const shutOut = useSession((session) => session.shut_out);
  const [shown, setShown] = useState<"palette" | "keys" | "messages">();
  useEffect(() => listenForKeys(), []);
  useEffect(() => {
    window.addEventListener("pagehide", commitDrafts);
    return () => window.removeEventListener("pagehide", commitDrafts);
  }, []);
  // A file that misses its place must not take the studio's place.
  useEffect(() => {
    const stop = (event: DragEvent): void => {
      const isText = !event.dataTransfer?.types.includes("Files");
      if (isText && event.target instanceof HTMLElement && event.target.matches("input, textarea")) return;
      event.preventDefault();
      if (event.type === "dragover" && event.dataTransfer) event.dataTransfer.dropEffect = "none";
    };
    window.addEventListener("dragover", stop);
    window.addEventListener("drop", stop);
    return () => {
      window.removeEventListener("dragover", stop);
      window.removeEventListener("drop", stop);
    };
  }, []);
  const messages = (): void => {
    markSeen();
    setShown("messages");
  };
  const { undo, redo } = useGlobalActions({ palette: () => setShown("palette"), keys: () => setShown("keys"), messages });
  const PageShown = SHOWN[page];
  const close = (): void => setShown(undefined);
  if (shutOut) return <ShutOut />;
  return (
    <Tooltip.Provider delayDuration={500} skipDelayDuration={200}>
      {project && <WindowTitle project={project} />}
      <Shell onPalette={() => setShown("palette")} onMessages={messages} onUndo={undo} onRedo={redo}>
        <Failure key={`${page} ${project}`}>
          <Suspense fallback={<div className="p-6"><SkeletonRows rows={4} /></div>}>
            <PageShown />
          </Suspense>
        </Failure>
      </Shell>
      <Palette open={shown === "palette"} onClose={close} />
      <Shortcuts open={shown === "keys"} onClose={close} />
      <Messages open={shown === "messages"} onClose={close} />
      <Toasts />
    </Tooltip.Provider>
  );
}
