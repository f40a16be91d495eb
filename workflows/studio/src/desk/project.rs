//! Projects: open, look, edit, take back.

mod types;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use engine_base::Code;
use flow_store::StoredBlob;
use flow_store::project::Change;
use serde_json::{Value, json};

use super::list::{CommandEntry, CommandKind, Done, NoArgs};
use super::state::{OpenProject, SNAPSHOT, kind_of_type, plain_name, type_of};
use super::{Desk, lock};
use crate::command::{Edit, Kind};
use crate::error::StudioError;
use crate::film::format_of;
use crate::library::Known;
use crate::project::{EXTENSION, parse};
use crate::say::{Said, Say};
use crate::{export, rewrite};

pub use self::types::{
    EditArgs, Edited, FilmShape, FindArgs, Found, LintFix, LintLevel, LintMessage, MediaFile,
    MediaKind, NamedArgs, NewProject, Preset, ProjectArgs, ProjectState, ShotState, ShotStatus,
    Snapshot, UndoStep, Uploaded,
};

/// Commands of this page.
pub(super) fn commands() -> Vec<CommandEntry> {
    use CommandKind::{Edit, System};
    vec![
        CommandEntry::new(
            "project.create",
            System,
            "Make a project with one empty shot, and open it.",
            create,
        ),
        CommandEntry::new("project.open", System, "Open a project.", open),
        CommandEntry::new(
            "project.open_sample",
            System,
            "Open the sample film; its project is made when it is not there.",
            open_sample,
        ),
        CommandEntry::new(
            "project.close",
            System,
            "Close a project; refused while a job runs on it.",
            close,
        ),
        CommandEntry::new("project.state", System, "A project as it is now.", state),
        CommandEntry::new("project.edit", Edit, "Change the film.", edit),
        CommandEntry::new("project.undo", Edit, "Take back the last edit.", undo),
        CommandEntry::new("project.redo", Edit, "Do again what was taken back.", redo),
        CommandEntry::new(
            "project.snapshot",
            System,
            "Keep the script as it is now under a name; one of the same name is replaced.",
            snapshot,
        ),
        CommandEntry::new(
            "project.restore",
            Edit,
            "Bring the script back to a snapshot.",
            restore,
        ),
        CommandEntry::new(
            "project.forget_snapshot",
            System,
            "Drop a snapshot.",
            forget_snapshot,
        ),
        CommandEntry::new(
            "project.find",
            System,
            "Where a text stands in the script.",
            find,
        ),
    ]
}

fn create(desk: &Desk, args: NewProject) -> Result<ProjectState, StudioError> {
    let title = args.name.trim().to_owned();
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => desk.projects_folder()?,
    };
    let size = match args.preset {
        Preset::Cinema => "1920x804",
        Preset::Wide => "1920x1080",
        Preset::Tall => "1080x1920",
        Preset::Square => "1080x1080",
    };
    // The parser names what is wrong with title, rate or language before a folder is made.
    let script = json!({
        "longtake": 1,
        "title": title,
        "language": args.language,
        "size": size,
        "fps": args.fps,
        "scenes": [{
            "id": "scene-1",
            "heading": "Scene 1",
            "shots": [{ "id": "shot-1", "length": "4 s", "colour": "black" }],
        }],
    });
    format_of(&parse(&script)?)?;
    std::fs::create_dir_all(&folder)
        .map_err(|error| StudioError::io("make the projects folder", &folder, &error))?;
    let path = free_name(&folder, &export::file_stem(&title))?;
    let open = desk.open_project(&path, true)?;
    let edit = Edit::ImportScript { script };
    let done = open.project.edit(&edit, None);
    if let Err(error) = done {
        desk.close(&open.folder);
        return Err(error);
    }
    desk.remember_recent(&open)?;
    desk.state(&open)
}

/// A folder that is not there yet: `NAME.longtake`, else `NAME 2.longtake` and so on.
fn free_name(folder: &Path, stem: &str) -> Result<PathBuf, StudioError> {
    for number in 1..1000 {
        let name = match number {
            1 => format!("{stem}.{EXTENSION}"),
            _ => format!("{stem} {number}.{EXTENSION}"),
        };
        let path = folder.join(name);
        if !path.exists() {
            return Ok(path);
        }
    }
    let message = format!("there are too many projects called {stem:?}: {folder:?}");
    Err(StudioError::new(Code::Refused, message))
}

fn open(desk: &Desk, args: ProjectArgs) -> Result<ProjectState, StudioError> {
    let open = desk.project(&args.project)?;
    desk.remember_recent(&open)?;
    desk.state(&open)
}

fn open_sample(desk: &Desk, _: NoArgs) -> Result<ProjectState, StudioError> {
    let open = desk.open_sample()?;
    desk.remember_recent(&open)?;
    desk.state(&open)
}

fn close(desk: &Desk, args: ProjectArgs) -> Result<Done, StudioError> {
    let open = desk.project(&args.project)?;
    if desk.queue.works_on(&open.folder) {
        let path = open.folder.display().to_string();
        return Err(StudioError::said(Code::Busy, &Say::ProjectBusy { path }));
    }
    desk.close(&open.folder);
    Ok(Done {})
}

fn state(desk: &Desk, args: ProjectArgs) -> Result<ProjectState, StudioError> {
    let open = desk.project(&args.project)?;
    desk.state(&open)
}

pub(super) fn edited(open: &OpenProject, label: Option<Said>) -> Result<Edited, StudioError> {
    let (label, label_coded) = label.map_or((None, None), |said| (Some(said.text), said.coded));
    Ok(Edited {
        revision: open.project.db().revision()?,
        label,
        label_coded,
    })
}

fn edit(desk: &Desk, args: EditArgs) -> Result<Edited, StudioError> {
    let open = desk.project(&args.project)?;
    let done = open.project.edit(&args.edit, args.edit_key.as_deref())?;
    let was_new = done.changed > 0 || args.edit_key.is_some();
    edited(&open, was_new.then_some(done.label))
}

fn undo(desk: &Desk, args: ProjectArgs) -> Result<Edited, StudioError> {
    let open = desk.project(&args.project)?;
    let label = open.project.step(true)?;
    edited(&open, label)
}

fn redo(desk: &Desk, args: ProjectArgs) -> Result<Edited, StudioError> {
    let open = desk.project(&args.project)?;
    let label = open.project.step(false)?;
    edited(&open, label)
}

/// Longest name of a snapshot, in characters.
const NAME_CHARS_MAX: usize = 120;

fn snapshot(desk: &Desk, args: NamedArgs) -> Result<Snapshot, StudioError> {
    let open = desk.project(&args.project)?;
    let name = args.name.trim().to_owned();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        let most = NAME_CHARS_MAX as i64;
        return Err(StudioError::said(Code::BadInput, &Say::NameLength { most }));
    }
    let at_unix_millis = desk.clock.unix_millis();
    let script = rewrite::to_value(&open.project.script()?)?;
    let value = json!({ "at_unix_millis": at_unix_millis, "script": script });
    open.project
        .db()
        .set_setting(&format!("{SNAPSHOT}{name}"), value)?;
    desk.project_changed(&open.folder);
    Ok(Snapshot {
        name,
        at_unix_millis,
    })
}

fn kept(open: &OpenProject, name: &str) -> Result<Value, StudioError> {
    let setting = format!("{SNAPSHOT}{}", name.trim());
    let kept = open.project.db().setting(&setting)?;
    kept.ok_or_else(|| StudioError::new(Code::NotFound, format!("there is no snapshot {name:?}")))
}

fn restore(desk: &Desk, args: NamedArgs) -> Result<Edited, StudioError> {
    let open = desk.project(&args.project)?;
    let kept = kept(&open, &args.name)?;
    let edit = Edit::Restore {
        name: args.name,
        script: kept["script"].clone(),
    };
    let done = open.project.edit(&edit, None)?;
    edited(&open, (done.changed > 0).then_some(done.label))
}

fn forget_snapshot(desk: &Desk, args: NamedArgs) -> Result<Done, StudioError> {
    let open = desk.project(&args.project)?;
    kept(&open, &args.name)?;
    open.project.db().apply(vec![Change::Set {
        name: format!("{SNAPSHOT}{}", args.name.trim()),
        value: None,
    }])?;
    desk.project_changed(&open.folder);
    Ok(Done {})
}

/// Most places that are told.
const FOUND_MAX: usize = 1_000;

fn find(desk: &Desk, args: FindArgs) -> Result<Vec<Found>, StudioError> {
    let open = desk.project(&args.project)?;
    let script = rewrite::to_value(&open.project.script()?)?;
    Ok(found_in(&script, &args.text))
}

/// Places of a script in its JSON form whose text holds `text`, in script order.
fn found_in(script: &Value, text: &str) -> Vec<Found> {
    let wanted = text.to_lowercase();
    let mut found = Vec::new();
    if wanted.is_empty() {
        return found;
    }
    let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let mut look = |kind: Kind, row: &Value, apart: &[&str]| {
        let id = row[kind.id_field()].as_str().unwrap_or_default().to_owned();
        let Value::Object(fields) = row else { return };
        for (name, value) in fields
            .iter()
            .filter(|(name, _)| !apart.contains(&name.as_str()))
        {
            texts(value, &format!("/{name}"), &mut |field, held| {
                if found.len() < FOUND_MAX && held.to_lowercase().contains(&wanted) {
                    found.push(Found {
                        kind,
                        id: id.clone(),
                        field: field.to_owned(),
                        text: held.to_owned(),
                    });
                }
            });
        }
    };
    look(Kind::Film, script, &["cast", "places", "scenes", "by"]);
    for member in list(script, "cast") {
        look(Kind::Cast, &member, &["by"]);
    }
    for place in list(script, "places") {
        look(Kind::Place, &place, &["by"]);
    }
    for scene in list(script, "scenes") {
        look(Kind::Scene, &scene, &["shots", "by"]);
        for shot in list(&scene, "shots") {
            look(Kind::Shot, &shot, &["by"]);
        }
    }
    found
}

fn texts(value: &Value, at: &str, each: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::String(text) => each(at, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                texts(item, &format!("{at}/{index}"), each);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(name, _)| *name != "by") {
                texts(value, &format!("{at}/{name}"), each);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Desk {
    pub(super) fn close(&self, folder: &Path) {
        drop(lock(&self.projects).remove(folder));
    }

    /// Bring the file at `path` into a project under `name`; a file of other content that has the
    /// name already is not replaced: the new one gets a number.
    ///
    /// # Errors
    /// A name that is none, a file that is neither picture, video nor sound, or cannot be kept.
    pub fn bring(&self, project: &Path, name: &str, path: &Path) -> Result<Uploaded, StudioError> {
        let open = self.project(project)?;
        let name = plain_name(name).ok_or_else(|| {
            let name = name.to_owned();
            StudioError::said(Code::BadInput, &Say::NoFileName { name })
        })?;
        let mut head = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(64).read_to_end(&mut head))
            .map_err(|error| StudioError::io("read the file", path, &error))?;
        // What a file is, its content decides; where that is unknown, its name.
        let told = flow_http::media_type_of(&head);
        let media_type = match (told, type_of(&name)) {
            ("application/octet-stream", Some(named)) => named,
            (told, _) => told,
        };
        let kind = kind_of_type(media_type).ok_or_else(|| {
            let name = name.clone();
            StudioError::said(Code::BadInput, &Say::NotMedia { name })
        })?;
        let blob = open.project.db().keep_media(path, media_type)?;
        self.cache_file(&open, &blob)?;
        let known = Known {
            content: blob.hash,
            media_type: media_type.to_owned(),
            brought: true,
        };
        let name = open.project.name_file(kind, &name, &known)?;
        self.project_changed(&open.folder);
        Ok(Uploaded {
            name,
            hash: blob.hash.to_hex(),
            media_type: media_type.to_owned(),
            bytes: blob.bytes,
        })
    }
}

impl Desk {
    /// Put a kept file into the cache now: otherwise the first look at the project's shots waits
    /// for all of them.
    pub(super) fn cache_file(
        &self,
        open: &OpenProject,
        blob: &StoredBlob,
    ) -> Result<(), StudioError> {
        if self.studio.store.blob_path(&blob.hash).is_err() {
            let kept = open.project.db().media_path(&blob.hash)?;
            self.studio.store.import(&kept, &blob.media_type)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_where_it_stands() {
        let script = json!({
            "title": "Lamp", "cast": [{ "name": "Tom", "by": { "name": "user" } }],
            "scenes": [{ "id": "one", "heading": "The LAMP", "shots": [
                { "id": "a", "action": "Rest.", "lines": [{ "text": "A lamp!", "speaker": "Tom" }] },
            ]}],
        });
        let places = |text| -> Vec<String> {
            let found = found_in(&script, text);
            let place = |each: &Found| format!("{} {} {}", each.kind.as_str(), each.id, each.field);
            found.iter().map(place).collect()
        };
        assert_eq!(
            places("lamp"),
            ["film  /title", "scene one /heading", "shot a /lines/0/text"]
        );
        assert_eq!(places("tom"), ["cast Tom /name", "shot a /lines/0/speaker"]);
        assert_eq!(places("user"), [""; 0]);
        assert_eq!(places(""), [""; 0]);
    }
}
