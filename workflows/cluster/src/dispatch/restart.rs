//! Going on after the owner was started again: done jobs are found in the store
//! ([`Dispatcher::found`]), running ones are adopted from the workers that hold them.

use std::time::Duration;

use super::Dispatcher;
use super::table::State;
use crate::lease::{Lease, LeaseId};
use crate::placement::{Asker, terms};

impl Dispatcher {
    /// The same with leases numbered from `first`: higher than any that an earlier owner of these
    /// jobs gave, so that a worker's old lease is never taken for a new one.
    #[must_use]
    pub fn with_first_lease(mut self, first: LeaseId) -> Self {
        self.tables.next_lease = self.tables.next_lease.max(first.0);
        self
    }

    /// The lease that comes next: to be kept, with room above it, before it is given.
    pub const fn next_lease(&self) -> LeaseId {
        LeaseId(self.tables.next_lease)
    }

    /// A worker that joined says that it is at a job under a lease of an earlier owner. Says
    /// whether it shall go on; else it shall stop: the job has ended, has another key by now, or
    /// does not fit there.
    pub fn adopt(&mut self, lease: &Lease, now: Duration) -> bool {
        self.tables.refresh();
        self.tables.next_lease = self.tables.next_lease.max(lease.id.0.saturating_add(1));
        let Some((at, entry)) = self.tables.entry(lease.job) else {
            return false;
        };
        let is_open = matches!(entry.state, State::Ready | State::Running);
        if !is_open || entry.job.key != Some(lease.key) {
            return false;
        }
        let worker = self.tables.workers.get(&lease.worker);
        let lane = worker.and_then(|worker| worker.lanes.get(lease.device));
        let is_free = lane.is_some_and(|lane| lane.lease.is_none());
        if !is_free || self.tables.leases.contains_key(&lease.id) {
            return false;
        }
        let asker = Asker {
            worker: lease.worker.clone(),
            device: lease.device,
        };
        let Ok(terms) = terms(&self.tables, at, &asker) else {
            return false;
        };
        if let Some(entry) = self.tables.entries.get_mut(at) {
            entry.deliveries = entry.deliveries.max(lease.delivery);
        }
        self.book(at, lease, &terms, now);
        true
    }
}
