import { CircleAlert, CircleCheck, Info, RotateCw } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useQuery } from "../../api/queries";
import type { Severity } from "../../api/shapes";
import { Button } from "../../parts/Button";
import { cx } from "../../parts/cx";
import { Card, Failed, SkeletonRows } from "../../parts/states";

const LOOKS: Record<Severity, { icon: typeof Info; colour: string }> = {
  wrong: { icon: CircleAlert, colour: "text-bad" },
  advice: { icon: Info, colour: "text-warn" },
  fine: { icon: CircleCheck, colour: "text-good" },
};
const ORDER: Severity[] = ["wrong", "advice", "fine"];

/** What was found on this machine and on the workers, the worst first. */
export function Doctor() {
  const { t } = useTranslation();
  const { data, error, loading, again } = useQuery("cluster.doctor", {});
  const found = [...(data ?? [])].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
  return (
    <section aria-label={t("cluster.findings")}>
      <div className="mb-2 flex items-center justify-between gap-4">
        <h2 className="text-sm text-quiet">{t("cluster.findings")}</h2>
        <Button size="sm" icon={RotateCw} busy={loading} onClick={again}>
          {t("cluster.doctor_again")}
        </Button>
      </div>
      {error && !data && <Failed what={error} again={again} />}
      {!data && !error && <SkeletonRows rows={4} className="h-10" />}
      {data && (
        <Card>
          <ul className="divide-y divide-line">
            {found.map((finding) => {
              const { icon: Icon, colour } = LOOKS[finding.severity];
              return (
                <li key={`${finding.machine} ${finding.found}`} className="flex items-start gap-3 px-4 py-2.5">
                  <Icon className={cx("mt-0.5 size-4 shrink-0", colour)} aria-hidden />
                  <span className="sr-only">{t(`cluster.severities.${finding.severity}`)}</span>
                  <div className="min-w-0">
                    <p className="break-words text-text">
                      <span className="text-loud">{finding.machine === "here" ? t("cluster.this_machine") : finding.machine}</span>: {finding.found}
                    </p>
                    {finding.advice && <p className="text-sm break-words text-quiet">{finding.advice}</p>}
                  </div>
                </li>
              );
            })}
          </ul>
        </Card>
      )}
    </section>
  );
}
