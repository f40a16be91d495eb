import { Network, Plug } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { put } from "../../api/queries";
import { useCommand } from "../../api/useCommand";
import { Button } from "../../parts/Button";
import { TextField } from "../../parts/Field";
import { Switch } from "../../parts/controls";
import { Card, Empty } from "../../parts/states";

/** No cluster is known: start one here, or use one that runs. */
export function StartCluster() {
  const { t } = useTranslation();
  const start = useCommand("cluster.start");
  const use = useCommand("cluster.use");
  const [open, setOpen] = useState(false);
  const [host, setHost] = useState("");
  const [line, setLine] = useState("");
  return (
    <>
      <Empty icon={Network} title={t("cluster.none")} className="py-6">
        {t("cluster.none_hint")}
      </Empty>
      <div className="grid gap-4 md:grid-cols-2">
        <Card className="flex flex-col gap-4 p-5">
          <h2 className="font-medium text-loud">{t("cluster.start_title")}</h2>
          <Switch label={t("cluster.open")} hint={t("cluster.open_hint")} on={open} onChange={setOpen} />
          {open && <TextField label={t("cluster.advertise")} value={host} placeholder={t("cluster.advertise_placeholder")} onPause={false} onCommit={setHost} onTyped={setHost} />}
          <div className="mt-auto">
            <Button
              look="primary"
              icon={Network}
              busy={start.busy}
              onClick={async () => {
                const state = await start.run({ open, ...(open && host.trim() !== "" ? { advertise: host.trim() } : {}) });
                if (state) put("cluster.state", {}, state);
              }}
            >
              {t("cluster.start")}
            </Button>
          </div>
        </Card>
        <Card className="p-5">
          <form
            className="flex h-full flex-col gap-4"
            onSubmit={async (event) => {
              event.preventDefault();
              const state = await use.run({ cluster: line.trim() });
              if (!state) return;
              setLine("");
              put("cluster.state", {}, state);
            }}
          >
            <h2 className="font-medium text-loud">{t("cluster.use_title")}</h2>
            <TextField label={t("cluster.use_line")} type="password" value={line} hint={t("cluster.use_hint")} onPause={false} onCommit={setLine} onTyped={setLine} />
            {use.error && (
              <p role="alert" className="text-sm break-words text-bad">
                {use.error}
              </p>
            )}
            <div className="mt-auto">
              <Button type="submit" icon={Plug} busy={use.busy} disabled={line.trim() === ""}>
                {t("cluster.use")}
              </Button>
            </div>
          </form>
        </Card>
      </div>
    </>
  );
}
