import { ImagePlus, X } from "lucide-react";
import { type DragEvent, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { said, upload } from "../../api/client";
import type { Json, ProjectState } from "../../api/shapes";
import { toast } from "../../app/toasts";
import { Button, IconButton } from "../../parts/Button";
import { Thumb } from "../../parts/Thumb";
import { cx } from "../../parts/cx";
import { useStory } from "./context";

const MOST = 16;

interface Props {
  state: ProjectState;
  kind: "cast" | "place";
  id: string;
  name: string;
  files: string[];
}

/** Pictures of somebody or somewhere: dropped or chosen, shown, taken off. */
export function References({ state, kind, id, name, files }: Props) {
  const { t } = useTranslation();
  const { edit, script, project } = useStory();
  const picker = useRef<HTMLInputElement>(null);
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(false);
  const put = (list: string[]): void => edit({ edit: "set", kind, id, field: "/references", value: (list.length > 0 ? list : null) satisfies Json });
  const add = async (chosen: File[]): Promise<void> => {
    setBusy(true);
    for (const file of chosen) {
      if (!file.type.startsWith("image/")) {
        toast("warn", t("references.no_picture", { name: file.name }));
        continue;
      }
      try {
        const brought = await upload(project, file);
        // As it is by now: others may have come while this one was on its way.
        const now = script();
        const row = kind === "cast" ? now?.cast?.find((each) => each.name === id) : now?.places?.find((each) => each.id === id);
        const had = row?.references ?? [];
        if (had.length >= MOST) toast("warn", t("references.full", { count: MOST }));
        else if (!had.includes(brought.name)) put([...had, brought.name]);
      } catch (error) {
        toast("bad", t("media.refused", { name: file.name, why: said(error) }));
      }
    }
    setBusy(false);
  };
  const drag = {
    onDragOver: (event: DragEvent): void => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      event.stopPropagation();
      event.dataTransfer.dropEffect = "copy";
      setOver(true);
    },
    onDragLeave: () => setOver(false),
    onDrop: (event: DragEvent): void => {
      event.preventDefault();
      event.stopPropagation();
      setOver(false);
      void add([...event.dataTransfer.files]);
    },
  };
  return (
    <div role="group" aria-label={t("references.of", { name })} className={cx("flex flex-col gap-1.5 rounded-md", over && "outline-2 outline-offset-2 outline-accent")} {...drag}>
      <div className="flex min-h-7 items-center justify-between gap-2">
        <span className="text-sm text-quiet">{t("references.label")}</span>
        <Button size="sm" look="quiet" icon={ImagePlus} busy={busy} onClick={() => picker.current?.click()}>
          {t("references.add")}
        </Button>
      </div>
      {files.length === 0 ? (
        <p className="rounded-md border border-dashed border-line-strong px-3 py-2 text-xs text-quiet">{t("references.hint")}</p>
      ) : (
        <ul className="flex flex-wrap gap-2">
          {files.map((file) => (
            <li key={file} className="relative">
              <Thumb hash={state.pictures[file]?.hash} width={160} alt={t("references.picture", { name, file })} className="size-18 rounded-md" />
              <IconButton icon={X} size="sm" label={t("references.remove", { file })} className="absolute top-0.5 right-0.5 size-5! bg-film/75 text-[#fff]! hover:bg-film" onClick={() => put(files.filter((each) => each !== file))} />
            </li>
          ))}
        </ul>
      )}
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        tabIndex={-1}
        aria-hidden
        accept="image/*"
        onChange={(event) => {
          const chosen = [...(event.target.files ?? [])];
          event.target.value = "";
          void add(chosen);
        }}
      />
    </div>
  );
}
