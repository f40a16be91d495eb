//! Time as a value handed in, so that logic never reads the machine's clock by itself.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A source of time.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970-01-01 UTC. May jump, also backwards: never used to order events.
    fn unix_millis(&self) -> u64;

    /// Time since an arbitrary start; never goes back.
    fn monotonic(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn unix_millis(&self) -> u64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that moves only when told, for tests.
#[derive(Debug, Default)]
pub struct ManualClock {
    now: Mutex<(u64, Duration)>,
}

impl ManualClock {
    /// A clock that says `unix_millis`.
    pub fn at(unix_millis: u64) -> Self {
        Self {
            now: Mutex::new((unix_millis, Duration::ZERO)),
        }
    }

    /// Move both times on.
    pub fn advance(&self, by: Duration) {
        let mut now = self
            .now
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        now.0 += u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        now.1 += by;
    }

    /// Set the wall clock, also backwards; monotonic time stays.
    pub fn set_unix_millis(&self, unix_millis: u64) {
        self.now
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .0 = unix_millis;
    }
}

impl Clock for ManualClock {
    fn unix_millis(&self) -> u64 {
        self.now
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .0
    }

    fn monotonic(&self) -> Duration {
        self.now
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .1
    }
}
