import { Check, Cpu, Download, HardDrive, MemoryStick, Microchip } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useQuery } from "../../api/queries";
import { go } from "../../app/route";
import { Button } from "../../parts/Button";
import { cx } from "../../parts/cx";
import { bytesText } from "../../parts/figures";
import { Card, Skeleton } from "../../parts/states";

/** What this machine is and can make now. */
export function MachineCard() {
  const { t, i18n } = useTranslation();
  const { data } = useQuery("app.state", {});
  if (!data) return <Skeleton className="h-80" />;
  const { machine, ready } = data;
  const facts = [
    { icon: Cpu, text: machine.cpu, more: t("machine.cores", { count: machine.cores }) },
    { icon: MemoryStick, text: bytesText(machine.memory_bytes, i18n.language), more: t("machine.memory") },
    { icon: HardDrive, text: bytesText(machine.free_disk_bytes, i18n.language), more: t("machine.disk") },
    ...(machine.gpus.length > 0 ? machine.gpus.map((gpu) => ({ icon: Microchip, text: gpu, more: t("machine.gpu") })) : [{ icon: Microchip, text: t("machine.no_gpu"), more: t("machine.no_gpu_hint") }]),
  ];
  const can = [
    { key: "language_model", on: ready.language_model },
    { key: "voice", on: ready.voice },
    { key: "pictures", on: ready.pictures },
    { key: "upscaler", on: ready.upscaler },
  ] as const;
  return (
    <Card className="p-4">
      <h2 className="font-medium text-loud">{machine.host}</h2>
      <ul className="mt-3 flex flex-col gap-2.5">
        {facts.map((fact) => (
          <li key={fact.text + fact.more} className="flex items-start gap-2.5">
            <fact.icon className="mt-0.5 size-4 shrink-0 text-quiet" strokeWidth={1.75} aria-hidden />
            <span className="min-w-0">
              <span className="numeric block break-words text-text">{fact.text}</span>
              <span className="block text-xs text-quiet">{fact.more}</span>
            </span>
          </li>
        ))}
      </ul>
      <h3 className="mt-5 mb-2 text-sm text-quiet">{t("machine.can")}</h3>
      <ul className="flex flex-col gap-1.5">
        {can.map(({ key, on }) => (
          <li key={key} className="flex items-center gap-2.5">
            {on ? <Check className="size-4 text-good" aria-hidden /> : <Download className="size-4 text-quiet" aria-hidden />}
            <span className={cx(on ? "text-text" : "text-quiet")}>{t(`machine.makes.${key}`)}</span>
          </li>
        ))}
      </ul>
      {can.some(({ on }) => !on) && (
        <Button icon={Download} className="mt-4 w-full" onClick={() => go("models")}>
          {t("machine.get")}
        </Button>
      )}
      <p className="mt-4 border-t border-line pt-3 text-xs text-quiet">Longtake {data.version}</p>
    </Card>
  );
}
