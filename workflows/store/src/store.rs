//! The cache of results: one folder per machine, shared by processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_base::{Clock, ContentHash, Key};

use crate::error::StoreError;
use crate::faults::Faults;
use crate::values::{Committed, NewResult, StoredBlob, StoredResult};

/// How to open a [`Store`].
#[derive(Clone)]
pub struct StoreOptions {
    /// Size to which [`Store::trim`] prunes, files and rows together.
    pub cap_bytes: u64,
    /// Time stamps for people; nothing is ordered by them.
    pub clock: Arc<dyn Clock>,
    /// Named fault points; none in production.
    pub faults: Faults,
}

/// Sizes and counters of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct StoreCounts {
    /// Results held.
    pub results: u64,
    /// Files held by results.
    pub blobs: u64,
    /// Size of those files and of the encoded results.
    pub bytes: u64,
    /// Results ever made here, also those pruned since. The last commit number.
    pub commits_ever: u64,
    /// Commits for a key that had a result already and were dropped without an error.
    pub duplicates_dropped: u64,
    /// Those of them whose content differed (tolerant or recorded nodes).
    pub duplicates_differing: u64,
    /// Commits refused because an exact node gave other content.
    pub mismatches: u64,
}

/// A place in the order of commits.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct CommitMark(pub u64);

/// A commit, as run reports and tests count them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRecord {
    /// Its place in the order of commits.
    pub commit_number: u64,
    /// The work.
    pub key: Key,
    /// The node type that did it.
    pub node_type: String,
    /// What it gave.
    pub content: ContentHash,
    /// Wall time spent.
    pub wall_millis: u64,
}

/// What pruning removed, or would remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct PruneReport {
    /// Results removed.
    pub results: u64,
    /// Files removed, orphans with them.
    pub blobs: u64,
    /// Bytes freed, files and rows together.
    pub bytes_freed: u64,
    /// Bytes left.
    pub bytes_left: u64,
    /// Bytes left because they are pinned or in use.
    pub bytes_kept: u64,
}

/// What [`Store::check`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct CheckReport {
    /// Results looked at.
    pub results: u64,
    /// Files looked at.
    pub blobs: u64,
    /// Whether every file was hashed, or only its size compared.
    pub deep: bool,
    /// What SQLite says about the database; empty when it is sound.
    pub database: Vec<String>,
    /// Keys whose row cannot be read back.
    pub rows_unreadable: Vec<Key>,
    /// Contents that results name and that are not there.
    pub missing: Vec<ContentHash>,
    /// Contents whose file has another size or hash.
    pub corrupt: Vec<ContentHash>,
    /// Whole files that no result names: left by a stop between rename and commit. Harmless.
    pub orphans: Vec<ContentHash>,
    /// Results that [`Store::repair`] dropped.
    pub results_dropped: u64,
    /// Files that [`Store::repair`] moved to `quarantine/`.
    pub files_quarantined: u64,
}

impl CheckReport {
    /// Whether nothing is wrong. Orphans are not wrong.
    pub fn is_sound(&self) -> bool {
        self.database.is_empty()
            && self.rows_unreadable.is_empty()
            && self.missing.is_empty()
            && self.corrupt.is_empty()
    }
}

/// The cache of results and files. Cheap to clone; all clones share one writer.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    dir: PathBuf,
}

/// A commit on its way. Dropping it does not take the commit back.
#[derive(Debug)]
pub struct PendingCommit {}

impl PendingCommit {
    /// Wait until it is durable.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn wait(self) -> Result<Committed, StoreError> {
        Err(StoreError::Closed)
    }
}

/// Keeps files from being pruned by any process, until dropped.
#[derive(Debug)]
pub struct HoldGuard {}

impl Store {
    /// Open the store in `dir`, making it if it is not there.
    ///
    /// # Errors
    /// [`StoreError::NewerSchema`], [`StoreError::NotADatabase`], [`StoreError::Io`] and
    /// [`StoreError::Database`] when the folder cannot be written.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        drop(options);
        Ok(Self {
            inner: Arc::new(Inner {
                dir: dir.to_owned(),
            }),
        })
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// The result of each key, `None` where there is none or where a file of it is gone.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn lookup(&self, keys: &[Key]) -> Result<Vec<Option<StoredResult>>, StoreError> {
        drop(keys.len());
        Err(StoreError::Closed)
    }

    /// As [`Store::lookup`], and keeps the files of what it found from being pruned.
    ///
    /// # Errors
    /// As [`Store::lookup`].
    pub fn lookup_held(
        &self,
        keys: &[Key],
    ) -> Result<(Vec<Option<StoredResult>>, HoldGuard), StoreError> {
        Ok((self.lookup(keys)?, HoldGuard {}))
    }

    /// A name for a new temporary file on the store's file system, ending in `.extension`. The
    /// file is not made.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the folder is gone and cannot be made.
    pub fn temp(&self, extension: &str) -> Result<PathBuf, StoreError> {
        drop(extension.len());
        Err(StoreError::Closed)
    }

    /// Take the finished file `temp` into the store: hashed, synced, renamed to its content hash.
    /// The same content twice gives the file that was there; `temp` is gone either way. On an
    /// error `temp` is left to the caller.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::NotAFile`].
    pub fn adopt(&self, temp: &Path, media_type: &str) -> Result<StoredBlob, StoreError> {
        drop((temp, media_type));
        Err(StoreError::Closed)
    }

    /// Copy a file from outside into the store, in bounded memory.
    ///
    /// # Errors
    /// As [`Store::adopt`].
    pub fn import(&self, source: &Path, media_type: &str) -> Result<StoredBlob, StoreError> {
        drop((source, media_type));
        Err(StoreError::Closed)
    }

    /// Where the bytes of `hash` lie.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub fn blob_path(&self, hash: &ContentHash) -> Result<PathBuf, StoreError> {
        drop(hash.short());
        Err(StoreError::Closed)
    }

    /// Commit a result and wait until it is durable.
    ///
    /// # Errors
    /// [`StoreError::MissingBlob`], [`StoreError::ExactMismatch`], [`StoreError::TooLarge`],
    /// [`StoreError::Value`], [`StoreError::Database`] (also when the disk is full: nothing was
    /// committed, and a later call may succeed).
    pub fn commit(&self, result: NewResult) -> Result<Committed, StoreError> {
        self.submit(result)?.wait()
    }

    /// Commit several and wait until all are durable; the first error is given, the others are
    /// committed all the same.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn commit_many(&self, results: Vec<NewResult>) -> Result<Vec<Committed>, StoreError> {
        results
            .into_iter()
            .map(|result| self.commit(result))
            .collect()
    }

    /// Hand a result to the writer, which commits everything waiting in one transaction. Waits
    /// only when the queue is full.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], [`StoreError::Value`], [`StoreError::Closed`]; the rest comes
    /// from [`PendingCommit::wait`].
    pub fn submit(&self, result: NewResult) -> Result<PendingCommit, StoreError> {
        drop(result);
        Ok(PendingCommit {})
    }

    /// Sizes and counters.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn counts(&self) -> Result<StoreCounts, StoreError> {
        Err(StoreError::Closed)
    }

    /// The place after the last commit.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn mark(&self) -> Result<CommitMark, StoreError> {
        Err(StoreError::Closed)
    }

    /// Commits after `mark` that are still held, in order.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn committed_since(&self, mark: CommitMark) -> Result<Vec<CommitRecord>, StoreError> {
        drop(mark.0.to_string());
        Err(StoreError::Closed)
    }

    /// Keep `hashes` from being pruned until `owner` unpins. Durable; adds to earlier pins.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn pin(&self, owner: &str, hashes: &[ContentHash]) -> Result<(), StoreError> {
        drop((owner.len(), hashes.len()));
        Err(StoreError::Closed)
    }

    /// Take back all pins of `owner`.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn unpin(&self, owner: &str) -> Result<(), StoreError> {
        drop(owner.len());
        Err(StoreError::Closed)
    }

    /// What `owner` has pinned.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn pins(&self, owner: &str) -> Result<Vec<ContentHash>, StoreError> {
        drop(owner.len());
        Err(StoreError::Closed)
    }

    /// Keep `hashes` from being pruned by any process until the guard is dropped or this process
    /// ends.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn hold(&self, hashes: &[ContentHash]) -> Result<HoldGuard, StoreError> {
        drop(hashes.len());
        Ok(HoldGuard {})
    }

    /// Remove orphans, then the least recently used results, until at most `to_bytes` are left.
    /// Never what is pinned or held.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Io`].
    pub fn prune(&self, to_bytes: u64, dry_run: bool) -> Result<PruneReport, StoreError> {
        drop((to_bytes.to_string(), dry_run.to_string()));
        Err(StoreError::Closed)
    }

    /// Prune to the cap, when it is exceeded. Called at open; runs call it when they end.
    ///
    /// # Errors
    /// As [`Store::prune`].
    pub fn trim(&self) -> Result<PruneReport, StoreError> {
        Err(StoreError::Closed)
    }

    /// Look for damage; `deep` hashes every file. Changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Io`].
    pub fn check(&self, deep: bool) -> Result<CheckReport, StoreError> {
        drop(deep.to_string());
        Err(StoreError::Closed)
    }

    /// As [`Store::check`], then drops results whose row or files are damaged (they are made
    /// again) and moves damaged files to `quarantine/`.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Io`].
    pub fn repair(&self, deep: bool) -> Result<CheckReport, StoreError> {
        drop(deep.to_string());
        Err(StoreError::Closed)
    }

    /// Remove temporary files and holds of processes that have ended. Called at open. Gives the
    /// number of files removed.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Io`].
    pub fn sweep(&self) -> Result<u64, StoreError> {
        Err(StoreError::Closed)
    }
}
