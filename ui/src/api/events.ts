import type { DeskEvent, StreamEvent } from "./shapes";

export type Listener = (event: DeskEvent) => void;

export interface Feed {
  close: () => void;
}

interface Options {
  onEvent: Listener;
  /** Told when the server is there and when it is gone. */
  onConnection: (connected: boolean) => void;
  /** For tests. */
  open?: (since: number | undefined) => WebSocket;
}

const WAIT_MILLIS = [250, 500, 1000, 2000, 4000];

function openSocket(since: number | undefined): WebSocket {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const query = since === undefined ? "" : `?since=${since}`;
  return new WebSocket(`${scheme}://${location.host}/api/events${query}`);
}

/** Follow the server's events; after a lost connection go on from the last one seen. */
export function follow({ onEvent, onConnection, open = openSocket }: Options): Feed {
  let since: number | undefined;
  let tries = 0;
  let closed = false;
  let socket: WebSocket | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const connect = (): void => {
    if (closed) return;
    const now = open(since);
    socket = now;
    now.onmessage = (message: MessageEvent<string>) => {
      const { seq, event } = JSON.parse(message.data) as StreamEvent;
      // `hello` and `reset` are not of the series but say where it stands.
      since = seq;
      if (event.type === "hello") {
        tries = 0;
        onConnection(true);
      }
      onEvent(event);
    };
    now.onclose = () => {
      if (closed || socket !== now) return;
      onConnection(false);
      const wait = WAIT_MILLIS[Math.min(tries, WAIT_MILLIS.length - 1)] ?? 4000;
      tries += 1;
      timer = setTimeout(connect, wait);
    };
  };
  connect();
  const retryNow = (): void => {
    if (closed || socket?.readyState === WebSocket.OPEN || socket?.readyState === WebSocket.CONNECTING) return;
    clearTimeout(timer);
    connect();
  };
  window.addEventListener("online", retryNow);
  return {
    close: () => {
      closed = true;
      clearTimeout(timer);
      window.removeEventListener("online", retryNow);
      socket?.close();
    },
  };
}
