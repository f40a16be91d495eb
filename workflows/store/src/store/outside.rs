//! Files that came from another machine: taken in without a second reading, given up one by one.

use std::path::{Path, PathBuf};

use engine_base::ContentHash;

use super::Store;
use crate::error::StoreError;
use crate::values::StoredBlob;

impl Store {
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
