import { Copy, Eye, EyeOff } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useCommand } from "../../api/useCommand";
import { toast } from "../../app/toasts";
import { Button } from "../../parts/Button";
import { toClipboard } from "../../parts/browser";
import { Card } from "../../parts/states";

/** What lets machines in: shown only when asked for, and kept nowhere on the page. */
export function JoinLine() {
  const { t } = useTranslation();
  const line = useCommand("cluster.line");
  const [shown, setShown] = useState<string>();
  const copy = async (): Promise<void> => {
    const command = shown ?? (await line.run({}))?.command;
    if (command === undefined) return;
    if (await toClipboard(command)) toast("good", t("cluster.copied"));
    else setShown(command);
  };
  return (
    <Card className="flex flex-col gap-3 p-5">
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0 grow basis-80">
          <h2 className="font-medium text-loud">{t("cluster.join")}</h2>
          <p className="text-sm text-quiet">{t("cluster.join_hint")}</p>
        </div>
        <div className="flex gap-2">
          <Button icon={shown === undefined ? Eye : EyeOff} busy={line.busy} aria-expanded={shown !== undefined} onClick={async () => setShown(shown === undefined ? (await line.run({}))?.command : undefined)}>
            {shown === undefined ? t("cluster.join_show") : t("cluster.join_hide")}
          </Button>
          <Button icon={Copy} busy={line.busy} onClick={() => void copy()}>
            {t("cluster.join_copy")}
          </Button>
        </div>
      </div>
      {shown !== undefined && (
        <textarea readOnly aria-label={t("cluster.join")} rows={3} value={shown} className="w-full resize-none rounded-md border border-line-strong bg-page px-2.5 py-1.5 font-mono text-xs break-all text-loud" onFocus={(event) => event.currentTarget.select()} />
      )}
    </Card>
  );
}
