//! Files of a run: the node-facing side of a store.

use std::collections::HashMap;
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
    holds: Mutex<HashMap<ContentHash, HoldGuard>>,
}

impl StoreArtifacts {
    /// The files of `store`.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            holds: Mutex::default(),
        }
    }

    fn hold(&self, hash: ContentHash) {
        self.holds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(hash)
            .or_insert_with(|| self.store.hold(&hash));
    }

    /// Hold every file among `ports`; `false` when one was pruned before it could be held.
    pub(crate) fn hold_all(&self, ports: &Ports) -> bool {
        ports.iter().flatten().all(|value| match value {
            Value::Blob(blob) => {
                self.hold(blob.hash);
                self.store.blob_path(&blob.hash).is_ok()
            }
            Value::Data(_) | Value::Handle(_) | Value::Blocked(_) => true,
        })
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
        self.hold(stored.hash);
        Ok(BlobRef {
            hash: stored.hash,
            bytes: stored.bytes,
            media_type: stored.media_type,
        })
    }

    fn path(&self, hash: &ContentHash) -> Result<PathBuf, NodeError> {
        self.hold(*hash);
        self.store
            .blob_path(hash)
            .map_err(|error| node_error(&error))
    }
}

/// A failure of the store as a failure of the node that met it.
pub(crate) fn node_error(error: &StoreError) -> NodeError {
    NodeError::new(error.code(), error.to_string())
}
