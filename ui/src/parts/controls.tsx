import { RadioGroup as RadixRadio, Slider as RadixSlider, Switch as RadixSwitch, Tabs as RadixTabs } from "radix-ui";
import { type ReactNode, useId } from "react";
import { cx } from "./cx";

interface SwitchProps {
  label: string;
  hint?: ReactNode;
  on: boolean;
  onChange: (on: boolean) => void;
  disabled?: boolean;
}

export function Switch({ label, hint, on, onChange, disabled }: SwitchProps) {
  const id = useId();
  return (
    <div className="flex items-start justify-between gap-4">
      <div className="min-w-0">
        <label htmlFor={id} className={cx("text-base", disabled ? "text-quiet" : "text-loud")}>
          {label}
        </label>
        {hint && <div className="text-xs text-quiet">{hint}</div>}
      </div>
      <RadixSwitch.Root
        id={id}
        checked={on}
        disabled={disabled}
        onCheckedChange={onChange}
        className="mt-0.5 h-5 w-9 shrink-0 rounded-full border border-line-strong bg-press p-px transition-colors disabled:opacity-50 data-[state=checked]:border-accent data-[state=checked]:bg-accent"
      >
        <RadixSwitch.Thumb className="block size-4 rounded-full bg-quiet transition-transform duration-100 data-[state=checked]:translate-x-4 data-[state=checked]:bg-on-accent" />
      </RadixSwitch.Root>
    </div>
  );
}

interface SliderProps {
  label: string;
  value: number;
  min: number;
  max: number;
  step: number;
  onChange: (value: number) => void;
  onCommit?: (value: number) => void;
  className?: string;
}

export function Slider({ label, value, min, max, step, onChange, onCommit, className }: SliderProps) {
  return (
    <RadixSlider.Root
      className={cx("relative flex h-6 touch-none items-center select-none", className)}
      value={[value]}
      min={min}
      max={max}
      step={step}
      onValueChange={([next]) => next !== undefined && onChange(next)}
      onValueCommit={([next]) => next !== undefined && onCommit?.(next)}
    >
      <RadixSlider.Track className="relative h-1 grow rounded-full bg-press">
        <RadixSlider.Range className="absolute h-full rounded-full bg-accent" />
      </RadixSlider.Track>
      <RadixSlider.Thumb aria-label={label} className="block size-3.5 rounded-full border border-accent bg-raised" />
    </RadixSlider.Root>
  );
}

interface SegmentsProps<T extends string> {
  label: string;
  value: T;
  choices: { value: T; label: string; detail?: string; icon?: ReactNode }[];
  onChange: (value: T) => void;
  className?: string;
}

/** One of a few values, all in sight. */
export function Segments<T extends string>({ label, value, choices, onChange, className }: SegmentsProps<T>) {
  return (
    <RadixRadio.Root
      aria-label={label}
      value={value}
      onValueChange={(next) => onChange(next as T)}
      className={cx("inline-flex rounded-md border border-line-strong bg-page p-0.5", className)}
    >
      {choices.map((choice) => (
        <RadixRadio.Item
          key={choice.value}
          value={choice.value}
          className="inline-flex h-6.5 items-center justify-center gap-1.5 rounded-sm px-2.5 text-sm text-quiet transition-colors hover:text-loud data-[state=checked]:bg-press data-[state=checked]:text-loud"
        >
          {choice.icon}
          {choice.label}
        </RadixRadio.Item>
      ))}
    </RadixRadio.Root>
  );
}

interface TabsProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  tabs: { value: string; label: string; mark?: ReactNode; content: ReactNode }[];
}

export function Tabs({ label, value, onChange, tabs }: TabsProps) {
  return (
    <RadixTabs.Root value={value} onValueChange={onChange} className="flex min-h-0 flex-1 flex-col">
      <RadixTabs.List aria-label={label} className="flex shrink-0 gap-0.5 overflow-x-auto border-b border-line px-2.5">
        {tabs.map((tab) => (
          <RadixTabs.Trigger
            key={tab.value}
            value={tab.value}
            className="-mb-px inline-flex h-10 items-center gap-1.5 border-b-2 border-transparent px-1.5 text-sm whitespace-nowrap text-quiet hover:text-loud data-[state=active]:border-accent data-[state=active]:text-loud"
          >
            {tab.label}
            {tab.mark}
          </RadixTabs.Trigger>
        ))}
      </RadixTabs.List>
      {tabs.map((tab) => (
        <RadixTabs.Content key={tab.value} value={tab.value} className="min-h-0 flex-1 overflow-y-auto p-4" tabIndex={-1}>
          {tab.content}
        </RadixTabs.Content>
      ))}
    </RadixTabs.Root>
  );
}
