// What browsers offer on this machine's own address only, and not when the studio is reached
// under another machine's name without TLS.

/** A random name (UUID version 4). */
export function randomName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Put a text on the clipboard; false: the browser does not let it be put there. */
export async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without the clipboard's own way: the copy event of a command carries the text.
    const put = (event: ClipboardEvent): void => {
      event.preventDefault();
      event.stopImmediatePropagation();
      event.clipboardData?.setData("text/plain", text);
    };
    window.addEventListener("copy", put, true);
    const done = document.execCommand("copy");
    window.removeEventListener("copy", put, true);
    return done;
  }
}

/** What the clipboard holds, as far as the browser says. */
export async function fromClipboard(): Promise<string | undefined> {
  try {
    return await navigator.clipboard.readText();
  } catch {
    return undefined;
  }
}
