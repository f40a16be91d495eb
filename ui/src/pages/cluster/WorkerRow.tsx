import { CircleCheck, DoorOpen, LogOut, Server, Trash2, Undo2 } from "lucide-react";
import { useTranslation } from "react-i18next";
import { invalidate } from "../../api/queries";
import type { ClusterJob, ClusterWorker, DrainOrder } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { Button } from "../../parts/Button";
import { bytesText, waitText } from "../../parts/figures";
import { Badge, Progress } from "../../parts/states";

function AtJob({ job }: { job: ClusterJob }) {
  const { t } = useTranslation();
  const part = job.part === null ? "" : ` · ${Math.round(100 * job.part)} %`;
  return (
    <li className="flex flex-col gap-1">
      <span className="flex min-w-0 justify-between gap-4 text-sm">
        <span className="truncate text-text" title={`${job.node} (${job.node_type})`}>
          {job.node} <span className="text-quiet">{job.node_type}</span>
        </span>
        <span className="numeric shrink-0 text-quiet">
          {waitText(job.secs)}
          {part}
        </span>
      </span>
      <Progress done={job.part ?? 0} of={job.part === null ? 0 : 1} label={t("cluster.progress_of", { node: job.node })} />
    </li>
  );
}

/** One machine: what it is, what it does, what can be asked of it. */
export function WorkerRow({ worker, perMinute }: { worker: ClusterWorker; perMinute: number | undefined }) {
  const { t, i18n } = useTranslation();
  const drain = useCommand("cluster.drain");
  const ask = async (order: DrainOrder): Promise<void> => {
    if (await drain.run({ worker: worker.worker, order })) invalidate("cluster.state");
  };
  const figure = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 1 });
  const facts: [string, string][] = [
    [t("cluster.devices"), worker.devices.join(", ") || "—"],
    [t("cluster.memory"), bytesText(worker.memory_bytes, i18n.language)],
    [t("cluster.models"), String(worker.models)],
    [t("cluster.done"), String(worker.done)],
    [t("cluster.rate"), perMinute === undefined ? "—" : t("cluster.per_minute", { figure: figure.format(perMinute) })],
  ];
  const style = worker.away_secs > 86_400 ? ({ dateStyle: "medium", timeStyle: "short" } as const) : ({ timeStyle: "short" } as const);
  const away = t("cluster.away_since", { when: new Intl.DateTimeFormat(i18n.language, style).format(Date.now() - 1000 * worker.away_secs), time: waitText(worker.away_secs) });
  return (
    <li aria-label={worker.worker} className="rounded-lg border border-line bg-panel px-4 py-3">
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0 grow basis-80">
          <div className="flex flex-wrap items-center gap-2">
            <Server className="size-4 text-quiet" strokeWidth={1.75} aria-hidden />
            <h3 className="font-medium text-loud">{worker.worker}</h3>
            {!worker.here && <Badge tone="bad">{away}</Badge>}
            {worker.here && <Badge tone={worker.draining ? "warn" : "good"}>{worker.draining ? t("cluster.draining") : worker.jobs.length > 0 ? t("cluster.busy") : t("cluster.idle")}</Badge>}
          </div>
          <dl className="numeric mt-1 flex flex-wrap gap-x-4 text-sm text-quiet">
            {facts.map(([label, value]) => (
              <div key={label} className="flex gap-1">
                <dt>{label}</dt>
                <dd className="text-text">{value}</dd>
              </div>
            ))}
          </dl>
        </div>
        <div className="flex flex-wrap gap-1">
          {worker.here && !worker.draining && (
            <Button size="sm" icon={DoorOpen} busy={drain.busy} onClick={() => void ask("drain")} aria-label={t("cluster.drain_what", { name: worker.worker })}>
              {t("cluster.drain")}
            </Button>
          )}
          {worker.here && worker.draining && (
            <Button size="sm" icon={Undo2} busy={drain.busy} onClick={() => void ask("undo")} aria-label={t("cluster.undrain_what", { name: worker.worker })}>
              {t("cluster.undrain")}
            </Button>
          )}
          {worker.here && (
            <Button size="sm" icon={LogOut} busy={drain.busy} onClick={() => void ask("leave")} aria-label={t("cluster.remove_what", { name: worker.worker })}>
              {t("cluster.remove")}
            </Button>
          )}
          {!worker.here && (
            <Button size="sm" icon={Trash2} busy={drain.busy} onClick={() => void ask("forget")} aria-label={t("cluster.forget_what", { name: worker.worker })}>
              {t("cluster.forget")}
            </Button>
          )}
        </div>
      </div>
      {worker.jobs.length > 0 && (
        <ul className="mt-3 flex flex-col gap-2">
          {worker.jobs.map((job) => (
            <AtJob key={job.node} job={job} />
          ))}
        </ul>
      )}
      {worker.here && worker.jobs.length === 0 && (
        <p className="mt-2 flex items-center gap-1.5 text-sm text-quiet">
          <CircleCheck className="size-4" strokeWidth={1.75} aria-hidden />
          {worker.draining ? t("cluster.nothing_more") : t("cluster.waits")}
        </p>
      )}
    </li>
  );
}
