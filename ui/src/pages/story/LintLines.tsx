import { CircleAlert, TriangleAlert, Wrench } from "lucide-react";
import { memo } from "react";
import { useTranslation } from "react-i18next";
import type { Lint } from "../../api/shapes";
import { Button } from "../../parts/Button";
import { cx } from "../../parts/cx";
import { useStory } from "./context";
import { say } from "../../text/say";

/** What could be better here, each with the way to mend it. */
export const LintLines = memo(function LintLines({ lint }: { lint: Lint[] }) {
  const { t, i18n } = useTranslation();
  const { edit } = useStory();
  return (
    <ul className="flex flex-col gap-1">
      {lint.map((each) => {
        const Icon = each.level === "fault" ? CircleAlert : TriangleAlert;
        return (
          <li key={`${each.rule}${each.field}${each.what}`} className="flex items-start gap-2 text-sm">
            <Icon className={cx("mt-0.5 size-4 shrink-0", each.level === "fault" ? "text-bad" : "text-warn")} strokeWidth={1.75} aria-label={t(`lint.${each.level}`)} />
            <span className="min-w-0 grow pt-px text-text">
              {say(each.what, each.what_coded)}
              {each.advice && !(each.what_coded && !each.advice_coded && i18n.language !== "en") && <span className="text-quiet"> — {say(each.advice, each.advice_coded)}</span>}
            </span>
            {each.fix && (
              <Button size="sm" look="quiet" icon={Wrench} onClick={() => edit(each.fix?.edit)}>
                {say(each.fix.label, each.fix.label_coded) || t("lint.fix")}
              </Button>
            )}
          </li>
        );
      })}
    </ul>
  );
});
