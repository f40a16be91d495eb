import { useTranslation } from "react-i18next";
import { useQuery } from "../../api/queries";
import { waitText } from "../../parts/figures";
import { Progress } from "../../parts/states";
import { jobTitle } from "../../text/say";

const MADE_THERE: ReadonlySet<string> = new Set(["render.start", "takes.make", "export.start"]);

/** What is made there now, and when it will be finished. */
export function Films() {
  const { t, i18n } = useTranslation();
  const jobs = useQuery("queue.list", {}).data ?? [];
  const job = jobs.find((each) => each.state === "running" && MADE_THERE.has(each.kind));
  if (!job) return <p className="text-sm text-quiet">{t("cluster.nothing_made")}</p>;
  const left = job.secs_left;
  const at = left === undefined ? undefined : new Intl.DateTimeFormat(i18n.language, { timeStyle: "short" }).format(Date.now() + 1000 * left);
  return (
    <div className="flex flex-col gap-1.5">
      <span className="flex justify-between gap-4 text-sm">
        <span className="truncate text-text">{jobTitle(job)}</span>
        <span className="numeric shrink-0 text-quiet">{left === undefined || at === undefined ? t("cluster.no_prediction") : t("cluster.finish", { time: waitText(left), at })}</span>
      </span>
      <Progress done={job.done} of={job.of} label={t("queue.progress_of", { title: jobTitle(job) })} />
    </div>
  );
}
