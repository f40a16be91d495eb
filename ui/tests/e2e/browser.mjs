// The browser of the tests: Debian's Chromium, driven by playwright-core.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const PLACES = [process.env.LONGTAKE_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export async function openBrowser() {
  const executablePath = PLACES.find((place) => place && existsSync(place));
  if (!executablePath) throw new Error("cannot find a Chromium; install it (apt-get install chromium) or name it in LONGTAKE_CHROMIUM");
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--force-color-profile=srgb", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream", "--autoplay-policy=no-user-gesture-required"] });
}

/** The address of a page of the studio. */
export function pageUrl(base, page, query = {}) {
  const search = new URLSearchParams(query).toString();
  return `${base}#/${page}${search ? `?${search}` : ""}`;
}
