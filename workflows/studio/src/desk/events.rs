//! What shells are told without asking.

use flow_story::Coded;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::queue::Job;

/// How much a message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ToastLevel {
    /// Good to know.
    Info,
    /// Work went on differently.
    Warning,
    /// Something failed.
    Error,
}

/// One event of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum DeskEvent {
    /// The stream begins.
    Hello {
        /// Version of the program.
        version: String,
        /// Changes whenever the server is started: what was seen of another one counts no more.
        session: String,
    },
    /// Events were lost: ask for everything again.
    Reset,
    /// A project is another one now: ask for its state.
    ProjectChanged {
        /// The project's folder.
        project: String,
        /// Its revision.
        revision: u64,
    },
    /// A project's proposal came, was taken or refused.
    ProposalChanged {
        /// The project's folder.
        project: String,
    },
    /// A job was added, went on or ended.
    Job {
        /// The job as it is now.
        job: Box<Job>,
    },
    /// A job left the list.
    JobGone {
        /// The job.
        id: i64,
    },
    /// A line of a job's log.
    JobLog {
        /// The job.
        id: i64,
        /// The line.
        line: String,
    },
    /// The order of waiting jobs is another.
    QueueMoved,
    /// Models came or went.
    ModelsChanged,
    /// Settings changed.
    SettingsChanged,
    /// A message for people.
    Toast {
        /// How much it matters.
        level: ToastLevel,
        /// The message.
        message: String,
        /// The same for pages in another language.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional, type = "Coded")]
        coded: Option<Coded>,
    },
}

/// A message of the event stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct StreamEvent {
    /// Its number: what a client asks to go on from.
    pub seq: u64,
    /// What happened.
    pub event: DeskEvent,
}
