import { CircleAlert, CircleCheck, Copy, Info, TriangleAlert, X } from "lucide-react";
import { useTranslation } from "react-i18next";
import { IconButton } from "../parts/Button";
import { toClipboard } from "../parts/browser";
import { Dialog } from "../parts/Dialog";
import { cx } from "../parts/cx";
import { whenText } from "../parts/figures";
import { Empty } from "../parts/states";
import { type Toast, type ToastLevel, hideToast, useToasts } from "./toasts";

const LOOKS: Record<ToastLevel, { icon: typeof Info; colour: string }> = {
  good: { icon: CircleCheck, colour: "text-good" },
  info: { icon: Info, colour: "text-quiet" },
  warn: { icon: TriangleAlert, colour: "text-warn" },
  bad: { icon: CircleAlert, colour: "text-bad" },
};

function Message({ toast }: { toast: Toast }) {
  const { t, i18n } = useTranslation();
  const { icon: Icon, colour } = LOOKS[toast.level];
  return (
    <>
      <Icon className={cx("mt-0.5 size-4 shrink-0", colour)} aria-hidden />
      <div className="min-w-0 grow">
        <p className="max-h-40 overflow-y-auto break-words whitespace-pre-wrap text-loud">{toast.message}</p>
        {!toast.shown && <p className="text-xs text-quiet">{whenText(toast.at, i18n.language)}</p>}
      </div>
      {toast.kept !== undefined && (
        <IconButton
          icon={Copy}
          size="sm"
          label={t("toasts.copy_kept")}
          onClick={() => void toClipboard(toast.kept ?? "")}
        />
      )}
    </>
  );
}

/** What was said just now. */
export function Toasts() {
  const { t } = useTranslation();
  const list = useToasts((state) => state.list);
  const shown = list.filter((toast) => toast.shown).slice(0, 3);
  return (
    <div role="status" aria-live="polite" className="pointer-events-none fixed right-4 bottom-4 z-50 flex w-96 max-w-[calc(100vw-2rem)] flex-col gap-2">
      {shown.map((toast) => (
        <div key={toast.id} className="pointer-events-auto flex items-start gap-2.5 rounded-lg border border-line-strong bg-raised p-3 shadow-float">
          <Message toast={toast} />
          <IconButton icon={X} size="sm" className="-mt-1 -mr-1" label={t("toasts.hide")} onClick={() => hideToast(toast.id)} />
        </div>
      ))}
    </div>
  );
}

/** Everything that was said since the page was opened. */
export function Messages({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useTranslation();
  const list = useToasts((state) => state.list);
  return (
    <Dialog open={open} onClose={onClose} title={t("toasts.title")}>
      {list.length === 0 ? (
        <Empty icon={Info} title={t("toasts.none")} className="py-6" />
      ) : (
        <ul className="flex flex-col divide-y divide-line">
          {list.map((toast) => (
            <li key={toast.id} className="flex items-start gap-2.5 py-2.5">
              <Message toast={{ ...toast, shown: false }} />
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
}
