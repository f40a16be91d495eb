//! Who takes what: the policy's trait, what a policy sees, and what a job costs on a device.

mod baselines;
mod critical_path;
mod terms;
mod view;

pub use baselines::{FirstCome, RoundRobin};
pub use critical_path::CriticalPath;
pub(crate) use terms::terms;
pub use terms::{Refusal, Terms};
pub use view::{LaneView, ReadyJob, RunningJob, View};

use crate::job::JobId;
use crate::names::WorkerId;

/// An idle device that asks for work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asker {
    /// Its worker.
    pub worker: WorkerId,
    /// Index of the device in the worker's advert.
    pub device: usize,
}

/// What it shall do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Take a ready job.
    Start(JobId),
    /// Begin a running job a second time; the first result wins.
    Duplicate(JobId),
}

/// A policy. Workers pull: it is asked on behalf of one idle device at a time and may say that
/// nothing is best. Equal views have to give equal choices.
pub trait Placement: Send {
    /// Its name, for tables and logs.
    fn name(&self) -> &'static str;

    /// What `asker` shall do now.
    fn choose(&mut self, view: &View<'_>, asker: &Asker) -> Option<Choice>;
}
