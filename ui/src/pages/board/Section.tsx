import type { ReactNode } from "react";

/** A part of the details of a shot. */
export function Section({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section aria-label={title} className="flex flex-col gap-3 border-t border-line px-4 py-4">
      <div className="flex min-h-7 items-center justify-between gap-2">
        <h3 className="font-medium text-loud">{title}</h3>
        {aside}
      </div>
      {children}
    </section>
  );
}
