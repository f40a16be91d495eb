//! The database of a project: entities, settings, undo log, kept media.

mod records;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_base::{Clock, ContentHash};
use serde_json::Value;

use crate::error::StoreError;
use crate::store::Store;
use crate::values::{StoredBlob, StoredResult};

pub use records::{Change, CommandRecord, Entity, Expected};

/// An open project folder: `project.db` and `media/` by hash. Cheap to clone.
#[derive(Clone)]
pub struct ProjectDb {
    dir: PathBuf,
}

impl ProjectDb {
    /// Make a project in `dir`, which may be there but must hold none.
    ///
    /// # Errors
    /// [`StoreError::Project`] when there is one, [`StoreError::Io`].
    pub fn create(dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        drop(clock);
        Ok(Self {
            dir: dir.to_owned(),
        })
    }

    /// Open the project in `dir`. An older schema is migrated on a copy that is swapped in.
    ///
    /// # Errors
    /// [`StoreError::Project`] when there is none, [`StoreError::NewerSchema`] (nothing is
    /// touched), [`StoreError::NotADatabase`], [`StoreError::Io`].
    pub fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        Self::create(dir, clock)
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All entities of a kind, by order key, then id.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn list(&self, kind: &str) -> Result<Vec<Entity>, StoreError> {
        drop(kind.len());
        Err(StoreError::Closed)
    }

    /// One entity.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn get(&self, kind: &str, id: &str) -> Result<Option<Entity>, StoreError> {
        drop((kind.len(), id.len()));
        Err(StoreError::Closed)
    }

    /// Make all changes or none, outside the undo log (as jobs do). Gives the entities written,
    /// with their new revisions.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when an expectation does not hold, [`StoreError::Database`].
    pub fn apply(&self, changes: Vec<Change>) -> Result<Vec<Entity>, StoreError> {
        drop(changes);
        Err(StoreError::Closed)
    }

    /// Changes that would bring the present state back after `changes`.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn inverse_of(&self, changes: &[Change]) -> Result<Vec<Change>, StoreError> {
        drop(changes.len());
        Err(StoreError::Closed)
    }

    /// Make the command's `forward` changes and put it on the undo log, in one transaction; what
    /// could be redone is dropped. Do not `apply` the same changes besides.
    ///
    /// # Errors
    /// As [`ProjectDb::apply`].
    pub fn record(&self, command: CommandRecord) -> Result<Vec<Entity>, StoreError> {
        drop(command);
        Err(StoreError::Closed)
    }

    /// Make the `backward` changes of the last command not undone; `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn undo(&self) -> Result<Option<CommandRecord>, StoreError> {
        Err(StoreError::Closed)
    }

    /// Make the `forward` changes of the last command undone; `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn redo(&self) -> Result<Option<CommandRecord>, StoreError> {
        Err(StoreError::Closed)
    }

    /// The last command not undone and the last undone: what undo and redo would do.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn undo_state(&self) -> Result<(Option<CommandRecord>, Option<CommandRecord>), StoreError> {
        Err(StoreError::Closed)
    }

    /// A setting.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn setting(&self, name: &str) -> Result<Option<Value>, StoreError> {
        drop(name.len());
        Err(StoreError::Closed)
    }

    /// All settings, by name.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn settings(&self) -> Result<std::collections::BTreeMap<String, Value>, StoreError> {
        Err(StoreError::Closed)
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

    /// Copy a file into the project's `media/` by content.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::NotAFile`].
    pub fn keep_media(&self, source: &Path, media_type: &str) -> Result<StoredBlob, StoreError> {
        drop((source, media_type));
        Err(StoreError::Closed)
    }

    /// Copy a file of the store into the project's `media/`, so that pruning the store and
    /// upgrading the engine cannot take it away.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::WrongContent`], [`StoreError::Io`].
    pub fn keep_blob(&self, store: &Store, blob: &StoredBlob) -> Result<(), StoreError> {
        drop((store.dir(), blob));
        Err(StoreError::Closed)
    }

    /// Where a kept file lies.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub fn media_path(&self, hash: &ContentHash) -> Result<PathBuf, StoreError> {
        drop(hash.short());
        Err(StoreError::Closed)
    }

    /// All kept files, by hash.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn media(&self) -> Result<Vec<StoredBlob>, StoreError> {
        Err(StoreError::Closed)
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
        drop((store.dir(), node_type.len(), result));
        Err(StoreError::Closed)
    }

    /// Put kept results that `store` lacks back into it, files with them, so that opening a
    /// project on another machine makes nothing again that was kept. Gives how many were put.
    ///
    /// # Errors
    /// [`StoreError`] of either side.
    pub fn restore_kept(&self, store: &Store) -> Result<u64, StoreError> {
        drop(store.dir());
        Err(StoreError::Closed)
    }
}
