import { RadioGroup } from "radix-ui";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useQuery } from "../../api/queries";
import type { Preset, ProjectState } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Select, TextField } from "../../parts/Field";
import { cx } from "../../parts/cx";

const PRESETS: { value: Preset; ratio: string; width: string; height: string }[] = [
  { value: "cinema", ratio: "2.39 : 1", width: "w-12", height: "h-5" },
  { value: "wide", ratio: "16 : 9", width: "w-11", height: "h-6" },
  { value: "square", ratio: "1 : 1", width: "w-7", height: "h-7" },
  { value: "tall", ratio: "9 : 16", width: "w-5", height: "h-8" },
];
const RATES = ["24", "25", "30", "50", "60", "24000/1001", "30000/1001"];
const LANGUAGES = ["en", "de", "fr", "es", "it", "pt", "nl", "pl", "ja", "zh", "ko", "ar", "hi"];

const rateText = (rate: string): string => {
  const [num, den] = rate.split("/").map(Number);
  return den ? ((num ?? 0) / den).toFixed(3) : rate;
};

/** A new project: its name, the shape of its frame, its rate, its language. */
export function NewProject({ open, onClose, onMade }: { open: boolean; onClose: () => void; onMade: (state: ProjectState) => void }) {
  const { t, i18n } = useTranslation();
  const [name, setName] = useState("");
  const [preset, setPreset] = useState<Preset>("wide");
  const [fps, setFps] = useState("24");
  const [language, setLanguage] = useState(i18n.language);
  const [where, setWhere] = useState("");
  const create = useCommand("project.create");
  const folder = useQuery("app.state", {}).data?.projects_folder;
  const names = new Intl.DisplayNames([i18n.language], { type: "language" });
  const make = async (): Promise<void> => {
    const wanted = name.trim();
    if (wanted === "") return;
    const state = await create.run({ name: wanted, preset, fps, language, ...(where.trim() === "" ? {} : { folder: where.trim() }) });
    if (!state) return;
    setName("");
    onClose();
    onMade(state);
  };
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={t("new.title")}
      actions={
        <>
          <Button onClick={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" busy={create.busy} disabled={name.trim() === ""} onClick={() => void make()}>
            {t("new.create")}
          </Button>
        </>
      }
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <TextField label={t("new.name")} value={name} placeholder={t("new.name_hint")} autoFocus onCommit={setName} onTyped={setName} onPause={false} />
        <div>
          <span className="text-sm text-quiet" id="new-frame">
            {t("new.frame")}
          </span>
          <RadioGroup.Root value={preset} onValueChange={(next) => setPreset(next as Preset)} aria-labelledby="new-frame" className="mt-1 grid grid-cols-2 gap-2 sm:grid-cols-4">
            {PRESETS.map((each) => (
              <RadioGroup.Item
                key={each.value}
                value={each.value}
                className="flex flex-col items-center gap-2 rounded-md border border-line-strong bg-page px-2 py-3 hover:bg-hover data-[state=checked]:border-accent data-[state=checked]:bg-accent-wash"
              >
                <span className="flex h-8 items-center" aria-hidden>
                  <span className={cx("rounded-xs border border-quiet", each.width, each.height)} />
                </span>
                <span className="text-center">
                  <span className="block text-sm text-loud">{t(`new.presets.${each.value}`)}</span>
                  <span className="numeric block text-xs text-quiet">{each.ratio}</span>
                </span>
              </RadioGroup.Item>
            ))}
          </RadioGroup.Root>
        </div>
        <div className="grid grid-cols-2 gap-3">
          <Select label={t("film.fps")} value={fps} choices={RATES.map((rate) => ({ value: rate, label: rateText(rate) }))} onChange={setFps} />
          <Select label={t("film.language")} value={language} choices={LANGUAGES.map((tag) => ({ value: tag, label: names.of(tag) ?? tag }))} onChange={setLanguage} />
        </div>
        <TextField label={t("new.folder")} value={where} placeholder={folder} onCommit={setWhere} onTyped={setWhere} onPause={false} />
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}
