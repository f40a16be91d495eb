/** `next` with every part that equals the one in `old` replaced by it, so that what shows an
 *  unchanged part is not drawn again. */
export function share<T>(old: unknown, next: T): T {
  if (Object.is(old, next)) return next;
  if (Array.isArray(old) && Array.isArray(next)) {
    let same = old.length === next.length;
    const shared = next.map((item: unknown, at) => {
      const part = share(old[at], item);
      if (part !== old[at]) same = false;
      return part;
    });
    return (same ? old : shared) as T;
  }
  if (isPlain(old) && isPlain(next)) {
    const keys = Object.keys(next);
    let same = keys.length === Object.keys(old).length;
    const shared: Record<string, unknown> = {};
    for (const key of keys) {
      shared[key] = share(old[key], next[key]);
      if (shared[key] !== old[key] || !(key in old)) same = false;
    }
    return (same ? old : shared) as T;
  }
  return next;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
