import { create } from "zustand";
import { ensureOpen, flush, forgetOpen, settle, useEdits, whenRefused } from "../api/edits";
import { whenShutOut } from "../api/client";
import { follow } from "../api/events";
import { keepEdits } from "../api/kept";
import { beforeAsking, invalidate, invalidateAll, update, useQueries } from "../api/queries";
import type { DeskEvent, Job, ProjectState, SettingsState } from "../api/shapes";
import i18n from "../text";
import { jobError, jobTitle, say } from "../text/say";
import { takeSettings, usePrefs } from "./prefs";
import { type ToastLevel, toast } from "./toasts";

interface Session {
  /** Undefined until the first connection. */
  connected: boolean | undefined;
  /** The server asks for its token: this browser was not let in, or the server is another one now. */
  shut_out: boolean;
  /** Lines of jobs that run, as they come. */
  logs: Record<number, string[]>;
}

export const useSession = create<Session>(() => ({ connected: undefined, shut_out: false, logs: {} }));

const LOG_LINES_MAX = 2_000;

/** A job as it now is, in its place in the list. */
export function withJob(jobs: Job[], job: Job): Job[] {
  return jobs.some((each) => each.id === job.id) ? jobs.map((each) => (each.id === job.id ? job : each)) : [...jobs, job];
}

function jobEnded(before: Job | undefined, job: Job): void {
  const was = before?.state;
  if (was === job.state || was === undefined) return;
  if (job.state !== "done" && job.state !== "failed" && job.state !== "interrupted") return;
  const message =
    job.state === "done"
      ? i18n.t("queue.toast_done", { title: jobTitle(job) })
      : i18n.t("queue.toast_failed", { title: jobTitle(job), why: jobError(job) ?? "" });
  toast(job.state === "done" ? "good" : "bad", message);
  if (usePrefs.getState().notify && document.hidden && "Notification" in window && Notification.permission === "granted") {
    new Notification("Longtake", { body: message, tag: String(job.id) });
  }
}

const LOOK_MILLIS = 3_000;
const looks = new Map<string, ReturnType<typeof setTimeout>>();

/** While shots are made, see now and then which ones are. */
function lookSoon(project: string): void {
  if (looks.has(project)) return;
  const look = (): void => {
    looks.delete(project);
    invalidate("project.state", { project });
  };
  looks.set(project, setTimeout(look, LOOK_MILLIS));
}

function take(event: DeskEvent): void {
  switch (event.type) {
    case "hello":
      return;
    case "reset":
      invalidateAll();
      return;
    case "project_changed":
      invalidate("project.state", { project: event.project });
      invalidate("proposal.get", { project: event.project });
      invalidate("export.predict", { project: event.project });
      invalidate("render.plan", { project: event.project });
      invalidate("takes.list", { project: event.project });
      return;
    case "job": {
      const { job } = event;
      update("queue.list", {}, (jobs) => {
        jobEnded(
          jobs.find((each) => each.id === job.id),
          job,
        );
        return withJob(jobs, job);
      });
      if (job.state === "running" && job.project && (job.kind === "render.start" || job.kind === "export.start")) lookSoon(job.project);
      if (job.state === "running" || job.state === "waiting" || job.state === "paused") return;
      if (job.project) {
        invalidate("project.state", { project: job.project });
        invalidate("proposal.get", { project: job.project });
        invalidate("render.plan", { project: job.project });
        invalidate("export.list", { project: job.project });
      }
      if (job.kind === "media.proxy") invalidate("media.play");
      if (job.kind.startsWith("models.")) {
        invalidate("makers.list");
        invalidate("models.list");
        invalidate("app.state");
      }
      return;
    }
    case "proposal_changed":
      invalidate("proposal.get", { project: event.project });
      invalidate("project.state", { project: event.project });
      return;
    case "job_gone":
      update("queue.list", {}, (jobs) => jobs.filter((each) => each.id !== event.id));
      return;
    case "queue_moved":
      invalidate("queue.list");
      return;
    case "job_log":
      useSession.setState(({ logs }) => ({
        logs: { ...logs, [event.id]: [...(logs[event.id] ?? []), event.line].slice(-LOG_LINES_MAX) },
      }));
      return;
    case "models_changed":
      invalidate("models.list");
      invalidate("app.state");
      return;
    case "settings_changed":
      invalidate("settings.get");
      invalidate("app.state");
      return;
    case "toast": {
      const levels = { error: "bad", warning: "warn", info: "info" } as const satisfies Record<string, ToastLevel>;
      // The job's own end tells it already.
      if (event.coded?.code === "job_failed") return;
      toast(levels[event.level], say(event.message, event.coded));
    }
  }
}

/** Follow the server from here on. */
export function startSession(): void {
  beforeAsking(async ({ project }) => {
    if (typeof project === "string") await ensureOpen(project);
  });
  whenShutOut(() => useSession.setState({ shut_out: true }));
  whenRefused((refused, why) => {
    const value = refused.edit.edit === "set" && typeof refused.edit.value === "string" ? refused.edit.value : undefined;
    toast("bad", i18n.t("edits.refused", { why }), value);
  });
  let before = false;
  follow({
    onEvent: take,
    onConnection: (connected) => {
      if (!connected) forgetOpen();
      useSession.setState(connected ? { connected, shut_out: false } : { connected });
      if (connected) {
        useEdits.setState({ reachable: true });
        void flush().then(() => {
          if (before) invalidateAll();
          before = true;
        });
      }
    },
  });
  void keepEdits({ local: localStorage, session: sessionStorage, locks: navigator.locks });
  useEdits.subscribe((now, earlier) => {
    if (now.why !== undefined && now.why !== earlier.why) toast("bad", i18n.t("edits.waiting", { why: now.why }));
  });
  // What an answer of the server holds need not be laid over it any more.
  useQueries.subscribe((now, earlier) => {
    for (const [key, entry] of Object.entries(now.entries)) {
      if (entry.data === earlier.entries[key]?.data) continue;
      if (entry.name === "settings.get") takeSettings((entry.data as SettingsState).settings);
      if (entry.name !== "project.state") continue;
      const state = entry.data as ProjectState | undefined;
      if (state) settle(state.project, state.revision);
    }
  });
}
