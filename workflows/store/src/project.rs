//! The database of a project: entities, settings, undo log, kept media.
//!
//! One process owns an open project (its lock is the owner's business); the calls here are
//! atomic all the same.

mod entities;
mod media;
mod records;
mod takes;
mod undo;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_base::{Clock, Code, ContentHash};
use serde_json::Value;

use crate::db::{Access, Desk};
use crate::error::StoreError;
use crate::faults::Faults;
use crate::files::{BlobFolder, make_dir};
use crate::migrate::{self, Schema, SchemaLock};
use crate::session::Session;
use crate::store::Store;
use crate::values::{StoredBlob, StoredResult};

pub use records::{Change, CommandRecord, Entity, Expected, TakeRow, UndoState};

const SCHEMA: Schema = Schema {
    name: "a project",
    // "LtPr"
    application_id: 0x4c74_5072,
    migrations: &[
        include_str!("../migrations/project/0001_begin.sql"),
        include_str!("../migrations/project/0002_takes.sql"),
    ],
};

/// An open project folder: `project.db` and `media/` by hash. Cheap to clone.
#[derive(Clone)]
pub struct ProjectDb {
    inner: Arc<Inner>,
}

/// Dropped in this order: the thread closes the database before the lock goes.
struct Inner {
    desk: Desk,
    media: BlobFolder,
    clock: Arc<dyn Clock>,
    dir: PathBuf,
    _lock: SchemaLock,
}

impl std::fmt::Debug for ProjectDb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ProjectDb").field(&self.inner.dir).finish()
    }
}

impl ProjectDb {
    /// Whether `dir` holds a project, of whatever schema.
    pub fn is_there(dir: &Path) -> bool {
        std::fs::metadata(dir.join("project.db")).is_ok_and(|metadata| metadata.len() > 0)
    }

    /// Make a project in `dir`, which may be there but must hold none.
    ///
    /// # Errors
    /// [`StoreError::Project`] when there is one, [`StoreError::Io`], [`StoreError::Database`].
    pub fn create(dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        Self::create_with(dir, clock, Faults::none())
    }

    /// As [`ProjectDb::create`], with fault points.
    ///
    /// # Errors
    /// As [`ProjectDb::create`].
    pub fn create_with(
        dir: &Path,
        clock: Arc<dyn Clock>,
        faults: Faults,
    ) -> Result<Self, StoreError> {
        if Self::is_there(dir) {
            return Err(StoreError::Project {
                what: "make a project",
                got: "one is there already",
                code: Code::Refused,
                path: dir.to_owned(),
            });
        }
        make_dir(dir)?;
        Self::begin(dir, clock, faults)
    }

    /// Open the project in `dir`. An older schema is migrated on a copy that is swapped in.
    ///
    /// # Errors
    /// [`StoreError::Project`] when there is none, [`StoreError::NewerSchema`] (nothing is
    /// touched), [`StoreError::NotADatabase`], [`StoreError::Io`], [`StoreError::Database`].
    pub fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        Self::open_with(dir, clock, Faults::none())
    }

    /// As [`ProjectDb::open`], with fault points.
    ///
    /// # Errors
    /// As [`ProjectDb::open`].
    pub fn open_with(
        dir: &Path,
        clock: Arc<dyn Clock>,
        faults: Faults,
    ) -> Result<Self, StoreError> {
        if !Self::is_there(dir) {
            return Err(StoreError::Project {
                what: "open the project",
                got: "there is none",
                code: Code::NotFound,
                path: dir.to_owned(),
            });
        }
        Self::begin(dir, clock, faults)
    }

    fn begin(dir: &Path, clock: Arc<dyn Clock>, faults: Faults) -> Result<Self, StoreError> {
        let path = dir.join("project.db");
        let lock = migrate::ensure(&path, &SCHEMA, &faults)?;
        let temp = dir.join("media").join("temp");
        let session = Session::start(&temp, &temp)?;
        let media = BlobFolder::new(
            dir.join("media"),
            session,
            faults,
            "media.renamed_before_commit",
        )?;
        media.session().sweep_temps()?;
        Ok(Self {
            inner: Arc::new(Inner {
                desk: Desk::start("project", &path, Access::Write)?,
                media,
                clock,
                dir: dir.to_owned(),
                _lock: lock,
            }),
        })
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// All entities of a kind, by order key, then id.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn list(&self, kind: &str) -> Result<Vec<Entity>, StoreError> {
        let kind = kind.to_owned();
        self.inner.desk.call(move |db| entities::list(db, kind))
    }

    /// One entity.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn get(&self, kind: &str, id: &str) -> Result<Option<Entity>, StoreError> {
        let (kind, id) = (kind.to_owned(), id.to_owned());
        self.inner
            .desk
            .call(move |db| entities::get(db, &kind, &id))
    }

    /// Make all changes or none, outside the undo log (as jobs do). Gives the entities written,
    /// with their new revisions, in order of the changes.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when an expectation does not hold, [`StoreError::Database`].
    pub fn apply(&self, changes: Vec<Change>) -> Result<Vec<Entity>, StoreError> {
        self.inner.desk.call(move |db| {
            db.transaction("change the project", true, |db| {
                entities::apply(db, &changes, true)
            })
        })
    }

    /// Changes that would bring the present state back after `changes`: what a command gives as
    /// `backward`.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn inverse_of(&self, changes: &[Change]) -> Result<Vec<Change>, StoreError> {
        let changes = changes.to_vec();
        self.inner
            .desk
            .call(move |db| entities::inverse_of(db, &changes))
    }

    /// Make the command's `forward` changes and put it on the undo log, in one transaction; what
    /// could be redone is dropped. Do not `apply` the same changes besides.
    ///
    /// # Errors
    /// As [`ProjectDb::apply`].
    pub fn record(&self, command: CommandRecord) -> Result<Vec<Entity>, StoreError> {
        self.inner.desk.call(move |db| undo::record(db, &command))
    }

    /// Make the `backward` changes of the last command not undone, whatever the revisions are by
    /// now; `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn undo(&self) -> Result<Option<CommandRecord>, StoreError> {
        self.inner.desk.call(undo::undo)
    }

    /// Make the `forward` changes of the last command undone; `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn redo(&self) -> Result<Option<CommandRecord>, StoreError> {
        self.inner.desk.call(undo::redo)
    }

    /// What undo and redo would do.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn undo_state(&self) -> Result<UndoState, StoreError> {
        self.inner.desk.call(undo::state)
    }

    /// Revision of the last change of anything, settings too: grows with every one, undo and redo
    /// among them.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn revision(&self) -> Result<u64, StoreError> {
        self.inner.desk.call(entities::last_revision)
    }

    /// Every command that is done and not undone, in order: made one after the other on nothing,
    /// their `forward` changes give the project's entities.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn log(&self) -> Result<Vec<CommandRecord>, StoreError> {
        self.inner.desk.call(undo::log)
    }

    /// The command of this id, done or undone.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn recorded(&self, id: &str) -> Result<Option<CommandRecord>, StoreError> {
        let id = id.to_owned();
        self.inner.desk.call(move |db| undo::recorded(db, id))
    }

    /// A setting.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn setting(&self, name: &str) -> Result<Option<Value>, StoreError> {
        let name = name.to_owned();
        self.inner.desk.call(move |db| entities::setting(db, &name))
    }

    /// All settings, by name.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn settings(&self) -> Result<BTreeMap<String, Value>, StoreError> {
        self.inner.desk.call(entities::settings)
    }

    /// Set a setting, outside the undo log; [`Change::Set`] does it inside.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn set_setting(&self, name: &str, value: Value) -> Result<(), StoreError> {
        self.apply(vec![Change::Set {
            name: name.to_owned(),
            value: Some(value),
        }])
        .map(drop)
    }

    /// Note something that a shot could show; false when the shot had it already. Never undone:
    /// its shot may go and come back.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::TooDeep`].
    pub fn note_take(&self, take: TakeRow) -> Result<bool, StoreError> {
        self.inner.desk.call(move |db| takes::note(db, &take))
    }

    /// Everything that shots could show, in the order in which it was noted.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn takes(&self) -> Result<Vec<TakeRow>, StoreError> {
        self.inner.desk.call(takes::all)
    }

    /// Copy a file into the project's `media/` by content.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::NotAFile`], [`StoreError::Database`].
    pub fn keep_media(&self, source: &Path, media_type: &str) -> Result<StoredBlob, StoreError> {
        self.keep_file(source, media_type, None)
    }

    /// Copy a file of the store into the project's `media/`, so that pruning the store and
    /// upgrading the engine cannot take it away. Its bytes are checked against the hash.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::WrongContent`], [`StoreError::Io`],
    /// [`StoreError::Database`].
    pub fn keep_blob(&self, store: &Store, blob: &StoredBlob) -> Result<(), StoreError> {
        if self.inner.media.holds(&blob.hash, blob.bytes) {
            return self.note_media(blob.clone());
        }
        let _held = store.hold(&[blob.hash])?;
        let source = store.blob_path(&blob.hash)?;
        self.keep_file(&source, &blob.media_type, Some(blob.hash))
            .map(drop)
    }

    fn keep_file(
        &self,
        source: &Path,
        media_type: &str,
        expected: Option<ContentHash>,
    ) -> Result<StoredBlob, StoreError> {
        let blob = self
            .inner
            .media
            .import(source, media_type, expected, |_nothing_prunes_it| Ok(()))?;
        self.note_media(blob.clone())?;
        Ok(blob)
    }

    fn note_media(&self, blob: StoredBlob) -> Result<(), StoreError> {
        let now_millis = self.inner.clock.unix_millis();
        self.inner
            .desk
            .call(move |db| media::note(db, blob, now_millis))
    }

    /// Where a kept file lies.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub fn media_path(&self, hash: &ContentHash) -> Result<PathBuf, StoreError> {
        self.inner.media.find(hash)
    }

    /// All kept files, by hash.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn media(&self) -> Result<Vec<StoredBlob>, StoreError> {
        self.inner.desk.call(media::all)
    }

    /// Keep a whole result (a chosen take, a recorded reply) with its files in the project.
    ///
    /// # Errors
    /// As [`ProjectDb::keep_blob`].
    pub fn keep_result(
        &self,
        store: &Store,
        node_type: &str,
        result: &StoredResult,
    ) -> Result<(), StoreError> {
        for blob in result.blobs() {
            self.keep_blob(store, blob)?;
        }
        let (node_type, result) = (node_type.to_owned(), result.clone());
        self.inner
            .desk
            .call(move |db| media::keep_result(db, node_type, &result))
    }

    /// Put kept results that `store` lacks back into it, files with them, so that opening a
    /// project on another machine makes nothing again that was kept. Gives how many were put.
    ///
    /// # Errors
    /// [`StoreError`] of either side.
    pub fn restore_kept(&self, store: &Store) -> Result<u64, StoreError> {
        media::restore(&self.inner.desk, &self.inner.media, store)
    }
}
