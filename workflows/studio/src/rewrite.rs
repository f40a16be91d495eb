//! Another script for a project, shown as a diff before any of it is taken.

use std::path::{Path, PathBuf};

use engine_base::{CancelToken, Code};
use flow_story::{FieldChange, Script};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::command::{Command, Edit};
use crate::error::StudioError;
use crate::events::Watcher;
use crate::film::{format_of, load_script};
use crate::premise::{self, PremiseRequest};
use crate::project::Project;
use crate::studio::Studio;

/// One difference between two scripts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ScriptChange {
    /// Its number in the list, from 1.
    pub number: usize,
    /// Its place as a JSON pointer by names: what an accepting command can name instead of the
    /// number, because it stays the same when other changes are taken.
    pub path: String,
    /// `film`, `cast`, `place`, `scene` or `shot`.
    pub kind: String,
    /// The thing's name in the script; empty for the film.
    pub id: String,
    /// JSON pointer of the field; empty for the whole thing.
    pub field: String,
    /// What is there; null when it would be added.
    #[ts(type = "unknown")]
    pub old: Value,
    /// What would be there; null when it would be taken away.
    #[ts(type = "unknown")]
    pub new: Value,
    /// Who wrote the new value (`model`, `rule`, `user`), where that is recorded.
    pub by: Option<String>,
}

/// Which changes are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Accepted {
    /// All of them.
    All,
    /// Those of these numbers or paths.
    These(Vec<String>),
}

impl std::str::FromStr for Accepted {
    type Err = StudioError;

    /// `all`, or numbers and paths with commas between.
    fn from_str(text: &str) -> Result<Self, StudioError> {
        if text.trim() == "all" {
            return Ok(Self::All);
        }
        let named = text.split(',').map(str::trim);
        let named: Vec<String> = named
            .filter(|id| !id.is_empty())
            .map(str::to_owned)
            .collect();
        if named.is_empty() {
            let message = format!("expected all, or numbers of changes such as 1,3, got {text:?}");
            return Err(StudioError::new(Code::BadInput, message));
        }
        Ok(Self::These(named))
    }
}

/// A new script for a project.
#[derive(Debug, Clone, Default)]
pub struct RewriteRequest {
    /// The project.
    pub project: PathBuf,
    /// What to write the script from.
    pub premise: PremiseRequest,
    /// Folders of pictures that it may use.
    pub folders: Vec<PathBuf>,
}

/// What a rewriting gave.
#[derive(Debug, Clone, Serialize)]
pub struct RewriteReport {
    /// The proposed script; absent when the project's was written for the same request.
    pub proposal: Option<PathBuf>,
    /// In what it differs from the project's.
    pub changes: Vec<ScriptChange>,
}

/// In what the script in the file `new` differs from the one in `old`.
///
/// # Errors
/// All faults of either.
pub fn diff_scripts(old: &Path, new: &Path) -> Result<Vec<ScriptChange>, StudioError> {
    let (old, new) = (load_script(old)?, load_script(new)?);
    Ok(shown(&flow_story::diff(&old.script, &new.script)))
}

/// The script in a file in its JSON form, as commands take it.
///
/// # Errors
/// All faults of the script.
pub fn script_value(path: &Path) -> Result<Value, StudioError> {
    to_value(&load_script(path)?.script)
}

/// A script in its JSON form, as commands take it.
pub(crate) fn to_value(script: &Script) -> Result<Value, StudioError> {
    serde_json::from_str(&flow_story::to_json(script)).map_err(|error| {
        let message = format!("cannot write the script down: {error}");
        StudioError::new(Code::Internal, message)
    })
}

/// Changes for people and programs.
pub(crate) fn shown(changes: &[FieldChange]) -> Vec<ScriptChange> {
    let each = changes.iter().enumerate();
    each.map(|(at, change)| {
        let place = change.place();
        ScriptChange {
            number: at + 1,
            path: change.path.clone(),
            kind: place.kind.to_owned(),
            id: place.id,
            field: place.field,
            old: change.old.clone().unwrap_or_default(),
            new: change.new.clone().unwrap_or_default(),
            by: change.by.map(|by| by.as_str().to_owned()),
        }
    })
    .collect()
}

/// The accepted ones of the differences of `new` from `old`.
pub(crate) fn chosen(
    old: &Script,
    new: &Script,
    accepted: &Accepted,
) -> Result<Vec<FieldChange>, StudioError> {
    let changes = flow_story::diff(old, new);
    let Accepted::These(ids) = accepted else {
        return Ok(changes);
    };
    for id in ids {
        if !(1..=changes.len()).any(|number| is_named(id, number, &changes)) {
            let message = format!(
                "there is no change {id:?}: expected all, a number from 1 to {}, or a path as the \
                 diff shows it",
                changes.len()
            );
            return Err(StudioError::new(Code::NotFound, message));
        }
    }
    let numbered = changes.iter().enumerate();
    Ok(numbered
        .filter(|(at, _)| ids.iter().any(|id| is_named(id, at + 1, &changes)))
        .map(|(_, change)| change.clone())
        .collect())
}

/// `old` with the accepted ones of its differences from `new`.
pub(crate) fn taken(
    old: &Script,
    new: &Script,
    accepted: &Accepted,
) -> Result<Script, StudioError> {
    let chosen = chosen(old, new, accepted)?;
    flow_story::apply(old, &chosen).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let message = format!(
            "these changes cannot be taken without others: the script would be faulty:\n  {}",
            lines.join("\n  ")
        );
        StudioError::new(Code::BadInput, message)
    })
}

fn is_named(id: &str, number: usize, changes: &[FieldChange]) -> bool {
    let path = changes.get(number - 1).map(|change| change.path.as_str());
    id.parse() == Ok(number) || path == Some(id)
}

impl Studio {
    /// Write another script for a project's film and show in what it differs; nothing of the
    /// project changes until the changes are taken ([`Edit::Take`]). The proposal lies in the
    /// project's folder.
    ///
    /// # Errors
    /// As writing a script from a premise; the project cannot be opened.
    pub fn rewrite(
        &self,
        request: &RewriteRequest,
        watcher: &dyn Watcher,
        cancel: &CancelToken,
    ) -> Result<RewriteReport, StudioError> {
        let project = Project::open(&request.project, false, "longtake project", &self.clock)?;
        let present = project.script()?;
        let format = format_of(&present)?;
        let (premise, folders) = (&request.premise, &request.folders);
        let asked = || Ok(()); // A proposal replaces nothing.
        let written = premise::script(premise, &format, folders, &project, asked, watcher, cancel)?;
        let Some(script) = written else {
            return Ok(RewriteReport {
                proposal: None,
                changes: Vec::new(),
            });
        };
        let path = request.project.join("proposal.json");
        std::fs::write(&path, flow_story::to_json(&script))
            .map_err(|error| StudioError::io("write the proposed script", &path, &error))?;
        Ok(RewriteReport {
            proposal: Some(path),
            changes: shown(&flow_story::diff(&present, &script)),
        })
    }
}

/// The edit that takes changes from a script in a file.
///
/// # Errors
/// All faults of the script.
pub fn take_from(path: &Path, accepted: Accepted) -> Result<Command, StudioError> {
    let script = script_value(path)?;
    Ok(Command::Edit(Edit::Take { script, accepted }))
}
