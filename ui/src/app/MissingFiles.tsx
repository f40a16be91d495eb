import { FileSearch, FolderSearch, TriangleAlert } from "lucide-react";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { relink, said, upload } from "../api/client";
import { invalidate } from "../api/queries";
import type { MediaFile, ProjectState } from "../api/shapes";
import { useCommand } from "../api/useCommand";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { TextField } from "../parts/Field";
import { toast } from "./toasts";

/** Files that the script names and that are not there. */
export const missingOf = (state: ProjectState): [string, MediaFile][] => Object.entries(state.pictures).filter(([, file]) => file.missing && file.used);

function Row({ project, name, file }: { project: string; name: string; file: MediaFile }) {
  const { t } = useTranslation();
  const input = useRef<HTMLInputElement>(null);
  const [folder, setFolder] = useState("");
  const [busy, setBusy] = useState(false);
  const look = useCommand("media.relink");
  const back = (): void => {
    toast("good", t("missing.found", { name }));
    invalidate("project.state", { project });
  };
  const send = async (chosen: File): Promise<void> => {
    setBusy(true);
    try {
      // Where it is known what the file was, its content decides; else any file takes its place.
      await (file.hash ? relink(project, name, chosen) : upload(project, chosen, name));
      back();
    } catch (error) {
      toast("bad", said(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <li className="flex flex-col gap-2 py-3">
      <div className="flex items-center justify-between gap-3">
        <span className="min-w-0 truncate text-loud" title={name} dir="auto">
          {name}
        </span>
        <Button size="sm" icon={FileSearch} busy={busy} aria-label={t("missing.choose_what", { name })} onClick={() => input.current?.click()}>
          {t("missing.choose")}
        </Button>
        <input
          ref={input}
          type="file"
          hidden
          aria-hidden
          data-missing={name}
          onChange={(event) => {
            const chosen = event.target.files?.[0];
            event.target.value = "";
            if (chosen) void send(chosen);
          }}
        />
      </div>
      {file.hash && (
        <div className="flex items-end gap-2">
          <div className="grow">
            <TextField label={t("missing.folder")} value={folder} placeholder="/media/films" onCommit={setFolder} onTyped={setFolder} />
          </div>
          <Button
            icon={FolderSearch}
            busy={look.busy}
            disabled={folder.trim() === ""}
            aria-label={t("missing.look_what", { name })}
            onClick={async () => {
              if ((await look.run({ project, name, path: folder.trim() })) !== undefined) back();
            }}
          >
            {t("missing.look")}
          </Button>
        </div>
      )}
    </li>
  );
}

/** Says that files of the project are gone, and how to bring them back. */
export function MissingFiles({ state }: { state: ProjectState }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const missing = missingOf(state);
  if (missing.length === 0 && !open) return null;
  return (
    <>
      <button
        type="button"
        onClick={() => setOpen(true)}
        className="inline-flex h-8 items-center gap-1.5 rounded-md bg-warn-wash px-2.5 text-sm whitespace-nowrap text-warn hover:bg-hover"
      >
        <TriangleAlert className="size-4" strokeWidth={1.75} aria-hidden />
        {t("missing.count", { count: missing.length })}
      </button>
      <Dialog open={open} onClose={() => setOpen(false)} title={t("missing.title")} about={t("missing.about")}>
        <ul className="flex flex-col divide-y divide-line">
          {missing.map(([name, file]) => (
            <Row key={name} project={state.project} name={name} file={file} />
          ))}
          {missing.length === 0 && <li className="py-3 text-quiet">{t("missing.none")}</li>}
        </ul>
      </Dialog>
    </>
  );
}
