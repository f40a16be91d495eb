import { LifeBuoy } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useCommand } from "../../api/useCommand";
import { useOffer } from "../../app/commands";
import { Button } from "../../parts/Button";
import { Group, Setting } from "./Group";

/** A file for whoever looks for a fault. */
export function Help() {
  const { t } = useTranslation();
  const bundle = useCommand("diagnostics.bundle");
  const [path, setPath] = useState<string>();
  const make = async (): Promise<void> => {
    const made = await bundle.run({});
    if (made) setPath(made.path);
  };
  useOffer("help", [{ id: "help.bundle", title: t("settings.bundle"), group: t("pages.settings"), icon: LifeBuoy, run: () => void make() }]);
  return (
    <Group title={t("settings.help")}>
      <Setting label={t("settings.bundle")} hint={path ? t("settings.bundle_made", { path }) : t("settings.bundle_hint")}>
        <Button icon={LifeBuoy} busy={bundle.busy} onClick={() => void make()}>
          {t("settings.bundle_make")}
        </Button>
      </Setting>
    </Group>
  );
}
