import { useQueries } from "../api/queries";
import type { Job } from "../api/shapes";

/** While a job runs and the page is seen, the screen and with it the machine stay awake, where the
 *  browser can see to that. */
export function stayAwake(): void {
  if (!("wakeLock" in navigator)) return;
  let held: WakeLockSentinel | undefined;
  let asking = false;
  const look = async (): Promise<void> => {
    const jobs = Object.values(useQueries.getState().entries).find((entry) => entry.name === "queue.list")?.data as Job[] | undefined;
    const running = jobs?.some((job) => job.state === "running") ?? false;
    if (running && !held && !asking && !document.hidden) {
      asking = true;
      try {
        held = await navigator.wakeLock.request("screen");
        held.addEventListener("release", () => (held = undefined));
      } catch {
        // Refused, as on a low battery: the work goes on as long as the machine does.
      }
      asking = false;
    } else if (!running && held) {
      await held.release();
    }
  };
  useQueries.subscribe(() => void look());
  document.addEventListener("visibilitychange", () => void look());
}
