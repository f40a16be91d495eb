import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "./Button";
import { cx } from "./cx";

interface DialogProps {
  open: boolean;
  onClose: () => void;
  title: string;
  about?: ReactNode;
  children: ReactNode;
  actions?: ReactNode;
  wide?: boolean;
}

export function Dialog({ open, onClose, title, about, children, actions, wide }: DialogProps) {
  const { t } = useTranslation();
  return (
    <Radix.Root open={open} onOpenChange={(now) => !now && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-film/60" />
        <Radix.Content
          onOpenAutoFocus={(event) => {
            const content = event.currentTarget as HTMLElement;
            const first = content.querySelector<HTMLElement>("[data-body] :is(input, textarea, select, [role='radio'][data-state='checked'])");
            event.preventDefault();
            (first ?? content).focus();
          }}
          {...(about ? {} : { "aria-describedby": undefined })}
          className={cx(
            "fixed top-1/2 left-1/2 z-40 flex max-h-[90vh] w-[calc(100vw-2rem)] -translate-x-1/2 -translate-y-1/2 flex-col",
            "rounded-lg border border-line-strong bg-panel shadow-float outline-none",
            wide ? "max-w-3xl" : "max-w-lg",
          )}
        >
          <div className="flex shrink-0 items-start justify-between gap-4 px-5 pt-4 pb-3">
            <div className="min-w-0">
              <Radix.Title className="text-lg font-semibold text-loud">{title}</Radix.Title>
              {about && <Radix.Description className="mt-0.5 text-sm text-quiet">{about}</Radix.Description>}
            </div>
            <IconButton icon={X} label={t("common.close")} onClick={onClose} size="sm" />
          </div>
          <div data-body="" className="min-h-0 flex-1 overflow-y-auto px-5 pb-5">{children}</div>
          {actions && (
            <div className="flex shrink-0 flex-wrap justify-end gap-2 border-t border-line px-5 py-3">{actions}</div>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
