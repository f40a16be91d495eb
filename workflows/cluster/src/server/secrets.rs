//! Tokens of owner and workers, kept over restarts: who was let in before still is.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use engine_base::ContentHash;
use serde::{Deserialize, Serialize};

use crate::names::WorkerId;
use crate::transport::ClusterError;

const NAME: &str = "secrets.json";

/// What lets in.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Secrets {
    pub(super) owner: String,
    pub(super) worker: String,
    #[serde(default)]
    pub(super) named: BTreeMap<WorkerId, String>,
    /// Port of last time, so that join lines stay right.
    #[serde(default)]
    pub(super) tcp_port: u16,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// 160 random bits in hex.
fn draw() -> Result<String, ClusterError> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| ClusterError::System {
        what: "draw a token",
        why: error.to_string(),
    })?;
    Ok(ContentHash::of(&bytes).to_hex().chars().take(40).collect())
}

impl Secrets {
    /// Those in the folder, with new ones for whoever has none.
    pub(super) fn kept(dir: &Path, workers: &[WorkerId]) -> Result<Self, ClusterError> {
        let path = dir.join(NAME);
        let mut secrets: Self = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::default(),
            Err(error) => return Err(ClusterError::file("read the tokens", &path, &error)),
        };
        if secrets.owner.is_empty() {
            secrets.owner = draw()?;
        }
        if secrets.worker.is_empty() {
            secrets.worker = draw()?;
        }
        for worker in workers {
            if !secrets.named.contains_key(worker) {
                secrets.named.insert(worker.clone(), draw()?);
            }
        }
        Ok(secrets)
    }

    /// Write them, for this user only.
    pub(super) fn keep(&self, dir: &Path) -> Result<(), ClusterError> {
        let bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        write_private(&dir.join(NAME), &bytes)
    }
}

/// Write a file that only this user may read, in one step.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), ClusterError> {
    let partial = path.with_extension("partial");
    let failed = |error: std::io::Error| ClusterError::file("write the file", path, &error);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&partial).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    std::fs::rename(&partial, path).map_err(failed)
}
