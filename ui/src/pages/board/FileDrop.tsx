import { useState } from "react";
import { useTranslation } from "react-i18next";
import { said } from "../../api/client";
import { toast } from "../../app/toasts";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { bytesText } from "../../parts/figures";
import { type MediaUse, dropOn, usesOf } from "./media";

interface Asked {
  shot: string;
  file: File;
  uses: MediaUse[];
}

export interface FileDropState {
  asked: Asked | undefined;
  /** A file for a shot: put there at once when it can be only one thing. */
  ask: (shot: string, file: File) => void;
  use: (asked: Asked, use: MediaUse) => void;
  cancel: () => void;
}

export function useFileDrop(project: string): FileDropState {
  const { t, i18n } = useTranslation();
  const [waiting, setWaiting] = useState<Asked[]>([]);
  const asked = waiting[0];
  const use = (wanted: Asked, as: MediaUse): void => {
    setWaiting((list) => list.filter((each) => each !== wanted));
    const { file, shot } = wanted;
    if (file.size > 64_000_000) toast("info", t("media.bringing", { name: file.name, size: bytesText(file.size, i18n.language) }));
    dropOn(project, shot, file, as).then(
      (placed) => toast(placed ? "good" : "warn", placed ? t("media.placed", { name: file.name, shot }) : t("media.no_line", { shot })),
      (error: unknown) => toast("bad", t("media.refused", { name: file.name, why: said(error) })),
    );
  };
  return {
    asked,
    use,
    cancel: () => setWaiting((list) => list.slice(1)),
    ask: (shot, file) => {
      const uses = usesOf(file.type, file.name);
      const [only] = uses;
      if (only === undefined) toast("warn", t("media.unknown", { name: file.name }));
      else if (uses.length === 1) use({ shot, file, uses }, only);
      else setWaiting((list) => [...list, { shot, file, uses }]);
    },
  };
}

/** Asks what a sound is to be. */
export function FileDrop({ drop }: { drop: FileDropState }) {
  const { t } = useTranslation();
  const { asked } = drop;
  return (
    <Dialog open={asked !== undefined} onClose={drop.cancel} title={t("media.as_what")} about={asked?.file.name}>
      <div className="flex flex-col gap-2">
        {asked?.uses.map((use) => (
          <Button key={use} className="h-auto! justify-start py-2.5 text-left whitespace-normal" onClick={() => drop.use(asked, use)}>
            <span>
              <span className="block text-loud">{t(`media.uses.${use}`)}</span>
              <span className="block text-sm text-quiet">{t(`media.hints.${use}`)}</span>
            </span>
          </Button>
        ))}
      </div>
    </Dialog>
  );
}
