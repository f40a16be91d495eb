//! An open project: its film, its edits, its owner.

mod fields;
pub(crate) mod takes;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use engine_base::{CancelToken, Clock, Code, ProgressEvent};
use flow_store::project::{Change, CommandRecord, Entity, ProjectDb};
use flow_story::Script;
use serde_json::{Value, json};
use uuid::Uuid;

use self::fields::by_user;
pub(crate) use self::fields::set_field;
use self::takes::Book;
pub(crate) use self::words::label;
use crate::command::{Command, Edit, Job, Kind, System};
use crate::error::StudioError;
use crate::fault;
use crate::owner::{self, Ownership};
use crate::rewrite;
use crate::rows::{self, Rows};
use crate::say::{Said, Say};

/// Ending of a project folder's name.
pub const EXTENSION: &str = "longtake";

/// A project that this process owns.
pub struct Project {
    core: Arc<Core>,
    /// Dropped last: nobody else may open the project while it is still written.
    owner: Ownership,
}

/// What is shared with the thread that answers other processes.
struct Core {
    folder: PathBuf,
    db: ProjectDb,
    clock: Arc<dyn Clock>,
    running: Mutex<Option<Running>>,
    /// One edit at a time: each is checked against the rows it was made from.
    editing: Mutex<()>,
    /// Told after every change of the script.
    changed: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
}

/// What an edit did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditDone {
    /// Rows that changed.
    pub(crate) changed: usize,
    /// What was done, in a few words.
    pub(crate) label: Said,
}

struct Running {
    cancel: CancelToken,
    progress: Option<ProgressEvent>,
}

impl Project {
    /// Open the project in `folder`, or make it when there is none and `create` says so.
    ///
    /// # Errors
    /// [`Code::Busy`] when another process owns it, [`Code::Refused`] when a newer version wrote
    /// it (it is left untouched), [`Code::NotFound`] when there is none, [`Code::BadInput`] for a
    /// folder that does not end in `.longtake`.
    pub fn open(
        folder: &Path,
        create: bool,
        program: &str,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, StudioError> {
        if folder.extension().is_none_or(|ending| ending != EXTENSION) {
            let message = format!("expected a project folder ending in .{EXTENSION}: {folder:?}");
            return Err(StudioError::new(Code::BadInput, message));
        }
        let exists = folder.join("project.db").is_file();
        if !exists && !create {
            let path = folder.display().to_string();
            return Err(StudioError::said(Code::NotFound, &Say::NoProject { path }));
        }
        let lock_was_there = folder.join("owner.lock").exists();
        let folder_was_there = folder.exists();
        if !exists {
            std::fs::create_dir_all(folder)
                .map_err(|error| StudioError::io("make the project folder", folder, &error))?;
        }
        let mut owner = Ownership::take(folder, program, clock.as_ref())?;
        let db = if exists {
            ProjectDb::open_with(folder, Arc::clone(clock), fault::of_store())
        } else {
            ProjectDb::create_with(folder, Arc::clone(clock), fault::of_store())
        };
        let db = match db {
            Ok(db) => db,
            Err(error) => {
                drop(owner);
                if !lock_was_there {
                    // A refused project is left as it was found.
                    drop(std::fs::remove_file(folder.join("owner.lock")));
                }
                if !folder_was_there {
                    // One that could not be made leaves nothing; what is not empty stays.
                    drop(std::fs::remove_dir(folder));
                }
                return Err(error.into());
            }
        };
        let core = Arc::new(Core {
            folder: folder.to_owned(),
            db,
            clock: Arc::clone(clock),
            running: Mutex::new(None),
            editing: Mutex::new(()),
            changed: Mutex::new(None),
        });
        let answering = Arc::clone(&core);
        owner.serve(Arc::new(move |request| {
            let command = serde_json::from_value(request).map_err(|error| {
                StudioError::new(Code::BadInput, format!("cannot read the command: {error}"))
            })?;
            answering.command(command)
        }))?;
        Ok(Self { core, owner })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.core.folder
    }

    /// Who owns it: this process.
    pub const fn owner(&self) -> &owner::OwnerInfo {
        self.owner.info()
    }

    pub(crate) fn db(&self) -> &ProjectDb {
        &self.core.db
    }

    /// The film as a script.
    ///
    /// # Errors
    /// The database cannot be read, or holds no film yet.
    pub fn script(&self) -> Result<Script, StudioError> {
        parse(&self.core.rows()?.script())
    }

    /// Carry out a command.
    ///
    /// # Errors
    /// What the command fails with; a failed edit has changed nothing.
    pub fn command(&self, command: Command) -> Result<Value, StudioError> {
        self.core.command(command)
    }

    /// Carry out an edit. One whose `key` (its client's own, at most 64 characters) was carried
    /// out before is not carried out again, so that it can be sent again when its answer was lost.
    ///
    /// # Errors
    /// As [`Project::command`].
    pub(crate) fn edit(&self, edit: &Edit, key: Option<&str>) -> Result<EditDone, StudioError> {
        self.core.edit(edit, key)
    }

    /// Take back the last edit, or do it again; gives which it was.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub(crate) fn step(&self, back: bool) -> Result<Option<Said>, StudioError> {
        let record = self.core.step(back)?;
        Ok(record.map(|record| label(&record.name, &record.body)))
    }

    /// Call `told` after every change of the script, whoever made it.
    pub(crate) fn on_change(&self, told: Arc<dyn Fn() + Send + Sync>) {
        *lock(&self.core.changed) = Some(told);
    }

    /// Say that work runs which `cancel` stops, until the guard is dropped.
    pub(crate) fn begin(&self, cancel: &CancelToken) -> RunningGuard {
        *lock(&self.core.running) = Some(Running {
            cancel: cancel.clone(),
            progress: None,
        });
        RunningGuard {
            core: Arc::clone(&self.core),
        }
    }
}

/// Ends the `running` state of a project.
pub(crate) struct RunningGuard {
    core: Arc<Core>,
}

impl RunningGuard {
    /// Note how far the work has come, for those who ask.
    pub(crate) fn progress(&self, event: ProgressEvent) {
        if let Some(running) = lock(&self.core.running).as_mut() {
            running.progress = Some(event);
        }
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        *lock(&self.core.running) = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Send `command` to whoever owns the project in `folder`, or carry it out here when nobody does.
///
/// # Errors
/// As [`Project::open`] and [`Project::command`].
pub fn send(
    folder: &Path,
    command: Command,
    program: &str,
    clock: &Arc<dyn Clock>,
) -> Result<Value, StudioError> {
    if let Some(owner) = owner::owner_of(folder)? {
        let command = serde_json::to_value(&command).map_err(|error| {
            StudioError::new(Code::Internal, format!("cannot write the command: {error}"))
        })?;
        return owner::ask(&owner, command);
    }
    let looks = matches!(
        &command,
        Command::System(System::Script | System::Diff { .. } | System::History)
    );
    match Project::open(folder, false, program, clock) {
        Err(error) if looks && error.code == Code::NotPermitted => {
            look_at_copy(folder, command, clock).map_err(|_copy| error)
        }
        opened => opened?.command(command),
    }
}

/// Look at a project in a folder that cannot be written: its database is copied and read.
fn look_at_copy(
    folder: &Path,
    command: Command,
    clock: &Arc<dyn Clock>,
) -> Result<Value, StudioError> {
    let failed = |error: std::io::Error| StudioError::io("copy the project", folder, &error);
    let place = tempfile::tempdir().map_err(failed)?;
    let copy = place.path().join(format!("copy.{EXTENSION}"));
    std::fs::create_dir(&copy).map_err(failed)?;
    for name in ["project.db", "project.db-wal"] {
        let from = folder.join(name);
        if from.is_file() {
            std::fs::copy(&from, copy.join(name)).map_err(failed)?;
        }
    }
    Project::open(&copy, false, "a look at a copy", clock)?.command(command)
}

impl Core {
    fn rows(&self) -> Result<Rows, StudioError> {
        let mut all: BTreeMap<Kind, Vec<Entity>> = BTreeMap::new();
        for kind in Kind::ALL {
            all.insert(kind, self.db.list(kind.as_str())?);
        }
        Ok(Rows::new(all))
    }

    fn command(&self, command: Command) -> Result<Value, StudioError> {
        match command {
            Command::Edit(edit) => {
                let done = self.edit(&edit, None)?;
                Ok(json!({ "changed": done.changed }))
            }
            Command::Job(Job::Cancel) => {
                let running = lock(&self.running);
                if let Some(running) = running.as_ref() {
                    running.cancel.cancel();
                }
                Ok(json!({ "cancelled": running.is_some() }))
            }
            Command::System(System::Script) => Ok(self.rows()?.script()),
            Command::System(System::Diff { script }) => {
                let present = parse(&self.rows()?.script())?;
                let changes = flow_story::diff(&present, &parse(&script)?);
                Ok(json!(rewrite::shown(&changes)))
            }
            Command::System(System::Status) => {
                let running = lock(&self.running);
                let progress = running
                    .as_ref()
                    .and_then(|running| running.progress.clone());
                Ok(json!({ "running": running.is_some(), "progress": progress }))
            }
            Command::System(System::Undo) => Ok(described(self.step(true)?.as_ref())),
            Command::System(System::Redo) => Ok(described(self.step(false)?.as_ref())),
            Command::System(System::History) => {
                let next = self.db.undo_state()?;
                Ok(
                    json!({ "undo": described(next.undo.as_ref()), "redo": described(next.redo.as_ref()) }),
                )
            }
        }
    }

    fn step(&self, back: bool) -> Result<Option<CommandRecord>, StudioError> {
        let record = {
            let _one_at_a_time = lock(&self.editing);
            if back {
                self.db.undo()?
            } else {
                self.db.redo()?
            }
        };
        if record.is_some() {
            self.tell();
        }
        Ok(record)
    }

    fn tell(&self) {
        let told = lock(&self.changed).clone();
        if let Some(told) = told {
            told();
        }
    }

    fn edit(&self, edit: &Edit, key: Option<&str>) -> Result<EditDone, StudioError> {
        let done = self.edit_alone(edit, key)?;
        if done.changed > 0 {
            self.tell();
        }
        Ok(done)
    }

    fn edit_alone(&self, edit: &Edit, key: Option<&str>) -> Result<EditDone, StudioError> {
        let _one_at_a_time = lock(&self.editing);
        let body = serde_json::to_value(edit).unwrap_or_default();
        let label = label(edit.name(), &body);
        if let Some(key) = key {
            if key.is_empty() || key.chars().count() > 64 {
                let message = format!("expected a key of 1 to 64 characters, got {key:?}");
                return Err(StudioError::new(Code::BadInput, message));
            }
            if self.db.recorded(key)?.is_some() {
                return Ok(EditDone { changed: 0, label });
            }
        }
        let rows = self.rows()?;
        let mut book = Book::new(&self.db);
        let mut forward = changes(&rows, edit, &mut book)?;
        // What is there already is no change: undo would seem to do nothing.
        forward.retain(|change| !rows.has(change));
        forward.extend(book.changes()?);
        if forward.is_empty() {
            return Ok(EditDone { changed: 0, label });
        }
        // An edit that leaves a script nobody could read is refused, whole.
        parse(&rows.after(&forward).script())?;
        let backward = self.db.inverse_of(&forward)?;
        let changed = forward.len();
        // Before the edit: stopped in between, a shot has a take more, and none is lost.
        takes::note_shown(&self.db, &rows, &forward, self.clock.unix_millis())?;
        self.db.record(CommandRecord {
            id: key.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned),
            kind: "edit".into(),
            name: edit.name().into(),
            body,
            forward,
            backward,
            at_millis: self.clock.unix_millis(),
        })?;
        Ok(EditDone { changed, label })
    }
}

fn described(record: Option<&CommandRecord>) -> Value {
    record.map_or(Value::Null, |record| {
        json!({ "name": record.name, "at_unix_millis": record.at_millis, "body": record.body })
    })
}

/// A script in its JSON form, or all its faults as one error.
pub(crate) fn parse(script: &Value) -> Result<Script, StudioError> {
    flow_story::parse_json(&script.to_string())
        .map(|parsed| parsed.script)
        .map_err(|faults| {
            let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
            StudioError::new(
                Code::BadInput,
                format!("the script is faulty:\n  {}", lines.join("\n  ")),
            )
        })
}

fn changes(rows: &Rows, edit: &Edit, book: &mut Book<'_>) -> Result<Vec<Change>, StudioError> {
    match edit {
        Edit::ImportScript { script } => {
            parse(script)?;
            Ok(rows.changes_to(script))
        }
        Edit::Take { script, accepted } => {
            let present = parse(&rows.script())?;
            let script = rewrite::taken(&present, &parse(script)?, accepted)?;
            let script: Value = serde_json::from_str(&flow_story::to_json(&script))
                .map_err(|error| StudioError::new(Code::Internal, error.to_string()))?;
            Ok(rows.changes_to(&script))
        }
        Edit::Set {
            kind,
            id,
            field,
            value,
        } => {
            let row = rows.find(*kind, id)?;
            rows::check_field(field)?;
            let mut body = row.body.clone();
            set_field(&mut body, field, value)?;
            if body == row.body {
                return Ok(Vec::new());
            }
            by_user(&mut body, field);
            Ok(vec![rows::put(row, row.order_key.clone(), body)])
        }
        Edit::Add {
            kind,
            body,
            scene,
            after,
        } => {
            let (siblings, body) = match kind {
                Kind::Film => {
                    let message = "a project has one film: set its fields instead";
                    return Err(StudioError::new(Code::Refused, message));
                }
                Kind::Shot => {
                    let scene = rows.find(Kind::Scene, scene.as_deref().unwrap_or(""))?;
                    let body = rows::in_scene(body.clone(), &scene.id);
                    (rows.shots_of(&scene.id).collect(), body)
                }
                Kind::Cast | Kind::Place | Kind::Scene => {
                    (rows.of(*kind).iter().collect::<Vec<_>>(), body.clone())
                }
            };
            let after = row_id(rows, *kind, after.as_deref())?;
            let order_key = Rows::place(&siblings, after);
            Ok(match kind {
                Kind::Scene => rows::put_new_scene(order_key, body),
                Kind::Film | Kind::Cast | Kind::Place | Kind::Shot => {
                    vec![rows::put_new(*kind, order_key, body)]
                }
            })
        }
        Edit::Remove { kind, id } => {
            let row = rows.find(*kind, id)?;
            let mut changes = vec![rows::delete(row)];
            if *kind == Kind::Scene {
                changes.extend(rows.shots_of(&row.id).map(rows::delete));
            }
            Ok(changes)
        }
        Edit::Move {
            kind,
            id,
            scene,
            after,
        } => {
            let row = rows.find(*kind, id)?;
            let mut body = row.body.clone();
            let siblings: Vec<&Entity> = if *kind == Kind::Shot {
                let scene_row = match scene {
                    Some(scene) => rows.find(Kind::Scene, scene)?.id.clone(),
                    None => rows::scene_of(row).to_owned(),
                };
                body = rows::in_scene(body, &scene_row);
                rows.of(Kind::Shot)
                    .iter()
                    .filter(|s| rows::scene_of(s) == scene_row)
                    .collect()
            } else {
                rows.of(*kind).iter().collect()
            };
            let others: Vec<&Entity> = siblings.into_iter().filter(|s| s.id != row.id).collect();
            let after = row_id(rows, *kind, after.as_deref())?;
            Ok(vec![rows::put(row, Rows::place(&others, after), body)])
        }
        Edit::Restore { script, .. } => {
            parse(script)?;
            Ok(rows.changes_to(script))
        }
        Edit::Several { edits, .. } => {
            let mut after = rows.clone();
            for (at, edit) in edits.iter().enumerate() {
                let changes = changes(&after, edit, book).map_err(|error| {
                    let message = format!("edit {} of {}: {}", at + 1, edits.len(), error.message);
                    StudioError::new(error.code, message)
                })?;
                after = after.after(&changes);
            }
            Ok(rows.changes_into(&after))
        }
        Edit::ChooseTake { shot, take } => book.choose(rows.find(Kind::Shot, shot)?, take),
        Edit::RateTake { shot, take, rating } => {
            book.rate(rows.find(Kind::Shot, shot)?, take, *rating)
        }
        Edit::RemoveTake { shot, take } => book.remove(rows.find(Kind::Shot, shot)?, take),
    }
}

fn row_id<'a>(
    rows: &'a Rows,
    kind: Kind,
    name: Option<&str>,
) -> Result<Option<&'a str>, StudioError> {
    name.map(|name| rows.find(kind, name).map(|row| row.id.as_str()))
        .transpose()
}

#[cfg(test)]
mod tests;
