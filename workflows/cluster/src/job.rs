//! Jobs: the unit of work that one worker does in one go.

use std::fmt;

use engine_base::{ContentHash, Key};
use serde::{Deserialize, Serialize};

use crate::names::{DeviceClass, RunId};

/// Names a job at its owner, from planning on: a job's key is known only when its inputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A node type in the version that a job needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeType {
    /// Its name, as `film.segment`.
    pub name: String,
    /// Its version, which is part of keys.
    pub version: u32,
}

/// How soon work is wanted. Waiting raises it, see [`crate::Settings::aging_secs`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// When nobody else wants the machine.
    Low,
    /// A film in the making.
    #[default]
    Normal,
    /// A person waits for it.
    High,
}

impl Priority {
    /// Its place on the scale that waiting moves along: 0, 1 or 2.
    pub const fn level(self) -> u8 {
        match self {
            Self::Low => 0,
            Self::Normal => 1,
            Self::High => 2,
        }
    }
}

/// Where the bytes of an input come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Known already.
    Content(ContentHash),
    /// An output of another job: its port, counted from 0.
    Job {
        /// The job that makes it.
        job: JobId,
        /// Which of its outputs.
        port: u32,
    },
}

/// One input of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Where it comes from.
    pub source: Source,
    /// Its size, in bytes; a guess while it is not made.
    pub bytes: u64,
}

/// The model a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelNeed {
    /// Content hash of the model.
    pub model: ContentHash,
    /// What it takes of a device's memory when loaded, in bytes.
    pub bytes: u64,
}

/// A connected part of a graph, self-contained: given its inputs it says the same everywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its id at the owner.
    pub id: JobId,
    /// The run it belongs to.
    pub run: RunId,
    /// Names the work, and is the message's id. `None` until its inputs are made and the owner
    /// gave it by [`crate::Dispatcher::set_key`].
    pub key: Option<Key>,
    /// Hash of the stored description of the subgraph, which the worker fetches.
    pub subgraph: ContentHash,
    /// The node types in it. The first is the one in which the time goes.
    pub node_types: Vec<NodeType>,
    /// Its inputs; those of other jobs are what it waits for.
    pub inputs: Vec<Input>,
    /// The model it runs, if any.
    pub model: Option<ModelNeed>,
    /// How much there is to do, in the node type's own unit (pixels times frames, characters).
    pub size: u64,
    /// Device memory it needs beside the model, in bytes.
    pub working_bytes: u64,
    /// How soon it is wanted.
    pub priority: Priority,
    /// Only devices of this class: a run that has to give the same bytes as another one.
    pub device_class: Option<DeviceClass>,
    /// Only this engine build, for the same reason.
    pub engine_build: Option<ContentHash>,
}

impl Job {
    /// The node type by which its cost is measured.
    pub fn main_type(&self) -> &str {
        self.node_types
            .first()
            .map_or("", |node_type| node_type.name.as_str())
    }

    /// Jobs it waits for, each once, in order of id.
    pub fn needs(&self) -> Vec<JobId> {
        let mut needs: Vec<JobId> = self
            .inputs
            .iter()
            .filter_map(|input| match input.source {
                Source::Job { job, .. } => Some(job),
                Source::Content(_) => None,
            })
            .collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }

    /// Device memory it needs in all, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let model = self.model.map_or(0, |need| need.bytes);
        self.working_bytes.saturating_add(model)
    }
}

/// Something a job made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Which of the job's outputs, counted from 0.
    pub port: u32,
    /// Its content.
    pub content: ContentHash,
    /// Its size, in bytes.
    pub bytes: u64,
}

/// An input as it stands: what to fetch, once it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its content, if it is made.
    pub content: Option<ContentHash>,
    /// Its size, in bytes.
    pub bytes: u64,
}
