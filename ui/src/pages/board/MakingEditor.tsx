import { Lock, LockOpen } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useQuery } from "../../api/queries";
import type { Edit, ProjectState, Shot } from "../../api/shapes";
import { IconButton } from "../../parts/Button";
import { Select, TextField } from "../../parts/Field";
import { setShot, textOrNull } from "../story/changes";
import { Section } from "./Section";
import { isSeed, parseSeed, seedText } from "./takes";

/** What a shot's picture is made with: model, seed with its lock, what it must not show. */
export function MakingEditor({ state, shot, edit }: { state: ProjectState; shot: Shot; edit: (change: Edit) => void }) {
  const { t } = useTranslation();
  const { project, script } = state;
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
  // What Draw and Scouts use: the shot's model where that draws, else our own.
  const drawer = model?.draws ? model : makers.find((each) => each.draws);
  const scene = script.scenes.find((each) => each.shots.some((one) => one.id === shot.id));
  const text = `${shot.depicts ?? ""} ${shot.action ?? ""}`.toLowerCase();
  const seen = (script.cast ?? []).filter((each) => each.references?.length && (text.includes(each.name.toLowerCase()) || shot.lines?.some((line) => line.speaker === each.name)));
  const places = (script.places ?? []).filter((each) => each.references?.length && each.id === scene?.place);
  const referenced = drawer?.references ? [] : [...seen.map((each) => each.name), ...places.map((each) => each.name || each.id)];
  const hint = model ? model.why && <span className="text-warn">{model.why}</span> : shot.model && <span className="text-warn">{t("making.unknown_model")}</span>;
  return (
    <Section title={t("making.label")}>
      <Select label={t("making.model")} value={model?.default ? "" : (shot.model ?? "")} choices={choices} hint={hint || undefined} onChange={(id) => edit(setShot(shot.id, "/model", textOrNull(id)))} />
      {drawer && !model?.draws && <p className="-mt-1 text-xs text-quiet">{t("making.draws_with", { name: drawer.name })}</p>}
      {drawer && referenced.length > 0 && <p className="rounded-md bg-warn-wash px-3 py-2 text-sm text-warn">{t("making.no_references", { names: referenced.join(", "), model: drawer.name })}</p>}
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
        hint={drawer?.negative ? t("making.negative_sketch") : t("making.negative_stills")}
        onCommit={(text) => edit(setShot(shot.id, "/negative", textOrNull(text)))}
      />
    </Section>
  );
}
