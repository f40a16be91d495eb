//! Welcome: this machine, recent projects.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_hub::{ModelKind, ModelState};
use flow_timeline::SourceKind;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::list::{CommandEntry, CommandKind, Done, NoArgs};
use super::state::OpenProject;
use super::{Desk, lock};
use crate::error::StudioError;
use crate::library::{Known, setting_of};
use crate::{config, draw, models};

/// The machine that does the work.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// Its processor.
    pub cpu: String,
    /// Threads that run at a time.
    pub cores: u32,
    /// Memory in all.
    pub memory_bytes: u64,
    /// Room left where the cache lies.
    pub free_disk_bytes: u64,
    /// Graphics processors that it has, by name.
    pub gpus: Vec<String>,
}

/// What can be made without fetching anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
pub struct Ready {
    /// Scripts can be written by a model of this machine or by the server in the settings.
    pub language_model: bool,
    /// Lines can be spoken.
    pub voice: bool,
    /// Pictures can be drawn for shots.
    pub pictures: bool,
    /// Pictures can be made twice as large.
    pub upscaler: bool,
}

/// The program and the machine.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct AppState {
    /// Version of the program.
    pub version: String,
    /// The machine.
    pub machine: Machine,
    /// What can be made now.
    pub ready: Ready,
    /// Where models lie.
    pub models_folder: PathBuf,
    /// Where results are kept.
    pub cache_folder: PathBuf,
    /// Where new projects go.
    pub projects_folder: PathBuf,
}

/// A project that was open before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(optional_fields)]
pub struct RecentProject {
    /// Its folder.
    pub path: PathBuf,
    /// The folder's name without its ending.
    pub name: String,
    /// The film's title.
    pub title: String,
    /// Content of a picture of it: `/thumb/{poster}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poster: Option<String>,
    /// When it was last changed here.
    pub modified_unix_millis: u64,
    /// Whether its folder is gone.
    pub missing: bool,
    /// Whether it is open now.
    pub open: bool,
}

/// A path.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct PathArgs {
    /// The path.
    pub path: PathBuf,
}

/// Commands of this page.
pub(super) fn commands() -> Vec<CommandEntry> {
    use CommandKind::System;
    vec![
        CommandEntry::new(
            "app.state",
            System,
            "The program, the machine and what it can make now.",
            state,
        ),
        CommandEntry::new(
            "app.recent",
            System,
            "Projects that were open before, latest first.",
            recent,
        ),
        CommandEntry::new(
            "app.forget",
            System,
            "Take a project off the list of recent ones; its folder stays.",
            forget,
        ),
    ]
}

/// Note that holds the recent projects.
const RECENT: &str = "recent";
/// Most projects that are remembered.
const RECENT_MAX: usize = 40;

/// A project as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    path: PathBuf,
    title: String,
    poster: Option<String>,
    modified_unix_millis: u64,
}

/// What this machine is.
pub(super) fn machine(desk: &Desk) -> Machine {
    let free = free_bytes(desk.studio.store.dir());
    Machine {
        host: config::host_name(),
        cpu: cpu_name(),
        cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
        memory_bytes: memory_bytes(),
        free_disk_bytes: free,
        gpus: gpus(),
    }
}

#[cfg(unix)]
fn free_bytes(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(0, |about| about.f_bavail * about.f_frsize)
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> u64 {
    0
}

#[cfg(target_os = "linux")]
fn memory_bytes() -> u64 {
    let about = rustix::system::sysinfo();
    about.totalram as u64 * u64::from(about.mem_unit)
}

#[cfg(not(target_os = "linux"))]
fn memory_bytes() -> u64 {
    0
}

/// The processor's name where the system has a file that tells it.
fn cpu_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| matches!(key.trim(), "model name" | "Processor"));
    named.map_or_else(
        || std::env::consts::ARCH.to_owned(),
        |(_, name)| name.trim().to_owned(),
    )
}

/// NVIDIA's driver has a file for each device.
fn gpus() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/proc/driver/nvidia/gpus") else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let text = std::fs::read_to_string(entry.path().join("information")).ok()?;
            let name = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
            Some(name.trim().to_owned())
        })
        .collect();
    names.sort();
    names
}

fn state(desk: &Desk, _: NoArgs) -> Result<AppState, StudioError> {
    let rows = models::models_list().unwrap_or_default();
    let here = |kind: ModelKind| {
        rows.iter().any(|row| {
            row.entry.kind == kind
                && matches!(row.state, ModelState::Installed | ModelState::Unverified)
        })
    };
    let by_server = desk.settings().llm.is_some_and(|llm| llm.contains("://"));
    Ok(AppState {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine(desk),
        ready: Ready {
            language_model: by_server || here(ModelKind::Text),
            voice: here(ModelKind::Speech) && here(ModelKind::Runtime),
            pictures: draw::own_model_is_here(),
            upscaler: here(ModelKind::Upscale),
        },
        models_folder: engine_hub::models_folder()?,
        cache_folder: desk.studio.store.dir().to_owned(),
        projects_folder: desk.projects_folder()?,
    })
}

fn recent(desk: &Desk, _: NoArgs) -> Result<Vec<RecentProject>, StudioError> {
    let projects: Vec<Arc<OpenProject>> = lock(&desk.projects).values().cloned().collect();
    for open in &projects {
        desk.remember_recent(open)?;
    }
    let shown = |one: Remembered| {
        let stem = one.path.file_stem().unwrap_or_default();
        RecentProject {
            name: stem.to_string_lossy().into_owned(),
            missing: !one.path.join("project.db").is_file(),
            open: projects.iter().any(|open| open.folder == one.path),
            path: one.path,
            title: one.title,
            poster: one.poster,
            modified_unix_millis: one.modified_unix_millis,
        }
    };
    let mut all: Vec<RecentProject> = desk.remembered()?.into_iter().map(shown).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.modified_unix_millis));
    Ok(all)
}

fn forget(desk: &Desk, args: PathArgs) -> Result<Done, StudioError> {
    let mut all = desk.remembered()?;
    all.retain(|one| one.path != args.path);
    desk.keep_remembered(&all)?;
    Ok(Done {})
}

impl Desk {
    fn remembered(&self) -> Result<Vec<Remembered>, StudioError> {
        let kept = self.db.note(RECENT)?;
        Ok(kept
            .and_then(|value| serde_json::from_value(value).ok())
            .unwrap_or_default())
    }

    fn keep_remembered(&self, all: &[Remembered]) -> Result<(), StudioError> {
        let value = serde_json::to_value(all).unwrap_or_default();
        Ok(self.db.set_note(RECENT, &value)?)
    }

    /// Put a project into the list of recent ones, or bring its entry up to date.
    pub(super) fn remember_recent(&self, open: &OpenProject) -> Result<(), StudioError> {
        let script = open.project.script()?;
        let steps = open.project.db().undo_state()?;
        let last = [steps.undo, steps.redo].into_iter().flatten();
        let last = last.map(|record| record.at_millis).max();
        let mut poster = None;
        for shot in script.shots().filter(|shot| !shot.picture.is_empty()) {
            let setting = setting_of(SourceKind::Still, &shot.picture);
            let known = open.project.db().setting(&setting)?;
            let known = known.and_then(|value| serde_json::from_value::<Known>(value).ok());
            if let Some(known) = known {
                poster = Some(known.content.to_hex());
                break;
            }
        }
        let new = Remembered {
            path: open.folder.clone(),
            title: script.title,
            poster,
            modified_unix_millis: last.unwrap_or_else(|| self.clock.unix_millis()),
        };
        let mut all = self.remembered()?;
        if all.contains(&new) {
            return Ok(());
        }
        all.retain(|one| one.path != new.path);
        all.push(new);
        all.sort_by_key(|one| std::cmp::Reverse(one.modified_unix_millis));
        all.truncate(RECENT_MAX);
        self.keep_remembered(&all)
    }
}
