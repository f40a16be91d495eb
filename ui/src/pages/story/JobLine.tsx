import { useTranslation } from "react-i18next";
import type { Job } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { Button } from "../../parts/Button";
import { waitText } from "../../parts/figures";
import { Progress } from "../../parts/states";
import { jobStep, jobTitle } from "../../text/say";

/** How a job that was started here goes on. */
export function JobLine({ job }: { job: Job }) {
  const { t } = useTranslation();
  const cancel = useCommand("queue.cancel");
  return (
    <div className="flex items-center gap-3 rounded-md border border-line bg-page px-3 py-2">
      <div className="flex min-w-0 grow flex-col gap-1.5">
        <div className="flex justify-between gap-3 text-sm">
          <span className="truncate text-text">{jobStep(job) || t(`queue.states.${job.state}`)}</span>
          <span className="numeric text-quiet">{job.secs_left === undefined ? "" : t("queue.left", { time: waitText(job.secs_left) })}</span>
        </div>
        <Progress done={job.done} of={job.of} label={jobTitle(job) || t("queue.progress")} />
      </div>
      <Button size="sm" busy={cancel.busy} onClick={() => void cancel.run({ id: job.id })}>
        {t("common.stop")}
      </Button>
    </div>
  );
}
