//! One process at a time works on a model.

use std::fs::{self, File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine_base::{CancelToken, ProgressEvent, ProgressSink};

use crate::error::HubError;

/// Time between two looks at a lock that somebody else holds.
const LOOK: Duration = Duration::from_millis(100);

/// Held while a model's folder is changed; freed when dropped, and by the system when the process
/// ends in any way.
#[derive(Debug)]
pub(crate) struct ModelLock {
    /// `None` where the file system has no locks.
    _file: Option<File>,
}

fn open(models: &Path, id: &str) -> Result<(File, PathBuf), HubError> {
    let folder = models.join(".locks");
    fs::create_dir_all(&folder).map_err(HubError::io("make the folder of locks", &folder))?;
    let path = folder.join(format!("{id}.lock"));
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(HubError::io("open the lock", &path))?;
    Ok((file, path))
}

fn take(file: &mut File, path: &Path) -> Result<bool, HubError> {
    match file.try_lock() {
        Ok(()) => {
            // Only for the message that another process shows.
            let note = file
                .set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| write!(file, "{}", std::process::id()));
            if let Err(error) = note {
                tracing::debug!("cannot note who holds the lock: {error}");
            }
            Ok(true)
        }
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => {
            tracing::warn!("this file system has no locks: pull a model once at a time: {path:?}");
            Ok(true)
        }
        Err(TryLockError::Error(error)) => Err(HubError::io("lock the model", path)(error)),
    }
}

fn holder(path: &Path) -> String {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(20).read_to_string(&mut text));
    match read.ok().and_then(|_| text.trim().parse::<u32>().ok()) {
        Some(process) => format!(" ({process})"),
        None => String::new(),
    }
}

impl ModelLock {
    /// Take it now or say who has it.
    pub(crate) fn now(models: &Path, id: &str) -> Result<Self, HubError> {
        let (mut file, path) = open(models, id)?;
        if take(&mut file, &path)? {
            return Ok(Self { _file: Some(file) });
        }
        Err(HubError::Busy {
            id: id.to_owned(),
            holder: holder(&path),
        })
    }

    /// Wait for it, saying so.
    pub(crate) fn wait(
        models: &Path,
        id: &str,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<Self, HubError> {
        let (mut file, path) = open(models, id)?;
        let mut told = false;
        loop {
            cancel.check()?;
            if take(&mut file, &path)? {
                return Ok(Self { _file: Some(file) });
            }
            if !told {
                told = true;
                progress.report(ProgressEvent {
                    what: format!(
                        "waiting for another process{} that fetches {id}",
                        holder(&path)
                    ),
                    step: 0,
                    of: 0,
                    secs_left: None,
                });
            }
            std::thread::sleep(LOOK);
        }
    }
}
