//! What an owner knows at a moment.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use engine_base::{Key, ProgressEvent};
use flow_executor::{FarCall, FarMade};
use flow_graph::NodeError;
use flow_store::cluster::OutJob;

use super::ByWorker;
use crate::artifacts::Fetched;
use crate::dispatch::Dispatcher;
use crate::job::JobId;
use crate::lease::{Lease, LeaseId};
use crate::names::WorkerId;
use crate::transport::{Card, JobMessage};

/// A call that waits for its end.
pub(super) struct Waiting {
    pub(super) call: FarCall,
    pub(super) end: Option<Result<FarMade, NodeError>>,
    pub(super) progress: Option<ProgressEvent>,
    /// Keeps the files of its result until they are committed.
    pub(super) files: Vec<Fetched>,
}

impl Waiting {
    pub(super) const fn new(call: FarCall) -> Self {
        Self {
            call,
            end: None,
            progress: None,
            files: Vec::new(),
        }
    }
}

/// A lease that is out.
#[derive(Debug, Clone)]
pub(super) struct Out {
    pub(super) lease: Lease,
    /// What was published, and where.
    pub(super) subject: String,
    pub(super) message: Vec<u8>,
    /// When it was given, or adopted.
    pub(super) given: Duration,
    /// When its worker last said that it is at it.
    pub(super) seen: Option<Duration>,
    /// Its result is here; its files may be on their way.
    pub(super) arrived: bool,
    /// Place of its message in the stream; of the present stream only.
    pub(super) place: Option<u64>,
    /// When its worker last said that it is at it and has not ended it.
    pub(super) at_work: Option<Duration>,
}

/// A worker that is at a job says so at least this often.
const SAYS_SO: Duration = Duration::from_millis(1500);

impl Out {
    /// Whether a result may be on its way: then nobody else is to begin the same. Only a worker
    /// that was just heard to be in the middle of it, since the server was last reached, has none
    /// under way.
    pub(super) fn may_be_finished(&self, reached_since: Duration, now: Duration) -> bool {
        let is_at_work = self
            .at_work
            .is_some_and(|at| at >= reached_since && now.saturating_sub(at) < SAYS_SO);
        self.arrived || !is_at_work
    }
}

/// A worker's last sign of life.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sign {
    pub(super) at: Duration,
    pub(super) start: u64,
}

/// How long it takes to hear from every worker that is there.
const SETTLE: Duration = Duration::from_millis(1500);

pub(super) struct State {
    pub(super) dispatcher: Dispatcher,
    pub(super) calls: HashMap<JobId, Waiting>,
    pub(super) out: BTreeMap<LeaseId, Out>,
    /// Leases that an earlier start of this owner gave, by key.
    pub(super) earlier: HashMap<Key, OutJob>,
    pub(super) cards: ByWorker<Card>,
    pub(super) signs: ByWorker<Sign>,
    /// Jobs that a worker is at and that are not ours, or not yet adopted: it has no room.
    pub(super) others: ByWorker<usize>,
    /// Since when the server can be reached; leases are not lost while it cannot.
    pub(super) reached_since: Duration,
    pub(super) was_reached: bool,
    /// When the server's stream of jobs was made, by its clock.
    pub(super) jobs_since: Option<i128>,
    pub(super) paused: bool,
    /// Until then, workers that earlier leases name get nothing new: they may be at them still.
    pub(super) settled: Duration,
    next_id: u64,
}

impl State {
    pub(super) fn new(dispatcher: Dispatcher, jobs: &[OutJob], now: Duration) -> Self {
        Self {
            dispatcher,
            calls: HashMap::new(),
            out: BTreeMap::new(),
            earlier: jobs.iter().map(|job| (job.key, job.clone())).collect(),
            cards: BTreeMap::new(),
            signs: BTreeMap::new(),
            others: BTreeMap::new(),
            settled: now + SETTLE,
            reached_since: now,
            was_reached: true,
            jobs_since: None,
            paused: false,
            next_id: 1,
        }
    }

    pub(super) const fn next_id(&mut self) -> JobId {
        let id = JobId(self.next_id);
        self.next_id += 1;
        id
    }

    /// Keep the dispatcher from having done a second time what may be finished.
    pub(super) fn hold_back(&mut self, now: Duration) {
        for out in self.out.values() {
            let held_back = out.may_be_finished(self.reached_since, now);
            self.dispatcher.hold_back(out.lease.id, held_back);
        }
    }

    /// Whether a worker has room for something new.
    pub(super) fn has_room(&self, worker: &WorkerId, now: Duration) -> bool {
        let mut earlier = self.earlier.values();
        let mut may_be_busy = || earlier.any(|job| job.worker == worker.as_str());
        self.others.get(worker).is_none_or(|others| *others == 0)
            && (now >= self.settled || !may_be_busy())
    }

    /// The lease that an earlier start of this owner gave for a key.
    pub(super) fn earlier_lease(&self, key: &Key) -> Option<(Lease, &OutJob)> {
        let job = self.earlier.get(key)?;
        let message: JobMessage = serde_json::from_slice(&job.message).ok()?;
        Some((message.lease, job))
    }
}
