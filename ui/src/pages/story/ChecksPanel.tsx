import { CircleCheck } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Lint } from "../../api/shapes";
import { Button } from "../../parts/Button";
import { Empty } from "../../parts/states";
import { LintLines } from "./LintLines";
import { reveal } from "./selection";

/** Everything the linter says, with the way to each place. */
export function ChecksPanel({ lint }: { lint: Lint[] }) {
  const { t } = useTranslation();
  if (lint.length === 0) {
    return (
      <Empty icon={CircleCheck} title={t("lint.none")} className="py-6">
        {t("lint.none_hint")}
      </Empty>
    );
  }
  const places = new Map<string, Lint[]>();
  for (const each of lint) {
    const key = `${each.kind ?? "film"}:${each.id ?? ""}`;
    places.set(key, [...(places.get(key) ?? []), each]);
  }
  return (
    <ul className="flex flex-col gap-4">
      {[...places].map(([key, list]) => {
        const { kind, id } = list[0] ?? {};
        return (
          <li key={key} className="flex flex-col gap-1.5">
            {kind === "shot" || kind === "scene" ? (
              <Button size="sm" look="quiet" className="-ml-2 self-start font-medium text-loud" onClick={() => reveal({ kind, id: id ?? "" })}>
                {t(`kinds.${kind}`)} {id}
              </Button>
            ) : (
              <span className="text-sm font-medium text-loud">
                {t(`kinds.${kind ?? "film"}`)} {id}
              </span>
            )}
            <LintLines lint={list} />
          </li>
        );
      })}
    </ul>
  );
}
