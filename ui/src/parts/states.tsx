import { CircleAlert, type LucideIcon, RotateCw } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./Button";
import { cx } from "./cx";

/** Nothing here yet, and what to do about it. */
export function Empty({ icon: Icon, title, children, actions, className }: { icon: LucideIcon; title: string; children?: ReactNode; actions?: ReactNode; className?: string }) {
  return (
    <div className={cx("flex flex-col items-center gap-3 px-6 py-12 text-center", className)}>
      <div className="flex size-12 items-center justify-center rounded-lg border border-line bg-raised text-quiet">
        <Icon className="size-6" strokeWidth={1.5} aria-hidden />
      </div>
      <h2 className="text-lg font-medium text-loud">{title}</h2>
      {children && <p className="max-w-md text-balance text-quiet">{children}</p>}
      {actions && <div className="mt-2 flex flex-wrap justify-center gap-2">{actions}</div>}
    </div>
  );
}

/** It could not be asked for: what was said, and a way to ask again. */
export function Failed({ what, again }: { what: string; again: () => void }) {
  const { t } = useTranslation();
  return (
    <div role="alert">
      <Empty icon={CircleAlert} title={t("common.failed")} actions={<Button icon={RotateCw} onClick={again}>{t("common.again")}</Button>}>
        {what}
      </Empty>
    </div>
  );
}

export function Skeleton({ className }: { className: string }) {
  return <div className={cx("skeleton", className)} aria-hidden />;
}

/** Bars in the place of `rows` rows, while they are asked for. */
export function SkeletonRows({ rows, className = "h-14" }: { rows: number; className?: string }) {
  const { t } = useTranslation();
  return (
    <div className="flex flex-col gap-2" role="status" aria-label={t("common.loading")}>
      {Array.from({ length: rows }, (_, at) => (
        <Skeleton key={at} className={className} />
      ))}
    </div>
  );
}

export function Progress({ done, of, label, className }: { done: number; of: number; label: string; className?: string }) {
  const part = of > 0 ? Math.min(1, done / of) : undefined;
  return (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={part === undefined ? undefined : Math.round(part * 100)}
      className={cx("h-1 overflow-hidden rounded-full bg-press", className)}
    >
      <div
        className={cx("h-full origin-left rounded-full bg-accent transition-transform duration-300", part === undefined && "skeleton")}
        style={{ transform: `scaleX(${part ?? 1})` }}
      />
    </div>
  );
}

type Tone = "plain" | "good" | "warn" | "bad" | "accent";
const TONES: Record<Tone, string> = {
  plain: "bg-hover text-text",
  good: "bg-good-wash text-good",
  warn: "bg-warn-wash text-warn",
  bad: "bg-bad-wash text-bad",
  accent: "bg-accent-wash text-accent-text",
};

export function Badge({ tone = "plain", icon: Icon, children }: { tone?: Tone; icon?: LucideIcon; children: ReactNode }) {
  return (
    <span className={cx("inline-flex h-5 shrink-0 items-center gap-1 rounded-sm px-1.5 text-xs whitespace-nowrap", TONES[tone])}>
      {Icon && <Icon className="size-3" aria-hidden />}
      {children}
    </span>
  );
}

/** The head of a page: what it is, what can be done. */
export function PageHead({ title, about, children }: { title: string; about?: ReactNode; children?: ReactNode }) {
  return (
    <div className="flex flex-wrap items-end justify-between gap-x-6 gap-y-3">
      <div className="min-w-0">
        <h1 className="text-xl font-semibold tracking-tight text-loud">{title}</h1>
        {about && <p className="mt-0.5 text-quiet">{about}</p>}
      </div>
      {children && <div className="flex flex-wrap items-center gap-2">{children}</div>}
    </div>
  );
}

export function Card({ children, className }: { children: ReactNode; className?: string }) {
  return <section className={cx("rounded-lg border border-line bg-panel", className)}>{children}</section>;
}
