import { CircleCheck, CircleSlash, Film } from "lucide-react";
import { RadioGroup } from "radix-ui";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { flush } from "../../api/edits";
import { type Query, invalidate, useQuery } from "../../api/queries";
import type { ExportArgs, ExportLoudness, ExportPrediction, ExportPreset, ProjectState } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { useOffer } from "../../app/commands";
import { toast } from "../../app/toasts";
import { Button } from "../../parts/Button";
import { Select, TextField } from "../../parts/Field";
import { Switch } from "../../parts/controls";
import { bytesText, clockText, waitText } from "../../parts/figures";
import { Card, Skeleton, SkeletonRows } from "../../parts/states";
import { useJob } from "../../parts/useJob";
import { JobLine } from "../story/JobLine";
import { jobError, sayAll } from "../../text/say";
import { licenceNote } from "../../text/notes";

const LOUDNESS: readonly ExportLoudness[] = ["web", "streaming", "broadcast", "television", "off"];

function Presets({ presets, value, onChange }: { presets: ExportPreset[]; value: string; onChange: (id: string) => void }) {
  const { t, i18n } = useTranslation();
  return (
    <RadioGroup.Root value={value} onValueChange={onChange} aria-label={t("export.preset")} className="grid grid-cols-2 gap-2">
      {presets.map((preset) => {
        const known = i18n.exists(`export.presets.${preset.id}.name`);
        const id = preset.id as "web";
        return (
          <RadioGroup.Item
            key={preset.id}
            value={preset.id}
            className="flex flex-col items-start rounded-md border border-line-strong bg-page px-3 py-2.5 text-left hover:bg-hover data-[state=checked]:border-accent data-[state=checked]:bg-accent-wash"
          >
            <span className="font-medium text-loud">{known ? t(`export.presets.${id}.name`) : preset.name}</span>
            <span className="text-sm text-quiet">{known ? t(`export.presets.${id}.about`) : preset.docs}</span>
          </RadioGroup.Item>
        );
      })}
    </RadioGroup.Root>
  );
}

function Prediction({ predicted: { data, error } }: { predicted: Query<ExportPrediction> }) {
  const { t, i18n } = useTranslation();
  if (error && !data) {
    return (
      <p role="alert" className="rounded-md bg-bad-wash px-3 py-2 whitespace-pre-wrap text-bad">
        {error}
      </p>
    );
  }
  if (!data) return <Skeleton className="h-36" />;
  const figures = [
    { label: t("export.film_length"), value: clockText(data.film_secs) },
    { label: t("export.file_size"), value: `≈ ${bytesText(data.bytes, i18n.language)}` },
    { label: t("export.time"), value: data.secs_to_make === undefined ? t("render.not_measured") : `≈ ${waitText(data.secs_to_make)}` },
    { label: t("export.steps"), value: String(data.to_make) },
  ];
  return (
    <div className="flex flex-col gap-3">
      <dl className="grid grid-cols-2 gap-px overflow-hidden rounded-md border border-line bg-line">
        {figures.map((figure) => (
          <div key={figure.label} className="bg-page px-3 py-2">
            <dt className="text-sm text-quiet">{figure.label}</dt>
            <dd className="numeric text-lg text-loud">{figure.value}</dd>
          </div>
        ))}
      </dl>
      {data.warnings.map((warning) => (
        <p key={warning.text} className="rounded-md bg-warn-wash px-3 py-2 text-sm text-warn">
          {sayAll(warning)}
        </p>
      ))}
      {data.licence.length > 0 && (
        <div>
          <h2 className="mb-1.5 text-sm text-quiet">{t("export.licences")}</h2>
          <ul className="flex flex-col gap-1.5">
            {data.licence.map((each) => (
              <li key={each.what} className="flex items-start gap-2 text-sm">
                {each.commercial ? (
                  <CircleCheck className="mt-0.5 size-4 shrink-0 text-good" aria-label={t("models.commercial")} />
                ) : (
                  <CircleSlash className="mt-0.5 size-4 shrink-0 text-bad" aria-label={t("models.not_commercial")} />
                )}
                <span className="min-w-0">
                  <span className="text-text">
                    {each.what} · {each.licence}
                  </span>
                  {each.note && <span className="block text-quiet">{licenceNote(each.note)}</span>}
                </span>
              </li>
            ))}
          </ul>
        </div>
      )}
      <p className="text-sm break-all text-quiet">{t("export.out", { path: data.out })}</p>
    </div>
  );
}

/** How the film is to be written. */
export function ExportForm({ state, onMade }: { state: ProjectState; onMade: (hash: string) => void }) {
  const { t } = useTranslation();
  const { project } = state;
  const presets = useQuery("export.presets", {});
  const upscaler = useQuery("app.state", {}).data?.ready.upscaler ?? false;
  const [preset, setPreset] = useState("web");
  const [part, setPart] = useState(false);
  const shots = state.script.scenes.flatMap((scene) => scene.shots.map((shot) => shot.id));
  const [from, setFrom] = useState(shots[0] ?? "");
  const [to, setTo] = useState(shots.at(-1) ?? "");
  const [upscale, setUpscale] = useState(true);
  const [loudness, setLoudness] = useState<ExportLoudness>("web");
  const [burn, setBurn] = useState(false);
  const [commercial, setCommercial] = useState(false);
  const [name, setName] = useState("");
  const start = useCommand("export.start");
  const { job, follow } = useJob((ended) => {
    invalidate("export.list", { project });
    if (ended.state === "done" && ended.result?.type === "export") onMade(ended.result.hash);
    else if (ended.state === "failed") toast("bad", jobError(ended) ?? t("common.failed"));
  });
  const args: ExportArgs = {
    project,
    preset,
    upscale: upscale && upscaler,
    loudness,
    burn_subtitles: burn,
    commercial,
    ...(part && shots.includes(from) && shots.includes(to) ? { range: { from, to } } : {}),
    ...(name.trim() === "" ? {} : { name: name.trim() }),
  };
  const predicted = useQuery("export.predict", args);
  const run = async (): Promise<void> => {
    await flush();
    const started = await start.run(args);
    if (started) follow(started.job);
  };
  useOffer("export", [{ id: "export.start", title: t("export.start"), group: t("pages.export"), icon: Film, keys: "Mod+Enter", whileTyping: true, enabled: !job && predicted.error === undefined, run: () => void run() }]);
  const choices = shots.map((id) => ({ value: id, label: id }));
  return (
    <Card className="flex flex-col gap-5 p-5">
      {presets.data ? <Presets presets={presets.data} value={preset} onChange={setPreset} /> : <SkeletonRows rows={2} className="h-16" />}
      <div className="flex flex-col gap-4">
        <Switch label={t("export.part")} hint={t("export.part_hint")} on={part} onChange={setPart} />
        {part && (
          <div className="grid grid-cols-2 gap-3">
            <Select label={t("export.from")} value={from} choices={choices} onChange={setFrom} />
            <Select label={t("export.to")} value={to} choices={choices} onChange={setTo} />
          </div>
        )}
        <Switch label={t("export.upscale")} hint={upscaler ? t("export.upscale_hint") : t("export.no_upscaler")} on={upscale && upscaler} disabled={!upscaler} onChange={setUpscale} />
        <Select label={t("export.loudness")} hint={t("export.loudness_hint")} value={loudness} choices={LOUDNESS.map((value) => ({ value, label: t(`export.loudnesses.${value}`) }))} onChange={(value) => setLoudness(value as ExportLoudness)} />
        <Switch label={t("export.burn")} hint={t("export.burn_hint")} on={burn} onChange={setBurn} />
        <Switch label={t("export.commercial")} hint={t("export.commercial_hint")} on={commercial} onChange={setCommercial} />
        <TextField label={t("export.name")} value={name} placeholder={state.script.title} onCommit={setName} onPause={false} />
      </div>
      <div className="border-t border-line pt-5">
        <Prediction predicted={predicted} />
      </div>
      <div className="sticky bottom-0 -mx-5 -mb-5 rounded-b-lg border-t border-line bg-panel p-4">
        {job ? (
          <JobLine job={job} />
        ) : (
          <Button look="primary" icon={Film} busy={start.busy} disabled={predicted.error !== undefined} className="h-9 w-full" onClick={() => void run()}>
            {t("export.start")}
          </Button>
        )}
      </div>
    </Card>
  );
}
