import { Sparkles } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { flush } from "../../api/edits";
import { invalidate } from "../../api/queries";
import { useCommand } from "../../api/useCommand";
import { toast } from "../../app/toasts";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { TextField } from "../../parts/Field";
import { commitDrafts } from "../../parts/drafts";
import { useJob } from "../../parts/useJob";
import { JobLine } from "./JobLine";
import type { RewriteTarget } from "./context";
import { jobError } from "../../text/say";

interface Props {
  target: RewriteTarget | undefined;
  project: string;
  onClose: () => void;
  onReady: () => void;
}

/** Ask for a scene, a shot, a line or a text to be written anew; it comes as a proposal. */
export function RewriteDialog({ target, project, onClose, onReady }: Props) {
  const { t } = useTranslation();
  const [wish, setWish] = useState("");
  const rewrite = useCommand("story.rewrite");
  useEffect(() => setWish(""), [target]);
  const { job, follow } = useJob((ended) => {
    if (ended.state !== "done") {
      if (ended.state === "failed") toast("bad", jobError(ended) ?? t("common.failed"));
      return;
    }
    invalidate("proposal.get", { project });
    onReady();
  });
  const start = async (): Promise<void> => {
    if (!target) return;
    commitDrafts();
    await flush();
    const { kind, id, field } = target;
    const started = await rewrite.run({
      project,
      target: { kind, id, ...(field === undefined ? {} : { field }) },
      ...(wish.trim() === "" ? {} : { wish: wish.trim() }),
    });
    if (started) follow(started.job);
  };
  const wishes = [t("rewrite.shorter"), t("rewrite.plainer"), t("rewrite.vivid"), t("rewrite.spoken")];
  return (
    <Dialog
      open={target !== undefined}
      onClose={onClose}
      title={t("rewrite.title")}
      about={target?.title.slice(0, 140)}
      actions={
        <>
          <Button onClick={onClose}>{job ? t("write.in_background") : t("common.cancel")}</Button>
          <Button look="primary" icon={Sparkles} busy={rewrite.busy || job !== undefined} onClick={() => void start()}>
            {t("rewrite.start")}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-3">
        <TextField label={t("rewrite.wish")} multiline rows={3} value={wish} placeholder={t("rewrite.wish_hint")} onCommit={setWish} onTyped={setWish} />
        <div className="flex flex-wrap gap-1.5">
          {wishes.map((each) => (
            <Button key={each} size="sm" onClick={() => setWish(each)}>
              {each}
            </Button>
          ))}
        </div>
        {job && <JobLine job={job} />}
      </div>
    </Dialog>
  );
}
