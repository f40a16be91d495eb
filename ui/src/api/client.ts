import { say } from "../text/say";
import type { ApiError, ArgsOf, CommandName, ErrorCode, ResultOf, Uploaded } from "./shapes";

const PASSING: ReadonlySet<string> = new Set(["unreachable", "busy", "disk_full", "io", "out_of_memory"]);

/** A command that the server refused, or a server that could not be reached (`code` "unreachable"). */
export class CallError extends Error {
  constructor(
    readonly code: ErrorCode | "unreachable",
    message: string,
  ) {
    super(message);
    this.name = "CallError";
  }

  /** Whether the same may be taken later: nothing is wrong with what was asked. */
  get mayPass(): boolean {
    return PASSING.has(this.code);
  }
}

type Answer<T> = { ok: T } | { error: ApiError };

let onShutOut: () => void = () => undefined;

/** Say what to do when the server does not know this browser (any more). */
export function whenShutOut(tell: () => void): void {
  onShutOut = tell;
}

async function answered<T>(response: Response): Promise<T> {
  if (response.status === 401) onShutOut();
  let answer: Answer<T>;
  try {
    answer = (await response.json()) as Answer<T>;
  } catch {
    // A proxy or a dying server answers with something else; the edit was not taken.
    throw new CallError(
      response.status >= 502 ? "unreachable" : "internal",
      `the server answered ${response.status} ${response.statusText}`,
    );
  }
  if ("ok" in answer) return answer.ok;
  throw new CallError(answer.error.code, say(answer.error.message, answer.error.coded));
}

async function reached(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, { credentials: "same-origin", ...init });
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw new CallError("unreachable", "the server could not be reached");
  }
}

/** Ask the server to carry out a command. */
export async function call<N extends CommandName>(
  name: N,
  args: ArgsOf<N>,
  signal?: AbortSignal,
): Promise<ResultOf<N>> {
  const init: RequestInit = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(args),
  };
  if (signal) init.signal = signal;
  return answered<ResultOf<N>>(await reached(`/api/call/${name}`, init));
}

/** Bring a file into the project's media. */
export async function upload(project: string, file: File, name: string = file.name): Promise<Uploaded> {
  const query = new URLSearchParams({ project, name });
  const response = await reached(`/api/upload?${query}`, { method: "POST", body: file });
  return answered<Uploaded>(response);
}

/** Bring a missing file of the project back; one of another content is refused. */
export async function relink(project: string, name: string, file: File): Promise<Uploaded> {
  const query = new URLSearchParams({ project, name, relink: "true" });
  const response = await reached(`/api/upload?${query}`, { method: "POST", body: file });
  return answered<Uploaded>(response);
}

export const previewUrl = (job: number, number: number): string => `/preview/${job}?n=${number}`;
export const mediaUrl = (hash: string): string => `/media/${encodeURIComponent(hash)}`;
export const thumbUrl = (hash: string, width: number): string => `/thumb/${encodeURIComponent(hash)}?w=${width}`;

/** What an error says, for people. */
export function said(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** How loud a sound is along its length: `bars` values from 0 to 1. */
export async function waveOf(hash: string, bars: number): Promise<number[]> {
  const response = await reached(`/wave/${encodeURIComponent(hash)}?bars=${bars}`, {});
  const wave = await answered<unknown>(response);
  return Array.isArray(wave) ? wave.filter((each) => typeof each === "number") : [];
}
