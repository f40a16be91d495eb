import { Lock, LockOpen } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useQuery } from "../../api/queries";
import type { Edit, Shot } from "../../api/shapes";
import { IconButton } from "../../parts/Button";
import { Select, TextField } from "../../parts/Field";
import { setShot, textOrNull } from "../story/changes";
import { Section } from "./Section";
import { isSeed, parseSeed, seedText } from "./takes";

/** What a shot's picture is made with: model, seed with its lock, what it must not show. */
export function MakingEditor({ project, shot, edit }: { project: string; shot: Shot; edit: (change: Edit) => void }) {
  const { t } = useTranslation();
  const makers = useQuery("makers.list", {}).data ?? [];
  const takes = useQuery("takes.list", { project, shot: shot.id }).data ?? [];
  const { value, locked } = parseSeed(shot.seed);
  const used = (takes.find((take) => take.chosen) ?? takes.at(-1))?.seed ?? takes.findLast((take) => take.seed !== undefined)?.seed;
  const set = (seed: string | null): void => edit(setShot(shot.id, "/seed", seed));
  const lock = (): void => {
    // The seed of the picture that is seen; a shot that has none yet draws one.
    const drawn = (): number => crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
    set(seedText(value || String(used ?? drawn()), !locked));
  };
  const name = (id: string, title: string): string => (id === "stills" ? t("making.stills") : title || id);
  const model = makers.find((each) => (shot.model ? each.id === shot.model : each.default));
  const choices = makers.map((each) => ({
    value: each.default ? "" : each.id,
    label: each.ready ? name(each.id, each.name) : t("making.not_yet", { name: name(each.id, each.name) }),
  }));
  const hint = model ? model.why && <span className="text-warn">{model.why}</span> : shot.model && <span className="text-warn">{t("making.unknown_model")}</span>;
  return (
    <Section title={t("making.label")}>
      <Select label={t("making.model")} value={model?.default ? "" : (shot.model ?? "")} choices={choices} hint={hint || undefined} onChange={(id) => edit(setShot(shot.id, "/model", textOrNull(id)))} />
      <div className="flex items-start gap-1">
        <div className="grow">
          <TextField
            label={t("making.seed")}
            value={value}
            placeholder={used === undefined ? t("making.new_seed") : String(used)}
            hint={t(locked ? "making.locked_hint" : "making.open_hint")}
            onPause={false}
            check={(text) => (text.trim() === "" || isSeed(text.trim()) ? undefined : t("making.seed_fault"))}
            onCommit={(text) => set(seedText(text.trim(), locked && text.trim() !== ""))}
          />
        </div>
        <IconButton icon={locked ? Lock : LockOpen} label={t(locked ? "making.unlock" : "making.lock")} on={locked} className="mt-6" onClick={lock} />
      </div>
      <TextField
        label={t("making.negative")}
        multiline
        rows={2}
        value={shot.negative ?? ""}
        placeholder={t("making.negative_hint")}
        hint={model?.id === "stills" ? t("making.negative_stills") : undefined}
        onCommit={(text) => edit(setShot(shot.id, "/negative", textOrNull(text)))}
      />
    </Section>
  );
}
