//! Jobs on many workers: what a job is, what it will cost, who takes it, and what happens when a
//! worker, a lease or a result goes wrong.
//!
//! Duty: one state machine, [`Dispatcher`], that decides; a [`CostModel`] learned from
//! measurements; a [`Placement`] policy; rules that [`split`] work into jobs; a [`simulate`]d
//! cluster that drives the very same code; and the real one: a [`server`] started as a child, the
//! [`transport`] over NATS JetStream, the [`worker`] that takes jobs, the [`owner`] of a run that
//! hands them out, and [`artifacts`] between their stores. It must not know engines, node types'
//! meaning or film; node types are handed in.
//!
//! Entry points: [`server::Server`], [`worker::Worker`], [`owner::Owner`] (an
//! [`flow_executor::Elsewhere`]), [`simulate::plan`].
//!
//! Invariants: equal events at equal times give equal decisions; a job is counted done at most
//! once; every job ends (done, failed with a reason, or cancelled) as long as events keep coming;
//! a result is harmless however often it arrives.

mod advert;
pub mod artifacts;
mod cost;
mod dispatch;
mod job;
mod join;
mod lease;
mod names;
pub mod owner;
pub mod placement;
pub mod server;
pub mod simulate;
pub mod split;
pub mod transport;
mod version;
pub mod worker;

pub use advert::{Device, LoadedModel, WorkerAdvert};
pub use cost::{
    CostBasis, CostError, CostModel, CostRow, CostStore, MemoryCosts, Prediction, Rates, Work,
};
pub use dispatch::{
    AddError, Counts, Dispatcher, Done, DoneOutcome, Effects, JobState, KeyError, Settings, Waits,
};
pub use job::{Held, Input, Job, JobId, ModelNeed, NodeType, Output, Priority, Source};
pub use join::{JoinLine, JoinLineError};
pub use lease::{Attempt, Failure, Lease, LeaseId, Remedy};
pub use names::{DeviceClass, NameError, RunId, WorkerId};
pub use placement::{Placement, Refusal};
pub use version::{NATS_AT_LEAST, PROTOCOL, Protocol, Version, VersionError, check_nats};
