import type { LucideIcon } from "lucide-react";
import { DropdownMenu } from "radix-ui";
import type { ReactElement } from "react";
import { Keys } from "./Button";
import { cx } from "./cx";
import { floatPlace } from "./float";

export interface MenuItem {
  label: string;
  icon?: LucideIcon;
  keys?: string | undefined;
  danger?: boolean;
  disabled?: boolean;
  onPick: () => void;
}

/** A button's menu; `null` is a line between groups. */
export function Menu({ items, children, align = "end" }: { items: (MenuItem | null)[]; children: ReactElement; align?: "start" | "end" }) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{children}</DropdownMenu.Trigger>
      <DropdownMenu.Portal container={floatPlace()}>
        <DropdownMenu.Content
          align={align}
          sideOffset={4}
          collisionPadding={8}
          className="z-50 min-w-52 rounded-md border border-line-strong bg-raised p-1 shadow-float"
        >
          {items.map((item, at) =>
            item === null ? (
              <DropdownMenu.Separator key={`line-${at}`} className="my-1 h-px bg-line" />
            ) : (
              <DropdownMenu.Item
                key={item.label}
                disabled={item.disabled ?? false}
                onSelect={item.onPick}
                className={cx(
                  "flex h-8 items-center gap-2.5 rounded-sm px-2 text-base outline-none select-none data-[disabled]:opacity-45 data-[highlighted]:bg-hover",
                  item.danger ? "text-bad" : "text-text data-[highlighted]:text-loud",
                )}
              >
                {item.icon ? <item.icon className="size-4" strokeWidth={1.75} aria-hidden /> : <span className="size-4" />}
                <span className="grow">{item.label}</span>
                {item.keys && <Keys keys={item.keys} />}
              </DropdownMenu.Item>
            ),
          )}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
