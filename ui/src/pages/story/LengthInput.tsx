import { useTranslation } from "react-i18next";
import { cx } from "../../parts/cx";
import { lengthSecs, secsLength } from "../../parts/figures";
import { useDraft } from "../../parts/useDraft";

/** A length as typed (`4`, `4,5`, `2.5 s`, `120 frames`) as a script writes it; undefined: no length. */
export function typedLength(text: string, fps: number, zero = false): string | undefined {
  const plain = text.trim().replace(/^(\d+),(\d+)/, "$1.$2");
  const length = /^\d+(\.\d+)?$/.test(plain) ? `${Number(plain)} s` : plain;
  const secs = lengthSecs(length, fps);
  return secs !== undefined && (zero || secs > 0) ? length : undefined;
}

interface Props {
  label: string;
  value: string;
  fps: number;
  onCommit: (length: string) => void;
  className?: string;
  id?: string;
  /** Whether no length at all is one. */
  zero?: boolean;
  placeholder?: string;
}

/** A length in seconds; up and down change it by a tenth, with Shift by a second. */
export function LengthInput({ label, value, fps, onCommit, className, id, zero, placeholder }: Props) {
  const { t } = useTranslation();
  const draft = useDraft({
    value,
    onPause: false,
    onCommit: (text) => {
      const length = typedLength(text, fps, zero);
      if (length && length !== value) onCommit(length);
    },
    check: (text) => (typedLength(text, fps, zero) ? undefined : t("shot.length_fault")),
  });
  const step = (by: number): void => {
    const secs = lengthSecs(typedLength(draft.text, fps, true) ?? value, fps) ?? 0;
    draft.change(secsLength(Math.max(zero ? 0 : 0.1, secs + by)));
  };
  return (
    <input
      id={id}
      placeholder={placeholder}
      aria-label={label}
      aria-invalid={draft.fault !== undefined || undefined}
      title={draft.fault ?? label}
      data-dirty={draft.dirty || undefined}
      value={draft.text}
      onChange={(event) => draft.change(event.target.value)}
      onFocus={(event) => event.target.select()}
      onBlur={() => (draft.fault ? draft.revert() : draft.commit())}
      onKeyDown={(event) => {
        if (event.key === "Enter") draft.commit();
        if (event.key === "Escape") draft.revert();
        if ((event.key === "ArrowUp" || event.key === "ArrowDown") && !event.altKey) {
          event.preventDefault();
          step((event.key === "ArrowUp" ? 1 : -1) * (event.shiftKey ? 1 : 0.1));
        }
      }}
      className={cx("numeric h-7 w-18 rounded-sm border border-line-strong bg-page px-2 text-right text-sm text-loud hover:border-quiet aria-invalid:border-bad", className)}
    />
  );
}
