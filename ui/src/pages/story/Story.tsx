import { ArrowDown, ArrowUp, ClipboardCopy, ClipboardPaste, FilePlus2, FileText, PanelLeft, PanelRight, Plus, Search, Sparkles, Trash2 } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { edit as doEdit } from "../../api/edits";
import { scriptNow, useProject } from "../../api/project";
import { useQuery } from "../../api/queries";
import type { ProjectState } from "../../api/shapes";
import { useOffer } from "../../app/commands";
import { useRoute } from "../../app/route";
import { Button, IconButton } from "../../parts/Button";
import { clockText } from "../../parts/figures";
import { roomRem } from "../../parts/room";
import { Failed, SkeletonRows } from "../../parts/states";
import { Find } from "./Find";
import { Outline } from "./Outline";
import { Proposal } from "./Proposal";
import { RewriteDialog } from "./RewriteDialog";
import { ScriptView } from "./ScriptView";
import { SidePanel } from "./SidePanel";
import { TextDialog } from "./TextDialog";
import { WriteDialog } from "./WriteDialog";
import { type RewriteTarget, StoryContext, type StoryTools, lintBy } from "./context";
import { copyText } from "./changes";
import { type RowAction, runOn, wasCopied } from "./rowActions";
import { type Selection, reveal, review, useSelection } from "./selection";

export default function Story() {
  const { project } = useRoute();
  const { state, error, again } = useProject(project ?? "");
  if (error && !state) return <Failed what={error} again={again} />;
  if (!state) {
    return (
      <div className="mx-auto max-w-4xl p-8">
        <SkeletonRows rows={6} className="h-24" />
      </div>
    );
  }
  return <OpenStory key={state.project} state={state} />;
}

/** Copying and pasting are told by the browser, with the clipboard in hand: nobody is asked for
 *  leave, and what was copied is there at once. */
function useClipboard(tools: StoryTools): void {
  useEffect(() => {
    const chosen = (event: Event): Selection | undefined => {
      const { target } = event;
      if (target instanceof HTMLElement && target.matches("input, textarea, [role='dialog'] *")) return undefined;
      return useSelection.getState().selection;
    };
    const isText = (): boolean => (window.getSelection()?.toString() ?? "") !== "";
    const onCopy = (event: ClipboardEvent): void => {
      const selection = chosen(event);
      const script = tools.script();
      const text = selection && script && !isText() ? copyText(script, selection.kind, selection.id) : undefined;
      if (selection === undefined || text === undefined) return;
      event.preventDefault();
      event.clipboardData?.setData("text/plain", text);
      wasCopied(text, selection);
    };
    // Some engines ask first whether there is anything to copy.
    const onAsked = (event: Event): void => {
      if (chosen(event) && !isText()) event.preventDefault();
    };
    const onPaste = (event: ClipboardEvent): void => {
      const selection = chosen(event);
      if (!selection) return;
      event.preventDefault();
      void runOn(tools, "paste", selection, event.clipboardData?.getData("text/plain"));
    };
    window.addEventListener("beforecopy", onAsked);
    window.addEventListener("copy", onCopy);
    window.addEventListener("paste", onPaste);
    return () => {
      window.removeEventListener("beforecopy", onAsked);
      window.removeEventListener("copy", onCopy);
      window.removeEventListener("paste", onPaste);
    };
  }, [tools]);
}

function useStoryActions(tools: StoryTools, open: { write: () => void; find: () => void; text: () => void }): void {
  const { t } = useTranslation();
  const group = t("pages.story");
  const selection = useSelection((each) => each.selection);
  const action = (id: RowAction, title: string, icon: typeof Plus, keys: string, whileTyping = true) => ({
    id: `story.${id}`,
    title,
    group,
    icon,
    keys,
    whileTyping,
    enabled: selection !== undefined,
    run: () => {
      if (selection) void runOn(tools, id, selection);
    },
  });
  useOffer("story", [
    { id: "story.write", title: t("story.write"), group, icon: Sparkles, keys: "Mod+Enter", run: open.write },
    { id: "story.find", title: t("story.find"), group, icon: Search, keys: "Mod+F", whileTyping: true, run: open.find },
    {
      id: "story.rewrite",
      title: t("story.rewrite_selection"),
      group,
      icon: Sparkles,
      keys: "Alt+R",
      whileTyping: true,
      enabled: selection !== undefined,
      run: () => {
        if (selection) tools.rewrite({ ...selection, title: selection.id });
      },
    },
    { id: "story.text", title: t("text.title"), group, icon: FileText, run: open.text },
    action("add_shot", t("story.add_shot"), Plus, "Alt+Enter"),
    action("add_scene", t("story.add_scene"), FilePlus2, "Alt+Shift+Enter"),
    action("up", t("story.up"), ArrowUp, "Alt+Up"),
    action("down", t("story.down"), ArrowDown, "Alt+Down"),
    action("copy", t("story.copy"), ClipboardCopy, ""),
    action("paste", t("story.paste"), ClipboardPaste, ""),
    action("remove", t("story.remove"), Trash2, "Alt+Delete"),
  ]);
}

function OpenStory({ state }: { state: ProjectState }) {
  const { t } = useTranslation();
  const { project } = state;
  const { at } = useRoute();
  const [writing, setWriting] = useState(false);
  const [target, setTarget] = useState<RewriteTarget>();
  const [texting, setTexting] = useState(false);
  const [finding, setFinding] = useState(false);
  const reviewing = useSelection((each) => each.reviewing);
  const [left, setLeft] = useState(() => roomRem() > 48);
  const [side, setSide] = useState(() => roomRem() > 68);
  const [tab, setTab] = useState("film");
  const proposal = useQuery("proposal.get", { project }).data;
  const lint = useMemo(() => lintBy(state.lint), [state.lint]);
  const tools = useMemo<StoryTools>(
    () => ({
      project,
      script: () => scriptNow(project),
      edit: (change) => {
        if (change) doEdit(project, change);
      },
      rewrite: setTarget,
    }),
    [project],
  );
  useClipboard(tools);
  // Where there is room for one panel only, opening one puts the other away.
  const showLeft = (shown: boolean): void => {
    setLeft(shown);
    if (shown && roomRem() < 48) setSide(false);
  };
  const showSide = (shown: boolean): void => {
    setSide(shown);
    if (shown && roomRem() < 48) setLeft(false);
  };
  useStoryActions(tools, { write: () => setWriting(true), find: () => {
    showLeft(true);
    setFinding(true);
  }, text: () => setTexting(true) });
  useEffect(() => {
    if (at) reveal({ kind: state.script.scenes.some((scene) => scene.id === at) ? "scene" : "shot", id: at });
  }, [at]);
  const shots = state.script.scenes.reduce((sum, scene) => sum + scene.shots.length, 0);
  const showsProposal = reviewing && proposal;
  return (
    <StoryContext value={tools}>
      <h1 className="sr-only">{t("pages.story")}</h1>
      <div className="flex h-full min-h-0">
        {left && <aside aria-label={t("story.outline")} className="flex w-64 shrink-0 flex-col border-r border-line bg-panel @max-[44rem]/main:absolute @max-[44rem]/main:top-11 @max-[44rem]/main:bottom-0 @max-[44rem]/main:left-0 @max-[44rem]/main:z-20 @max-[44rem]/main:shadow-float">
          <div className="flex h-11 shrink-0 items-center justify-between gap-2 pr-1.5 pl-3.5">
            <span className="numeric truncate text-sm text-quiet">{t("story.counts", { scenes: t("story.scenes", { count: state.script.scenes.length }), shots: t("story.shots", { count: shots }), time: clockText(state.film.secs) })}</span>
            <IconButton icon={Search} size="sm" label={t("story.find")} keys="Mod+F" on={finding} onClick={() => setFinding(!finding)} />
          </div>
          {finding ? <Find project={project} onClose={() => setFinding(false)} /> : <Outline script={state.script} lint={lint} />}
        </aside>}
        <div className="flex min-w-0 flex-1 flex-col">
          <div className="flex h-11 shrink-0 items-center gap-2 border-b border-line px-3">
            <IconButton icon={PanelLeft} size="sm" label={t("story.outline")} on={left} onClick={() => showLeft(!left)} />
            <Button icon={Sparkles} look="primary" size="sm" onClick={() => setWriting(true)}>
              {t("story.write")}
            </Button>
            {proposal && (
              <Button size="sm" look={reviewing ? "plain" : "quiet"} className="text-accent-text" onClick={() => review(!reviewing)}>
                {reviewing ? t("proposal.back") : t("proposal.ready", { count: proposal.changes.length })}
              </Button>
            )}
            <div className="grow" />
            <IconButton icon={FileText} size="sm" label={t("text.title")} onClick={() => setTexting(true)} />
            <IconButton icon={PanelRight} size="sm" label={t("story.side")} on={side} onClick={() => showSide(!side)} />
          </div>
          <div className="min-h-0 flex-1">
            {showsProposal ? <Proposal project={project} proposal={proposal} onDone={() => review(false)} /> : <ScriptView state={state} lint={lint} />}
          </div>
        </div>
        {side && (
          <aside
            aria-label={t("story.side")}
            className={"flex w-80 shrink-0 flex-col border-l border-line bg-panel @min-[75rem]/main:w-96 @max-[64rem]/main:absolute @max-[64rem]/main:top-11 @max-[64rem]/main:bottom-0 @max-[64rem]/main:right-0 @max-[64rem]/main:z-20 @max-[64rem]/main:max-w-full @max-[64rem]/main:shadow-float"}
          >
            <SidePanel state={state} tab={tab} onTab={setTab} />
          </aside>
        )}
      </div>
      <WriteDialog
        open={writing}
        state={state}
        onClose={() => setWriting(false)}
        onReady={() => {
          setWriting(false);
          review(true);
        }}
      />
      <TextDialog open={texting} project={project} onClose={() => setTexting(false)} />
      <RewriteDialog
        target={target}
        project={project}
        onClose={() => setTarget(undefined)}
        onReady={() => {
          setTarget(undefined);
          review(true);
        }}
      />
    </StoryContext>
  );
}
