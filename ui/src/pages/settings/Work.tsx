import { useTranslation } from "react-i18next";
import { useQuery } from "../../api/queries";
import type { SettingsState } from "../../api/shapes";
import { choose } from "../../app/prefs";
import { toast } from "../../app/toasts";
import { Select } from "../../parts/Field";
import { Switch } from "../../parts/controls";
import { Group } from "./Group";
import { useSetting } from "./useSetting";

/** How work goes on: devices, narrator, jobs. */
export function Work({ state }: { state: SettingsState }) {
  const { t } = useTranslation();
  const { set } = useSetting();
  const voices = useQuery("voices.list", {}).data ?? [];
  const { settings } = state;
  const notify = async (on: boolean): Promise<void> => {
    if (on && "Notification" in window && Notification.permission === "default") await Notification.requestPermission();
    if (on && "Notification" in window && Notification.permission === "denied") toast("warn", t("settings.notify_denied"));
    choose("notify", on);
  };
  return (
    <Group title={t("settings.work")}>
      <dl className="text-sm">
        <dt className="text-quiet">{t("settings.devices")}</dt>
        <dd className="mt-0.5 text-text">{state.devices.join(", ") || "—"}</dd>
      </dl>
      <div className="max-w-sm">
        <Select
          label={t("settings.narrator")}
          value={settings.narrator ?? ""}
          choices={[{ value: "", label: t("settings.narrator_default") }, ...voices.map((voice) => ({ value: voice.id, label: `${voice.title} (${voice.language})` }))]}
          onChange={(voice) => void set("narrator", voice === "" ? null : voice)}
        />
      </div>
      <Switch label={t("settings.resume_jobs")} hint={t("settings.resume_jobs_hint")} on={settings.resume_jobs} onChange={(on) => void set("resume_jobs", on)} />
      <Switch label={t("settings.draft_first")} hint={t("settings.draft_first_hint")} on={settings.draft_first} onChange={(on) => void set("draft_first", on)} />
      <Switch label={t("settings.notify")} hint={t("settings.notify_hint")} on={settings.notify} onChange={(on) => void notify(on)} />
    </Group>
  );
}
