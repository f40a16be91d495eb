import { randomName } from "../parts/browser";
import { type PendingEdit, adopt, useEdits } from "./edits";

// What is not saved yet outlives its page: each tab keeps its own edits, and holds a lock as long
// as it lives, so that another one takes over only what a tab left behind that is gone.

const PREFIX = "longtake.edits.";
const TAB = "longtake.tab";

interface Places {
  local: Storage;
  session: Storage;
  /** Absent where the browser has none: then only this tab's own edits are taken up. */
  locks: LockManager | undefined;
}

function read(storage: Storage, key: string): PendingEdit[] {
  try {
    const kept = JSON.parse(storage.getItem(key) ?? "[]") as unknown;
    return Array.isArray(kept) ? (kept as PendingEdit[]) : [];
  } catch {
    storage.removeItem(key);
    return [];
  }
}

function write(storage: Storage, key: string, unsaved: PendingEdit[]): void {
  try {
    if (unsaved.length === 0) storage.removeItem(key);
    else storage.setItem(key, JSON.stringify(unsaved));
  } catch {
    // The store of the browser is full: the edits still wait in memory.
  }
}

/** Keep what is not saved yet, and take up what earlier pages kept. Gives what stops the keeping. */
export async function keepEdits({ local, session, locks }: Places): Promise<() => void> {
  const tab = session.getItem(TAB) ?? randomName();
  session.setItem(TAB, tab);
  const own = PREFIX + tab;
  const earlier = read(local, own);
  const stop = useEdits.subscribe((state) =>
    write(
      local,
      own,
      state.pending.filter((each) => each.taken === undefined),
    ),
  );
  adopt(earlier);
  if (!locks) return stop;
  // Held until the page goes.
  void locks.request(own, () => new Promise<void>(() => undefined));
  const others = Array.from({ length: local.length }, (_, at) => local.key(at) ?? "").filter((key) => key.startsWith(PREFIX) && key !== own);
  for (const key of others) {
    await locks.request(key, { ifAvailable: true }, (lock) => {
      if (!lock) return;
      const left = read(local, key);
      adopt(left);
      local.removeItem(key);
    });
  }
  return stop;
}
