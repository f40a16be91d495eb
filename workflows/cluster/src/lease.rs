//! Leases: a worker's time-limited right to a job, and how attempts end.

use std::fmt;

use engine_base::{Code, ContentHash, Key};
use serde::{Deserialize, Serialize};

use crate::job::JobId;
use crate::names::WorkerId;

/// Names a lease at its owner; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseId(pub u64);

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A worker's right to a job. Progress keeps it; without any it is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Its id.
    pub id: LeaseId,
    /// The job.
    pub job: JobId,
    /// The job's key.
    pub key: Key,
    /// Who has it.
    pub worker: WorkerId,
    /// Index of the device in the worker's advert.
    pub device: usize,
    /// Which delivery of the job this is, counted from 1.
    pub delivery: u32,
    /// Whether another worker is at the same job; the first result wins.
    pub duplicate: bool,
    /// Models to take out of the device's memory first, so that this job fits.
    pub evict: Vec<ContentHash>,
}

/// Why an attempt at a job, or the job itself, came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[non_exhaustive]
pub enum Failure {
    /// No sign of life within the lease.
    #[error("the lease was lost: no progress came from worker {worker} in time")]
    LeaseLost {
        /// Who had it.
        worker: WorkerId,
    },
    /// The worker left or died.
    #[error("worker {worker} went away")]
    WorkerGone {
        /// Who had it.
        worker: WorkerId,
    },
    /// A node refused its input or failed; the same everywhere when its code says so.
    #[error("the job failed with {code:?}: {text}")]
    Node {
        /// What kind of failure.
        code: Code,
        /// What the node said.
        text: String,
    },
    /// The device had too little memory after all.
    #[error("out of memory: needed {needed_bytes} bytes, {free_bytes} were free")]
    OutOfMemory {
        /// What the job asked for.
        needed_bytes: u64,
        /// What there was.
        free_bytes: u64,
    },
    /// The worker could not write.
    #[error("the disk is full: needed {needed_bytes} bytes, {free_bytes} were free")]
    DiskFull {
        /// What the job had to write.
        needed_bytes: u64,
        /// What there was.
        free_bytes: u64,
    },
    /// An input is at no holder any more.
    #[error("an input is gone from every holder, content {content}")]
    InputGone {
        /// What was to be fetched.
        content: ContentHash,
    },
    /// The worker returned bytes that are not what it said.
    #[error(
        "worker {worker} returned other bytes than it announced: expected {expected}, got {got}"
    )]
    Corrupt {
        /// Who returned them.
        worker: WorkerId,
        /// Announced content.
        expected: ContentHash,
        /// Content of what came.
        got: ContentHash,
    },
    /// The worker's model is not the one asked for.
    #[error("the model on worker {worker} is another one: expected {expected}, got {got}")]
    WrongModel {
        /// Whose model.
        worker: WorkerId,
        /// Asked for.
        expected: ContentHash,
        /// Found.
        got: ContentHash,
    },
    /// It was delivered as often as allowed.
    #[error("gave up after {deliveries} deliveries; the last one: {last}")]
    MaxDeliveries {
        /// How often it was delivered.
        deliveries: u32,
        /// How the last one ended.
        last: Box<Failure>,
    },
    /// A job that it needs failed.
    #[error("job {job}, which it needs, failed: {reason}")]
    Upstream {
        /// The first job that failed.
        job: JobId,
        /// Why that one did.
        reason: Box<Failure>,
    },
    /// No worker can ever take it.
    #[error("no worker can take it: {reason}")]
    NoWorker {
        /// Why the most suitable one cannot.
        reason: String,
    },
}

/// What to do after an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Try again, on any worker.
    Retry,
    /// Try again, not on this worker.
    RetryElsewhere,
    /// Try again elsewhere, and give this worker nothing more.
    Quarantine,
    /// Make the lost input again, then try again.
    Remake(ContentHash),
    /// It would fail the same way everywhere.
    GiveUp,
}

impl Failure {
    /// What helps against it.
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::LeaseLost { .. } | Self::WorkerGone { .. } => Remedy::Retry,
            Self::OutOfMemory { .. } | Self::DiskFull { .. } => Remedy::RetryElsewhere,
            Self::InputGone { content } => Remedy::Remake(*content),
            Self::Corrupt { .. } | Self::WrongModel { .. } => Remedy::Quarantine,
            Self::Node { code, .. } => match code {
                Code::BadInput | Code::NotFound | Code::Refused => Remedy::GiveUp,
                Code::OutOfMemory | Code::DiskFull | Code::NotPermitted => Remedy::RetryElsewhere,
                _ => Remedy::Retry,
            },
            Self::MaxDeliveries { .. } | Self::Upstream { .. } | Self::NoWorker { .. } => {
                Remedy::GiveUp
            }
        }
    }
}

/// One past attempt at a job, for people who want to know why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The lease under which it ran.
    pub lease: LeaseId,
    /// Who ran it.
    pub worker: WorkerId,
    /// How it failed.
    pub failure: Failure,
    /// How long it ran, in milliseconds.
    pub wall_millis: u64,
}
