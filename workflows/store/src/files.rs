//! Files under their content hash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use engine_base::{ContentHash, ContentHasher};

use crate::error::{IoContext as _, StoreError};
use crate::faults::Faults;
use crate::session::Session;
use crate::values::StoredBlob;

/// Bytes copied or hashed at a time.
const CHUNK_BYTES: usize = 1 << 18;

/// Makes what happened in a folder (new names, renames) survive a loss of power.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    // The parent of a relative name of one part is empty: the current folder.
    let dir = if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    };
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .during("sync the folder", dir)
}

/// Make a folder and those above it, surviving a loss of power.
pub(crate) fn make_dir(dir: &Path) -> Result<(), StoreError> {
    if dir.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(dir).during("make the folder", dir)?;
    dir.parent().map_or(Ok(()), sync_dir)
}

/// What stands in place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Whole,
    Missing,
    Corrupt,
}

/// A folder `aa/<64 hex digits>` of files that are whole whenever they are there.
#[derive(Debug)]
pub(crate) struct BlobFolder {
    root: PathBuf,
    session: Session,
    faults: Faults,
    renamed: &'static str,
}

impl BlobFolder {
    /// Files in `root`, made through the temporary folder of `session`; `renamed` is the fault
    /// point after each rename.
    pub(crate) fn new(
        root: PathBuf,
        session: Session,
        faults: Faults,
        renamed: &'static str,
    ) -> Result<Self, StoreError> {
        make_dir(&root)?;
        Ok(Self {
            root,
            session,
            faults,
            renamed,
        })
    }

    pub(crate) const fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn path(&self, hash: &ContentHash) -> PathBuf {
        let hex = hash.to_hex();
        self.root.join(&hex[..2]).join(hex)
    }

    /// Where the file is, if it is.
    pub(crate) fn find(&self, hash: &ContentHash) -> Result<PathBuf, StoreError> {
        let path = self.path(hash);
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => Ok(path),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io("look for the file", &path, &error))
            }
            _ => Err(StoreError::NotFound { hash: *hash, path }),
        }
    }

    /// Whether the file is there with its size; a quick look, no hash.
    pub(crate) fn holds(&self, hash: &ContentHash, bytes: u64) -> bool {
        fs::metadata(self.path(hash))
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() == bytes)
    }

    /// What is there, by size or (`deep`) by content.
    pub(crate) fn state(
        &self,
        hash: &ContentHash,
        bytes: u64,
        deep: bool,
    ) -> Result<State, StoreError> {
        let path = match self.find(hash) {
            Ok(path) => path,
            Err(StoreError::NotFound { .. }) => return Ok(State::Missing),
            Err(error) => return Err(error),
        };
        let length = fs::metadata(&path).during("look at the file", &path)?.len();
        if length != bytes {
            return Ok(State::Corrupt);
        }
        if deep && hash_file(&path)?.0 != *hash {
            return Ok(State::Corrupt);
        }
        Ok(State::Whole)
    }

    /// Take a finished file. `hold` is called with the hash before anything is decided, and keeps
    /// the content from being pruned meanwhile. `temp` is gone afterwards, or untouched on errors.
    pub(crate) fn adopt(
        &self,
        temp: &Path,
        media_type: &str,
        hold: impl FnOnce(ContentHash) -> Result<(), StoreError>,
    ) -> Result<StoredBlob, StoreError> {
        let metadata = fs::symlink_metadata(temp).during("adopt the file", temp)?;
        if !metadata.is_file() {
            return Err(not_a_file(&metadata, temp));
        }
        let (hash, bytes) = hash_file(temp)?;
        hold(hash)?;
        let blob = StoredBlob {
            hash,
            bytes,
            media_type: media_type.to_owned(),
        };
        self.place(temp, &blob)?;
        Ok(blob)
    }

    /// Copy a file from outside, hashing as it goes.
    pub(crate) fn import(
        &self,
        source: &Path,
        media_type: &str,
        expected: Option<ContentHash>,
        hold: impl FnOnce(ContentHash) -> Result<(), StoreError>,
    ) -> Result<StoredBlob, StoreError> {
        let metadata = fs::metadata(source).during("read the file", source)?;
        if !metadata.is_file() {
            return Err(not_a_file(&metadata, source));
        }
        let temp = Leftover(self.session.temp("import"));
        let (hash, bytes) = self.copy(source, metadata.len(), &temp.0)?;
        if let Some(expected) = expected.filter(|expected| *expected != hash) {
            return Err(StoreError::WrongContent {
                expected,
                got: hash,
                path: source.to_owned(),
            });
        }
        hold(hash)?;
        let blob = StoredBlob {
            hash,
            bytes,
            media_type: media_type.to_owned(),
        };
        self.place(&temp.0, &blob)?;
        Ok(blob)
    }

    fn copy(
        &self,
        source: &Path,
        length: u64,
        temp: &Path,
    ) -> Result<(ContentHash, u64), StoreError> {
        let mut from = File::open(source).during("read the file", source)?;
        let mut to = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(temp)
            .during("make a temporary file", temp)?;
        let mut hasher = ContentHasher::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut half_passed = false;
        loop {
            let read = match from.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(StoreError::io("read the file", source, &error)),
            };
            to.write_all(&chunk[..read])
                .during("write the copy", temp)?;
            hasher
                .write_all(&chunk[..read])
                .during("hash the file", source)?;
            if !half_passed && hasher.len_bytes() >= length / 2 {
                half_passed = true;
                self.faults.pass("blob.half_written");
            }
        }
        Ok((hasher.finish(), hasher.len_bytes()))
    }

    /// Sync `temp` and give it its name; where the content is already, `temp` is removed instead.
    pub(crate) fn place(&self, temp: &Path, blob: &StoredBlob) -> Result<(), StoreError> {
        let path = self.path(&blob.hash);
        if self.holds(&blob.hash, blob.bytes) {
            // It may have been renamed just now by somebody who has not synced the folder yet.
            sync_dir(path.parent().unwrap_or(&self.root))?;
            return fs::remove_file(temp).during("remove the duplicate", temp);
        }
        let dir = path.parent().unwrap_or(&self.root);
        if !dir.is_dir() {
            fs::create_dir_all(dir).during("make the folder", dir)?;
            sync_dir(&self.root)?;
        }
        let file = File::open(temp).during("sync the file", temp)?;
        file.sync_all().during("sync the file", temp)?;
        let mut permissions = file
            .metadata()
            .during("look at the file", temp)?
            .permissions();
        permissions.set_readonly(true);
        file.set_permissions(permissions)
            .during("protect the file", temp)?;
        fs::rename(temp, &path).during("put the file in the store", &path)?;
        sync_dir(dir)?;
        self.faults.pass(self.renamed);
        Ok(())
    }

    /// Remove a file; gives whether it was there.
    pub(crate) fn remove(&self, hash: &ContentHash) -> Result<bool, StoreError> {
        let path = self.path(hash);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::io("remove the file", &path, &error)),
        }
    }

    /// Move a damaged file out of the way, into `quarantine`.
    pub(crate) fn quarantine(
        &self,
        hash: &ContentHash,
        quarantine: &Path,
    ) -> Result<(), StoreError> {
        make_dir(quarantine)?;
        let path = self.path(hash);
        let mut aside = quarantine.join(hash.to_hex());
        let mut again = 1;
        while aside.exists() {
            aside = quarantine.join(format!("{hash}.{again}"));
            again += 1;
        }
        fs::rename(&path, &aside).during("move the damaged file aside", &path)?;
        sync_dir(quarantine)
    }

    /// Every file by hash with its size, in order of hash. Other names are passed over.
    pub(crate) fn all(&self) -> Result<Vec<(ContentHash, u64)>, StoreError> {
        const WHAT: &str = "list the files";
        let mut found = Vec::new();
        for dir in fs::read_dir(&self.root).during(WHAT, &self.root)? {
            let dir = dir.during(WHAT, &self.root)?.path();
            if !dir.is_dir() {
                continue;
            }
            for entry in fs::read_dir(&dir).during(WHAT, &dir)? {
                let entry = entry.during(WHAT, &dir)?;
                let name = entry.file_name();
                let Some(hash) = name.to_str().and_then(|name| name.parse().ok()) else {
                    continue;
                };
                // Another process may prune while this one lists.
                if let Ok(metadata) = entry.metadata()
                    && entry.path() == self.path(&hash)
                {
                    found.push((hash, metadata.len()));
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

fn not_a_file(metadata: &fs::Metadata, path: &Path) -> StoreError {
    StoreError::NotAFile {
        got: if metadata.is_dir() {
            "a folder"
        } else if metadata.is_symlink() {
            "a symbolic link"
        } else {
            "a device or pipe"
        },
        path: path.to_owned(),
    }
}

fn hash_file(path: &Path) -> Result<(ContentHash, u64), StoreError> {
    let mut file = File::open(path).during("read the file", path)?;
    let mut hasher = ContentHasher::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok((hasher.finish(), hasher.len_bytes())),
            Ok(read) => hasher
                .write_all(&chunk[..read])
                .during("hash the file", path)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(StoreError::io("read the file", path, &error)),
        }
    }
}

/// A temporary file that goes when it was not renamed.
struct Leftover(PathBuf);

impl Drop for Leftover {
    fn drop(&mut self) {
        // Renamed in the good case; otherwise the sweep of the next open removes it too.
        drop(fs::remove_file(&self.0));
    }
}
