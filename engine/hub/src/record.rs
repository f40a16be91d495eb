//! Which files of a model were hashed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::error::HubError;
use crate::manifest::ModelFile;

/// A record larger than this is not read.
const RECORD_LIMIT_BYTES: u64 = 4 << 20;

/// Files that had the manifest's hash, and what told them apart then. A file changed since, or
/// named with another hash by the manifest, is not held.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    files: BTreeMap<String, Hashed>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Hashed {
    sha256: String,
    bytes: u64,
    modified_nanos: u64,
}

impl Hashed {
    fn of(file: &ModelFile, path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let modified = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self {
            sha256: file.sha256.clone(),
            bytes: found.len(),
            modified_nanos: u64::try_from(modified.as_nanos()).ok()?,
        })
    }
}

impl Record {
    pub(crate) fn path(folder: &Path) -> PathBuf {
        folder.join("verified.json")
    }

    /// The record in a model's folder; an empty one when there is none or it cannot be read, which
    /// costs a hashing.
    pub(crate) fn read(folder: &Path) -> Self {
        let path = Self::path(folder);
        let small = fs::metadata(&path).is_ok_and(|found| found.len() <= RECORD_LIMIT_BYTES);
        let bytes = small.then(|| fs::read(&path).ok()).flatten();
        bytes
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    /// Whether the file at `path` is the one that had the hash of `file`.
    pub(crate) fn holds(&self, file: &ModelFile, path: &Path) -> bool {
        let known = self.files.get(&file.name);
        known.is_some() && known == Hashed::of(file, path).as_ref()
    }

    /// Note that the file at `path` has the hash of `file`.
    pub(crate) fn add(&mut self, file: &ModelFile, path: &Path) {
        if let Some(hashed) = Hashed::of(file, path) {
            self.files.insert(file.name.clone(), hashed);
        }
    }

    /// Put it into the model's folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), HubError> {
        let path = Self::path(folder);
        let new = folder.join(format!("verified.json.{}.part", std::process::id()));
        let bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        fs::write(&new, bytes).map_err(HubError::io("write the record of hashes", &new))?;
        fs::rename(&new, &path).map_err(HubError::io("write the record of hashes", &path))
    }
}
