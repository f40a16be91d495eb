//! An event stream that a client can leave and come back to.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Time after which a silent connection is asked whether it is still there.
const PING: Duration = Duration::from_secs(20);

/// The last events, numbered from 1.
#[derive(Debug)]
pub struct EventLog {
    kept: Mutex<Kept>,
    last: watch::Sender<u64>,
    most: usize,
}

#[derive(Debug, Default)]
struct Kept {
    last: u64,
    events: VecDeque<(u64, Value)>,
}

/// What is there after a number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Since {
    /// These, in order; maybe none.
    Events(Vec<(u64, Value)>),
    /// Some are gone, or the number is of another log: the client must ask for everything again.
    /// The number of the last event.
    Lost(u64),
}

impl EventLog {
    /// A log that keeps the last `most` events.
    pub fn new(most: usize) -> Self {
        Self {
            kept: Mutex::default(),
            last: watch::Sender::new(0),
            most: most.max(1),
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Add an event; gives its number. Never waits for a client.
    pub fn push(&self, event: Value) -> u64 {
        let mut kept = self.kept();
        kept.last += 1;
        let number = kept.last;
        kept.events.push_back((number, event));
        while kept.events.len() > self.most {
            kept.events.pop_front();
        }
        // Under the lock, so that the number seen never goes back.
        self.last.send_replace(number);
        number
    }

    /// Number of the last event.
    pub fn last(&self) -> u64 {
        self.kept().last
    }

    pub(crate) fn since(&self, number: u64) -> Since {
        let kept = self.kept();
        let first = kept
            .events
            .front()
            .map_or(kept.last + 1, |(first, _)| *first);
        if number > kept.last || number + 1 < first {
            return Since::Lost(kept.last);
        }
        let skipped = usize::try_from(number + 1 - first).unwrap_or(usize::MAX);
        Since::Events(kept.events.iter().skip(skipped).cloned().collect())
    }
}

fn message(seq: u64, event: &Value) -> Message {
    Message::text(json!({ "seq": seq, "event": event }).to_string())
}

/// Send `hello`, then every event after number `since` (absent: from now on), for as long as the
/// client stays. Where events were lost, `reset` comes in their place. A client that reads too
/// slowly loses events and is told so; the server never waits for it with more than one batch.
pub async fn follow(
    mut socket: WebSocket,
    log: &EventLog,
    since: Option<u64>,
    hello: Value,
    reset: Value,
) {
    let mut news = log.last.subscribe();
    let mut at = since.unwrap_or_else(|| log.last());
    let start = at.min(log.last());
    if socket.send(message(start, &hello)).await.is_err() {
        return;
    }
    loop {
        match log.since(at) {
            Since::Lost(last) => {
                at = last;
                if socket.send(message(last, &reset)).await.is_err() {
                    return;
                }
            }
            Since::Events(events) => {
                for (number, event) in &events {
                    if socket.send(message(*number, event)).await.is_err() {
                        return;
                    }
                    at = *number;
                }
            }
        }
        tokio::select! {
            lives = async { news.wait_for(|last| *last > at).await.is_ok() } => {
                if !lives {
                    return;
                }
            }
            got = socket.recv() => match got {
                None | Some(Err(_) | Ok(Message::Close(_))) => return,
                // Nothing is asked on this line; pings are answered by the socket itself.
                Some(Ok(_)) => {}
            },
            () = tokio::time::sleep(PING) => {
                if socket.send(Message::Ping(Vec::new().into())).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_numbered_and_the_oldest_go() {
        let log = EventLog::new(3);
        assert_eq!(log.since(0), Since::Events(vec![]));
        assert_eq!(log.since(5), Since::Lost(0), "of another log");
        for number in 1..=5 {
            assert_eq!(log.push(json!(number)), number);
        }
        let numbers = |since| match log.since(since) {
            Since::Events(events) => events.iter().map(|(number, _)| *number).collect(),
            Since::Lost(last) => vec![1000 + last],
        };
        assert_eq!(numbers(5), [0; 0]);
        assert_eq!(numbers(4), [5]);
        assert_eq!(numbers(2), [3, 4, 5]);
        assert_eq!(numbers(1), [1005], "event 2 is gone");
        assert_eq!(numbers(6), [1005]);
    }
}
