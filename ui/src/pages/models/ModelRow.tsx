import { BadgeCheck, CircleSlash, Download, ExternalLink, ShieldCheck, Trash2 } from "lucide-react";
import { memo, useState } from "react";
import { useTranslation } from "react-i18next";
import { invalidate, useQuery } from "../../api/queries";
import type { Model, ModelHere } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { Button, IconButton } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { bytesText } from "../../parts/figures";
import { Badge, Progress } from "../../parts/states";
import { licenceNote } from "../../text/notes";
import { jobStep, jobTitle } from "../../text/say";

const TONES: Record<ModelHere, "good" | "warn" | "plain"> = { installed: "good", unverified: "plain", partial: "warn", missing: "plain" };

/** One model: what it is for, what it takes, what its licence allows, and what can be done with it. */
export const ModelRow = memo(function ModelRow({ model }: { model: Model }) {
  const { t, i18n } = useTranslation();
  const [asking, setAsking] = useState(false);
  const pull = useCommand("models.pull");
  const verify = useCommand("models.verify");
  const remove = useCommand("models.remove");
  const cancel = useCommand("queue.cancel");
  const job = useQuery("queue.list", {}).data?.find((each) => each.id === model.job && (each.state === "running" || each.state === "waiting" || each.state === "paused"));
  const size = (bytes: number): string => bytesText(bytes, i18n.language);
  const renew = (answer: unknown): void => {
    if (answer === undefined) return;
    invalidate("models.list");
    invalidate("queue.list");
  };
  const here = model.state === "installed" || model.state === "unverified";
  return (
    <li aria-label={model.name} className="rounded-lg border border-line bg-panel px-4 py-3">
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0 grow basis-80">
          <div className="flex flex-wrap items-center gap-2">
            <h3 className="font-medium text-loud">{model.name}</h3>
            <Badge tone={TONES[model.state]}>{t(`models.states.${model.state}`)}</Badge>
            {model.default && <Badge tone="accent">{t("models.default")}</Badge>}
          </div>
          <dl className="numeric mt-1 flex flex-wrap gap-x-4 text-sm text-quiet">
            <div className="flex gap-1">
              <dt>{t("models.size")}</dt>
              <dd className="text-text">{model.state === "partial" ? t("models.part", { here: size(model.bytes_here), all: size(model.bytes) }) : size(model.bytes)}</dd>
            </div>
            <div className="flex gap-1">
              <dt>{t("models.memory")}</dt>
              <dd className="text-text">{size(model.memory_bytes)}</dd>
            </div>
          </dl>
          <div className="mt-2 flex flex-wrap items-center gap-1.5">
            {model.licence_link.startsWith("https://") ? (
              <a href={model.licence_link} target="_blank" rel="noreferrer" className="inline-flex items-center gap-1 text-sm text-text underline decoration-line-strong underline-offset-2 hover:text-loud">
                {model.licence}
                <ExternalLink className="size-3" aria-hidden />
              </a>
            ) : (
              <span className="text-sm text-text">{model.licence}</span>
            )}
            <Badge tone={model.allows.commercial ? "good" : "bad"} icon={model.allows.commercial ? BadgeCheck : CircleSlash}>
              {model.allows.commercial ? t("models.commercial") : t("models.not_commercial")}
            </Badge>
            <Badge tone={model.allows.redistribution ? "good" : "warn"} icon={model.allows.redistribution ? BadgeCheck : CircleSlash}>
              {model.allows.redistribution ? t("models.redistribution") : t("models.not_redistribution")}
            </Badge>
          </div>
          {model.allows.note && <p className="mt-1.5 text-sm text-quiet">{licenceNote(model.allows.note)}</p>}
        </div>
        <div className="flex items-center gap-1">
          {!here && !job && (
            <Button icon={Download} busy={pull.busy} onClick={async () => renew(await pull.run({ id: model.id }))}>
              {model.state === "partial" ? t("models.resume") : t("models.download")}
            </Button>
          )}
          {here && !job && (
            <Button icon={ShieldCheck} look="quiet" busy={verify.busy} onClick={async () => renew(await verify.run({ id: model.id }))}>
              {t("models.verify")}
            </Button>
          )}
          {job && (
            <Button busy={cancel.busy} onClick={async () => renew(await cancel.run({ id: job.id }))}>
              {t("common.stop")}
            </Button>
          )}
          {(here || model.state === "partial") && !job && <IconButton icon={Trash2} label={t("models.remove_what", { name: model.name })} onClick={() => setAsking(true)} />}
        </div>
      </div>
      {job && (
        <div className="mt-3 flex flex-col gap-1.5">
          <span className="numeric text-sm text-quiet">{jobStep(job) ?? t(`queue.states.${job.state}`)}</span>
          <Progress done={job.done} of={job.of} label={t("queue.progress_of", { title: jobTitle(job) })} />
        </div>
      )}
      <Dialog
        open={asking}
        onClose={() => setAsking(false)}
        title={t("models.remove_what", { name: model.name })}
        about={t("models.remove_about", { size: size(model.bytes_here), folder: model.folder })}
        actions={
          <>
            <Button onClick={() => setAsking(false)}>{t("common.cancel")}</Button>
            <Button
              look="danger"
              icon={Trash2}
              busy={remove.busy}
              onClick={async () => {
                renew(await remove.run({ id: model.id }));
                setAsking(false);
              }}
            >
              {t("models.remove")}
            </Button>
          </>
        }
      >
        <p className="text-quiet">{t("models.remove_hint")}</p>
      </Dialog>
    </li>
  );
});
