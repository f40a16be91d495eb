let tabbed = false;

if (typeof window !== "undefined") {
  window.addEventListener("keydown", (event) => (tabbed = event.key === "Tab"), true);
  window.addEventListener("pointerdown", () => (tabbed = false), true);
}

/** Whether the focus moves by the Tab key: a focus that is given back after a dialog shows no tip,
 *  which would take the next Escape. */
export const wasTabbed = (): boolean => tabbed;

/** Where tips and menus are put: inside the page's landmark. */
export const floatPlace = (): HTMLElement | null => document.getElementById("float");
