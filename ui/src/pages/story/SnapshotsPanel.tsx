import { Camera, History, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { flush } from "../../api/edits";
import { invalidate } from "../../api/queries";
import type { ProjectState } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { toast } from "../../app/toasts";
import { Button, IconButton } from "../../parts/Button";
import { TextField } from "../../parts/Field";
import { commitDrafts } from "../../parts/drafts";
import { whenText } from "../../parts/figures";
import { Empty } from "../../parts/states";

/** The script as it stood, under names; restoring one can be undone. */
export function SnapshotsPanel({ state }: { state: ProjectState }) {
  const { t, i18n } = useTranslation();
  const [name, setName] = useState("");
  const keep = useCommand("project.snapshot");
  const restore = useCommand("project.restore");
  const forget = useCommand("project.forget_snapshot");
  const { project } = state;
  const take = async (): Promise<void> => {
    commitDrafts();
    await flush();
    const wanted = name.trim() || new Intl.DateTimeFormat(i18n.language, { dateStyle: "medium", timeStyle: "medium" }).format(Date.now());
    const before = state.snapshots.length;
    await keep.run({ project, name: wanted });
    setName("");
    invalidate("project.state", { project });
    if (before === 0) toast("good", t("snapshots.kept", { name: wanted }));
  };
  const back = async (to: string): Promise<void> => {
    commitDrafts();
    await flush();
    if ((await restore.run({ project, name: to })) === undefined) return;
    invalidate("project.state", { project });
    toast("good", t("snapshots.restored", { name: to }));
  };
  return (
    <div className="flex flex-col gap-4">
      <form
        className="flex items-end gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          void take();
        }}
      >
        <div className="grow">
          <TextField label={t("snapshots.name")} value={name} placeholder={t("snapshots.name_hint")} onCommit={setName} onTyped={setName} />
        </div>
        <Button type="submit" icon={Camera} busy={keep.busy}>
          {t("snapshots.take")}
        </Button>
      </form>
      {state.snapshots.length === 0 ? (
        <Empty icon={History} title={t("snapshots.none")} className="py-6">
          {t("snapshots.none_hint")}
        </Empty>
      ) : (
        <ul className="flex flex-col divide-y divide-line">
          {[...state.snapshots]
            .sort((a, b) => b.at_unix_millis - a.at_unix_millis)
            .map((snapshot) => (
              <li key={snapshot.name} className="flex items-center gap-2 py-2">
                <div className="min-w-0 grow">
                  <p className="truncate text-loud">{snapshot.name}</p>
                  <p className="text-xs text-quiet">{whenText(snapshot.at_unix_millis, i18n.language)}</p>
                </div>
                <Button size="sm" busy={restore.busy} onClick={() => void back(snapshot.name)} aria-label={t("snapshots.restore_what", { name: snapshot.name })}>
                  {t("snapshots.restore")}
                </Button>
                <IconButton
                  icon={Trash2}
                  size="sm"
                  label={t("snapshots.forget_what", { name: snapshot.name })}
                  onClick={async () => {
                    if ((await forget.run({ project, name: snapshot.name })) !== undefined) invalidate("project.state", { project });
                  }}
                />
              </li>
            ))}
        </ul>
      )}
    </div>
  );
}
