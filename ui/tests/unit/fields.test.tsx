import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { GrowText, TextField } from "../../src/parts/Field";
import { commitDrafts } from "../../src/parts/drafts";
import "../../src/text";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const field = (): HTMLTextAreaElement => screen.getByRole("textbox");
const type = (text: string): void => void fireEvent.change(field(), { target: { value: text } });

describe("text being typed", () => {
  it("becomes one edit after a pause, not one for each key", () => {
    const onCommit = vi.fn();
    render(<GrowText label="x" value="" onCommit={onCommit} />);
    for (const text of ["a", "ab", "abc"]) type(text);
    expect(onCommit).not.toHaveBeenCalled();
    act(() => vi.advanceTimersByTime(1000));
    expect(onCommit.mock.calls).toEqual([["abc"]]);
  });

  it("is committed on leaving, by a request and when the field goes", () => {
    const onCommit = vi.fn();
    const { unmount } = render(<GrowText label="x" value="" onCommit={onCommit} />);
    type("one");
    fireEvent.blur(field());
    type("two");
    act(() => commitDrafts());
    type("three");
    unmount();
    expect(onCommit.mock.calls).toEqual([["one"], ["two"], ["three"]]);
  });

  it("is not committed while a composition goes on", () => {
    const onCommit = vi.fn();
    render(<GrowText label="x" value="" onCommit={onCommit} />);
    fireEvent.compositionStart(field());
    type("に");
    act(() => vi.advanceTimersByTime(2000));
    act(() => commitDrafts());
    expect(onCommit).not.toHaveBeenCalled();
    type("日本");
    fireEvent.compositionEnd(field());
    act(() => vi.advanceTimersByTime(1000));
    expect(onCommit.mock.calls).toEqual([["日本"]]);
  });

  it("is put back by Escape", () => {
    const onCommit = vi.fn();
    render(<GrowText label="x" value="old" onCommit={onCommit} />);
    type("new");
    fireEvent.keyDown(field(), { key: "Escape" });
    expect(field().value).toBe("old");
    act(() => vi.advanceTimersByTime(1000));
    expect(onCommit).not.toHaveBeenCalled();
  });

  it("is kept, with what is wrong, when it cannot be taken", () => {
    const onCommit = vi.fn();
    render(<TextField label="x" value="4 s" check={(text) => (text === "4 s" ? undefined : "no length")} onCommit={onCommit} />);
    type("soon");
    fireEvent.blur(field());
    expect(screen.getByRole("alert").textContent).toBe("no length");
    expect(field().value).toBe("soon");
    expect(onCommit).not.toHaveBeenCalled();
  });

  it("shows what others write as soon as nothing is typed", () => {
    const { rerender } = render(<GrowText label="x" value="one" onCommit={() => undefined} />);
    rerender(<GrowText label="x" value="two" onCommit={() => undefined} />);
    expect(field().value).toBe("two");
    type("mine");
    rerender(<GrowText label="x" value="three" onCommit={() => undefined} />);
    expect(field().value).toBe("mine");
  });

  it("takes a megabyte", () => {
    const onCommit = vi.fn();
    render(<GrowText label="x" value="" onCommit={onCommit} />);
    const long = "x".repeat(1_000_000);
    type(long);
    fireEvent.blur(field());
    expect(onCommit.mock.calls[0]?.[0]).toHaveLength(1_000_000);
  });
});
