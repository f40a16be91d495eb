//! Progress reports and the estimate of seconds left.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One report of how far work has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgressEvent {
    /// What is being worked on, for people.
    pub what: String,
    /// Units done.
    pub step: u64,
    /// Units in all; 0 when not known.
    pub of: u64,
    /// Estimated seconds left, when there is enough to estimate from.
    pub secs_left: Option<f64>,
}

/// Takes progress reports. Called from any thread, often; it must return quickly.
pub trait ProgressSink: Send + Sync {
    /// Take one report.
    fn report(&self, event: ProgressEvent);
}

/// Takes reports and drops them.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl ProgressSink for NoProgress {
    fn report(&self, _event: ProgressEvent) {}
}

impl<F: Fn(ProgressEvent) + Send + Sync> ProgressSink for F {
    fn report(&self, event: ProgressEvent) {
        self(event);
    }
}

/// Estimates seconds left from the rate over the last half minute, so that a slow start or a
/// cached first half does not distort it.
#[derive(Debug, Clone)]
pub struct SecondsLeft {
    of: f64,
    seen: VecDeque<(Duration, f64)>,
}

impl SecondsLeft {
    const WINDOW: Duration = Duration::from_secs(30);

    /// An estimate towards `of` units.
    pub fn new(of: f64) -> Self {
        Self {
            of,
            seen: VecDeque::new(),
        }
    }

    /// Change the total, as when work is found to be done already.
    pub const fn set_of(&mut self, of: f64) {
        self.of = of;
    }

    /// Note that `done` units are done at monotonic time `at`; gives the estimate, `None` until
    /// half a second of work was seen.
    pub fn update(&mut self, at: Duration, done: f64) -> Option<f64> {
        if self.seen.back().is_none_or(|(last, _)| at >= *last) {
            self.seen.push_back((at, done));
        }
        while self.seen.len() > 2 && at.saturating_sub(self.seen[1].0) > Self::WINDOW {
            self.seen.pop_front();
        }
        let (first_at, first_done) = *self.seen.front()?;
        let secs = at.saturating_sub(first_at).as_secs_f64();
        let units = done - first_done;
        if secs < 0.5 || units <= 0.0 {
            return None;
        }
        Some(((self.of - done).max(0.0)) * secs / units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_from_the_recent_rate() {
        let mut left = SecondsLeft::new(100.0);
        assert_eq!(left.update(Duration::ZERO, 0.0), None);
        assert_eq!(left.update(Duration::from_secs(10), 10.0), Some(90.0));
        // Twice as fast from here on: after the window has moved, only the new rate counts.
        let mut last = None;
        for second in 11..=50 {
            last = left.update(
                Duration::from_secs(second),
                10.0 + 2.0 * (second - 10) as f64,
            );
        }
        let secs = last.unwrap();
        assert!(
            (secs - 5.0).abs() < 0.5,
            "expected about 5 s left, got {secs}"
        );
    }
}
