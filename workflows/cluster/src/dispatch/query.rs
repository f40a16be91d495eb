//! What can be asked of the dispatcher.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Dispatcher;
use super::table::State;
use crate::job::{Held, Job, JobId};
use crate::lease::{Attempt, Failure, LeaseId};
use crate::names::WorkerId;
use crate::placement::{Asker, Refusal, terms};

/// Where a job stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Needs this many jobs that are not done.
    Waiting {
        /// How many.
        missing: usize,
    },
    /// Its inputs are made; the owner has to give its key.
    Unkeyed,
    /// A worker may take it.
    Ready,
    /// Workers are at it.
    Running {
        /// Under these leases.
        leases: Vec<LeaseId>,
    },
    /// Another job has the same key.
    Follows {
        /// That one.
        job: JobId,
    },
    /// Made.
    Done,
    /// Failed for good.
    Failed {
        /// Why.
        reason: Failure,
    },
    /// Not wanted any more.
    Cancelled,
}

/// How many jobs stand where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Waiting, without a key, or following another one.
    pub waiting: usize,
    /// Ready.
    pub ready: usize,
    /// Running.
    pub running: usize,
    /// Done.
    pub done: usize,
    /// Failed.
    pub failed: usize,
    /// Cancelled.
    pub cancelled: usize,
}

impl Counts {
    /// Jobs that have not ended.
    pub const fn open(&self) -> usize {
        self.waiting + self.ready + self.running
    }
}

/// A ready job that no worker takes, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Waits {
    /// Which.
    pub job: JobId,
    /// The reason of the worker that comes nearest to taking it.
    pub refusal: Refusal,
    /// Whether waiting does not help with the workers that are there.
    pub lasting: bool,
}

impl Dispatcher {
    /// Where a job stands.
    pub fn state(&self, job: JobId) -> Option<JobState> {
        let (_, entry) = self.tables.entry(job)?;
        Some(match &entry.state {
            State::Waiting => JobState::Waiting {
                missing: entry.missing,
            },
            State::Unkeyed => JobState::Unkeyed,
            State::Ready => JobState::Ready,
            State::Running => JobState::Running {
                leases: entry.live.clone(),
            },
            State::Follows(of) => {
                let of = self.tables.entries.get(*of)?;
                JobState::Follows { job: of.job.id }
            }
            State::Done => JobState::Done,
            State::Failed(reason) => JobState::Failed {
                reason: reason.clone(),
            },
            State::Cancelled => JobState::Cancelled,
        })
    }

    /// The job itself.
    pub fn job(&self, job: JobId) -> Option<&Job> {
        self.tables.entry(job).map(|(_, entry)| &entry.job)
    }

    /// Its inputs as they stand, in order: what its key is made from once all are known.
    pub fn inputs(&self, job: JobId) -> Option<Vec<Held>> {
        let (_, entry) = self.tables.entry(job)?;
        Some(self.tables.inputs(entry))
    }

    /// Its failed attempts.
    pub fn attempts(&self, job: JobId) -> Option<&[Attempt]> {
        let (_, entry) = self.tables.entry(job)?;
        Some(&entry.attempts)
    }

    /// The longest predicted way from its start to the end of its run, in seconds.
    pub fn rank_secs(&mut self, job: JobId) -> Option<f64> {
        self.tables.refresh();
        self.tables.entry(job).map(|(_, entry)| entry.rank_secs)
    }

    /// Whether a worker is in quarantine, and why.
    pub fn quarantine_of(&self, worker: &WorkerId) -> Option<&Failure> {
        self.tables.workers.get(worker)?.quarantined.as_ref()
    }

    /// How many jobs stand where.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for entry in &self.tables.entries {
            let count = match entry.state {
                State::Waiting | State::Unkeyed | State::Follows(_) => &mut counts.waiting,
                State::Ready => &mut counts.ready,
                State::Running => &mut counts.running,
                State::Done => &mut counts.done,
                State::Failed(_) => &mut counts.failed,
                State::Cancelled => &mut counts.cancelled,
            };
            *count += 1;
        }
        counts
    }

    /// Seconds that a lease is predicted to take still.
    pub fn remaining_secs(&self, lease: LeaseId, now: Duration) -> Option<f64> {
        let held = self.tables.leases.get(&lease).filter(|held| held.live)?;
        Some(self.tables.remaining_secs(held, now))
    }

    /// Ready jobs that no worker takes, whether idle or busy, with the reason of the one that
    /// comes nearest. Empty while no worker is there.
    pub fn waits(&self) -> Vec<Waits> {
        let mut waits = Vec::new();
        for at in &self.tables.ready {
            let mut refusals = Vec::new();
            let mut taken = false;
            for (id, worker) in &self.tables.workers {
                if worker.lanes.is_empty() {
                    let worker = id.clone();
                    refusals.push(Refusal::NoDevice { worker });
                }
                for device in 0..worker.lanes.len() {
                    let asker = Asker {
                        worker: id.clone(),
                        device,
                    };
                    match terms(&self.tables, *at, &asker) {
                        Ok(_) => taken = true,
                        Err(refusal) => refusals.push(refusal),
                    }
                }
            }
            let lasting = refusals.iter().all(Refusal::is_lasting);
            let nearest = refusals.into_iter().max_by_key(Refusal::nearness);
            if let (false, Some(refusal), Some(entry)) =
                (taken, nearest, self.tables.entries.get(*at))
            {
                waits.push(Waits {
                    job: entry.job.id,
                    refusal,
                    lasting,
                });
            }
        }
        waits
    }
}
