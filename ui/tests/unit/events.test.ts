import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { follow } from "../../src/api/events";
import type { DeskEvent } from "../../src/api/shapes";

class Socket {
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;
  readyState = 1;
  constructor(readonly since: number | undefined) {
    sockets.push(this);
  }
  say(seq: number, event: DeskEvent): void {
    this.onmessage?.({ data: JSON.stringify({ seq, event }) });
  }
  close(): void {
    this.readyState = 3;
    this.onclose?.();
  }
}
let sockets: Socket[] = [];
const hello: DeskEvent = { type: "hello", version: "1", session: "s" };
const moved: DeskEvent = { type: "queue_moved" };

beforeEach(() => {
  sockets = [];
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

describe("following events", () => {
  const start = () => {
    const [events, connections]: [DeskEvent[], boolean[]] = [[], []];
    const feed = follow({
      onEvent: (event) => events.push(event),
      onConnection: (connected) => connections.push(connected),
      open: (since) => new Socket(since) as unknown as WebSocket,
    });
    return { events, connections, feed };
  };

  it("goes on after a lost connection from the last event seen", () => {
    const { events, connections } = start();
    sockets[0]?.say(3, hello);
    sockets[0]?.say(4, moved);
    sockets[0]?.close();
    expect(connections).toEqual([true, false]);
    vi.advanceTimersByTime(250);
    expect(sockets).toHaveLength(2);
    expect(sockets[1]?.since).toBe(4);
    sockets[1]?.say(7, hello);
    expect(connections).toEqual([true, false, true]);
    expect(events.filter((event) => event.type === "queue_moved")).toHaveLength(1);
  });

  it("tries more and more seldom while nobody answers", () => {
    start();
    for (let tries = 0; tries < 8; tries += 1) {
      sockets.at(-1)?.close();
      vi.advanceTimersByTime(4000);
    }
    sockets.at(-1)?.close();
    const before = sockets.length;
    vi.advanceTimersByTime(3900);
    expect(sockets).toHaveLength(before);
    vi.advanceTimersByTime(200);
    expect(sockets).toHaveLength(before + 1);
  });

  it("stops for good when closed", () => {
    const { feed } = start();
    feed.close();
    vi.advanceTimersByTime(60_000);
    expect(sockets).toHaveLength(1);
  });
});
