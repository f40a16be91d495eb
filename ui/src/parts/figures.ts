/** Figures as people read them. */

export function bytesText(bytes: number, language: string): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = value < 10 && unit > 0 ? 1 : 0;
  return `${new Intl.NumberFormat(language, { maximumFractionDigits: digits }).format(value)} ${units[unit]}`;
}

/** `1:05`, `1:02:05`; a film's time. */
export function clockText(secs: number): string {
  const whole = Math.max(0, Math.round(secs));
  const two = (value: number): string => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

/** A time to wait, rounded as one would say it: `12 s`, `3 min`, `2 h 10 min`. */
export function waitText(secs: number): string {
  const whole = Math.max(0, Math.round(secs));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.round(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const rest = minutes % 60;
  return rest === 0 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 60)} h ${rest} min`;
}

export function whenText(unixMillis: number, language: string, now = Date.now()): string {
  const secs = Math.round((unixMillis - now) / 1000);
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  const steps: [Intl.RelativeTimeFormatUnit, number][] = [
    ["day", 86_400],
    ["hour", 3_600],
    ["minute", 60],
  ];
  if (Math.abs(secs) > 30 * 86_400) {
    return new Intl.DateTimeFormat(language, { dateStyle: "medium" }).format(unixMillis);
  }
  for (const [unit, size] of steps) {
    if (Math.abs(secs) >= size) return format.format(Math.trunc(secs / size), unit);
  }
  return format.format(0, "second");
}

/** Seconds of a length as a script writes it (`5 s`, `400 ms`, `2 min`, `120 frames`, `1001/240 s`). */
export function lengthSecs(text: string, fps: number): number | undefined {
  const parts = /^\s*(\d+(?:\.\d+)?)(?:\/(\d+))?\s*(s|ms|min|frames?)\s*$/.exec(text);
  if (!parts) return undefined;
  const value = Number(parts[1]) / Number(parts[2] ?? 1);
  const scale: Record<string, number> = { s: 1, ms: 0.001, min: 60, frame: 1 / fps, frames: 1 / fps };
  const secs = value * (scale[parts[3] ?? ""] ?? Number.NaN);
  return Number.isFinite(secs) && secs >= 0 && secs <= 86_400 ? secs : undefined;
}

/** `24`, `24000/1001` as a number. */
export function fpsOf(text: string | undefined): number {
  const [num, den] = (text ?? "24").split("/").map(Number);
  const fps = (num ?? 24) / (den ?? 1);
  return Number.isFinite(fps) && fps > 0 ? fps : 24;
}

/** Seconds as a script writes them, without digits that mean nothing. */
export function secsLength(secs: number): string {
  return `${Number(secs.toFixed(3))} s`;
}
