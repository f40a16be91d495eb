//! What a cluster needs of a store: files that came from another machine, taken in without a
//! second reading and given up one by one, and when each result was made.

use std::path::{Path, PathBuf};

use engine_base::{ContentHash, Key};

use super::{CommitMark, Store};
use crate::db::{count, hash_bytes, int};
use crate::error::StoreError;
use crate::values::StoredBlob;

/// When a result was made, by the clock of whoever made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeRecord {
    /// The work.
    pub key: Key,
    /// When it was committed, in milliseconds since 1970-01-01 UTC. For people and reports:
    /// nothing is ordered by it.
    pub made_millis: u64,
    /// Wall time spent on it.
    pub wall_millis: u64,
}

impl Store {
    /// When the results after `mark` that are still held were made, in order of commit.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn made_since(&self, mark: CommitMark) -> Result<Vec<MadeRecord>, StoreError> {
        self.inner.reader.call(move |db| {
            let query = sqlx::query(
                "SELECT key, made_millis, wall_millis FROM results WHERE number > ? \
                 ORDER BY number",
            )
            .bind(int(mark.0));
            db.rows("list when results were made", query)?
                .iter()
                .map(|row| {
                    Ok(MadeRecord {
                        key: Key::from_bytes(hash_bytes(row, 0)?),
                        made_millis: count(row, 1)?,
                        wall_millis: count(row, 2)?,
                    })
                })
                .collect()
        })
    }

    /// Take the finished file `temp` into the store under `hash`, which the caller has computed
    /// over all its bytes while it wrote them: it is not read again. Gives where it lies. Nothing
    /// keeps it from being pruned but the caller's [`Store::hold`]. On an error `temp` is left to
    /// the caller.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn adopt_hashed(
        &self,
        temp: &Path,
        hash: &ContentHash,
        bytes: u64,
    ) -> Result<PathBuf, StoreError> {
        let blob = StoredBlob {
            hash: *hash,
            bytes,
            media_type: String::new(),
        };
        self.inner.folder.place(temp, &blob)?;
        Ok(self.inner.folder.path(hash))
    }

    /// Every file held, by content hash with its size, in order of hash; those too that no result
    /// names.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn files(&self) -> Result<Vec<(ContentHash, u64)>, StoreError> {
        self.inner.folder.all()
    }

    /// Give up one file and the results that name it, unless it or another file of theirs is
    /// pinned or held by any process. Gives whether it is gone.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Io`].
    pub fn discard(&self, hash: &ContentHash) -> Result<bool, StoreError> {
        let hash = *hash;
        self.inner.writer.call(move |writer| writer.discard(&hash))
    }
}
