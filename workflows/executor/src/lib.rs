//! Runs a workflow graph: plan, lookup, parallel calls, commit, progress, cancel, resume.
//!
//! Duty: from a [`flow_graph::Document`], a [`flow_graph::Registry`] and a [`flow_store::Store`]
//! to results, making only what is not there. It must not know film, media, models or where
//! documents come from; node types are handed in.
//!
//! Entry points: [`Executor::plan`] and [`Executor::run`]; a [`RunObserver`] is told what happens.
//!
//! What a node gets: every port carries a list. A node is called once for each index of its
//! longest input list, shorter lists repeat their last element; an empty list means no calls.
//! Lists at `whole_list` inputs are handed over whole and do not count; a blocked element in one
//! blocks the call. An element that is blocked does not run and gives blocked outputs; a message
//! stands in the report at the first node it reaches and goes no further.
//!
//! Invariants:
//! - Each call has a key over its own inputs; equal keys in flight run once; a key that the store
//!   has is not run. Content decides, so an upstream call that gives the same bytes as before runs
//!   nothing below it.
//! - A report, and the end of a run, come only after every commit is durable or has failed.
//! - Outputs are let go when the last node that can read them is done.

mod artifacts;
mod board;
mod commit;
mod convert;
mod costs;
mod element;
mod elsewhere;
mod error;
mod executor;
mod expand;
mod keys;
mod limits;
mod memo;
mod net;
mod observe;
mod perform;
mod plan;
mod queue;
mod report;
mod run;
mod shared;

pub use artifacts::StoreArtifacts;
pub use costs::{Cost, Costs};
pub use elsewhere::{Elsewhere, FarCall, FarError, FarMade};
pub use error::RunError;
pub use executor::{Executor, Request};
pub use limits::Limits;
pub use observe::{Ending, NoObserver, RunEvent, RunObserver};
pub use plan::{Plan, PlanNode, PlanState};
pub use report::{NodeFailure, RunEnd, RunReport, SkippedNode, TargetPort, TypeCount};
