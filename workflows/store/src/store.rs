//! The cache of results: one folder per machine, shared by processes.

mod outside;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use engine_base::{Clock, ContentHash, Key};

use crate::check::{self, CheckReport};
use crate::commit::{no_state, raw_results};
use crate::db::{Access, Desk, column, count, hash_bytes, int};
use crate::error::StoreError;
use crate::faults::Faults;
use crate::files::{BlobFolder, make_dir};
use crate::migrate::{self, Schema, SchemaLock};
use crate::prune::{PruneReport, held_bytes};
use crate::session::Session;
use crate::values::{Committed, NewResult, StoredBlob, StoredResult, encode};
use crate::writer::{Hold, Incoming, Notes, WriterThread};

pub use outside::MadeRecord;

const SCHEMA: Schema = Schema {
    name: "a cache of results",
    // "LtCa"
    application_id: 0x4c74_4361,
    migrations: &[include_str!("../migrations/cache/0001_begin.sql")],
};

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

/// The cache of results and files. Cheap to clone; all clones share one writer.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

/// Dropped in this order: the threads close the database before the session and the lock go.
struct Inner {
    reader: Desk,
    writer: WriterThread,
    notes: Arc<Notes>,
    folder: Arc<BlobFolder>,
    dir: PathBuf,
    cap_bytes: u64,
    _lock: SchemaLock,
}

/// A commit on its way. Dropping it does not take the commit back.
#[derive(Debug)]
pub struct PendingCommit {
    answer: Receiver<Result<Committed, StoreError>>,
}

impl PendingCommit {
    /// Wait until it is durable.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn wait(self) -> Result<Committed, StoreError> {
        self.answer
            .recv()
            .map_err(|_ended| StoreError::Closed)
            .flatten()
    }
}

/// Keeps files from being pruned by any process, until dropped.
pub struct HoldGuard {
    store: Store,
    hashes: Vec<ContentHash>,
}

impl HoldGuard {
    /// What it keeps.
    pub fn hashes(&self) -> &[ContentHash] {
        &self.hashes
    }
}

impl std::fmt::Debug for HoldGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HoldGuard").field(&self.hashes).finish()
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        self.store.inner.notes.released(&self.hashes);
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Store").field(&self.inner.dir).finish()
    }
}

impl Store {
    /// Open the store in `dir`, making it if it is not there.
    ///
    /// # Errors
    /// [`StoreError::NewerSchema`], [`StoreError::NotADatabase`], [`StoreError::Io`] and
    /// [`StoreError::Database`] when the folder cannot be written.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let path = dir.join("cache.db");
        let StoreOptions {
            cap_bytes,
            clock,
            faults,
        } = options;
        migrate::refuse_newer(&path, &SCHEMA)?;
        make_dir(dir)?;
        let lock = migrate::ensure(&path, &SCHEMA, &faults)?;
        let session = Session::start(&dir.join("sessions"), &dir.join("temp"))?;
        let folder = Arc::new(BlobFolder::new(
            dir.join("blobs"),
            session,
            faults.clone(),
            "blob.renamed_before_commit",
        )?);
        let notes = Arc::new(Notes::default());
        let writer = WriterThread::start(
            &path,
            Arc::clone(&folder),
            Arc::clone(&notes),
            clock,
            faults,
        )?;
        let store = Self {
            inner: Arc::new(Inner {
                writer,
                reader: Desk::start("store-reader", &path, Access::Read)?,
                notes,
                folder,
                dir: dir.to_owned(),
                cap_bytes,
                _lock: lock,
            }),
        };
        store.sweep()?;
        store.trim()?;
        Ok(store)
    }

    /// Move a database that is damaged beyond [`Store::repair`] to `quarantine/`, so that the next
    /// [`Store::open`] begins a new one. The files stay: a result made again finds them. Gives
    /// where the database went.
    ///
    /// # Errors
    /// [`StoreError::Busy`] while any process has the store open, [`StoreError::Io`].
    pub fn set_database_aside(dir: &Path) -> Result<PathBuf, StoreError> {
        migrate::set_aside(&dir.join("cache.db"), &dir.join("quarantine"))
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
        let found = self.raw_lookup(keys)?;
        let numbers: Vec<u64> = found
            .iter()
            .flatten()
            .map(|result| result.commit_number)
            .collect();
        self.inner.notes.used(numbers);
        Ok(found)
    }

    fn raw_lookup(&self, keys: &[Key]) -> Result<Vec<Option<StoredResult>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let asked = keys.to_vec();
        let raw = self.inner.reader.call(move |db| raw_results(db, &asked))?;
        let mut found = HashMap::with_capacity(raw.len());
        for raw in raw {
            match raw.decode() {
                Ok(result) => {
                    let whole = result
                        .blobs()
                        .all(|blob| self.inner.folder.holds(&blob.hash, blob.bytes));
                    if whole {
                        found.insert(raw.key, result);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, key = %raw.key, "a damaged row counts as absent");
                }
            }
        }
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    /// As [`Store::lookup`], and keeps the files of what it found from being pruned.
    ///
    /// # Errors
    /// As [`Store::lookup`].
    pub fn lookup_held(
        &self,
        keys: &[Key],
    ) -> Result<(Vec<Option<StoredResult>>, HoldGuard), StoreError> {
        let found = self.raw_lookup(keys)?;
        let hashes: Vec<ContentHash> = found
            .iter()
            .flatten()
            .flat_map(|result| result.blobs().map(|blob| blob.hash))
            .collect();
        let guard = self.hold(&hashes)?;
        // Held from here on; what was pruned in between shows now.
        Ok((self.lookup(keys)?, guard))
    }

    /// A name for a new temporary file on the store's file system, ending in `.extension`. The
    /// file is not made.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the folder is gone and cannot be made.
    pub fn temp(&self, extension: &str) -> Result<PathBuf, StoreError> {
        make_dir(self.inner.folder.session().temp_dir())?;
        Ok(self.inner.folder.session().temp(extension))
    }

    /// Take the finished file `temp` into the store: hashed, synced, renamed to its content hash.
    /// The same content twice gives the file that was there; `temp` is gone either way. On an
    /// error `temp` is left to the caller.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::NotAFile`].
    pub fn adopt(&self, temp: &Path, media_type: &str) -> Result<StoredBlob, StoreError> {
        self.inner.folder.adopt(temp, media_type, |hash| {
            self.inner.writer.hold(vec![hash], Hold::Adopted)
        })
    }

    /// Copy a file from outside into the store, in bounded memory.
    ///
    /// # Errors
    /// As [`Store::adopt`].
    pub fn import(&self, source: &Path, media_type: &str) -> Result<StoredBlob, StoreError> {
        self.inner.folder.import(source, media_type, None, |hash| {
            self.inner.writer.hold(vec![hash], Hold::Adopted)
        })
    }

    /// As [`Store::import`], of a file that must have this content.
    pub(crate) fn import_as(&self, source: &Path, blob: &StoredBlob) -> Result<(), StoreError> {
        let hold = |hash| self.inner.writer.hold(vec![hash], Hold::Adopted);
        let expected = Some(blob.hash);
        self.inner
            .folder
            .import(source, &blob.media_type, expected, hold)
            .map(drop)
    }

    /// Where the bytes of `hash` lie.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub fn blob_path(&self, hash: &ContentHash) -> Result<PathBuf, StoreError> {
        self.inner.folder.find(hash)
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
        let pending: Vec<PendingCommit> = results
            .into_iter()
            .map(|result| self.submit(result))
            .collect::<Result<_, _>>()?;
        let outcomes: Vec<_> = pending.into_iter().map(PendingCommit::wait).collect();
        outcomes.into_iter().collect()
    }

    /// Hand a result to the writer, which commits everything waiting in one transaction. Waits
    /// only when the queue is full.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], [`StoreError::Value`], [`StoreError::Closed`]; the rest comes
    /// from [`PendingCommit::wait`].
    pub fn submit(&self, result: NewResult) -> Result<PendingCommit, StoreError> {
        let encoded = encode(&result.ports)?;
        let (reply, answer) = sync_channel(1);
        self.inner.writer.commit(Incoming {
            result,
            encoded,
            reply,
        })?;
        Ok(PendingCommit { answer })
    }

    /// Sizes and counters.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn counts(&self) -> Result<StoreCounts, StoreError> {
        self.inner.reader.call(|db| {
            let query = sqlx::query(
                "SELECT (SELECT count(*) FROM results), (SELECT count(*) FROM blobs), \
                 commits_ever, duplicates_dropped, duplicates_differing, mismatches FROM state",
            );
            let row = db.row("count the store", query)?.ok_or_else(no_state)?;
            Ok(StoreCounts {
                results: count(&row, 0)?,
                blobs: count(&row, 1)?,
                bytes: held_bytes(db)?,
                commits_ever: count(&row, 2)?,
                duplicates_dropped: count(&row, 3)?,
                duplicates_differing: count(&row, 4)?,
                mismatches: count(&row, 5)?,
            })
        })
    }

    /// The place after the last commit.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn mark(&self) -> Result<CommitMark, StoreError> {
        self.inner.reader.call(|db| {
            let row = db.row(
                "read the commit number",
                sqlx::query("SELECT commits_ever FROM state"),
            )?;
            count(&row.ok_or_else(no_state)?, 0).map(CommitMark)
        })
    }

    /// Commits after `mark` that are still held, in order.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn committed_since(&self, mark: CommitMark) -> Result<Vec<CommitRecord>, StoreError> {
        self.inner.reader.call(move |db| {
            let query = sqlx::query(
                "SELECT number, key, node_type, content, wall_millis FROM results \
                 WHERE number > ? ORDER BY number",
            )
            .bind(int(mark.0));
            db.rows("list commits", query)?
                .iter()
                .map(|row| {
                    Ok(CommitRecord {
                        commit_number: count(row, 0)?,
                        key: Key::from_bytes(hash_bytes(row, 1)?),
                        node_type: column(row, 2)?,
                        content: ContentHash::from_bytes(hash_bytes(row, 3)?),
                        wall_millis: count(row, 4)?,
                    })
                })
                .collect()
        })
    }

    /// Keep `hashes` from being pruned until `owner` unpins. Durable; adds to earlier pins.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn pin(&self, owner: &str, hashes: &[ContentHash]) -> Result<(), StoreError> {
        let (owner, hashes) = (owner.to_owned(), hashes.to_vec());
        self.inner.writer.call(move |writer| {
            writer.db.transaction("pin files", true, |db| {
                for hash in hashes {
                    let query =
                        sqlx::query("INSERT OR IGNORE INTO pins (owner, hash) VALUES (?, ?)")
                            .bind(owner.clone())
                            .bind(hash.as_bytes().to_vec());
                    db.execute("pin files", query)?;
                }
                Ok(())
            })
        })
    }

    /// Take back all pins of `owner`.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn unpin(&self, owner: &str) -> Result<(), StoreError> {
        let owner = owner.to_owned();
        self.inner.writer.call(move |writer| {
            writer.db.transaction("unpin files", true, |db| {
                let query = sqlx::query("DELETE FROM pins WHERE owner = ?").bind(owner);
                db.execute("unpin files", query).map(drop)
            })
        })
    }

    /// What `owner` has pinned.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn pins(&self, owner: &str) -> Result<Vec<ContentHash>, StoreError> {
        let owner = owner.to_owned();
        self.inner.reader.call(move |db| {
            let query =
                sqlx::query("SELECT hash FROM pins WHERE owner = ? ORDER BY hash").bind(owner);
            db.rows("list pins", query)?
                .iter()
                .map(|row| hash_bytes(row, 0).map(ContentHash::from_bytes))
                .collect()
        })
    }

    /// Keep `hashes` from being pruned by any process until the guard is dropped or this process
    /// ends.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn hold(&self, hashes: &[ContentHash]) -> Result<HoldGuard, StoreError> {
        let mut hashes = hashes.to_vec();
        hashes.sort_unstable();
        hashes.dedup();
        if !hashes.is_empty() {
            self.inner.writer.hold(hashes.clone(), Hold::Guard)?;
        }
        Ok(HoldGuard {
            store: self.clone(),
            hashes,
        })
    }

    /// Remove orphans, then the least recently used results, until at most `to_bytes` are left.
    /// Never what is pinned or held.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Io`].
    pub fn prune(&self, to_bytes: u64, dry_run: bool) -> Result<PruneReport, StoreError> {
        self.inner
            .writer
            .call(move |writer| writer.prune(to_bytes, dry_run))
    }

    /// Prune to the cap, when it is exceeded. Called at open; runs call it when they end.
    ///
    /// # Errors
    /// As [`Store::prune`].
    pub fn trim(&self) -> Result<PruneReport, StoreError> {
        let cap_bytes = self.inner.cap_bytes;
        let bytes = self.inner.reader.call(held_bytes)?;
        if bytes > cap_bytes {
            return self.prune(cap_bytes, false);
        }
        Ok(PruneReport {
            bytes_left: bytes,
            ..PruneReport::default()
        })
    }

    /// Look for damage; `deep` hashes every file. Changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Io`].
    pub fn check(&self, deep: bool) -> Result<CheckReport, StoreError> {
        let path = self.inner.dir.join("cache.db");
        let folder = Arc::clone(&self.inner.folder);
        // A connection of its own: lookups go on meanwhile.
        Desk::start("store-check", &path, Access::Read)?
            .call(move |db| check::check(db, &folder, deep))
    }

    /// As [`Store::check`], then drops results whose row or files are damaged (they are made
    /// again) and moves damaged files to `quarantine/`.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Io`].
    pub fn repair(&self, deep: bool) -> Result<CheckReport, StoreError> {
        let report = self.check(deep)?;
        let quarantine = self.inner.dir.join("quarantine");
        self.inner
            .writer
            .call(move |writer| writer.repair(report, &quarantine))
    }

    /// Remove temporary files and holds of processes that have ended. Called at open. Gives the
    /// number of files removed.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Io`].
    pub fn sweep(&self) -> Result<u64, StoreError> {
        self.inner.writer.call(|writer| writer.sweep_holds())?;
        self.inner.folder.session().sweep_temps()
    }
}
