//! Board: pictures that are drawn for shots, one or several to choose from.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use engine_base::CancelToken;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Desk;
use super::list::{CommandEntry, CommandKind};
use super::queue::{JobResult, JobStarted};
use super::worker::kept;
use crate::error::StudioError;
use crate::events::Watcher;
use crate::film::PictureWanted;
pub use crate::film::{DrawWhat, DrawnTake};
use crate::say::Say;

/// Pictures to be drawn.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct DrawArgs {
    /// The project's folder.
    pub project: PathBuf,
    /// For which shots.
    pub what: DrawWhat,
    /// How many for each, 1 to 8; 1 where a shot's seed is locked. Absent means 1.
    #[serde(default)]
    pub count: Option<u32>,
}

/// What a job was asked to draw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DrawJob {
    project: PathBuf,
    pub(super) pictures: Vec<PictureWanted>,
}

/// Commands of this page.
pub(super) fn commands() -> Vec<CommandEntry> {
    vec![CommandEntry::new(
        "takes.draw",
        CommandKind::Job,
        "Draw pictures for shots, each a take beside those that its shot has.",
        draw,
    )]
}

pub(super) fn draw(desk: &Desk, args: DrawArgs) -> Result<JobStarted, StudioError> {
    let open = desk.project(&args.project)?;
    let waiting = |row: &str| desk.queue.pictures_waiting(row);
    let pictures = desk
        .studio
        .pictures_wanted(&open.project, &args.what, args.count, &waiting)?;
    let count = pictures.len() as i64;
    let title = match (&args.what, pictures.first()) {
        (DrawWhat::Shots(shots), Some(first)) if shots.len() == 1 => {
            let shot = first.shot.clone();
            match count {
                1 => Say::DrawOne { shot },
                _ => Say::DrawScouts { count, shot },
            }
        }
        _ => Say::DrawMissing {
            count,
            film: open.name(),
        },
    };
    let request = DrawJob {
        project: args.project,
        pictures,
    };
    let folder = Some(open.folder.clone());
    let job = desk.add_job("takes.draw", title, folder, kept(&request))?;
    Ok(JobStarted { job })
}

/// Draw the pictures of a job.
pub(super) fn perform(
    desk: &Desk,
    job: &DrawJob,
    watcher: &Arc<dyn Watcher>,
    cancel: &CancelToken,
) -> Result<JobResult, StudioError> {
    let open = desk.project(&job.project)?;
    let takes = desk
        .studio
        .draw_takes(&open.project, &job.pictures, watcher, cancel)?;
    Ok(JobResult::Drawn { takes })
}
