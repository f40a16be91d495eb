/** Width of the window in the size of its text: zoom and the text size both take from it. */
export function roomRem(): number {
  return window.innerWidth / Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
}
