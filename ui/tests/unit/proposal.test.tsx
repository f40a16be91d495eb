import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { Tooltip } from "radix-ui";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { useQueries } from "../../src/api/queries";
import type { Proposal as Proposed } from "../../src/api/shapes";
import { useToasts } from "../../src/app/toasts";
import { Proposal, shownValue } from "../../src/pages/story/Proposal";
import i18n from "../../src/text";
import { serve } from "./kit";

const change = (number: number, field: string, old: unknown, next: unknown) => ({ number, path: `/scenes/s/shots/a${field}`, kind: "shot", id: "a", field, old, new: next, by: "model" });
const proposal: Proposed = { from: "x", at_unix_millis: 0, changes: [change(1, "/action", "She waits.", "She runs."), change(2, "/note", null, "hold"), change(3, "/framing", "wide", null)] };

beforeEach(async () => {
  useQueries.setState({ entries: {} });
  useToasts.setState({ list: [] });
  await i18n.changeLanguage("en");
});

const show = (onDone = vi.fn()) => {
  render(
    <Tooltip.Provider>
      <Proposal project="/p" proposal={proposal} onDone={onDone} />
    </Tooltip.Provider>,
  );
  return onDone;
};

describe("a proposal", () => {
  it("is taken but for what is unticked", async () => {
    const { calls } = serve({ "proposal.take": () => ({ revision: 2 }) });
    const done = show();
    fireEvent.click(screen.getByRole("checkbox", { name: /note/ }));
    fireEvent.click(screen.getByRole("button", { name: "Take 2" }));
    await waitFor(() => expect(done).toHaveBeenCalled());
    expect(calls[0]?.args).toEqual({ project: "/p", accepted: { these: ["1", "3"] } });
  });

  it("is taken whole in one word", async () => {
    const { calls } = serve({ "proposal.take": () => ({ revision: 2 }) });
    const done = show();
    fireEvent.click(screen.getByRole("button", { name: "Take 3" }));
    await waitFor(() => expect(done).toHaveBeenCalled());
    expect(calls[0]?.args["accepted"]).toBe("all");
  });

  it("stays when taking is refused, and says why", async () => {
    serve({
      "proposal.take": () => {
        throw new Error("these changes cannot be taken without others");
      },
    });
    const done = show();
    fireEvent.click(screen.getByRole("button", { name: "Take 3" }));
    await waitFor(() => expect(useToasts.getState().list[0]?.message).toBe("these changes cannot be taken without others"));
    expect(done).not.toHaveBeenCalled();
  });

  it("cannot be taken with nothing ticked", () => {
    serve({});
    show();
    fireEvent.click(screen.getByRole("button", { name: "Tick none" }));
    expect(screen.getByRole<HTMLButtonElement>("button", { name: "Take 0" }).disabled).toBe(true);
  });

  it("marks what goes and what comes", () => {
    serve({});
    show();
    expect(document.querySelector("del")?.textContent).toBe("waits");
    expect(document.querySelector("ins")?.textContent).toBe("runs");
  });

  it("shows things by what they say", () => {
    expect(shownValue({ speaker: "MARA", text: "Hi." })).toBe("MARA: Hi.");
    expect(shownValue({ id: "x", length: "3 s", action: "She runs." })).toBe("length: 3 s\naction: She runs.");
    expect(shownValue([{ text: "one" }, { text: "two" }])).toBe("one\ntwo");
    expect(shownValue(null)).toBe("");
  });
});

describe("messages", () => {
  it("can be read again, and the same twice in a row is one", async () => {
    const { toast, hideToast } = await import("../../src/app/toasts");
    toast("bad", "no");
    toast("bad", "no");
    toast("good", "yes");
    const [yes, no, more] = useToasts.getState().list;
    expect([yes?.message, no?.message, more]).toEqual(["yes", "no", undefined]);
    hideToast(yes?.id ?? 0);
    expect(useToasts.getState().list.map((each) => each.shown)).toEqual([false, true]);
  });
});
