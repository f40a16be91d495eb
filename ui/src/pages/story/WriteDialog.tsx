import { Sparkles } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { flush } from "../../api/edits";
import { invalidate, useQuery } from "../../api/queries";
import type { Job, ProjectState } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { go } from "../../app/route";
import { toast } from "../../app/toasts";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { TextField } from "../../parts/Field";
import { commitDrafts } from "../../parts/drafts";
import { fpsOf } from "../../parts/figures";
import { useJob } from "../../parts/useJob";
import { JobLine } from "./JobLine";
import { typedLength } from "./LengthInput";
import { jobError } from "../../text/say";

interface Props {
  open: boolean;
  state: ProjectState;
  onClose: () => void;
  onReady: () => void;
}

const kept = (project: string): string => `longtake.premise ${project}`;

/** From a premise to a script: it comes as a proposal, nothing is overwritten. */
export function WriteDialog({ open, state, onClose, onReady }: Props) {
  const { t } = useTranslation();
  const { project, script } = state;
  const [premise, setPremise] = useState(() => localStorage.getItem(kept(project)) ?? state.premise ?? script.logline ?? "");
  const [length, setLength] = useState(script.length ?? "1 min");
  const write = useCommand("story.write");
  const ready = useQuery("app.state", {}).data?.ready.language_model;
  const { job, follow } = useJob((ended: Job) => {
    if (ended.state !== "done") {
      if (ended.state === "failed") toast("bad", jobError(ended) ?? t("common.failed"));
      return;
    }
    invalidate("proposal.get", { project });
    onReady();
  });
  const secs = typedLength(length, fpsOf(script.fps));
  const start = async (): Promise<void> => {
    localStorage.setItem(kept(project), premise);
    commitDrafts();
    await flush();
    const started = await write.run({ project, premise: premise.trim(), length: secs ?? length });
    if (started) follow(started.job);
  };
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={t("write.title")}
      about={t("write.about")}
      wide
      actions={
        <>
          <Button onClick={onClose}>{job ? t("write.in_background") : t("common.cancel")}</Button>
          <Button look="primary" icon={Sparkles} busy={write.busy || job !== undefined} disabled={premise.trim() === "" || secs === undefined || ready === false} onClick={() => void start()}>
            {t("write.start")}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        {ready === false && (
          <div className="flex flex-wrap items-center justify-between gap-3 rounded-md bg-warn-wash px-3 py-2 text-warn">
            <span>{t("write.no_model")}</span>
            <Button size="sm" onClick={() => go("models")}>
              {t("write.get_model")}
            </Button>
          </div>
        )}
        <TextField label={t("write.premise")} multiline rows={8} value={premise} placeholder={t("write.premise_hint")} onCommit={setPremise} onTyped={setPremise} />
        <div className="w-40">
          <TextField label={t("film.length")} value={length} onCommit={setLength} onTyped={setLength} check={(text) => (typedLength(text, 24) ? undefined : t("shot.length_fault"))} />
        </div>
        {job && <JobLine job={job} />}
      </div>
    </Dialog>
  );
}
