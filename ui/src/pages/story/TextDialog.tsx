import { ClipboardCopy, FileInput } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { edit as doEdit, flush } from "../../api/edits";
import { useCommand } from "../../api/useCommand";
import { toast } from "../../app/toasts";
import { Button } from "../../parts/Button";
import { toClipboard } from "../../parts/browser";
import { Dialog } from "../../parts/Dialog";
import { commitDrafts } from "../../parts/drafts";

/** The script as one text: to read, to copy, and to bring one in that was written elsewhere. */
export function TextDialog({ open, project, onClose }: { open: boolean; project: string; onClose: () => void }) {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const [shown, setShown] = useState("");
  const write = useCommand("story.text");
  const read = useCommand("story.read", { quiet: true });
  useEffect(() => {
    if (!open) return;
    commitDrafts();
    void flush()
      .then(() => write.run({ project }))
      .then((answer) => {
        setText(answer?.markdown ?? "");
        setShown(answer?.markdown ?? "");
      });
  }, [open, project]);
  const bring = async (): Promise<void> => {
    const script = await read.run({ text });
    if (!script) return;
    doEdit(project, { edit: "import_script", script: script.script });
    toast("good", t("text.taken"));
    onClose();
  };
  return (
    <Dialog
      open={open}
      onClose={onClose}
      wide
      title={t("text.title")}
      about={t("text.about")}
      actions={
        <>
          <Button icon={ClipboardCopy} onClick={() => void toClipboard(text).then((done) => done && toast("info", t("text.copied")))}>
            {t("text.copy")}
          </Button>
          <Button look="primary" icon={FileInput} busy={read.busy} disabled={text.trim() === "" || text === shown} onClick={() => void bring()}>
            {t("text.take")}
          </Button>
        </>
      }
    >
      <textarea
        aria-label={t("text.title")}
        aria-busy={write.busy}
        value={text}
        spellCheck={false}
        dir="auto"
        onChange={(event) => setText(event.target.value)}
        className="h-[50vh] w-full resize-none rounded-md border border-line-strong bg-page p-3 font-mono text-sm text-loud"
      />
      {read.error && (
        <p role="alert" className="mt-2 max-h-40 overflow-y-auto rounded-md bg-bad-wash px-3 py-2 text-sm whitespace-pre-wrap text-bad">
          {read.error}
        </p>
      )}
    </Dialog>
  );
}
