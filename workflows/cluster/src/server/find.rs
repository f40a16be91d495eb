//! Where the server program lies, and whether it will do.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::transport::ClusterError;
use crate::version::{NATS_AT_LEAST, Version};

/// A server program that will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProgram {
    /// Where it lies.
    pub path: PathBuf,
    /// What it says it is.
    pub version: Version,
}

const NAME: &str = if cfg!(windows) {
    "nats-server.exe"
} else {
    "nats-server"
};

/// What a program says it is: `nats-server: v2.15.1`.
fn version_of(path: &Path) -> Result<Version, String> {
    let output = Command::new(path).arg("--version").output();
    let output = output.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let word = text.split_whitespace().last().unwrap_or_default();
    word.parse::<Version>().map_err(|error| error.to_string())
}

/// The server program: `given`, else the first on the PATH or in `folders` that is new enough.
///
/// # Errors
/// [`ClusterError::NoServer`] with what was looked at and which versions were found.
pub fn find(given: Option<&Path>, folders: &[PathBuf]) -> Result<ServerProgram, ClusterError> {
    let candidates: Vec<PathBuf> = match given {
        Some(path) => vec![path.to_owned()],
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let on_path: Vec<PathBuf> = std::env::split_paths(&path).collect();
            let all = on_path.into_iter().chain(folders.iter().cloned());
            all.map(|folder| folder.join(NAME))
                .filter(|path| path.is_file())
                .collect()
        }
    };
    let mut looked = Vec::new();
    for path in candidates {
        match version_of(&path) {
            Ok(version) if version >= NATS_AT_LEAST => return Ok(ServerProgram { path, version }),
            Ok(version) => looked.push(format!("{path:?} (version {version})")),
            Err(why) => looked.push(format!("{path:?} ({why})")),
        }
    }
    if looked.is_empty() {
        looked.push("the PATH".to_owned());
        looked.extend(folders.iter().map(|folder| format!("{folder:?}")));
    }
    Err(ClusterError::NoServer {
        at_least: NATS_AT_LEAST.to_string(),
        looked: looked.join(", "),
    })
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn program(dir: &Path, says: &str) -> PathBuf {
        let path = dir.join(NAME);
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\necho 'nats-server: {says}'\n")).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
        path
    }

    #[test]
    fn a_program_that_is_too_old_is_named_with_both_versions() {
        let dir = tempfile::tempdir().unwrap();
        let old = program(&dir.path().join("old"), "v2.9.10");
        let error = find(Some(&old), &[]).unwrap_err().to_string();
        assert!(
            error.contains("2.9.10") && error.contains("2.12.0"),
            "{error}"
        );
        let new = program(&dir.path().join("new"), "v2.15.1");
        let found = find(Some(&new), &[]).unwrap();
        assert_eq!(found.version.to_string(), "2.15.1");
        let odd = program(&dir.path().join("odd"), "who knows");
        assert!(find(Some(&odd), &[]).is_err());
        assert!(find(Some(&dir.path().join("none")), &[]).is_err());
    }
}
