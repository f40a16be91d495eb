import { ChevronDown } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useId } from "react";
import { cx } from "./cx";
import { useDraft } from "./useDraft";

const BOX =
  "w-full rounded-md border border-line-strong bg-page px-2.5 text-loud hover:border-quiet " +
  "focus-visible:outline-2 focus-visible:-outline-offset-1 aria-invalid:border-bad";

interface FrameProps {
  label: string;
  id: string;
  hint?: ReactNode;
  fault?: string | undefined;
  aside?: ReactNode;
  children: ReactNode;
}

/** A label, its control, and what is to be said about it. */
export function Labelled({ label, id, hint, fault, aside, children }: FrameProps) {
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <div className="flex min-h-5 items-center justify-between gap-2">
        <label htmlFor={id} className="text-sm text-quiet">
          {label}
        </label>
        {aside}
      </div>
      {children}
      {(fault ?? hint) && (
        <div id={`${id}-says`} className={cx("text-xs", fault ? "text-bad" : "text-quiet")} role={fault ? "alert" : undefined}>
          {fault ?? hint}
        </div>
      )}
    </div>
  );
}

interface TextProps {
  label: string;
  value: string;
  onCommit: (text: string) => void;
  placeholder?: string | undefined;
  hint?: ReactNode;
  aside?: ReactNode;
  check?: (text: string) => string | undefined;
  multiline?: boolean;
  rows?: number;
  type?: "text" | "url" | "password";
  list?: string | undefined;
  autoFocus?: boolean;
  onPause?: boolean;
  dir?: "auto";
  /** Told at each key, for forms that are not edits. */
  onTyped?: (text: string) => void;
  disabled?: boolean;
}

/** A labelled text that is edited in place. */
export function TextField({ label, value, onCommit, hint, aside, check, multiline, rows = 3, list, onPause, onTyped, ...rest }: TextProps) {
  const id = useId();
  const draft = useDraft({ value, onCommit, check, onPause });
  const shared = {
    id,
    value: draft.text,
    "data-dirty": draft.dirty || undefined,
    "aria-invalid": draft.fault !== undefined || undefined,
    "aria-describedby": draft.fault || hint ? `${id}-says` : undefined,
    dir: "auto",
    onBlur: draft.commit,
    onCompositionStart: () => draft.composing(true),
    onCompositionEnd: () => draft.composing(false),
    ...rest,
  };
  const typed = (text: string): void => {
    draft.change(text);
    onTyped?.(text);
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape" && draft.dirty) {
      event.stopPropagation();
      draft.revert();
    }
    if (event.key === "Enter" && (!multiline || event.ctrlKey || event.metaKey)) draft.commit();
  };
  return (
    <Labelled label={label} id={id} hint={hint} fault={draft.fault} aside={aside}>
      {multiline ? (
        <textarea
          {...shared}
          rows={rows}
          className={cx(BOX, "resize-y py-1.5 leading-snug")}
          onChange={(event) => typed(event.target.value)}
          onKeyDown={keys}
        />
      ) : (
        <input
          {...shared}
          list={list}
          className={cx(BOX, "h-8")}
          onChange={(event) => typed(event.target.value)}
          onKeyDown={keys}
        />
      )}
    </Labelled>
  );
}

interface GrowProps {
  label: string;
  value: string;
  onCommit: (text: string) => void;
  placeholder?: string;
  className?: string;
  check?: (text: string) => string | undefined;
  onKeyDown?: (event: KeyboardEvent<HTMLTextAreaElement>) => void;
  single?: boolean;
}

/** Text in the flow of a page, as tall as it is long. */
export function GrowText({ label, value, onCommit, placeholder, className, check, onKeyDown, single }: GrowProps) {
  const draft = useDraft({ value, onCommit, check });
  return (
    <div className={cx("grow-text min-w-0 rounded-sm", className)}>
      <div className="mirror px-1.5 py-0.5" aria-hidden>
        {`${draft.text || placeholder || ""} `}
      </div>
      <textarea
        aria-label={label}
        aria-invalid={draft.fault !== undefined || undefined}
        title={draft.fault}
        data-dirty={draft.dirty || undefined}
        dir="auto"
        rows={1}
        spellCheck={false}
        value={draft.text}
        placeholder={placeholder}
        className="min-w-0 rounded-sm bg-transparent px-1.5 py-0.5 text-inherit hover:bg-hover/60 focus:bg-hover/60 focus-visible:outline-1 focus-visible:outline-offset-0 aria-invalid:text-bad"
        onChange={(event) => draft.change(single ? event.target.value.replaceAll(/[\r\n]+/g, " ") : event.target.value)}
        onBlur={draft.commit}
        onCompositionStart={() => draft.composing(true)}
        onCompositionEnd={() => draft.composing(false)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Escape") {
            if (draft.dirty) draft.revert();
            else event.currentTarget.blur();
          } else if (event.key === "Enter" && single) {
            event.preventDefault();
            draft.commit();
          }
          onKeyDown?.(event);
        }}
      />
    </div>
  );
}

export interface Choice {
  value: string;
  label: string;
  disabled?: boolean;
}

interface SelectProps {
  label: string;
  value: string;
  choices: Choice[];
  onChange: (value: string) => void;
  hint?: ReactNode;
  aside?: ReactNode;
  hideLabel?: boolean;
  disabled?: boolean;
  className?: string;
}

/** One of a few values. */
export function Select({ label, value, choices, onChange, hint, aside, hideLabel, disabled, className }: SelectProps) {
  const id = useId();
  const known = choices.some((choice) => choice.value === value);
  const control = (
    <div className={cx("relative", className)}>
      <select
        id={id}
        aria-label={hideLabel ? label : undefined}
        disabled={disabled}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className={cx(BOX, "h-8 appearance-none pr-8 text-ellipsis")}
      >
        {!known && <option value={value}>{value}</option>}
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value} disabled={choice.disabled}>
            {choice.label}
          </option>
        ))}
      </select>
      <ChevronDown className="pointer-events-none absolute top-2 right-2 size-4 text-quiet" aria-hidden />
    </div>
  );
  if (hideLabel) return control;
  return (
    <Labelled label={label} id={id} hint={hint} aside={aside}>
      {control}
    </Labelled>
  );
}
