import { ArrowDown, ArrowUp, Ban, CircleAlert, CircleCheck, CircleDashed, CircleStop, LoaderCircle, Pause, Play, RotateCw, ScrollText, TriangleAlert } from "lucide-react";
import { memo } from "react";
import { useTranslation } from "react-i18next";
import { previewUrl } from "../../api/client";
import { invalidate } from "../../api/queries";
import type { Job, JobState } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { go } from "../../app/route";
import { Button, IconButton } from "../../parts/Button";
import { cx } from "../../parts/cx";
import { waitText, whenText } from "../../parts/figures";
import { Progress } from "../../parts/states";
import { review } from "../story/selection";
import { jobError, jobStep, jobTitle } from "../../text/say";

const LOOKS: Record<JobState, { icon: typeof Ban; colour: string }> = {
  waiting: { icon: CircleDashed, colour: "text-quiet" },
  running: { icon: LoaderCircle, colour: "text-accent-text" },
  paused: { icon: Pause, colour: "text-warn" },
  done: { icon: CircleCheck, colour: "text-good" },
  failed: { icon: CircleAlert, colour: "text-bad" },
  cancelled: { icon: Ban, colour: "text-quiet" },
  interrupted: { icon: TriangleAlert, colour: "text-warn" },
};

/** Jobs that show what they make; room for it is kept from the start. */
const MAKES: ReadonlySet<string> = new Set(["render.start", "export.start", "media.proxy"]);

interface Props {
  job: Job;
  onLog: () => void;
  onUp: (() => void) | undefined;
  onDown: (() => void) | undefined;
}

function Outcome({ job }: { job: Job }) {
  const { t, i18n } = useTranslation();
  if (job.state === "failed" || job.state === "interrupted") {
    return <span className={cx("line-clamp-2 break-words", job.state === "failed" ? "text-bad" : "text-warn")}>{jobError(job) ?? t(`queue.states.${job.state}`)}</span>;
  }
  const spent = job.started_unix_millis && job.ended_unix_millis ? waitText((job.ended_unix_millis - job.started_unix_millis) / 1000) : undefined;
  const when = job.ended_unix_millis ? whenText(job.ended_unix_millis, i18n.language) : undefined;
  return <span>{[t(`queue.states.${job.state}`), when, spent && t("queue.took", { time: spent })].filter(Boolean).join(" · ")}</span>;
}

/** One job: what it does, how far it is, what can be done with it. */
export const JobRow = memo(function JobRow({ job, onLog, onUp, onDown }: Props) {
  const { t } = useTranslation();
  const cancel = useCommand("queue.cancel");
  const retry = useCommand("queue.retry");
  const pause = useCommand("queue.pause");
  const resume = useCommand("queue.resume");
  const look = LOOKS[job.state];
  const done = (answer: unknown): void => {
    if (answer !== undefined) invalidate("queue.list");
  };
  const alive = job.state === "running" || job.state === "waiting" || job.state === "paused";
  const { project, result } = job;
  const title = jobTitle(job);
  return (
    <li aria-label={title} className="flex items-center gap-4 rounded-lg border border-line bg-panel px-4 py-3">
      {job.state === "running" && MAKES.has(job.kind) && (
        <span className="flex h-16 w-28 shrink-0 items-center justify-center overflow-hidden rounded-sm bg-film">
          {job.preview && <img src={previewUrl(job.id, job.preview.number)} alt={t("queue.preview_of", { what: job.preview.of.replace(/^\w+:/, "") })} className="max-h-full max-w-full" />}
        </span>
      )}
      <look.icon className={cx("size-5 shrink-0", look.colour, job.state === "running" && "animate-spin")} strokeWidth={1.75} aria-hidden />
      <div className="min-w-0 grow">
        <div className="flex flex-wrap items-baseline justify-between gap-x-4">
          <h3 className="min-w-0 truncate font-medium text-loud">{title}</h3>
          {job.state === "running" && (
            <span className="numeric text-sm text-quiet">
              {[job.of > 0 && `${Math.round((100 * job.done) / job.of)} %`, job.secs_left !== undefined && t("queue.left", { time: waitText(job.secs_left) })].filter(Boolean).join(" · ")}
            </span>
          )}
        </div>
        <div className="text-sm text-quiet">{job.state === "running" || job.state === "paused" ? [jobStep(job) ?? t(`queue.states.${job.state}`), job.device].filter(Boolean).join(" · ") : <Outcome job={job} />}</div>
        {(job.state === "running" || job.state === "paused") && <Progress done={job.done} of={job.of} label={t("queue.progress_of", { title })} className="mt-2" />}
      </div>
      <div className="flex shrink-0 items-center gap-0.5">
        {result?.type === "export" && project && (
          <Button size="sm" onClick={() => go("export", { project, at: result.hash })}>
            {t("queue.show_film")}
          </Button>
        )}
        {result?.type === "proposal" && project && (
          <Button size="sm" onClick={() => {
              review(true);
              go("story", { project });
            }}>
            {t("queue.show_proposal")}
          </Button>
        )}
        {job.state === "waiting" && (
          <>
            <IconButton icon={ArrowUp} size="sm" label={t("queue.earlier", { title })} disabled={!onUp} onClick={onUp} />
            <IconButton icon={ArrowDown} size="sm" label={t("queue.later", { title })} disabled={!onDown} onClick={onDown} />
          </>
        )}
        {(job.state === "running" || job.state === "waiting") && (
          <IconButton icon={Pause} size="sm" label={t("queue.pause", { title })} busy={pause.busy} onClick={async () => done(await pause.run({ id: job.id }))} />
        )}
        {job.state === "paused" && <IconButton icon={Play} size="sm" label={t("queue.resume", { title })} busy={resume.busy} onClick={async () => done(await resume.run({ id: job.id }))} />}
        {alive ? (
          <IconButton icon={CircleStop} size="sm" label={t("queue.cancel", { title })} busy={cancel.busy} onClick={async () => done(await cancel.run({ id: job.id }))} />
        ) : (
          job.state !== "done" && <IconButton icon={RotateCw} size="sm" label={t("queue.retry", { title })} busy={retry.busy} onClick={async () => done(await retry.run({ id: job.id }))} />
        )}
        <IconButton icon={ScrollText} size="sm" label={t("queue.log_of", { title })} onClick={onLog} />
      </div>
    </li>
  );
});
