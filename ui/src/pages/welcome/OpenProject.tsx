import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ProjectState } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { TextField } from "../../parts/Field";

/** Open a project by its folder, as the machine that does the work calls it. */
export function OpenProject({ open, onClose, onOpened }: { open: boolean; onClose: () => void; onOpened: (state: ProjectState) => void }) {
  const { t } = useTranslation();
  const [path, setPath] = useState("");
  const command = useCommand("project.open", { quiet: true });
  const run = async (): Promise<void> => {
    const state = await command.run({ project: path.trim() });
    if (!state) return;
    onClose();
    onOpened(state);
  };
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={t("open.title")}
      about={t("open.about")}
      actions={
        <>
          <Button onClick={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" busy={command.busy} disabled={path.trim() === ""} onClick={() => void run()}>
            {t("open.open")}
          </Button>
        </>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <TextField label={t("open.folder")} value={path} placeholder="/films/Lighthouse.longtake" onCommit={setPath} onTyped={setPath} onPause={false} />
        <button type="submit" hidden />
      </form>
      {command.error && (
        <p role="alert" className="mt-2 rounded-md bg-bad-wash px-3 py-2 text-sm break-words text-bad">
          {command.error}
        </p>
      )}
    </Dialog>
  );
}
