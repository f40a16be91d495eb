import i18n, { type TFunction } from "i18next";
import { Play } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { flush } from "../../api/edits";
import { useQuery } from "../../api/queries";
import type { RenderNode, RenderWhat } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { toast } from "../../app/toasts";
import { go } from "../../app/route";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Switch } from "../../parts/controls";
import { waitText } from "../../parts/figures";
import { Badge, SkeletonRows } from "../../parts/states";
import { sayAll } from "../../text/say";

const TONES = { reused: "good", will_run: "accent", unknown: "plain", will_fail: "bad" } as const;

/** A step of a plan in words. */
function stepName(t: TFunction, node: RenderNode): string {
  const type = node.type_name.replaceAll(".", "_");
  const rest = node.node.slice(node.node.indexOf(":") + 1);
  // A subject's node holds its seed and words.
  const what = node.shot ?? (node.type_name === "image.draw" ? (rest.split(":")[1] ?? rest).split(",")[0] : node.node.includes(":") ? rest : "");
  return i18n.exists(`render.types.${type}`) ? t(`render.types.${type as "film_segment"}`, { what }).trim() : node.node;
}

/** What will run and how long it takes, before it runs. */
export function RenderDialog({ what, project, onClose }: { what: RenderWhat; project: string; onClose: () => void }) {
  const { t } = useTranslation();
  const first = useQuery("settings.get", {}).data?.settings.draft_first ?? false;
  const [chosen, setDraft] = useState<boolean>();
  const draft = chosen ?? first;
  const plan = useQuery("render.plan", { project, what, draft });
  const start = useCommand("render.start");
  const { data } = plan;
  const toDraw = data?.nodes.filter((node) => node.type_name === "picture.compose" && node.state !== "reused").length ?? 0;
  const run = async (): Promise<void> => {
    await flush();
    if ((await start.run({ project, what, draft })) === undefined) return;
    toast("info", t("render.started"));
    onClose();
  };
  const figure = (label: string, value: string) => (
    <div className="rounded-md border border-line bg-page px-3 py-2">
      <dt className="text-sm text-quiet">{label}</dt>
      <dd className="numeric text-lg text-loud">{value}</dd>
    </div>
  );
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      title={what === "all" ? t("board.make_all") : what === "missing" ? t("render.missing") : t("render.shots", { shots: what.shots.join(", ") })}
      about={t("render.about")}
      actions={
        <>
          <Button onClick={onClose}>{t("common.cancel")}</Button>
          <Button look="plain" onClick={() => go("queue")}>
            {t("render.queue")}
          </Button>
          <Button look="primary" icon={Play} busy={start.busy} disabled={!data || data.to_make + data.unknown === 0} onClick={() => void run()}>
            {t("render.start")}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <Switch label={t("render.draft")} hint={t("render.draft_hint")} on={draft} onChange={setDraft} />
        {plan.error && <p className="rounded-md bg-bad-wash px-3 py-2 text-bad" role="alert">{plan.error}</p>}
        {!data && !plan.error && <SkeletonRows rows={3} className="h-14" />}
        {data && (
          <>
            <dl className="grid grid-cols-3 gap-3">
              {figure(t("render.to_make"), String(data.to_make + data.unknown))}
              {figure(t("render.reused"), String(data.reused))}
              {figure(t("render.time"), data.predicted_secs === undefined ? t("render.not_measured") : `≈ ${waitText(data.predicted_secs)}`)}
            </dl>
            {toDraw > 0 && <p className="text-sm text-quiet">{t("render.to_draw", { count: toDraw })}</p>}
            {data.warnings.map((warning) => (
              <p key={warning.text} className="rounded-md bg-warn-wash px-3 py-2 text-sm text-warn">
                {sayAll(warning)}
              </p>
            ))}
            {data.to_make + data.unknown === 0 && <p className="text-quiet">{t("render.nothing")}</p>}
            <details className="text-sm">
              <summary className="rounded-sm py-1 text-quiet hover:text-loud">{t("render.steps", { count: data.nodes.length })}</summary>
              <ul className="mt-1 max-h-56 overflow-y-auto rounded-md border border-line bg-page p-2" tabIndex={0} aria-label={t("render.steps", { count: data.nodes.length })}>
                {data.nodes.map((node) => (
                  <li key={node.node} className="flex items-center justify-between gap-3 py-0.5">
                    <span className="min-w-0 truncate text-text">
                      {stepName(t, node)}
                      {node.why && <span className="text-quiet"> — {node.why}</span>}
                    </span>
                    <Badge tone={TONES[node.state]}>{t(`render.states.${node.state}`)}</Badge>
                  </li>
                ))}
              </ul>
            </details>
          </>
        )}
      </div>
    </Dialog>
  );
}
