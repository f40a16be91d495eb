//! Board: what would be made, and making it.

use std::path::PathBuf;
use std::sync::Arc;

use engine_base::Code;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::list::{CommandEntry, CommandKind};
use super::queue::JobStarted;
use super::state::OpenProject;
use super::worker::kept;
use super::{Desk, perform};
use crate::error::StudioError;
use crate::events::Watcher;
use crate::film::{FilmRequest, Given};
use crate::say::{Said, Say};
use crate::script::ScriptWarning;
use crate::workflow::{PlanState, PlannedNode};

/// What to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum RenderWhat {
    /// The pictures of every shot, the lines and the sound.
    All,
    /// Only the pictures of shots that are not made yet.
    Missing,
    /// The pictures of these shots.
    Shots(Vec<String>),
}

/// What to make of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct RenderArgs {
    /// The project's folder.
    pub project: PathBuf,
    /// What.
    pub what: RenderWhat,
    /// Quick and coarse, to look at; the final film does not use it.
    #[serde(default)]
    pub draft: Option<bool>,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(optional_fields)]
pub struct RenderNode {
    /// Its name, such as `segment:boats`.
    pub node: String,
    /// Its type, such as `film.segment`.
    pub type_name: String,
    /// What becomes of it.
    pub state: PlanState,
    /// What it waits for, or why it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The shot that it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shot: Option<String>,
}

/// What would be made.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(optional_fields)]
pub struct RenderPlan {
    /// Steps that run.
    pub to_make: u64,
    /// Steps whose results are there.
    pub reused: u64,
    /// Steps of which nothing can be said before others have run.
    pub unknown: u64,
    /// Predicted time, when every kind of step was measured here before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_secs: Option<f64>,
    /// The steps, each after those it depends on.
    pub nodes: Vec<RenderNode>,
    /// What a person should know.
    pub warnings: Vec<Said>,
}

/// Commands of this page.
pub(super) fn commands() -> Vec<CommandEntry> {
    use CommandKind::{Job, System};
    vec![
        CommandEntry::new(
            "render.plan",
            System,
            "What would be made, and how long it would take.",
            plan,
        ),
        CommandEntry::new(
            "render.start",
            Job,
            "Make the pictures of shots, or everything, into the cache.",
            start,
        ),
    ]
}

fn plan(desk: &Desk, args: RenderArgs) -> Result<RenderPlan, StudioError> {
    let open = desk.project(&args.project)?;
    check_shots(&open, &args)?;
    let report = if args.what == RenderWhat::All && args.draft != Some(true) {
        let wanted = FilmRequest {
            project: Some(open.folder.clone()),
            ..FilmRequest::default()
        };
        let silent: Arc<dyn Watcher> = Arc::new(|_event| {});
        let manner = desk.manner(&open)?;
        let given = Given::Project(&open.project, &manner);
        desk.studio.plan_from(&wanted, given, &silent)?.0
    } else {
        let wanted = perform::pictures_wanted(&args);
        desk.studio.plan_pictures(&open.project, &wanted)?
    };
    let node = |node: PlannedNode| RenderNode {
        shot: ["segment:", "picture:"]
            .iter()
            .find_map(|kind| node.node.strip_prefix(kind))
            .map(str::to_owned),
        node: node.node,
        type_name: node.type_name,
        state: node.state,
        why: node.why,
    };
    Ok(RenderPlan {
        to_make: report.will_run,
        reused: report.reused,
        unknown: report.unknown,
        predicted_secs: report.secs,
        nodes: report.nodes.into_iter().map(node).collect(),
        warnings: report
            .warnings
            .into_iter()
            .map(ScriptWarning::said)
            .collect(),
    })
}

fn check_shots(open: &OpenProject, args: &RenderArgs) -> Result<(), StudioError> {
    let RenderWhat::Shots(shots) = &args.what else {
        return Ok(());
    };
    let script = open.project.script()?;
    let unknown = shots
        .iter()
        .find(|id| !script.shots().any(|shot| shot.id == **id));
    match unknown {
        None => Ok(()),
        Some(id) => {
            let say = Say::NoShot { id: id.clone() };
            Err(StudioError::said(Code::NotFound, &say))
        }
    }
}

fn start(desk: &Desk, args: RenderArgs) -> Result<JobStarted, StudioError> {
    let open = desk.project(&args.project)?;
    check_shots(&open, &args)?;
    let film = open.name();
    let title = match (&args.what, args.draft == Some(true)) {
        (RenderWhat::All, false) => Say::RenderAll { film },
        (RenderWhat::All, true) => Say::DraftAll { film },
        (RenderWhat::Missing, false) => Say::RenderMissing { film },
        (RenderWhat::Missing, true) => Say::DraftMissing { film },
        (RenderWhat::Shots(shots), draft) => {
            let shots = shots.join(", ");
            if draft {
                Say::DraftShots { shots, film }
            } else {
                Say::RenderShots { shots, film }
            }
        }
    };
    let folder = Some(open.folder.clone());
    let job = desk.add_job("render.start", title, folder, kept(&args))?;
    Ok(JobStarted { job })
}
