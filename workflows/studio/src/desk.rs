//! The studio as one list of commands: what a window, a browser or an agent can ask for.
//!
//! A [`Desk`] owns the projects that it opened, the queue of jobs, and the settings of the
//! machine. It knows no transport: a shell hands it a command's name and its arguments as JSON
//! ([`Desk::call`]) and passes on its events ([`Desk::events`]). Each page of the studio is one
//! file here, with the types and the commands that it uses.
#![allow(
    clippy::needless_pass_by_value,
    reason = "a command takes its arguments whole, whatever it needs of them"
)]

pub mod app;
mod bindings;
pub mod cluster;
pub mod draw;
pub mod events;
pub mod export;
pub mod list;
mod media;
pub mod models;
mod perform;
pub mod project;
pub mod proxy;
pub mod queue;
pub mod relink;
pub mod render;
mod rewriting;
mod sample;
mod schema;
pub mod script_form;
pub mod settings;
mod state;
pub mod story;
pub mod takes;
#[cfg(test)]
mod tests;
mod worker;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use engine_base::{Clock, Code, ContentHash};
use flow_http::EventLog;
use flow_store::jobs::JobsDb;
use serde_json::Value;

pub use self::bindings::typescript;
pub use self::list::{CommandEntry, CommandKind, all as commands};
pub use self::media::Thumb;
pub(crate) use self::schema::Schemas;

use self::events::DeskEvent;
use self::settings::Settings;
use self::state::OpenProject;
use self::worker::Queue;
use crate::config;
use crate::error::StudioError;
use crate::join;
use crate::project::Project;
use crate::say::Said;
use crate::studio::{Studio, StudioOptions};

/// Events that are kept for clients that come back.
const EVENTS_MAX: usize = 5_000;

/// Called with every event, from any thread; must return quickly and call no command.
pub type EventWatcher = Arc<dyn Fn(&DeskEvent) + Send + Sync>;

/// Where a desk lies on this machine.
#[derive(Debug, Clone)]
pub struct DeskOptions {
    /// Folder of its queue and settings.
    pub data_folder: PathBuf,
    /// Folder of the cache; absent means the machine's.
    pub cache_folder: Option<PathBuf>,
    /// Folder of new projects in the place of the settings'.
    pub projects_folder: Option<PathBuf>,
    /// Projects may lie only below the projects folder and these; absent means anywhere.
    pub confined_to: Option<Vec<PathBuf>>,
    /// What opens projects, such as `longtake serve`: named to others that want them.
    pub program: String,
}

impl DeskOptions {
    /// This machine's folders.
    ///
    /// # Errors
    /// There is no place for them.
    pub fn of_this_machine(program: &str) -> Result<Self, StudioError> {
        Ok(Self {
            data_folder: config::data_folder()?,
            cache_folder: None,
            projects_folder: None,
            confined_to: None,
            program: program.to_owned(),
        })
    }
}

/// The studio's commands over the projects that it owns.
pub struct Desk {
    me: Weak<Self>,
    studio: Arc<Studio>,
    clock: Arc<dyn Clock>,
    options: DeskOptions,
    commands: BTreeMap<&'static str, CommandEntry>,
    projects: Mutex<BTreeMap<PathBuf, Arc<OpenProject>>>,
    settings: Mutex<Settings>,
    queue: Queue,
    cluster: cluster::ClusterDesk,
    db: JobsDb,
    events: EventLog,
    watchers: Mutex<Vec<EventWatcher>>,
    session: String,
    /// Files outside of stores that were told of, by content.
    files: Mutex<BTreeMap<ContentHash, PathBuf>>,
    /// Copies that play on pages, by what they are copies of; or why there is none.
    proxies: Mutex<BTreeMap<ContentHash, Result<ContentHash, Said>>>,
    /// One studio at a time writes the data folder.
    _lock: File,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    /// Open the desk: reads the queue and lets interrupted jobs go on. [`Desk::stop`] ends it.
    ///
    /// # Errors
    /// [`Code::Busy`] while another process has the data folder; the cache or the queue cannot be
    /// opened.
    pub fn open(options: DeskOptions) -> Result<Arc<Self>, StudioError> {
        let lock = take(&options.data_folder)?;
        let db = JobsDb::open(&options.data_folder)?;
        let settings = settings::read(&db)?;
        settings::use_kept_key(&options.data_folder)?;
        let mut of_studio = StudioOptions::of_this_machine()?;
        if let Some(folder) = &options.cache_folder {
            of_studio.cache_folder.clone_from(folder);
        }
        of_studio.cache_cap_bytes = settings.cache_cap_bytes;
        let studio = Arc::new(Studio::open(&of_studio)?);
        let queue = Queue::open(db.clone(), &settings)?;
        let clock = Arc::clone(&studio.clock);
        let commands = list::all();
        let desk = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            clock,
            studio,
            options,
            commands: commands
                .into_iter()
                .map(|command| (command.name, command))
                .collect(),
            projects: Mutex::default(),
            settings: Mutex::new(settings),
            queue,
            cluster: cluster::ClusterDesk::default(),
            db,
            events: EventLog::new(EVENTS_MAX),
            watchers: Mutex::default(),
            session: uuid::Uuid::now_v7().to_string(),
            files: Mutex::default(),
            proxies: Mutex::default(),
            _lock: lock,
        });
        desk.start_workers()?;
        Ok(desk)
    }

    /// Carry out the command `name`.
    ///
    /// # Errors
    /// [`Code::NotFound`] for a name that is none, [`Code::BadInput`] for arguments that are not
    /// the command's, and what the command fails with.
    pub fn call(&self, name: &str, args: Value) -> Result<Value, StudioError> {
        let command = self.commands.get(name).ok_or_else(|| {
            StudioError::new(Code::NotFound, format!("there is no command {name:?}"))
        })?;
        command.run(self, args)
    }

    /// What it is, such as `longtake serve`.
    pub fn program(&self) -> &str {
        &self.options.program
    }

    /// What happens, for clients that follow.
    pub const fn events(&self) -> &EventLog {
        &self.events
    }

    /// The first message of a client's event stream.
    pub fn hello(&self) -> Value {
        event_value(&DeskEvent::Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            session: self.session.clone(),
        })
    }

    /// What a client is told that lost events.
    pub fn reset(&self) -> Value {
        event_value(&DeskEvent::Reset)
    }

    /// Call `watcher` with every event from now on.
    pub fn watch(&self, watcher: EventWatcher) {
        lock(&self.watchers).push(watcher);
    }

    pub(crate) fn tell(&self, event: &DeskEvent) {
        self.events.push(event_value(event));
        let watchers = lock(&self.watchers).clone();
        for watcher in watchers {
            watcher(event);
        }
    }

    /// Folder of its queue, settings and token.
    pub fn data_folder(&self) -> &Path {
        &self.options.data_folder
    }

    /// End it: jobs that run are stopped and go on at the next start; projects are closed.
    pub fn stop(&self) {
        self.stop_workers();
        self.cluster.stop();
        lock(&self.projects).clear();
    }

    /// What a person chose for this machine, as it is now.
    pub fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }

    /// Where new projects go.
    fn projects_folder(&self) -> Result<PathBuf, StudioError> {
        if let Some(folder) = &self.options.projects_folder {
            return Ok(folder.clone());
        }
        let chosen = self.settings().projects_folder;
        if !chosen.as_os_str().is_empty() {
            return Ok(chosen);
        }
        config::projects_folder().ok_or_else(|| {
            let message = "cannot tell where projects belong: set the projects folder";
            StudioError::new(Code::NotFound, message)
        })
    }

    /// The project in `folder`, opened when it is not open yet.
    fn project(&self, folder: &Path) -> Result<Arc<OpenProject>, StudioError> {
        self.open_project(folder, false)
    }

    fn open_project(&self, folder: &Path, create: bool) -> Result<Arc<OpenProject>, StudioError> {
        let folder = self.confined(folder)?;
        // One at a time: two clients that open the same one share it.
        let mut projects = lock(&self.projects);
        if let Some(open) = projects.get(&folder) {
            return Ok(Arc::clone(open));
        }
        let project = Project::open(&folder, create, &self.options.program, &self.clock)?;
        let folder = folder.canonicalize().unwrap_or(folder);
        let (me, told) = (Weak::clone(&self.me), folder.clone());
        project.on_change(Arc::new(move || {
            if let Some(desk) = me.upgrade() {
                desk.project_changed(&told);
            }
        }));
        let open = Arc::new(OpenProject::new(folder.clone(), project));
        projects.insert(folder, Arc::clone(&open));
        Ok(open)
    }

    /// `folder` in its one true form, if projects may lie there.
    fn confined(&self, folder: &Path) -> Result<PathBuf, StudioError> {
        if !folder.is_absolute() {
            let message = format!("expected the absolute path of a project, got {folder:?}");
            return Err(StudioError::new(Code::BadInput, message));
        }
        // Of one that is not there yet, the folder that it goes into.
        let known = folder.canonicalize().ok().or_else(|| {
            let parent = folder.parent()?.canonicalize().ok()?;
            Some(parent.join(folder.file_name()?))
        });
        let known = known.unwrap_or_else(|| folder.to_owned());
        let Some(places) = &self.options.confined_to else {
            return Ok(known);
        };
        let mut places: Vec<PathBuf> = places.clone();
        places.extend(self.projects_folder());
        let is_inside = places
            .iter()
            .any(|place| known.starts_with(place.canonicalize().unwrap_or_else(|_| place.clone())));
        let leaves = known
            .components()
            .any(|part| matches!(part, std::path::Component::ParentDir));
        if is_inside && !leaves {
            return Ok(known);
        }
        let message = format!("expected a project below the projects folder, got {folder:?}");
        Err(StudioError::new(Code::NotPermitted, message))
    }

    /// Tell that a project is another one now.
    fn project_changed(&self, folder: &Path) {
        let open = lock(&self.projects).get(folder).cloned();
        let Some(open) = open else { return };
        let revision = open.project.db().revision().unwrap_or(0);
        self.tell(&DeskEvent::ProjectChanged {
            project: folder.display().to_string(),
            revision,
        });
    }
}

fn event_value(event: &DeskEvent) -> Value {
    serde_json::to_value(event).unwrap_or_default()
}

/// Take the data folder for this process.
fn take(folder: &Path) -> Result<File, StudioError> {
    let path = folder.join("studio.lock");
    std::fs::create_dir_all(folder)
        .map_err(|error| StudioError::io("make the studio's folder", folder, &error))?;
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| StudioError::io("open the studio's lock", &path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(join::busy(folder)),
        Err(TryLockError::Error(error)) => {
            Err(StudioError::io("lock the studio's folder", &path, &error))
        }
    }
}
