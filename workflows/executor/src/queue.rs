//! Work that is ready, and which thread may take it.

use std::collections::VecDeque;
use std::sync::Arc;

use engine_base::Key;
use flow_graph::{Call, Lane};

use crate::element::Ports;

/// An element of a node of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) node: usize,
    pub(crate) element: usize,
}

/// A call that has to run.
pub(crate) struct Ready {
    pub(crate) place: Place,
    pub(crate) key: Key,
    pub(crate) call: Call,
}

/// An expansion whose outputs are all known.
pub(crate) struct Closed {
    pub(crate) place: Place,
    pub(crate) key: Key,
    pub(crate) ports: Arc<Ports>,
    pub(crate) inputs: Vec<engine_base::ContentHash>,
    pub(crate) wall_millis: u64,
}

/// One piece of work of a thread.
pub(crate) enum Job {
    /// Find out what the elements of this node need and whether they are there.
    Prepare(usize),
    /// Run a call.
    Run(Box<Ready>),
    /// Take the outputs of an expansion for those of the call that gave it.
    Close(Box<Closed>),
}

/// What a thread is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Runs calls of a lane; the processor lane also prepares.
    Lane(Lane),
    /// Only prepares, so that the other lanes are fed while all processor workers are busy.
    Prepare,
}

/// Threads waiting for work, by what they are for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PerRole {
    counts: [usize; 4],
}

impl PerRole {
    pub(crate) const fn of(role: Role) -> usize {
        match role {
            Role::Lane(Lane::Cpu) => 0,
            Role::Lane(Lane::Wait) => 1,
            Role::Lane(Lane::Device) => 2,
            Role::Prepare => 3,
        }
    }

    pub(crate) const fn get(&self, role: Role) -> usize {
        self.counts[Self::of(role)]
    }

    pub(crate) const fn add(&mut self, role: Role) {
        self.counts[Self::of(role)] += 1;
    }

    pub(crate) const fn sub(&mut self, role: Role) {
        self.counts[Self::of(role)] = self.counts[Self::of(role)].saturating_sub(1);
    }
}

/// Everything that is ready.
#[derive(Default)]
pub(crate) struct Queues {
    /// Newest first, so that values are used up soon after they are made.
    prepare: Vec<Job>,
    lanes: [VecDeque<Ready>; 3],
}

impl Queues {
    /// The preparing thread does not run ahead of the processor workers by more than this.
    const AHEAD: usize = 1024;

    pub(crate) fn push(&mut self, job: Job) {
        self.prepare.push(job);
    }

    pub(crate) fn push_run(&mut self, lane: Lane, ready: Ready) {
        self.lanes[PerRole::of(Role::Lane(lane))].push_back(ready);
    }

    /// The next piece of work for a thread of this role.
    pub(crate) fn take(&mut self, role: Role) -> Option<Job> {
        match role {
            Role::Lane(lane) => {
                let run = self.lanes[PerRole::of(role)].pop_front();
                run.map(|ready| Job::Run(Box::new(ready)))
                    .or_else(|| (lane == Lane::Cpu).then(|| self.prepare.pop())?)
            }
            Role::Prepare if self.lanes[0].len() < Self::AHEAD => self.prepare.pop(),
            Role::Prepare => None,
        }
    }

    /// Pieces of work that a thread of this role could take.
    pub(crate) fn waiting(&self, role: Role) -> usize {
        match role {
            Role::Lane(Lane::Cpu) => self.lanes[0].len() + self.prepare.len(),
            Role::Lane(_) => self.lanes[PerRole::of(role)].len(),
            Role::Prepare if self.lanes[0].len() < Self::AHEAD => self.prepare.len(),
            Role::Prepare => 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.prepare.is_empty() && self.lanes.iter().all(VecDeque::is_empty)
    }

    /// Forget everything: the run stops.
    pub(crate) fn clear(&mut self) {
        self.prepare.clear();
        self.lanes.iter_mut().for_each(VecDeque::clear);
    }
}
