import { useId } from "react";
import { Labelled } from "./Field";
import { useDraft } from "./useDraft";

interface Props {
  label: string;
  value: number;
  min: number;
  max: number;
  step: number;
  unit?: string;
  onCommit: (value: number) => void;
}

/** A figure; up and down change it by its step. */
export function NumberInput({ label, value, min, max, step, unit, onCommit }: Props) {
  const id = useId();
  const parse = (text: string): number | undefined => {
    const number = Number(text.trim().replace(",", "."));
    return text.trim() !== "" && Number.isFinite(number) && number >= min && number <= max ? number : undefined;
  };
  const draft = useDraft({
    value: String(Number(value.toFixed(3))),
    onPause: false,
    onCommit: (text) => {
      const number = parse(text);
      if (number !== undefined) onCommit(number);
    },
    check: (text) => (parse(text) === undefined ? `${min} – ${max}` : undefined),
  });
  return (
    <Labelled label={unit ? `${label} (${unit})` : label} id={id} fault={draft.fault}>
      <input
        id={id}
        inputMode="decimal"
        value={draft.text}
        aria-invalid={draft.fault !== undefined || undefined}
        data-dirty={draft.dirty || undefined}
        onChange={(event) => draft.change(event.target.value)}
        onBlur={() => (draft.fault ? draft.revert() : draft.commit())}
        onKeyDown={(event) => {
          if (event.key === "Enter") draft.commit();
          if (event.key === "Escape") draft.revert();
          if (event.key === "ArrowUp" || event.key === "ArrowDown") {
            event.preventDefault();
            const by = (event.key === "ArrowUp" ? 1 : -1) * step * (event.shiftKey ? 10 : 1);
            draft.change(String(Number(Math.min(max, Math.max(min, (parse(draft.text) ?? value) + by)).toFixed(3))));
          }
        }}
        className="numeric h-8 w-full min-w-0 rounded-md border border-line-strong bg-page px-2 text-loud hover:border-quiet aria-invalid:border-bad"
      />
    </Labelled>
  );
}
