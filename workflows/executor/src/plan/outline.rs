//! What a plan says.

use flow_graph::{NodeId, Problem};
use serde::Serialize;

/// What would become of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum PlanState {
    /// All its results are there.
    Reused,
    /// It is cheap and pure and was evaluated while planning.
    Evaluated,
    /// At least one of its calls runs.
    WillRun,
    /// At least one of its calls depends on a result that is not there yet; it runs unless that
    /// result turns out to be one that was seen before, or does not ask for it.
    Unknown {
        /// The node that has to give its result first.
        until: NodeId,
    },
    /// It fails: it was tried while planning, or its inputs are wrong.
    WillFail {
        /// Why.
        message: String,
    },
}

/// One node of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanNode {
    /// Its id; `outer:inner` within subgraphs.
    pub id: NodeId,
    /// The node of the document to show it at.
    pub display: NodeId,
    /// Its type.
    pub type_name: &'static str,
    /// What becomes of it.
    #[serde(flatten)]
    pub state: PlanState,
    /// Calls whose results are there, or are those of an equal call.
    pub reused: usize,
    /// Calls that run.
    pub will_run: usize,
    /// Calls of which nothing can be said yet; at least this many.
    pub unknown: usize,
    /// Predicted seconds of the calls that run and of those unknown, if the type was measured.
    pub secs: Option<f64>,
}

/// What a run would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The nodes that may take part, each after those it depends on.
    pub nodes: Vec<PlanNode>,
    /// Calls whose results are there.
    pub reused: u64,
    /// Calls that run.
    pub will_run: u64,
    /// Calls of which nothing can be said yet.
    pub unknown: u64,
    /// Predicted seconds of all calls that run or may run, one after the other, of measured types.
    pub secs: f64,
    /// Calls that run or may run and whose type was never measured.
    pub unmeasured: u64,
    /// What is wrong with the rest of the document.
    pub problems: Vec<Problem>,
}

impl Plan {
    /// The node called `id`.
    pub fn node(&self, id: &str) -> Option<&PlanNode> {
        self.nodes.iter().find(|node| node.id == id)
    }
}
