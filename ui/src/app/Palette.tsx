import { Search } from "lucide-react";
import { Dialog } from "radix-ui";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { Keys } from "../parts/Button";
import { cx } from "../parts/cx";
import { type Action, useActions } from "./commands";

/** How well `title` answers to what was typed: all letters in order, words and starts first. */
export function score(title: string, typed: string): number {
  const text = title.toLowerCase();
  const want = typed.trim().toLowerCase();
  if (want === "") return 1;
  const at = text.indexOf(want);
  if (at === 0) return 100;
  if (at > 0) return text[at - 1] === " " ? 80 : 60;
  let from = 0;
  for (const letter of want.replaceAll(" ", "")) {
    from = text.indexOf(letter, from) + 1;
    if (from === 0) return 0;
  }
  return 20;
}

export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useTranslation();
  const groups = useActions((state) => state.groups);
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const found = useMemo(() => {
    const actions = Object.values(groups).flat().filter((action) => action.id !== "palette" && action.enabled !== false);
    return actions
      .map((action) => ({ action, points: Math.max(score(action.title, typed), score(`${action.group} ${action.title}`, typed)) }))
      .filter(({ points }) => points > 0)
      .sort((a, b) => b.points - a.points)
      .map(({ action }) => action);
  }, [groups, typed]);
  const chosen = Math.min(at, found.length - 1);

  const close = (): void => {
    setTyped("");
    setAt(0);
    onClose();
  };
  const pick = (action: Action | undefined): void => {
    if (!action) return;
    close();
    // After the dialog has given the focus back, so that the action may move it.
    setTimeout(action.run, 0);
  };

  return (
    <Dialog.Root open={open} onOpenChange={(now) => !now && close()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-50 bg-film/50" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed top-[12vh] left-1/2 z-50 flex max-h-[70vh] w-[calc(100vw-2rem)] max-w-xl -translate-x-1/2 flex-col overflow-hidden rounded-lg border border-line-strong bg-panel shadow-float"
        >
          <Dialog.Title className="sr-only">{t("palette.title")}</Dialog.Title>
          <div className="flex h-12 shrink-0 items-center gap-3 border-b border-line px-4">
            <Search className="size-4 text-quiet" aria-hidden />
            <input
              autoFocus
              role="combobox"
              aria-expanded
              aria-controls="palette-list"
              aria-activedescendant={found[chosen] ? `palette-${found[chosen].id}` : undefined}
              aria-label={t("palette.title")}
              placeholder={t("palette.placeholder")}
              className="h-full w-full bg-transparent text-loud outline-none"
              value={typed}
              onChange={(event) => {
                setTyped(event.target.value);
                setAt(0);
              }}
              onKeyDown={(event) => {
                const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
                if (step !== 0 && found.length > 0) {
                  event.preventDefault();
                  const next = (chosen + step + found.length) % found.length;
                  setAt(next);
                  document.getElementById(`palette-${found[next]?.id}`)?.scrollIntoView({ block: "nearest" });
                } else if (event.key === "Enter") {
                  event.preventDefault();
                  pick(found[chosen]);
                }
              }}
            />
          </div>
          <div id="palette-list" role={found.length > 0 ? "listbox" : "status"} aria-label={t("palette.title")} className="min-h-0 overflow-y-auto p-1.5">
            {found.map((action, index) => (
              <div
                key={action.id}
                id={`palette-${action.id}`}
                role="option"
                aria-selected={index === chosen}
                onPointerMove={() => setAt(index)}
                onClick={() => pick(action)}
                className={cx("flex h-9 items-center gap-3 rounded-md px-2.5 text-loud", index === chosen && "bg-hover")}
              >
                {action.icon ? <action.icon className="size-4 text-quiet" strokeWidth={1.75} aria-hidden /> : <span className="size-4" />}
                <span className="min-w-0 grow truncate">{action.title}</span>
                <span className="text-xs text-quiet">{action.group}</span>
                {action.keys && <Keys keys={action.keys.split(" ")[0] ?? ""} />}
              </div>
            ))}
            {found.length === 0 && <p className="px-3 py-6 text-center text-quiet">{t("palette.nothing")}</p>}
          </div>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
