import { Brush, Check, ChevronDown, Columns2, Images, Trash2 } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { flush } from "../../api/edits";
import { useQuery } from "../../api/queries";
import type { Shot, Take } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { toast } from "../../app/toasts";
import { jobError } from "../../text/say";
import { Button, IconButton } from "../../parts/Button";
import { Menu } from "../../parts/Menu";
import { Thumb } from "../../parts/Thumb";
import { cx } from "../../parts/cx";
import { SkeletonRows } from "../../parts/states";
import { useJob } from "../../parts/useJob";
import { JobLine } from "../story/JobLine";
import { CompareDialog } from "./CompareDialog";
import { Section } from "./Section";
import { Stars } from "./Stars";
import { detail, madeBy, origin, parseSeed } from "./takes";

/** How many pictures can be drawn at once to choose from. */
const SCOUTS = [2, 3, 4, 6, 8];

/** What a page does with takes of a shot. */
export function useTakes(project: string, shot: string) {
  const takes = useQuery("takes.list", { project, shot });
  const choose = useCommand("takes.choose");
  const rate = useCommand("takes.rate");
  const remove = useCommand("takes.remove");
  // What was edited before goes first: the order of edits is that of undo.
  const after = (run: () => Promise<unknown>): void => {
    void flush()
      .then(run)
      .then(() => takes.again());
  };
  return {
    takes,
    choose: (take: Take) => after(() => choose.run({ project, shot, take: take.take })),
    rate: (take: Take, rating: number) => after(() => rate.run({ project, shot, take: take.take, rating })),
    remove: (take: Take) => after(() => remove.run({ project, shot, take: take.take })),
  };
}

interface CardProps {
  take: Take;
  number: number;
  aspect: number;
  onChoose: () => void;
  onRate: (rating: number) => void;
  onRemove: () => void;
}

function TakeCard({ take, number, aspect, onChoose, onRate, onRemove }: CardProps) {
  const { t, i18n } = useTranslation();
  const by = madeBy(t, take);
  const when = take.at_unix_millis && new Date(take.at_unix_millis).toLocaleString(i18n.language, { dateStyle: "medium", timeStyle: "short" });
  const about = [take.name, when, take.prompt, take.negative && t("takes.without", { what: take.negative })].filter(Boolean).join("\n");
  return (
    <li className={cx("flex min-w-0 flex-col overflow-hidden rounded-md border bg-page", take.chosen ? "border-accent" : "border-line")}>
      <button
        type="button"
        aria-pressed={take.chosen}
        aria-label={t(take.chosen ? "takes.is_chosen" : "takes.choose", { number, by })}
        title={about}
        className="relative block w-full bg-film"
        style={{ aspectRatio: Math.max(1, aspect) }}
        onClick={() => !take.chosen && onChoose()}
      >
        <Thumb hash={take.take} width={320} alt="" className="absolute inset-0 size-full" />
        <span className="numeric absolute bottom-1 left-1 rounded-sm bg-film/75 px-1 text-xs leading-4.5 text-[#fff]">{number}</span>
        {take.chosen && (
          <span className="absolute top-1 right-1 flex size-5 items-center justify-center rounded-full bg-accent text-on-accent">
            <Check className="size-3.5" strokeWidth={2.5} aria-hidden />
          </span>
        )}
      </button>
      <div className="flex flex-col gap-0.5 px-1.5 pt-1 pb-1">
        <span className="truncate text-xs text-text">{origin(t, take)}</span>
        <span className="numeric truncate text-xs text-quiet" title={detail(t, take)}>
          {detail(t, take)}
        </span>
        <div className="flex items-center justify-between">
          <Stars label={t("takes.rating", { number })} rating={take.rating} onRate={onRate} />
          <IconButton icon={Trash2} size="sm" className="size-6!" label={t(take.chosen ? "takes.keep_chosen" : "takes.remove", { number })} disabled={take.chosen} onClick={onRemove} />
        </div>
      </div>
    </li>
  );
}

/** Everything that a shot could show, and making another. */
export function TakesEditor({ project, shot, aspect }: { project: string; shot: Shot; aspect: number }) {
  const { t } = useTranslation();
  const { takes, choose, rate, remove } = useTakes(project, shot.id);
  const [comparing, setComparing] = useState(false);
  const make = useCommand("takes.make");
  const draw = useCommand("takes.draw");
  const makers = useQuery("makers.list", {}).data ?? [];
  const locked = parseSeed(shot.seed).locked;
  const model = makers.find((each) => (shot.model ? each.id === shot.model : each.default));
  const { job, follow } = useJob((ended) => {
    takes.again();
    if (ended.state === "failed") toast("bad", jobError(ended) ?? t("common.failed"));
    if (ended.result?.type === "take" && !ended.result.new) toast("warn", t("takes.same_again"));
    if (ended.result?.type !== "drawn") return;
    const fresh = ended.result.takes.filter((take) => take.new && take.kept).length;
    if (ended.result.takes.some((take) => !take.kept)) toast("warn", t("takes.shot_gone"));
    else if (fresh === 0) toast("warn", t("takes.same_again"));
    else toast("good", t("takes.drawn", { count: fresh }));
  });
  const another = async (): Promise<void> => {
    await flush();
    const started = await make.run({ project, shot: shot.id });
    if (started) follow(started.job);
  };
  const drawSome = async (count: number): Promise<void> => {
    await flush();
    const started = await draw.run({ project, what: { shots: [shot.id] }, count });
    if (started) follow(started.job);
  };
  // Each picture of several is a take as soon as it is drawn.
  const drawnAt = job ? Math.floor(job.done / 100) : 0;
  useEffect(() => {
    if (drawnAt > 0) takes.again();
  }, [drawnAt]);
  const busy = make.busy || draw.busy || job !== undefined;
  const list = takes.data ?? [];
  return (
    <Section
      title={t("takes.label")}
      aside={
        <div className="flex items-center gap-1.5">
          <IconButton icon={Columns2} size="sm" label={t("takes.compare")} disabled={list.length < 2} onClick={() => setComparing(true)} />
          {!model?.draws && <IconButton icon={Images} size="sm" label={t("takes.make")} disabled={busy} onClick={() => void another()} />}
          <Menu items={SCOUTS.map((count) => ({ label: t("takes.scouts_of", { count }), icon: Brush, onPick: () => void drawSome(count) }))}>
            <Button size="sm" disabled={busy || locked} title={locked ? t("takes.scouts_locked") : undefined}>
              {t("takes.scouts")}
              <ChevronDown className="size-3.5" aria-hidden />
            </Button>
          </Menu>
          <Button size="sm" icon={Brush} busy={busy} onClick={() => void drawSome(1)}>
            {t("takes.draw")}
          </Button>
        </div>
      }
    >
      {takes.error && <p className="rounded-md bg-bad-wash px-3 py-2 text-sm text-bad">{takes.error}</p>}
      {!takes.data && !takes.error && <SkeletonRows rows={1} className="h-28" />}
      {takes.data && list.length === 0 && <p className="text-sm text-quiet">{t("takes.none")}</p>}
      {list.length > 0 && (
        <ul aria-label={t("takes.label")} className="grid grid-cols-2 gap-2">
          {list.map((take, at) => (
            <TakeCard key={take.take} take={take} number={at + 1} aspect={aspect} onChoose={() => choose(take)} onRate={(rating) => rate(take, rating)} onRemove={() => remove(take)} />
          ))}
        </ul>
      )}
      {job && <JobLine job={job} />}
      {comparing && list.length >= 2 && <CompareDialog takes={list} aspect={aspect} shot={shot.id} onChoose={choose} onRate={rate} onClose={() => setComparing(false)} />}
    </Section>
  );
}
