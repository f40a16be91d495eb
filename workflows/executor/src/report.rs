//! What a run did.

use std::collections::BTreeMap;

use engine_base::Code;
use flow_graph::{NodeId, Problem, Value};
use serde::Serialize;

use crate::costs::Costs;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Everything that could run has run; there may be failures.
    Finished,
    /// It was asked to stop. What was made until then is kept.
    Cancelled,
}

/// One failure of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeFailure {
    /// Id in the run: inside an expansion, `parent.call.local`.
    pub node: String,
    /// The node of the document to show it at.
    pub display: String,
    /// Its type.
    pub type_name: String,
    /// The input it is about, where one can be named.
    pub input: Option<String>,
    /// Which element of a list, from 0; `None` for the node as a whole.
    pub element: Option<usize>,
    /// The kind of failure.
    pub code: Code,
    /// For people.
    pub message: String,
}

/// A node that did not run because another failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedNode {
    /// Id in the run.
    pub node: String,
    /// The node of the document to show it at.
    pub display: String,
    /// Id in the run of the node whose failure is the reason.
    pub because: String,
}

/// Counts of one node type, in calls.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct TypeCount {
    /// Results committed to the store.
    pub made: u64,
    /// Calls whose results are kept in memory only.
    pub called: u64,
    /// Results found in the store.
    pub reused: u64,
    /// Results shared with an equal call of the same run.
    pub shared: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Wall time of all calls that ran, in seconds.
    pub wall_secs: f64,
}

/// One output of a target.
#[derive(Debug, Clone)]
pub struct TargetPort {
    /// Name of the output.
    pub name: &'static str,
    /// Its elements.
    pub elements: Vec<Value>,
}

/// What a run did. Counts are of calls: a node with a list of ten counts ten.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// How it ended.
    pub end: RunEnd,
    /// Results that the store gave a commit number for in this run.
    pub made: u64,
    /// Calls that ran and whose results are kept in memory only.
    pub called: u64,
    /// Results found in the store.
    pub reused: u64,
    /// Results shared with an equal call of the same run.
    pub shared: u64,
    /// Calls that ran and lost to an earlier commit of the same key; that result was used.
    pub duplicates: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Elements that were blocked, silently or with a message.
    pub blocked: u64,
    /// Nodes that did not run because another failed.
    pub skipped: u64,
    /// Nodes that took part, those of expansions included.
    pub nodes: u64,
    /// Calls that did not stop when asked to and were left behind.
    pub abandoned: u64,
    /// Wall time of the run in seconds.
    pub wall_secs: f64,
    /// Counts by node type.
    pub by_type: BTreeMap<&'static str, TypeCount>,
    /// Failures and messages of blocked elements, the first [`RunReport::MAX_LISTED`].
    pub errors: Vec<NodeFailure>,
    /// Skipped nodes, the first [`RunReport::MAX_LISTED`].
    pub skips: Vec<SkippedNode>,
    /// What is wrong with parts of the document, which therefore did not run.
    pub problems: Vec<Problem>,
    /// Outputs of the targets that were reached, in port order. Not part of the written report:
    /// there may be loaded things among them.
    #[serde(skip)]
    pub outputs: BTreeMap<NodeId, Vec<TargetPort>>,
}

impl RunReport {
    /// Most entries of a list in a report; the counts go on.
    pub const MAX_LISTED: usize = 1000;

    /// A report of nothing.
    pub(crate) const fn empty() -> Self {
        Self {
            end: RunEnd::Finished,
            made: 0,
            called: 0,
            reused: 0,
            shared: 0,
            duplicates: 0,
            failed: 0,
            blocked: 0,
            skipped: 0,
            nodes: 0,
            abandoned: 0,
            wall_secs: 0.0,
            by_type: BTreeMap::new(),
            errors: Vec::new(),
            skips: Vec::new(),
            problems: Vec::new(),
            outputs: BTreeMap::new(),
        }
    }

    /// Whether everything that was asked for is there.
    pub fn is_complete(&self) -> bool {
        let is_clean = self.failed == 0 && self.skipped == 0 && self.problems.is_empty();
        self.end == RunEnd::Finished && is_clean
    }

    /// The elements of an output of a target.
    pub fn output(&self, target: &str, name: &str) -> Option<&[Value]> {
        let port = self.outputs.get(target)?.iter().find(|p| p.name == name)?;
        Some(&port.elements)
    }

    /// Add the wall times of this run to what is known.
    pub fn add_costs_to(&self, costs: &mut Costs) {
        for (type_name, count) in &self.by_type {
            costs.note(type_name, count.made + count.called, count.wall_secs);
        }
    }

    pub(crate) fn add_error(&mut self, failure: NodeFailure) {
        if self.errors.len() < Self::MAX_LISTED {
            self.errors.push(failure);
        }
    }

    pub(crate) fn add_skip(&mut self, skip: SkippedNode) {
        self.skipped += 1;
        if self.skips.len() < Self::MAX_LISTED {
            self.skips.push(skip);
        }
    }
}
