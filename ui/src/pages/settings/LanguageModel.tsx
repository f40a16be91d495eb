import { CircleAlert, CircleCheck, KeyRound, PlugZap } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useQuery } from "../../api/queries";
import type { LlmTest, SettingsState } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { Button } from "../../parts/Button";
import { TextField } from "../../parts/Field";
import { cx } from "../../parts/cx";
import { Group } from "./Group";
import { useSetting } from "./useSetting";

/** Which model writes: one of this machine, or a server. */
export function LanguageModel({ state }: { state: SettingsState }) {
  const { t } = useTranslation();
  const { set, busy } = useSetting();
  const test = useCommand("settings.test_llm");
  const models = useQuery("models.list", {}).data;
  const [answer, setAnswer] = useState<LlmTest>();
  const [key, setKey] = useState("");
  const [keyDraft, setKeyDraft] = useState(0);
  const text = models?.filter((model) => model.kind === "text") ?? [];
  return (
    <Group title={t("settings.llm")} about={t("settings.llm_about")}>
      <TextField
        label={t("settings.llm_where")}
        value={state.settings.llm ?? ""}
        placeholder={t("settings.llm_placeholder")}
        hint={t("settings.llm_hint")}
        list="text-models"
        onPause={false}
        onCommit={(value) => void set("llm", value.trim() === "" ? null : value.trim())}
      />
      <datalist id="text-models">
        {text.map((model) => (
          <option key={model.id} value={model.id}>
            {model.name}
          </option>
        ))}
        <option value="http://127.0.0.1:11434/v1" />
        <option value="http://127.0.0.1:8080/v1" />
      </datalist>
      <form
        className="flex items-end gap-2"
        onSubmit={async (event) => {
          event.preventDefault();
          await set("llm_key", key.trim() === "" ? null : key.trim());
          setKey("");
          setKeyDraft((count) => count + 1);
        }}
      >
        <div className="grow">
          <TextField key={keyDraft} label={t("settings.llm_key")} type="password" value={key} placeholder={state.llm_key_set ? t("settings.llm_key_kept") : t("settings.llm_key_none")} onCommit={setKey} onTyped={setKey} onPause={false} />
        </div>
        <Button type="submit" icon={KeyRound} busy={busy} disabled={key.trim() === "" && !state.llm_key_set}>
          {key.trim() === "" && state.llm_key_set ? t("settings.llm_key_drop") : t("settings.llm_key_keep")}
        </Button>
      </form>
      <p className="-mt-4 text-xs break-all text-quiet">{t("settings.llm_key_where", { path: state.llm_key_file })}</p>
      <div className="flex flex-wrap items-center gap-3">
        <Button icon={PlugZap} busy={test.busy} onClick={async () => setAnswer(await test.run({}))}>
          {t("settings.llm_test")}
        </Button>
        {answer && (
          <p role="status" className={cx("flex min-w-0 flex-1 items-start gap-2 break-words", answer.ok ? "text-good" : "text-bad")}>
            {answer.ok ? <CircleCheck className="mt-0.5 size-4 shrink-0" aria-hidden /> : <CircleAlert className="mt-0.5 size-4 shrink-0" aria-hidden />}
            {answer.what}
          </p>
        )}
      </div>
    </Group>
  );
}
