import { Eraser } from "lucide-react";
import { useTranslation } from "react-i18next";
import { invalidate } from "../../api/queries";
import type { SettingsState } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { toast } from "../../app/toasts";
import { Button } from "../../parts/Button";
import { TextField } from "../../parts/Field";
import { NumberInput } from "../../parts/NumberInput";
import { bytesText } from "../../parts/figures";
import { Progress } from "../../parts/states";
import { Group } from "./Group";
import { useSetting } from "./useSetting";

const GB = 1e9;

/** Where things lie, and how much room they take. */
export function Storage({ state }: { state: SettingsState }) {
  const { t, i18n } = useTranslation();
  const { set } = useSetting();
  const prune = useCommand("cache.prune");
  const size = (bytes: number): string => bytesText(bytes, i18n.language);
  const { settings } = state;
  return (
    <Group title={t("settings.storage")}>
      <TextField label={t("settings.projects_folder")} value={settings.projects_folder} onPause={false} onCommit={(value) => void set("projects_folder", value.trim() === "" ? null : value.trim())} />
      <dl className="grid gap-x-6 gap-y-3 text-sm sm:grid-cols-2">
        {[
          [t("settings.models_folder"), `${state.models_folder} · ${size(state.models_bytes)}`],
          [t("settings.cache_folder"), state.cache_folder],
          [t("settings.data_folder"), state.data_folder],
        ].map(([label, value]) => (
          <div key={label} className="min-w-0">
            <dt className="text-quiet">{label}</dt>
            <dd className="break-all text-text">{value}</dd>
          </div>
        ))}
      </dl>
      <div className="flex flex-wrap items-end gap-x-6 gap-y-3 border-t border-line pt-4">
        <div className="min-w-48 grow">
          <div className="mb-2 flex justify-between text-sm">
            <span className="text-quiet">{t("settings.cache")}</span>
            <span className="numeric text-text">{t("settings.cache_used", { used: size(state.cache_bytes), cap: size(settings.cache_cap_bytes) })}</span>
          </div>
          <Progress done={state.cache_bytes} of={settings.cache_cap_bytes} label={t("settings.cache")} className="h-1.5" />
        </div>
        <div className="w-32">
          <NumberInput label={t("settings.cache_cap")} unit="GB" value={settings.cache_cap_bytes / GB} min={1} max={100_000} step={5} onCommit={(value) => void set("cache_cap_bytes", Math.round(value * GB))} />
        </div>
        <Button
          icon={Eraser}
          busy={prune.busy}
          onClick={async () => {
            const pruned = await prune.run({ to_bytes: 0 });
            if (!pruned) return;
            toast("good", t("settings.cache_pruned", { size: size(pruned.bytes) }));
            invalidate("settings.get");
          }}
        >
          {t("settings.cache_prune")}
        </Button>
      </div>
    </Group>
  );
}
