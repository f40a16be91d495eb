import { Boxes, Download, RefreshCw } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { useQuery } from "../../api/queries";
import type { Model } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { useOffer } from "../../app/commands";
import { Button } from "../../parts/Button";
import { bytesText } from "../../parts/figures";
import { Empty, Failed, PageHead, SkeletonRows } from "../../parts/states";
import { ModelRow } from "./ModelRow";

const here = (model: Model): boolean => model.state === "installed" || model.state === "unverified";

/** Models that are here or can be had. */
export default function Models() {
  const { t, i18n } = useTranslation();
  const { data, error, again } = useQuery("models.list", {});
  const app = useQuery("app.state", {}).data;
  const pull = useCommand("models.pull");
  const models = useMemo(() => data ?? [], [data]);
  const lacking = models.filter((model) => model.default && !here(model) && model.job === undefined);
  const used = models.reduce((sum, model) => sum + model.bytes_here, 0);
  const kinds = useMemo(() => [...new Set(models.map((model) => model.kind))], [models]);
  const fetchDefaults = async (): Promise<void> => {
    for (const model of lacking) await pull.run({ id: model.id });
    again();
  };
  useOffer("models", [
    { id: "models.defaults", title: t("models.get_defaults"), group: t("pages.models"), icon: Download, enabled: lacking.length > 0, run: () => void fetchDefaults() },
    { id: "models.again", title: t("models.again"), group: t("pages.models"), icon: RefreshCw, run: again },
  ]);
  const kindName = (kind: string): string => i18n.exists(`models.kinds.${kind}`) ? t(`models.kinds.${kind as "text"}`) : kind;
  return (
    <div className="h-full overflow-y-auto">
      <div className="mx-auto flex max-w-5xl flex-col gap-6 px-8 py-8">
        <PageHead title={t("pages.models")} about={app && t("models.about", { folder: app.models_folder })}>
          {data && (
            <span className="numeric mr-2 text-sm text-quiet">
              {t("models.disk", { used: bytesText(used, i18n.language), free: bytesText(app?.machine.free_disk_bytes ?? 0, i18n.language) })}
            </span>
          )}
          {lacking.length > 0 && (
            <Button look="primary" icon={Download} busy={pull.busy} onClick={() => void fetchDefaults()}>
              {t("models.get_defaults_size", { size: bytesText(lacking.reduce((sum, model) => sum + model.bytes - model.bytes_here, 0), i18n.language) })}
            </Button>
          )}
        </PageHead>
        {error && !data && <Failed what={error} again={again} />}
        {!data && !error && <SkeletonRows rows={4} className="h-24" />}
        {data && models.length === 0 && <Empty icon={Boxes} title={t("models.none")}>{t("models.none_hint")}</Empty>}
        {kinds.map((kind) => (
          <section key={kind} aria-label={kindName(kind)}>
            <h2 className="mb-2 text-sm text-quiet">{kindName(kind)}</h2>
            <ul className="flex flex-col gap-2">
              {models
                .filter((model) => model.kind === kind)
                .map((model) => (
                  <ModelRow key={model.id} model={model} />
                ))}
            </ul>
          </section>
        ))}
      </div>
    </div>
  );
}
