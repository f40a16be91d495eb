import { Brush, Clapperboard, ImagePlus, PanelRight, Play, Plus, Trash2 } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { edit as doEdit, flush } from "../../api/edits";
import { scriptNow, useProject } from "../../api/project";
import { useQuery } from "../../api/queries";
import type { Edit, ProjectState, RenderWhat } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { toast } from "../../app/toasts";
import { useOffer } from "../../app/commands";
import { setPrefs, usePrefs } from "../../app/prefs";
import { useRoute } from "../../app/route";
import { Button, IconButton } from "../../parts/Button";
import { roomRem } from "../../parts/room";
import { Slider } from "../../parts/controls";
import { clockText } from "../../parts/figures";
import { Empty, Failed, SkeletonRows } from "../../parts/states";
import { reveal, select, useSelection } from "../story/selection";
import { stepShot } from "../story/changes";
import { type RowAction, runOn } from "../story/rowActions";
import { CardGrid } from "./CardGrid";
import { FileDrop, useFileDrop } from "./FileDrop";
import { Inspector } from "./Inspector";
import { RenderDialog } from "./RenderDialog";

export default function Board() {
  const { project } = useRoute();
  const { state, error, again } = useProject(project ?? "");
  if (error && !state) return <Failed what={error} again={again} />;
  if (!state) {
    return (
      <div className="p-6">
        <SkeletonRows rows={4} className="h-44" />
      </div>
    );
  }
  return <OpenBoard key={state.project} state={state} />;
}

function OpenBoard({ state }: { state: ProjectState }) {
  const { t } = useTranslation();
  const { project, script } = state;
  const { at } = useRoute();
  const selection = useSelection((each) => each.selection);
  const cardPx = usePrefs((prefs) => prefs.card_px);
  const [side, setSide] = useState(() => roomRem() > 56);
  const [plan, setPlan] = useState<RenderWhat>();
  const picker = useRef<HTMLInputElement>(null);
  const drop = useFileDrop(project);
  // The pictures of jobs that run on these shots.
  useQuery("queue.list", {});
  const shots = useMemo(() => script.scenes.flatMap((scene) => scene.shots), [script.scenes]);
  const chosen = selection?.kind === "shot" ? shots.find((shot) => shot.id === selection.id) : undefined;
  const undrawn = shots.filter((shot) => !shot.picture && !shot.video && (!shot.colour || shot.by?.["colour"] === "rule")).length;
  const draw = useCommand("takes.draw");
  const drawMissing = async (): Promise<void> => {
    await flush();
    if ((await draw.run({ project, what: "missing" })) !== undefined) toast("info", t("board.drawing"));
  };
  const missing = shots.filter((shot) => state.shots[shot.id]?.state !== "made").length;

  useEffect(() => {
    if (at) reveal({ kind: "shot", id: at });
    else if (!useSelection.getState().selection && shots[0]) select({ kind: "shot", id: shots[0].id });
  }, [at]);

  // Several files at once go onto this shot and those after it.
  const dropAll = (first: string, files: File[]): void => {
    const from = shots.findIndex((shot) => shot.id === first);
    for (const [at, file] of files.entries()) {
      const shot = shots[from + at];
      if (shot) drop.ask(shot.id, file);
    }
  };
  const tools = { script: () => scriptNow(project), edit: (change: Edit | undefined) => change && doEdit(project, change) };
  const act = (action: RowAction) => (): void => {
    if (chosen) void runOn(tools, action, { kind: "shot", id: chosen.id });
  };
  const step = (by: 1 | -1): void => {
    const now = scriptNow(project);
    const change = chosen && now && stepShot(now, chosen.id, by);
    if (!change || !chosen) return;
    doEdit(project, change);
    reveal({ kind: "shot", id: chosen.id });
  };
  const group = t("pages.board");
  useOffer("board", [
    { id: "board.missing", title: t("board.make_missing", { count: missing }), group, icon: Play, keys: "Mod+Enter", enabled: missing > 0, run: () => setPlan("missing") },
    { id: "board.draw_missing", title: t("board.draw_missing", { count: undrawn }), group, icon: Brush, enabled: undrawn > 0, run: () => void drawMissing() },
    { id: "board.all", title: t("board.make_all"), group, icon: Play, run: () => setPlan("all") },
    { id: "board.one", title: t("board.make_one"), group, icon: Play, keys: "Mod+Shift+Enter", enabled: !!chosen, run: () => chosen && setPlan({ shots: [chosen.id] }) },
    { id: "board.file", title: t("board.choose_file"), group, icon: ImagePlus, keys: "Mod+O", enabled: !!chosen, run: () => picker.current?.click() },
    { id: "board.up", title: t("board.earlier"), group, keys: "Alt+Left", whileTyping: false, enabled: !!chosen, run: () => step(-1) },
    { id: "board.down", title: t("board.later"), group, keys: "Alt+Right", whileTyping: false, enabled: !!chosen, run: () => step(1) },
    { id: "board.add", title: t("story.add_shot"), group, icon: Plus, keys: "Alt+Enter", enabled: !!chosen, run: act("add_shot") },
    { id: "board.remove", title: t("story.remove_shot"), group, icon: Trash2, keys: "Alt+Delete", enabled: !!chosen, run: act("remove") },
    { id: "board.side", title: t("board.inspector"), group, icon: PanelRight, keys: "Alt+I", whileTyping: true, run: () => setSide((shown) => !shown) },
  ]);

  return (
    <div className="flex h-full min-h-0">
      <div className="flex min-w-0 flex-1 flex-col">
        <div className="flex min-h-11 shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-1.5">
          <h1 className="sr-only">{t("pages.board")}</h1>
          <span className="numeric text-sm text-quiet">{t("board.counts", { shots: shots.length, made: shots.length - missing, time: clockText(state.film.secs) })}</span>
          <div className="grow" />
          <Slider label={t("board.card_size")} className="w-24" value={cardPx} min={160} max={420} step={20} onChange={(card_px) => setPrefs({ card_px })} />
          {undrawn > 0 && (
            <Button size="sm" icon={Brush} busy={draw.busy} onClick={() => void drawMissing()}>
              {t("board.draw_missing", { count: undrawn })}
            </Button>
          )}
          <Button size="sm" onClick={() => setPlan("all")}>
            {t("board.make_all")}
          </Button>
          <Button size="sm" look="primary" icon={Play} disabled={missing === 0} onClick={() => setPlan("missing")}>
            {t("board.make_missing", { count: missing })}
          </Button>
          <IconButton icon={PanelRight} size="sm" label={t("board.inspector")} keys="Alt+I" on={side} onClick={() => setSide(!side)} />
        </div>
        <div className="min-h-0 flex-1">
          {shots.length === 0 ? <Empty icon={Clapperboard} title={t("board.none")}>{t("board.none_hint")}</Empty> : <CardGrid state={state} cardPx={cardPx} onFiles={dropAll} onRender={(id) => setPlan({ shots: [id] })} />}
        </div>
      </div>
      {side && (
        <aside
          aria-label={t("board.inspector")}
          className="flex w-80 shrink-0 flex-col overflow-y-auto border-l border-line bg-panel @max-[52rem]/main:absolute @max-[52rem]/main:inset-y-0 @max-[52rem]/main:right-0 @max-[52rem]/main:z-20 @max-[52rem]/main:max-w-full @max-[52rem]/main:shadow-float @min-[75rem]/main:w-96"
        >
          {chosen ? (
            <Inspector key={chosen.id} state={state} shot={chosen} onClose={() => setSide(false)} onChooseFile={() => picker.current?.click()} onRender={() => setPlan({ shots: [chosen.id] })} />
          ) : (
            <Empty icon={Clapperboard} title={t("board.no_choice")}>{t("board.no_choice_hint")}</Empty>
          )}
        </aside>
      )}
      <input
        ref={picker}
        type="file"
        hidden
        tabIndex={-1}
        aria-hidden
        accept="image/*,video/*,audio/*"
        onChange={(event) => {
          const file = event.target.files?.[0];
          event.target.value = "";
          if (file && chosen) drop.ask(chosen.id, file);
        }}
      />
      <FileDrop drop={drop} />
      {plan !== undefined && <RenderDialog what={plan} project={project} onClose={() => setPlan(undefined)} />}
    </div>
  );
}
