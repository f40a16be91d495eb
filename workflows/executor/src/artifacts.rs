//! Files of a run: the node-facing side of a store.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use engine_base::ContentHash;
use flow_graph::{Artifacts, BlobRef, NodeError, TempBlob, Value};
use flow_store::{HoldGuard, Store, StoreError};

use crate::element::Ports;

/// Files of a store, as nodes see them. Everything it hands out or takes in is held against
/// pruning until it is dropped.
pub struct StoreArtifacts {
    store: Store,
    holds: Mutex<Holds>,
}

#[derive(Default)]
struct Holds {
    held: HashSet<ContentHash>,
    guards: Vec<HoldGuard>,
}

impl StoreArtifacts {
    /// The files of `store`.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            holds: Mutex::default(),
        }
    }

    fn hold(&self, hashes: impl IntoIterator<Item = ContentHash>) -> Result<(), StoreError> {
        let lock = || self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new: Vec<ContentHash> = {
            let holds = lock();
            let is_new = |hash: &ContentHash| !holds.held.contains(hash);
            hashes.into_iter().filter(is_new).collect()
        };
        if new.is_empty() {
            return Ok(());
        }
        new.sort_unstable();
        new.dedup();
        // Outside the lock, as it waits for the disk; holding twice does no harm.
        let guard = self.store.hold(&new)?;
        let mut holds = lock();
        holds.held.extend(new);
        holds.guards.push(guard);
        Ok(())
    }

    /// Hold every file among the outputs of results just found.
    ///
    /// # Errors
    /// [`StoreError`] when the holds cannot be written.
    pub(crate) fn hold_all<'p>(
        &self,
        results: impl Iterator<Item = &'p Ports>,
    ) -> Result<(), StoreError> {
        let values = results.flatten().flatten();
        self.hold(values.filter_map(Value::as_blob).map(|blob| blob.hash))
    }

    /// Whether every file among `ports` is there: asked once they are held, as they may have been
    /// pruned between lookup and hold.
    pub(crate) fn are_there(&self, ports: &Ports) -> bool {
        let mut blobs = ports.iter().flatten().filter_map(Value::as_blob);
        blobs.all(|blob| self.store.blob_path(&blob.hash).is_ok())
    }
}

impl Artifacts for StoreArtifacts {
    fn temp(&self, extension: &str) -> Result<TempBlob, NodeError> {
        self.store
            .temp(extension)
            .map(TempBlob::at)
            .map_err(|error| node_error(&error))
    }

    fn adopt(&self, file: TempBlob, media_type: &str) -> Result<BlobRef, NodeError> {
        let stored = self
            .store
            .adopt(file.path(), media_type)
            .map_err(|error| node_error(&error))?;
        // Renamed, or removed because the store had those bytes: either way it is the store's.
        drop(file.into_adopted());
        self.hold([stored.hash]).map_err(|e| node_error(&e))?;
        Ok(BlobRef {
            hash: stored.hash,
            bytes: stored.bytes,
            media_type: stored.media_type,
        })
    }

    fn path(&self, hash: &ContentHash) -> Result<PathBuf, NodeError> {
        self.hold([*hash]).map_err(|e| node_error(&e))?;
        self.store
            .blob_path(hash)
            .map_err(|error| node_error(&error))
    }
}

/// A failure of the store as a failure of the node that met it.
pub(crate) fn node_error(error: &StoreError) -> NodeError {
    NodeError::new(error.code(), error.to_string())
}
