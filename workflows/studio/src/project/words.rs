//! What a project says: its edits in a few words, its refusals.

use engine_base::Code;
use flow_store::StoreError;
use serde_json::Value;

use crate::error::StudioError;
use crate::say::{Said, Say};

/// An edit of the undo log in a few words.
pub(crate) fn label(name: &str, body: &Value) -> Said {
    let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
    let (kind, id) = (text("kind"), text("id"));
    match name {
        "import_script" => Say::ScriptReadIn {
            title: body["script"]["title"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        }
        .into(),
        "take" => Say::ChangesTaken {}.into(),
        "set" => {
            let field = text("field").trim_start_matches('/').to_owned();
            match kind.as_str() {
                "film" => Say::FilmFieldSet { field }.into(),
                _ => Say::FieldSet { kind, id, field }.into(),
            }
        }
        "add" => {
            let name = body["body"]["id"]
                .as_str()
                .or(body["body"]["name"].as_str());
            let id = name.unwrap_or_default().to_owned();
            Say::RowAdded { kind, id }.into()
        }
        "remove" => Say::RowRemoved { kind, id }.into(),
        "move" => Say::RowMoved { kind, id }.into(),
        "choose_take" => Say::TakeChosen { shot: text("shot") }.into(),
        "rate_take" => match body["rating"].as_i64().unwrap_or(0) {
            0 => Say::TakeNotRated { shot: text("shot") }.into(),
            rating => Say::TakeRated {
                shot: text("shot"),
                rating,
            }
            .into(),
        },
        "remove_take" => Say::TakeOff { shot: text("shot") }.into(),
        "restore" => Say::SnapshotRestored { name: text("name") }.into(),
        "several" if !text("label").is_empty() => {
            let short: String = text("label").chars().take(200).collect();
            short.into()
        }
        other => other.replace('_', " ").into(),
    }
}

impl From<StoreError> for StudioError {
    fn from(error: StoreError) -> Self {
        let coded = match &error {
            StoreError::NewerSchema { path, .. } => Some(Say::NewerProject {
                path: path.display().to_string(),
            }),
            StoreError::Io {
                what, code, path, ..
            }
            | StoreError::Database {
                what, code, path, ..
            } => {
                let (what, path) = ((*what).to_owned(), path.display().to_string());
                match code {
                    Code::DiskFull => Some(Say::DiskFull { what, path }),
                    Code::NotPermitted => Some(Say::NotPermitted { what, path }),
                    _ => None,
                }
            }
            _ => None,
        };
        Self {
            coded: coded.map(|say| Box::new(say.coded())),
            ..Self::new(error.code(), error.to_string())
        }
    }
}
