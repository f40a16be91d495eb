//! Progress in bytes.

use std::time::{Duration, Instant};

use engine_base::{ProgressEvent, ProgressSink, SecondsLeft};

/// Shortest time between two reports.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Counts bytes and tells a sink, not too often.
pub(crate) struct Meter<'a> {
    what: String,
    done: u64,
    of: u64,
    sink: &'a dyn ProgressSink,
    began: Instant,
    told: Option<Instant>,
    left: SecondsLeft,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(what: &str, of: u64, sink: &'a dyn ProgressSink) -> Self {
        Self {
            what: what.to_owned(),
            done: 0,
            of,
            sink,
            began: Instant::now(),
            told: None,
            left: SecondsLeft::new(of as f64),
        }
    }

    pub(crate) fn add(&mut self, bytes: u64) {
        self.done = (self.done + bytes).min(self.of);
        if self.told.is_none_or(|told| told.elapsed() >= REPORT_EVERY) {
            self.tell(self.done, self.of);
        }
    }

    /// Bytes counted that turned out to be of no use.
    pub(crate) fn take_back(&mut self, bytes: u64) {
        self.done = self.done.saturating_sub(bytes);
        // What came before says nothing about the rate now.
        self.left = SecondsLeft::new(self.of as f64);
    }

    /// Tell of work beside the count, such as an archive that a client fetches.
    pub(crate) fn beside(&mut self, what: &str, step: u64, of: u64, left: Option<f64>) {
        self.sink.report(ProgressEvent {
            what: what.to_owned(),
            step,
            of,
            secs_left: left,
        });
    }

    pub(crate) fn finish(&mut self) {
        self.tell(self.of, self.of);
    }

    fn tell(&mut self, step: u64, of: u64) {
        let secs_left = self.left.update(self.began.elapsed(), step as f64);
        self.told = Some(Instant::now());
        self.sink.report(ProgressEvent {
            what: self.what.clone(),
            step,
            of,
            secs_left,
        });
    }
}
