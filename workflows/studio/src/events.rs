//! What a shell is told while work goes on.

use std::sync::Arc;

use engine_base::{Preview, ProgressEvent};
use serde::{Deserialize, Serialize};

use crate::say::Said;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum StudioEvent {
    /// A stage of a command began.
    Stage {
        /// For people.
        what: Said,
    },
    /// How far the whole command has come; `of` is 0 when that is not known.
    Progress(ProgressEvent),
    /// A node began, went on or ended.
    Node {
        /// The node in the document.
        node: String,
        /// Its state.
        state: NodeState,
        /// How far it has come, while it runs.
        progress: Option<ProgressEvent>,
    },
    /// A node shows what it makes.
    #[serde(skip)]
    Preview {
        /// The node in the document.
        node: String,
        /// The picture.
        picture: Arc<Preview>,
    },
    /// Something a person should know; work goes on.
    Warning {
        /// What and what to do.
        what: Said,
    },
}

/// State of a node in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// It runs.
    Running,
    /// Its result was made.
    Made,
    /// Its result was there already.
    Reused,
    /// It failed.
    Failed,
    /// It could not run because something before it failed.
    Skipped,
}

/// Takes events; called from any thread, must return quickly.
pub trait Watcher: Send + Sync {
    /// Take one event.
    fn event(&self, event: StudioEvent);
}

impl<F: Fn(StudioEvent) + Send + Sync> Watcher for F {
    fn event(&self, event: StudioEvent) {
        self(event);
    }
}
