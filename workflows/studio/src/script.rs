//! Scripts as files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use engine_base::Code;
use flow_story::{Coded, TextValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::StudioError;
use crate::film::{format_of, load_script};
use crate::say::Said;

/// Something that could be better in a script, or that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptWarning {
    /// Line of the script's file, from 1; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Which thing, such as `shot boats`; empty for the film.
    pub place: String,
    /// What it is about, in a stable word such as `speech-rate`.
    pub code: String,
    /// The whole of it as a sentence, with the line and place ahead.
    pub message: String,
    /// What would mend it; empty where that is said already.
    pub fix: String,
    /// The problem as a code with values, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coded: Option<Coded>,
}

impl ScriptWarning {
    pub(crate) fn of(warning: &flow_story::Warning) -> Self {
        Self {
            line: warning.line,
            place: warning.place.clone(),
            code: warning.rule.to_owned(),
            message: warning.to_string(),
            fix: warning.fix.clone(),
            coded: Some(placed(warning)),
        }
    }

    /// About the film as a whole.
    pub(crate) fn of_film(code: &str, message: impl Into<Said>) -> Self {
        let Said { text, coded } = message.into();
        Self {
            line: None,
            place: String::new(),
            code: code.to_owned(),
            message: text,
            fix: String::new(),
            coded,
        }
    }

    /// Its sentence for people.
    pub(crate) fn said(self) -> Said {
        Said {
            text: self.message,
            coded: self.coded,
        }
    }
}

/// The problem of a warning with the thing that it is about.
fn placed(warning: &flow_story::Warning) -> Coded {
    let mut coded = warning.problem_coded.clone();
    if !warning.place.is_empty() {
        let place = TextValue::Text(warning.place.clone());
        coded.values.insert("where".to_owned(), place);
    }
    coded
}

/// Warnings about the script at `path`: what could be better, and which named pictures are not in
/// `stills` (when given).
///
/// # Errors
/// All faults of a script that cannot be made.
pub fn check_script(path: &Path, stills: &[PathBuf]) -> Result<Vec<ScriptWarning>, StudioError> {
    let parsed = load_script(path)?;
    let format = format_of(&parsed.script)?;
    let mut assets = flow_story::Assets::default();
    if !stills.is_empty() {
        let mut names: BTreeSet<String> = crate::samples::names().map(str::to_owned).collect();
        for folder in stills {
            let entries = std::fs::read_dir(folder)
                .map_err(|error| StudioError::io("read the folder", folder, &error))?;
            names.extend(
                entries
                    .flatten()
                    .filter_map(|entry| entry.file_name().into_string().ok()),
            );
        }
        assets.names = Some(names);
    }
    let warnings = flow_story::lint(&parsed.script, &parsed.lines, &format, &assets);
    Ok(warnings.iter().map(ScriptWarning::of).collect())
}

/// Write the script at `from` in the form that the ending of `to` names.
///
/// # Errors
/// Faults of the script; another ending; `to` cannot be written.
pub fn convert_script(from: &Path, to: &Path) -> Result<(), StudioError> {
    let script = load_script(from)?.script;
    let text = match to.extension().and_then(|ending| ending.to_str()) {
        Some("md" | "markdown") => flow_story::to_markdown(&script),
        Some("json") => flow_story::to_json(&script),
        _ => {
            let message = format!("expected a file ending in .md or .json, got {to:?}");
            return Err(StudioError::new(Code::BadInput, message));
        }
    };
    std::fs::write(to, text).map_err(|error| StudioError::io("write the script", to, &error))
}

/// A script in its JSON form as Markdown.
///
/// # Errors
/// All faults of the script.
pub fn script_as_markdown(script: &Value) -> Result<String, StudioError> {
    Ok(flow_story::to_markdown(&crate::project::parse(script)?))
}
