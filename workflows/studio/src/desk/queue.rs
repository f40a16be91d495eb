//! Queue: jobs and what becomes of them.

use std::path::PathBuf;

use flow_story::Coded;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Desk;
use super::list::{CommandEntry, CommandKind, Done, NoArgs};
use crate::error::StudioError;
use crate::film::DrawnTake;
use crate::say::Said;

/// What becomes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Its turn will come.
    Waiting,
    /// It runs.
    Running,
    /// A person stopped it for now; what it made is kept.
    Paused,
    /// It ended well.
    Done,
    /// It ended with an error.
    Failed,
    /// A person stopped it.
    Cancelled,
    /// The program ended while it ran. It goes on by itself, or with `queue.retry`.
    Interrupted,
}

/// Work that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(optional_fields)]
pub struct Job {
    /// Its number.
    pub id: i64,
    /// The command that asked for it, such as `render.start`.
    pub kind: String,
    /// What it is, for people.
    pub title: String,
    /// The same for pages in another language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "Coded")]
    pub title_coded: Option<Coded>,
    /// The project's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// What becomes of it.
    pub state: JobState,
    /// What it does now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The same for pages in another language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "Coded")]
    pub step_coded: Option<Coded>,
    /// Machine and device that it runs on, such as `atelier · cpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// What it makes now, to look at; gone when it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<JobPreview>,
    /// Units done.
    pub done: u64,
    /// Units in all; 0 when not known.
    pub of: u64,
    /// Estimated seconds left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secs_left: Option<f64>,
    /// When it was asked for.
    pub created_unix_millis: u64,
    /// When it last began to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_millis: Option<u64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_unix_millis: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The same for pages in another language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "Coded")]
    pub error_coded: Option<Coded>,
    /// What it gave: see the command that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JobResult>,
}

/// A picture of what a job makes now: `/preview/{job}?n={number}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct JobPreview {
    /// Another number, another picture.
    pub number: u64,
    /// What it shows, such as `segment:boats`.
    pub of: String,
}

/// What a job gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case", tag = "type")]
#[ts(optional_fields)]
pub enum JobResult {
    /// `story.write`, `story.rewrite`: the proposal waits (`proposal.get`).
    Proposal {
        /// How many changes it has.
        changes: usize,
    },
    /// `voice.hear`: a WAV file.
    Sound {
        /// Its content.
        hash: String,
        /// Its length.
        secs: f64,
    },
    /// `render.start`.
    Render {
        /// Results made.
        made: u64,
        /// Results that were there already.
        reused: u64,
        /// What a person should know.
        warnings: Vec<Said>,
    },
    /// `takes.make`.
    Take {
        /// The shot.
        shot: String,
        /// Content of the picture.
        take: String,
        /// What decided its draws.
        seed: u64,
        /// Whether it is a take of the shot now: the shot may have gone meanwhile.
        kept: bool,
        /// Whether the shot did not have it before.
        new: bool,
    },
    /// `takes.draw`.
    Drawn {
        /// The pictures, in the order in which they were drawn.
        takes: Vec<DrawnTake>,
    },
    /// `export.start`.
    Export {
        /// The film.
        out: PathBuf,
        /// Its content.
        hash: String,
        /// Its size.
        bytes: u64,
        /// Its integrated loudness, as measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lufs: Option<f64>,
        /// Its true peak, as measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        true_peak_dbtp: Option<f64>,
        /// Its subtitles beside it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subtitles: Option<PathBuf>,
        /// What a person should know.
        warnings: Vec<Said>,
    },
    /// `media.proxy`: a copy that plays on pages.
    Proxy {
        /// Its content.
        hash: String,
    },
    /// `models.pull`, `models.verify`.
    Model {
        /// Whether every file is here and whole.
        whole: bool,
    },
}

/// A job that was put into the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
pub struct JobStarted {
    /// Its number.
    pub job: i64,
}

/// A job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct JobArgs {
    /// Its number.
    pub id: i64,
}

/// Where a job goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct MoveArgs {
    /// The job.
    pub id: i64,
    /// The job that it goes ahead of; absent means the end.
    #[serde(default)]
    pub before: Option<i64>,
}

/// Commands of this page.
pub(super) fn commands() -> Vec<CommandEntry> {
    use CommandKind::System;
    vec![
        CommandEntry::new(
            "queue.list",
            System,
            "All jobs: running ones, waiting ones in their order, then ended ones, latest first.",
            list,
        ),
        CommandEntry::new(
            "queue.cancel",
            System,
            "Stop a job; what it made is kept.",
            cancel,
        ),
        CommandEntry::new(
            "queue.retry",
            System,
            "Let a job that ended run again.",
            retry,
        ),
        CommandEntry::new("queue.pause", System, "Stop a job for now.", pause),
        CommandEntry::new("queue.resume", System, "Let a paused job go on.", resume),
        CommandEntry::new(
            "queue.move",
            System,
            "Put a waiting job ahead of another.",
            put,
        ),
        CommandEntry::new("queue.log", System, "The last lines of a job's log.", log),
        CommandEntry::new(
            "queue.clear",
            System,
            "Take ended jobs off the list.",
            clear,
        ),
    ]
}

fn list(desk: &Desk, _: NoArgs) -> Result<Vec<Job>, StudioError> {
    Ok(desk.queue.list())
}

fn cancel(desk: &Desk, args: JobArgs) -> Result<Job, StudioError> {
    desk.stop_job(args.id, false)
}

fn retry(desk: &Desk, args: JobArgs) -> Result<Job, StudioError> {
    desk.restart_job(args.id, false)
}

fn pause(desk: &Desk, args: JobArgs) -> Result<Job, StudioError> {
    desk.stop_job(args.id, true)
}

fn resume(desk: &Desk, args: JobArgs) -> Result<Job, StudioError> {
    desk.restart_job(args.id, true)
}

fn put(desk: &Desk, args: MoveArgs) -> Result<Done, StudioError> {
    desk.move_job(args.id, args.before)?;
    Ok(Done {})
}

fn log(desk: &Desk, args: JobArgs) -> Result<Vec<String>, StudioError> {
    desk.queue.lines(args.id)
}

fn clear(desk: &Desk, _: NoArgs) -> Result<Done, StudioError> {
    desk.clear_jobs()?;
    Ok(Done {})
}
