import { act, fireEvent, render, screen, within } from "@testing-library/react";
import { Tooltip } from "radix-ui";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Messages, Toasts } from "../../src/app/Toasts";
import { markSeen, toast, useToasts } from "../../src/app/toasts";
import "../../src/text";

beforeEach(() => {
  vi.useFakeTimers();
  useToasts.setState({ list: [] });
});
afterEach(() => vi.useRealTimers());

describe("messages", () => {
  it("go by themselves and can be read again, latest first", () => {
    render(
      <Tooltip.Provider>
        <Toasts />
        <Messages open onClose={() => undefined} />
      </Tooltip.Provider>,
    );
    act(() => {
      toast("info", "The first.");
      toast("bad", "The second.", "a text that was refused");
    });
    expect(useToasts.getState().list.every((each) => !each.seen)).toBe(true);
    act(() => void vi.advanceTimersByTime(60_000));
    const said = within(screen.getByRole("dialog")).getAllByRole("listitem");
    expect(said.map((each) => each.querySelector("p")?.textContent)).toEqual(["The second.", "The first."]);
    expect(useToasts.getState().list.every((each) => !each.shown)).toBe(true);
    // What was refused is kept for copying.
    const write = vi.fn(() => Promise.resolve());
    vi.stubGlobal("navigator", { ...navigator, clipboard: { writeText: write } });
    const copy = within(said[0] as HTMLElement).getByRole("button");
    fireEvent.click(copy);
    expect(write).toHaveBeenCalledWith("a text that was refused");
    act(() => markSeen());
    expect(useToasts.getState().list.every((each) => each.seen)).toBe(true);
    vi.unstubAllGlobals();
  });

  it("are bounded", () => {
    for (let at = 0; at < 300; at += 1) toast("info", `Message ${at}`);
    expect(useToasts.getState().list).toHaveLength(100);
    expect(useToasts.getState().list[0]?.message).toBe("Message 299");
  });
});
