import { Monitor, Moon, Sun } from "lucide-react";
import { useTranslation } from "react-i18next";
import { TEXT_SIZES, type Language, type Theme, choose, usePrefs } from "../../app/prefs";
import { Segments } from "../../parts/controls";
import { Group, Setting } from "./Group";

/** Language, theme, size of text: seen at once. */
export function Looks() {
  const { t } = useTranslation();
  const prefs = usePrefs();
  const icon = (Icon: typeof Sun) => <Icon className="size-3.5" aria-hidden />;
  return (
    <Group title={t("settings.looks")}>
      <Setting label={t("settings.language")}>
        <Segments<Language>
          label={t("settings.language")}
          value={prefs.language}
          choices={[
            { value: "en", label: "English" },
            { value: "de", label: "Deutsch" },
          ]}
          onChange={(language) => choose("language", language)}
        />
      </Setting>
      <Setting label={t("settings.theme")}>
        <Segments<Theme>
          label={t("settings.theme")}
          value={prefs.theme}
          choices={[
            { value: "dark", label: t("settings.themes.dark"), icon: icon(Moon) },
            { value: "light", label: t("settings.themes.light"), icon: icon(Sun) },
            { value: "system", label: t("settings.themes.system"), icon: icon(Monitor) },
          ]}
          onChange={(theme) => choose("theme", theme)}
        />
      </Setting>
      <Setting label={t("settings.text_size")} hint={t("settings.text_size_hint")}>
        <Segments
          label={t("settings.text_size")}
          value={String(prefs.text_size)}
          choices={TEXT_SIZES.map((size) => ({ value: String(size), label: `${Math.round(size * 100)} %` }))}
          onChange={(size) => choose("text_scale", Number(size))}
        />
      </Setting>
    </Group>
  );
}
