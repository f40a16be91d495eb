//! A file in the making: hashed as it is written, resumed where it stopped, renamed when right.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use engine_base::CancelToken;
use sha2::{Digest as _, Sha256};

use crate::error::HubError;
use crate::manifest::ModelFile;
use crate::meter::Meter;

/// Bytes read or written at a time.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

/// Where the part of the file at `path` lies.
pub(crate) fn part_path(path: &Path) -> PathBuf {
    let mut part = OsString::from(path);
    part.push(".part");
    part.into()
}

/// Lower-case hex of a finished hash.
fn hex(hasher: Sha256) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half & 15)]);
    let hash = hasher.finalize();
    hash.iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .collect()
}

/// SHA-256 of the file at `path`; what is read is counted.
pub(crate) fn hash_file(
    path: &Path,
    cancel: &CancelToken,
    meter: &mut Meter<'_>,
) -> Result<String, HubError> {
    let mut file = File::open(path).map_err(HubError::io("open", path))?;
    let mut hasher = Sha256::new();
    hash_from(&mut file, path, &mut hasher, cancel, |bytes| {
        meter.add(bytes);
    })?;
    Ok(hex(hasher))
}

/// SHA-256 of a file that is no model's, such as an archive.
pub(crate) fn hash_quietly(path: &Path, cancel: &CancelToken) -> Result<String, HubError> {
    let mut file = File::open(path).map_err(HubError::io("open", path))?;
    let mut hasher = Sha256::new();
    hash_from(&mut file, path, &mut hasher, cancel, |_| {})?;
    Ok(hex(hasher))
}

fn hash_from(
    file: &mut File,
    path: &Path,
    hasher: &mut Sha256,
    cancel: &CancelToken,
    mut count: impl FnMut(u64),
) -> Result<u64, HubError> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        cancel.check()?;
        let read = file.read(&mut buffer).map_err(HubError::io("read", path))?;
        if read == 0 {
            return Ok(bytes);
        }
        hasher.update(&buffer[..read]);
        bytes += read as u64;
        count(read as u64);
    }
}

/// Bytes that may be written to the file system of `folder`, where the system tells.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let found = rustix::fs::statvfs(folder).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }
    #[cfg(not(unix))]
    {
        // The write itself will say so.
        let _ = folder;
        None
    }
}

fn make_read_only(file: &File) -> std::io::Result<()> {
    let mut rights = file.metadata()?.permissions();
    rights.set_readonly(true);
    file.set_permissions(rights)
}

/// Needed before a removal on systems where the file's own rights decide.
pub(crate) fn make_writable(path: &Path) {
    #[cfg(windows)]
    if let Ok(found) = fs::metadata(path) {
        let mut rights = found.permissions();
        #[expect(clippy::permissions_set_readonly_false, reason = "Windows only")]
        rights.set_readonly(false);
        drop(fs::set_permissions(path, rights));
    }
    #[cfg(not(windows))]
    let _ = path;
}

/// A file in the making.
pub(crate) struct Part<'a> {
    file: &'a ModelFile,
    target: PathBuf,
    path: PathBuf,
    handle: File,
    hasher: Sha256,
    bytes: u64,
}

impl<'a> Part<'a> {
    /// Go on with the part of `target`, or begin it.
    pub(crate) fn open(
        file: &'a ModelFile,
        target: &Path,
        cancel: &CancelToken,
    ) -> Result<Self, HubError> {
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(HubError::io("make the folder", folder))?;
        }
        let path = part_path(target);
        let handle = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(HubError::io("open the part", &path))?;
        let mut part = Self {
            file,
            target: target.to_owned(),
            path,
            handle,
            hasher: Sha256::new(),
            bytes: 0,
        };
        let found = part.handle.metadata();
        let found = found.map_err(HubError::io("look at the part", &part.path))?;
        if found.len() > file.bytes {
            part.restart()?;
        } else {
            let (handle, hasher) = (&mut part.handle, &mut part.hasher);
            part.bytes = hash_from(handle, &part.path, hasher, cancel, |_| {})?;
        }
        Ok(part)
    }

    /// Bytes it has.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Forget everything written.
    pub(crate) fn restart(&mut self) -> Result<(), HubError> {
        self.hasher = Sha256::new();
        self.bytes = 0;
        self.handle
            .set_len(0)
            .and_then(|()| self.handle.seek(SeekFrom::Start(0)))
            .map_err(HubError::io("empty the part", &self.path))?;
        Ok(())
    }

    /// Forget everything behind the first `bytes` bytes.
    pub(crate) fn keep(&mut self, bytes: u64, cancel: &CancelToken) -> Result<(), HubError> {
        if bytes == self.bytes {
            return Ok(());
        }
        self.hasher = Sha256::new();
        self.bytes = 0;
        self.handle
            .set_len(bytes)
            .and_then(|()| self.handle.seek(SeekFrom::Start(0)))
            .map_err(HubError::io("cut the part", &self.path))?;
        let (handle, hasher) = (&mut self.handle, &mut self.hasher);
        self.bytes = hash_from(handle, &self.path, hasher, cancel, |_| {})?;
        Ok(())
    }

    /// Add bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), HubError> {
        let after = self.bytes + bytes.len() as u64;
        if after > self.file.bytes {
            // More than the manifest says: nothing of it can be trusted.
            self.restart()?;
            return Err(HubError::WrongSize {
                what: format!("{:?}", self.file.name),
                expected: self.file.bytes,
                got: after,
            });
        }
        self.handle
            .write_all(bytes)
            .map_err(HubError::io("write the part", &self.path))?;
        self.hasher.update(bytes);
        self.bytes = after;
        Ok(())
    }

    /// Check size and hash, and put the file into its place. A part with the wrong hash is emptied;
    /// one that is too short stays.
    pub(crate) fn finish(&mut self) -> Result<(), HubError> {
        if self.bytes != self.file.bytes {
            return Err(HubError::WrongSize {
                what: format!("{:?}", self.file.name),
                expected: self.file.bytes,
                got: self.bytes,
            });
        }
        let got = hex(self.hasher.clone());
        if got != self.file.sha256 {
            self.restart()?;
            return Err(HubError::WrongHash {
                what: format!("{:?}", self.file.name),
                expected: self.file.sha256.clone(),
                got,
            });
        }
        make_read_only(&self.handle)
            .and_then(|()| self.handle.sync_all())
            .map_err(HubError::io("write the part to disk", &self.path))?;
        make_writable(&self.target);
        fs::rename(&self.path, &self.target)
            .map_err(HubError::io("put the file into its place", &self.target))?;
        #[cfg(unix)]
        if let Some(folder) = self.target.parent() {
            File::open(folder)
                .and_then(|folder| folder.sync_all())
                .map_err(HubError::io("write the folder to disk", folder))?;
        }
        Ok(())
    }
}
