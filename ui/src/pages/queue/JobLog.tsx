import { Copy } from "lucide-react";
import { useEffect, useMemo, useRef } from "react";
import { useTranslation } from "react-i18next";
import { invalidate, useQuery } from "../../api/queries";
import type { Job } from "../../api/shapes";
import { useSession } from "../../app/session";
import { Button } from "../../parts/Button";
import { toClipboard } from "../../parts/browser";
import { Dialog } from "../../parts/Dialog";
import { SkeletonRows } from "../../parts/states";
import { jobTitle } from "../../text/say";

/** What a job wrote; goes on while it runs. */
export function JobLog({ job, onClose }: { job: Job; onClose: () => void }) {
  const { t } = useTranslation();
  const kept = useQuery("queue.log", { id: job.id });
  const live = useSession((session) => session.logs[job.id]);
  // What the job wrote since is asked for as a whole, so that no line is missed or shown twice.
  const count = live?.length ?? 0;
  useEffect(() => {
    if (count > 0) invalidate("queue.log", { id: job.id });
  }, [count, job.id]);
  const text = useMemo(() => (kept.data ?? []).join("\n"), [kept.data]);
  const end = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const element = end.current;
    if (element) element.scrollTop = element.scrollHeight;
  }, [text]);
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={t("queue.log_of", { title: jobTitle(job) })}
      actions={
        <Button icon={Copy} onClick={() => void toClipboard(text)}>
          {t("queue.copy_log")}
        </Button>
      }
    >
      {kept.loading ? (
        <SkeletonRows rows={5} className="h-4" />
      ) : (
        <pre ref={end} tabIndex={0} aria-label={t("queue.log_of", { title: jobTitle(job) })} className="max-h-[55vh] min-h-40 overflow-auto rounded-md border border-line bg-back p-3 font-mono text-xs leading-5 whitespace-pre-wrap text-text">
          {text || t("queue.no_log")}
        </pre>
      )}
    </Dialog>
  );
}
