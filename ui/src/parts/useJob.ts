import { useEffect, useRef, useState } from "react";
import { useQuery } from "../api/queries";
import type { Job } from "../api/shapes";

/** A job that this control started: how it stands, and what it gave when it is done. */
export function useJob(onEnd: (job: Job) => void): { job: Job | undefined; follow: (id: number | undefined) => void } {
  const [id, setId] = useState<number>();
  const jobs = useQuery("queue.list", {});
  const job = id === undefined ? undefined : jobs.data?.find((each) => each.id === id);
  const latest = useRef(onEnd);
  latest.current = onEnd;
  const state = job?.state;
  useEffect(() => {
    if (!job || (state !== "done" && state !== "failed" && state !== "cancelled" && state !== "interrupted")) return;
    setId(undefined);
    latest.current(job);
  }, [job, state]);
  // It may have begun before the list was told of it.
  useEffect(() => {
    if (id !== undefined && !job) jobs.again();
  }, [id]);
  return { job: id === undefined ? undefined : (job ?? waiting(id)), follow: setId };
}

const waiting = (id: number): Job => ({ id, kind: "", title: "", state: "waiting", done: 0, of: 0, created_unix_millis: 0 });
