import { fireEvent, render, screen } from "@testing-library/react";
import { Tooltip } from "radix-ui";
import { describe, expect, test, vi } from "vitest";
import { applyEdit } from "../../src/api/apply";
import type { Script, Take } from "../../src/api/shapes";
import { CompareDialog } from "../../src/pages/board/CompareDialog";
import { Stars } from "../../src/pages/board/Stars";
import { isSeed, parseSeed, seedText } from "../../src/pages/board/takes";
import "../../src/text";

const take = (name: string, chosen: boolean): Take => ({ take: name, kind: "picture", name, media_type: "image/png", by: "own", rating: 0, chosen });

describe("seeds", () => {
  test("are read as they are written", () => {
    expect(parseSeed(undefined)).toEqual({ value: "", locked: false });
    expect(parseSeed("42")).toEqual({ value: "42", locked: false });
    expect(parseSeed("42 locked")).toEqual({ value: "42", locked: true });
    expect(seedText("42", true)).toBe("42 locked");
    expect(seedText("42", false)).toBe("42");
    expect(seedText("", false)).toBeNull();
  });

  test("are whole numbers that JSON keeps", () => {
    for (const good of ["0", "42", "9007199254740991"]) expect(isSeed(good)).toBe(true);
    for (const wrong of ["", "-1", "1.5", "9007199254740992", "often", "1e3"]) expect(isSeed(wrong)).toBe(false);
  });
});

describe("stars", () => {
  test("are given by key and mouse, and taken back", () => {
    const rated = vi.fn();
    const { rerender } = render(<Stars label="Rating" rating={0} onRate={rated} />);
    const stars = screen.getByRole("slider", { name: "Rating" });
    fireEvent.keyDown(stars, { key: "ArrowRight" });
    // The second key counts from what is seen, before the server has answered.
    fireEvent.keyDown(stars, { key: "ArrowRight" });
    expect(rated.mock.calls).toEqual([[1], [2]]);
    rerender(<Stars label="Rating" rating={2} onRate={rated} />);
    expect(stars.getAttribute("aria-valuenow")).toBe("2");
    fireEvent.click(stars.querySelector('[data-star="2"]') as Element);
    expect(rated).toHaveBeenLastCalledWith(0);
    fireEvent.keyDown(stars, { key: "End" });
    expect(rated).toHaveBeenLastCalledWith(5);
  });
});

describe("comparing", () => {
  test("begins with the chosen take and the latest other one", () => {
    const chosen = vi.fn();
    render(
      <Tooltip.Provider>
        <CompareDialog takes={[take("a", false), take("b", true), take("c", false)]} shot="s" aspect={16 / 9} onChoose={chosen} onRate={vi.fn()} onClose={vi.fn()} />
      </Tooltip.Provider>,
    );
    const [left, right] = screen.getAllByRole<HTMLSelectElement>("combobox");
    expect([left?.value, right?.value]).toEqual(["b", "c"]);
    expect(screen.getAllByRole("slider")).toHaveLength(3);
  });
});

test("edits of takes leave the script to the server", () => {
  const script = { longtake: 1, title: "T", language: "en", scenes: [] } as Script;
  expect(applyEdit(script, { edit: "choose_take", shot: "a", take: "b" })).toBe(script);
});
