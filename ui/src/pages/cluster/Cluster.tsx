import { Network, Pause, Play, Stethoscope, Unplug } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { invalidate, put, useQuery } from "../../api/queries";
import type { ClusterState } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { useOffer } from "../../app/commands";
import { Button } from "../../parts/Button";
import { Switch } from "../../parts/controls";
import { Badge, Card, Empty, Failed, PageHead, SkeletonRows } from "../../parts/states";
import { Doctor } from "./Doctor";
import { Films } from "./Films";
import { JoinLine } from "./JoinLine";
import { StartCluster } from "./StartCluster";
import { WorkerRow } from "./WorkerRow";

/** Asking takes about a second, in which signs of life are listened for. */
const AGAIN_MILLIS = 2_000;

function useWatched(): ReturnType<typeof useQuery<"cluster.state">> {
  const query = useQuery("cluster.state", {});
  const { again, loading } = query;
  useEffect(() => {
    if (loading) return undefined;
    const timer = setTimeout(() => document.visibilityState === "visible" && again(), AGAIN_MILLIS);
    return () => clearTimeout(timer);
  }, [again, loading, query.data]);
  return query;
}

/** The server of a cluster, and what can be done with it. */
function ServerCard({ state, onLeave }: { state: ClusterState; onLeave: () => void }) {
  const { t } = useTranslation();
  const pause = useCommand("cluster.pause");
  const stop = useCommand("cluster.stop");
  const start = useCommand("cluster.start");
  const films = useCommand("cluster.films");
  const { status } = state;
  const renew = (answer: unknown): void => {
    if (answer !== undefined) invalidate("cluster.state");
  };
  return (
    <Card className="flex flex-col gap-4 p-5">
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0">
          <div className="flex flex-wrap items-center gap-2">
            <h2 className="font-medium text-loud">{t("cluster.server")}</h2>
            {status ? <Badge tone={status.paused ? "warn" : "good"}>{status.paused ? t("cluster.paused") : t("cluster.works")}</Badge> : <Badge tone="bad">{t("cluster.away")}</Badge>}
            {state.runs_here && <Badge>{t("cluster.runs_here")}</Badge>}
            {state.runs_here && <Badge>{state.open ? t("cluster.is_open") : t("cluster.is_closed")}</Badge>}
          </div>
          <p className="mt-1 text-sm break-all text-quiet">{status ? t("cluster.at", { address: status.address, version: status.nats_version }) : state.place}</p>
        </div>
        <div className="flex flex-wrap gap-2">
          {status && (
            <Button icon={status.paused ? Play : Pause} busy={pause.busy} onClick={async () => renew(await pause.run({ on: !status.paused }))}>
              {status.paused ? t("cluster.resume") : t("cluster.pause")}
            </Button>
          )}
          {!state.runs_here && !status && (
            <Button look="primary" icon={Play} busy={start.busy} onClick={async () => renew(await start.run({}))}>
              {t("cluster.start_here")}
            </Button>
          )}
          {state.runs_here && (
            <Button icon={Unplug} busy={stop.busy} onClick={async () => renew(await stop.run({}))}>
              {t("cluster.end")}
            </Button>
          )}
          {!state.runs_here && (
            <Button icon={Unplug} onClick={onLeave}>
              {t("cluster.leave")}
            </Button>
          )}
        </div>
      </div>
      {state.why && (
        <p role="alert" className="text-sm break-words text-bad">
          {state.why}
        </p>
      )}
      <Switch
        label={t("cluster.films")}
        hint={t("cluster.films_hint")}
        on={state.makes_films}
        disabled={films.busy}
        onChange={async (on) => renew(await films.run({ on }))}
      />
      {state.makes_films && <Films />}
    </Card>
  );
}

/** Machines that make films together. */
export default function Cluster() {
  const { t } = useTranslation();
  const { data, error, again } = useWatched();
  const [examined, setExamined] = useState(false);
  const leave = useCommand("cluster.leave");
  const onLeave = async (): Promise<void> => {
    const state = await leave.run({});
    if (state) put("cluster.state", {}, state);
  };
  const known = data?.place !== undefined;
  const workers = data?.status?.workers ?? [];
  useOffer("cluster", [{ id: "cluster.doctor", title: t("cluster.doctor"), group: t("pages.cluster"), icon: Stethoscope, run: () => setExamined(true) }]);
  return (
    <div className="h-full overflow-y-auto">
      <div className="mx-auto flex max-w-5xl flex-col gap-6 px-8 py-8">
        <PageHead title={t("pages.cluster")} about={t("cluster.about")}>
          <Button icon={Stethoscope} onClick={() => setExamined(true)} disabled={examined}>
            {t("cluster.doctor")}
          </Button>
        </PageHead>
        {error && !data && <Failed what={error} again={again} />}
        {!data && !error && <SkeletonRows rows={3} className="h-28" />}
        {data && !known && <StartCluster />}
        {data && known && (
          <>
            <ServerCard state={data} onLeave={() => void onLeave()} />
            {data.status && <JoinLine />}
            {data.status && workers.length === 0 && (
              <Empty icon={Network} title={t("cluster.no_workers")}>
                {t("cluster.no_workers_hint")}
              </Empty>
            )}
            {workers.length > 0 && (
              <section aria-label={t("cluster.machines")}>
                <h2 className="mb-2 text-sm text-quiet">{t("cluster.machines")}</h2>
                <ul className="flex flex-col gap-2">
                  {workers.map((worker) => (
                    <WorkerRow key={worker.worker} worker={worker} perMinute={data.jobs_per_minute[worker.worker]} />
                  ))}
                </ul>
              </section>
            )}
          </>
        )}
        {examined && <Doctor />}
      </div>
    </div>
  );
}
