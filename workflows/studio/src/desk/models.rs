//! Models: which there are, fetching, checking, removing.

use std::path::PathBuf;

use engine_base::Code;
use engine_hub::ModelState;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Desk;
use super::events::DeskEvent;
use super::list::{CommandEntry, CommandKind, NoArgs};
use super::queue::JobStarted;
use super::worker::kept;
use crate::error::StudioError;
use crate::models::{self, ModelRow};
use crate::say::Say;

/// How much of a model is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ModelHere {
    /// Every file is here and was hashed.
    Installed,
    /// Every file is here with its right size; some were not hashed yet.
    Unverified,
    /// Some of it is here.
    Partial,
    /// Nothing is here.
    Missing,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct Model {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it makes: `text`, `speech`, `upscale`, `runtime`, …
    pub kind: String,
    /// Size of its files together.
    pub bytes: u64,
    /// Bytes of it that are here.
    pub bytes_here: u64,
    /// Memory that it takes when loaded.
    pub memory_bytes: u64,
    /// SPDX expression.
    pub licence: String,
    /// Where the licence's text is.
    pub licence_link: String,
    /// What the licence allows.
    pub allows: ModelAllows,
    /// How much of it is here.
    pub state: ModelHere,
    /// Whether it is one of the default pack.
    pub default: bool,
    /// Its folder, whether it is there or not.
    pub folder: PathBuf,
    /// The job that fetches or checks it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub job: Option<i64>,
}

/// What a licence allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct ModelAllows {
    /// Use that earns money.
    pub commercial: bool,
    /// Passing the weights on.
    pub redistribution: bool,
    /// Conditions, for people.
    pub note: String,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ModelArgs {
    /// Its id.
    pub id: String,
}

/// What a removal did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct RemovedModel {
    /// Bytes given back.
    pub bytes: u64,
    /// Files in the model's folder that are not the model's: they stay.
    pub left: Vec<PathBuf>,
}

/// Commands of this page.
pub(super) fn commands() -> Vec<CommandEntry> {
    use CommandKind::{Job, System};
    vec![
        CommandEntry::new("models.list", System, "Every model that is known.", list),
        CommandEntry::new(
            "models.pull",
            Job,
            "Fetch a model; what is here already is not fetched again.",
            pull,
        ),
        CommandEntry::new("models.verify", Job, "Hash a model's files again.", verify),
        CommandEntry::new(
            "models.remove",
            System,
            "Remove a model from this machine.",
            remove,
        ),
    ]
}

fn list(desk: &Desk, _: NoArgs) -> Result<Vec<Model>, StudioError> {
    let rows = models::models_list()?;
    let model = |row: ModelRow| {
        let (state, bytes_here) = match row.state {
            ModelState::Installed => (ModelHere::Installed, row.bytes),
            ModelState::Unverified => (ModelHere::Unverified, row.bytes),
            ModelState::Partial { bytes_here } => (ModelHere::Partial, bytes_here),
            ModelState::Missing => (ModelHere::Missing, 0),
        };
        let kind = serde_json::to_value(row.entry.kind).unwrap_or_default();
        Model {
            job: desk.queue.job_of_model(&row.entry.id),
            kind: kind.as_str().unwrap_or_default().to_owned(),
            id: row.entry.id,
            name: row.entry.title,
            bytes: row.bytes,
            bytes_here,
            memory_bytes: row.entry.memory_bytes,
            licence: row.entry.licence.spdx,
            licence_link: row.entry.licence.link,
            allows: ModelAllows {
                commercial: row.entry.allows.commercial,
                redistribution: row.entry.allows.redistribution,
                note: row.entry.allows.note,
            },
            state,
            default: row.entry.default,
            folder: row.folder,
        }
    };
    Ok(rows.into_iter().map(model).collect())
}

/// Name of a model for people; unknown ones are refused before they get into the queue.
fn title(id: &str) -> Result<String, StudioError> {
    Ok(models::hub()?.entry(id)?.title.clone())
}

fn pull(desk: &Desk, args: ModelArgs) -> Result<JobStarted, StudioError> {
    let name = title(&args.id)?;
    let title = Say::FetchModel { name };
    if let Some(job) = desk.queue.job_of_model(&args.id) {
        return Ok(JobStarted { job });
    }
    let job = desk.add_job("models.pull", title, None, kept(&args))?;
    desk.tell(&DeskEvent::ModelsChanged);
    Ok(JobStarted { job })
}

fn verify(desk: &Desk, args: ModelArgs) -> Result<JobStarted, StudioError> {
    let name = title(&args.id)?;
    let title = Say::CheckModel { name };
    let job = desk.add_job("models.verify", title, None, kept(&args))?;
    Ok(JobStarted { job })
}

fn remove(desk: &Desk, args: ModelArgs) -> Result<RemovedModel, StudioError> {
    if let Some(job) = desk.queue.job_of_model(&args.id) {
        return Err(StudioError::said(Code::Busy, &Say::JobsBusy { job }));
    }
    let removed = models::models_remove(&[args.id])?;
    desk.tell(&DeskEvent::ModelsChanged);
    let removed = removed.into_iter().next().map(|one| one.removed);
    Ok(removed.map_or(
        RemovedModel {
            bytes: 0,
            left: Vec::new(),
        },
        |removed| RemovedModel {
            bytes: removed.bytes,
            left: removed.left,
        },
    ))
}
