import type { ReactNode } from "react";
import { Card } from "../../parts/states";

export function Group({ title, about, children }: { title: string; about?: string; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <h2 className="font-medium text-loud">{title}</h2>
      {about && <p className="text-sm text-quiet">{about}</p>}
      <Card className="mt-3 flex flex-col gap-5 p-5">{children}</Card>
    </section>
  );
}

/** A setting with its control at the right. */
export function Setting({ label, hint, children }: { label: string; hint?: ReactNode; children: ReactNode }) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-2">
      <div className="min-w-0">
        <div className="text-loud">{label}</div>
        {hint && <div className="text-xs text-quiet">{hint}</div>}
      </div>
      {children}
    </div>
  );
}
