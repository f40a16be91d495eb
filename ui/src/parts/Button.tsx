import { LoaderCircle, type LucideIcon } from "lucide-react";
import { Tooltip } from "radix-ui";
import type { ButtonHTMLAttributes, Ref } from "react";
import { cx } from "./cx";
import { floatPlace, wasTabbed } from "./float";

type Look = "primary" | "plain" | "quiet" | "danger";

const LOOKS: Record<Look, string> = {
  primary: "bg-accent text-on-accent hover:bg-accent-hover font-medium",
  plain: "bg-raised text-loud border border-line-strong hover:bg-hover active:bg-press",
  quiet: "text-text hover:bg-hover hover:text-loud active:bg-press",
  danger: "bg-bad-wash text-bad hover:brightness-110 font-medium",
};

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  icon?: LucideIcon;
  busy?: boolean;
  size?: "md" | "sm";
  ref?: Ref<HTMLButtonElement>;
}

export function Button({ look = "plain", icon: Icon, busy, size = "md", className, children, disabled, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      className={cx(
        "inline-flex shrink-0 items-center justify-center gap-2 rounded-md whitespace-nowrap select-none",
        "transition-colors duration-100 disabled:opacity-50 disabled:hover:bg-inherit",
        size === "md" ? "h-8 px-3 text-base" : "h-7 px-2 text-sm",
        LOOKS[look],
        className,
      )}
      aria-busy={busy || undefined}
      disabled={disabled || busy}
      {...rest}
    >
      {busy ? (
        <LoaderCircle className="size-4 animate-spin" aria-hidden />
      ) : (
        Icon && <Icon className="size-4 shrink-0" strokeWidth={1.75} aria-hidden />
      )}
      {children}
    </button>
  );
}

export interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  icon: LucideIcon;
  label: string;
  keys?: string | undefined;
  size?: "md" | "sm";
  on?: boolean;
  busy?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

/** A button of an icon alone; its label is its name and its tip. */
export function IconButton({ icon: Icon, label, keys, size = "md", on, busy, className, disabled, ...rest }: IconButtonProps) {
  return (
    <Tip text={label} keys={keys}>
      <button
        type="button"
        aria-label={label}
        aria-pressed={on}
        aria-disabled={disabled || busy || undefined}
        className={cx(
          "inline-flex shrink-0 items-center justify-center rounded-md select-none",
          "transition-colors duration-100",
          disabled || busy ? "opacity-40" : "hover:bg-hover hover:text-loud active:bg-press",
          size === "md" ? "size-8" : "size-7",
          on ? "bg-hover text-loud" : "text-quiet",
          className,
        )}
        {...rest}
        onClick={disabled || busy ? undefined : rest.onClick}
      >
        {busy ? (
          <LoaderCircle className="size-4 animate-spin" aria-hidden />
        ) : (
          <Icon className="size-4" strokeWidth={1.75} aria-hidden />
        )}
      </button>
    </Tip>
  );
}

export function Tip({ text, keys, children }: { text: string; keys?: string | undefined; children: React.ReactElement }) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger asChild onFocus={(event) => !wasTabbed() && event.preventDefault()}>
        {children}
      </Tooltip.Trigger>
      <Tooltip.Portal container={floatPlace()}>
        <Tooltip.Content
          sideOffset={6}
          className="z-50 flex max-w-72 items-center gap-2 rounded-md border border-line-strong bg-raised px-2 py-1 text-sm text-loud shadow-float"
        >
          {text}
          {keys && <Keys keys={keys} />}
        </Tooltip.Content>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}

const MAC = typeof navigator !== "undefined" && navigator.platform.startsWith("Mac");

/** A key chord as people read it. */
export function Keys({ keys }: { keys: string }) {
  const parts = keys.split("+").map((part) => (part === "Mod" ? (MAC ? "⌘" : "Ctrl") : part));
  return (
    <kbd className="inline-flex gap-0.5 font-sans text-xs text-quiet">
      {parts.map((part) => (
        <span key={part} className="rounded-sm border border-line-strong px-1">
          {part}
        </span>
      ))}
    </kbd>
  );
}
