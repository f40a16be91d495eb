import { Check, CheckCheck, X } from "lucide-react";
import { Checkbox } from "radix-ui";
import { memo, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { flush } from "../../api/edits";
import { invalidate } from "../../api/queries";
import type { Json, Proposal as ProposalState, ScriptChange } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";
import { toast } from "../../app/toasts";
import { Button } from "../../parts/Button";
import { cx } from "../../parts/cx";
import { Badge } from "../../parts/states";
import { textDiff } from "./textDiff";

/** A value as a person reads it: texts as they are, things by what they say. */
export function shownValue(value: Json): string {
  if (value === null) return "";
  if (typeof value === "string") return value;
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return value.map(shownValue).join("\n");
  const parts = Object.entries(value).filter(([field]) => field !== "by" && field !== "id");
  if (typeof value["text"] === "string") return typeof value["speaker"] === "string" ? `${value["speaker"]}: ${value["text"]}` : value["text"];
  return parts
    .map(([field, each]) => (field === "shots" && Array.isArray(each) ? each.map(shownValue).join("\n") : `${field}: ${shownValue(each)}`))
    .join("\n");
}

function groupOf(change: ScriptChange): string {
  const scene = /^\/scenes\/([^/]+)/.exec(change.path)?.[1];
  return scene === undefined ? change.kind : `scene:${scene.replaceAll("~1", "/").replaceAll("~0", "~")}`;
}

interface RowProps {
  change: ScriptChange;
  accepted: boolean;
  onToggle: (number: number) => void;
}

const ChangeRow = memo(function ChangeRow({ change, accepted, onToggle }: RowProps) {
  const { t } = useTranslation();
  const [old, next] = [shownValue(change.old as Json), shownValue(change.new as Json)];
  const pieces = useMemo(() => textDiff(old, next), [old, next]);
  const what = change.field === "" ? (change.old === null ? t("proposal.added") : t("proposal.removed")) : change.field.slice(1).replaceAll("/", " · ");
  const id = `change-${change.number}`;
  return (
    <li className={cx("grid grid-cols-[1.5rem_minmax(0,1fr)] gap-3 rounded-md px-3 py-2.5", accepted ? "bg-raised" : "opacity-75")}>
      <Checkbox.Root
        id={id}
        checked={accepted}
        onCheckedChange={() => onToggle(change.number)}
        aria-label={t("proposal.accept_what", { what: `${change.id} ${what}` })}
        className="mt-0.5 flex size-5 items-center justify-center rounded-sm border border-line-strong bg-page data-[state=checked]:border-accent data-[state=checked]:bg-accent data-[state=checked]:text-on-accent"
      >
        <Checkbox.Indicator>
          <Check className="size-4" />
        </Checkbox.Indicator>
      </Checkbox.Root>
      <div className="min-w-0">
        <label htmlFor={id} className="flex flex-wrap items-center gap-2 text-sm text-quiet">
          <span>
            {t(`kinds.${change.kind as "shot"}`)} {change.id}
          </span>
          <span className="text-text">{what}</span>
          {change.by && <Badge>{t(`proposal.by.${change.by as "model"}`)}</Badge>}
        </label>
        <p className="mt-1 break-words whitespace-pre-wrap text-loud">
          {pieces.map((piece, at) =>
            piece.side === "both" ? (
              <span key={at}>{piece.text}</span>
            ) : piece.side === "old" ? (
              <del key={at} className="rounded-xs bg-bad-wash text-bad decoration-bad/60">
                {piece.text}
              </del>
            ) : (
              <ins key={at} className="rounded-xs bg-good-wash text-good no-underline">
                {piece.text}
              </ins>
            ),
          )}
        </p>
      </div>
    </li>
  );
});

/** What was written, against what is there: each difference is taken or left. */
export function Proposal({ project, proposal, onDone }: { project: string; proposal: ProposalState; onDone: () => void }) {
  const { t } = useTranslation();
  const [left, setLeft] = useState<Set<number>>(() => new Set());
  const take = useCommand("proposal.take");
  const refuse = useCommand("proposal.refuse");
  const { changes } = proposal;
  const groups = useMemo(() => {
    const by = new Map<string, ScriptChange[]>();
    for (const change of changes) by.set(groupOf(change), [...(by.get(groupOf(change)) ?? []), change]);
    return [...by];
  }, [changes]);
  const accepted = changes.filter((change) => !left.has(change.number)).map((change) => change.number);
  const toggle = useMemo(
    () =>
      (number: number): void =>
        setLeft((before) => {
          const next = new Set(before);
          if (!next.delete(number)) next.add(number);
          return next;
        }),
    [],
  );
  const done = (): void => {
    invalidate("proposal.get", { project });
    invalidate("project.state", { project });
    onDone();
  };
  const accept = async (): Promise<void> => {
    await flush();
    const all = accepted.length === changes.length;
    const taken = await take.run({ project, accepted: all ? "all" : { these: accepted.map(String) } });
    if (taken === undefined) return;
    toast("good", t("proposal.taken", { count: accepted.length }));
    done();
  };
  return (
    <div className="flex h-full flex-col">
      <div className="flex shrink-0 flex-wrap items-center gap-2 border-b border-line bg-panel px-4 py-2.5">
        <div className="min-w-40 grow basis-40">
          <h2 className="font-medium text-loud">{t("proposal.title", { count: changes.length })}</h2>
          <p className="hidden text-sm text-quiet @min-[90rem]/main:block">{t("proposal.about")}</p>
        </div>
        <Button size="sm" look="quiet" icon={CheckCheck} onClick={() => setLeft(left.size === 0 ? new Set(changes.map((change) => change.number)) : new Set())}>
          {left.size === 0 ? t("proposal.none") : t("proposal.all")}
        </Button>
        <Button size="sm" icon={X} busy={refuse.busy} onClick={async () => (await refuse.run({ project })) !== undefined && done()}>
          {t("proposal.refuse")}
        </Button>
        <Button size="sm" look="primary" icon={Check} busy={take.busy} disabled={accepted.length === 0} onClick={() => void accept()}>
          {t("proposal.take", { count: accepted.length })}
        </Button>
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <div className="mx-auto max-w-4xl px-4 py-4">
          {groups.map(([group, list]) => (
            <section key={group} className="mb-5">
              <h3 className="mb-1.5 px-3 text-sm font-medium text-quiet">
                {group.startsWith("scene:") ? `${t("kinds.scene")} ${group.slice(6)}` : t(`kinds.${group as "film"}`)}
              </h3>
              <ul className="flex flex-col gap-1">
                {list.map((change) => (
                  <ChangeRow key={change.number} change={change} accepted={!left.has(change.number)} onToggle={toggle} />
                ))}
              </ul>
            </section>
          ))}
        </div>
      </div>
    </div>
  );
}
