import { ListVideo, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { invalidate, useQuery } from "../../api/queries";
import type { Job } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { useOffer } from "../../app/commands";
import { Button } from "../../parts/Button";
import { Empty, Failed, PageHead, SkeletonRows } from "../../parts/states";
import { JobLog } from "./JobLog";
import { JobRow } from "./JobRow";

const OPEN: readonly Job["state"][] = ["running", "paused", "waiting"];

/** Everything that runs, waits or has ended. */
export default function Queue() {
  const { t } = useTranslation();
  const { data, error, again } = useQuery("queue.list", {});
  const clear = useCommand("queue.clear");
  const move = useCommand("queue.move");
  const [log, setLog] = useState<Job>();
  const jobs = data ?? [];
  const open = jobs.filter((job) => OPEN.includes(job.state));
  const ended = jobs.filter((job) => !OPEN.includes(job.state)).sort((a, b) => (b.ended_unix_millis ?? 0) - (a.ended_unix_millis ?? 0));
  const waiting = open.filter((job) => job.state === "waiting");
  const tidy = async (): Promise<void> => {
    if ((await clear.run({})) !== undefined) invalidate("queue.list");
  };
  useOffer("queue", [{ id: "queue.clear", title: t("queue.clear"), group: t("pages.queue"), icon: Trash2, enabled: ended.length > 0, run: () => void tidy() }]);
  const step = async (job: Job, by: 1 | -1): Promise<void> => {
    const at = waiting.findIndex((each) => each.id === job.id);
    const before = waiting[by === -1 ? at - 1 : at + 2];
    if ((await move.run({ id: job.id, ...(before ? { before: before.id } : {}) })) !== undefined) invalidate("queue.list");
  };
  const row = (job: Job) => {
    const at = waiting.findIndex((each) => each.id === job.id);
    return (
      <JobRow
        key={job.id}
        job={job}
        onLog={() => setLog(job)}
        onUp={at > 0 ? () => void step(job, -1) : undefined}
        onDown={at >= 0 && at < waiting.length - 1 ? () => void step(job, 1) : undefined}
      />
    );
  };
  return (
    <div className="h-full overflow-y-auto">
      <div className="mx-auto flex max-w-5xl flex-col gap-6 px-8 py-8">
        <PageHead title={t("pages.queue")} about={t("queue.about")}>
          {ended.length > 0 && (
            <Button icon={Trash2} busy={clear.busy} onClick={() => void tidy()}>
              {t("queue.clear")}
            </Button>
          )}
        </PageHead>
        {error && !data && <Failed what={error} again={again} />}
        {!data && !error && <SkeletonRows rows={3} className="h-20" />}
        {data && jobs.length === 0 && (
          <Empty icon={ListVideo} title={t("queue.none")} className="rounded-lg border border-dashed border-line-strong py-20">
            {t("queue.none_hint")}
          </Empty>
        )}
        {open.length > 0 && (
          <section aria-label={t("queue.open")}>
            <h2 className="mb-2 text-sm text-quiet">{t("queue.open")}</h2>
            <ul className="flex flex-col gap-2">{open.map(row)}</ul>
          </section>
        )}
        {ended.length > 0 && (
          <section aria-label={t("queue.ended")}>
            <h2 className="mb-2 text-sm text-quiet">{t("queue.ended")}</h2>
            <ul className="flex flex-col gap-2">{ended.map(row)}</ul>
          </section>
        )}
      </div>
      {log && <JobLog job={log} onClose={() => setLog(undefined)} />}
    </div>
  );
}
