//! What a run tells while it goes on.

use std::sync::Arc;

use engine_base::{Preview, ProgressEvent};

/// How a node ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// At least one of its calls ran.
    Made,
    /// All of its results were there already.
    Reused,
    /// At least one of its calls failed.
    Failed,
    /// Something it depends on failed.
    Skipped,
}

/// One thing that happened in a run. `node` is the id in the run (with the ids of expanded nodes
/// written `parent.call.local`), `display` the node of the document to show it at.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// The run begins.
    Started {
        /// Nodes that may take part; expansions add to it later.
        nodes: usize,
    },
    /// A call of a node begins.
    NodeStarted {
        /// Id in the run.
        node: Arc<str>,
        /// Node of the document.
        display: Arc<str>,
        /// Its type.
        type_name: &'static str,
        /// Which element, from 0.
        element: usize,
        /// How many elements.
        of: usize,
    },
    /// A running call tells how far it has come; at most ten times a second for each call.
    NodeProgress {
        /// Id in the run.
        node: Arc<str>,
        /// Node of the document.
        display: Arc<str>,
        /// Which element, from 0.
        element: usize,
        /// What it told.
        progress: ProgressEvent,
    },
    /// A running call shows what it makes; at most twice a second for each call.
    NodePreview {
        /// Node of the document.
        display: Arc<str>,
        /// The picture.
        picture: Arc<Preview>,
    },
    /// A node is done with all its elements.
    NodeFinished {
        /// Id in the run.
        node: Arc<str>,
        /// Node of the document.
        display: Arc<str>,
        /// Its type.
        type_name: &'static str,
        /// How.
        ending: Ending,
    },
    /// How far the whole run has come; at most ten times a second.
    Progress {
        /// Nodes done.
        done: usize,
        /// Nodes in all, as far as known.
        of: usize,
        /// Seconds left, when there is enough to estimate from.
        secs_left: Option<f64>,
    },
}

/// Takes what a run tells. Called from worker threads, often; it must return quickly and must
/// bound what it keeps.
pub trait RunObserver: Send + Sync {
    /// Take one event.
    fn event(&self, event: &RunEvent);
}

/// Takes events and drops them.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl RunObserver for NoObserver {
    fn event(&self, _event: &RunEvent) {}
}

impl<F: Fn(&RunEvent) + Send + Sync> RunObserver for F {
    fn event(&self, event: &RunEvent) {
        self(event);
    }
}
