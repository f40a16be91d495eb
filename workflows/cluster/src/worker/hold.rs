//! A job that the worker is at.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine_base::{CancelToken, ProgressEvent, ProgressSink};

use crate::lease::Lease;
use crate::transport::AtJob;

/// How far a job has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    last: Mutex<(u64, u64)>,
}

impl ProgressSink for Progress {
    fn report(&self, event: ProgressEvent) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = (event.step, event.of);
    }
}

/// A job under way.
pub(super) struct Held {
    pub(super) lease: Lease,
    pub(super) owner: String,
    pub(super) node: String,
    pub(super) node_type: String,
    /// Stops it; what it makes is discarded.
    pub(super) cancel: CancelToken,
    pub(super) progress: Arc<Progress>,
    pub(super) began: Duration,
    /// When the server was last reached.
    pub(super) reached: Duration,
    /// Made; what is left is to deliver it, which nothing but the end of this process prevents.
    pub(super) finished: bool,
}

impl Held {
    /// As others are told of it.
    pub(super) fn at(&self, now: Duration) -> AtJob {
        let last = self.progress.last.lock();
        let (step, of) = *last.unwrap_or_else(PoisonError::into_inner);
        AtJob {
            lease: self.lease.id,
            owner: self.owner.clone(),
            key: self.lease.key,
            node: self.node.clone(),
            node_type: self.node_type.clone(),
            step,
            of,
            secs: now.saturating_sub(self.began).as_secs_f64(),
            finished: self.finished,
        }
    }

    /// The server was reached.
    pub(super) const fn reached(&mut self, now: Duration) {
        self.reached = now;
    }
}
