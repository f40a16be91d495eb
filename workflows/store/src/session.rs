//! Which processes use a folder, and whose temporary files may be removed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{IoContext as _, StoreError};
use crate::files::make_dir;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// One use of a folder by a process. It holds the lock of a file of its own for as long as it
/// lives, so that others can tell it from one that ended, whatever its process id was given to.
#[derive(Debug)]
pub(crate) struct Session {
    name: String,
    lock_path: PathBuf,
    _lock: File,
    locks_dir: PathBuf,
    temp_dir: PathBuf,
    temps: AtomicU64,
}

/// The lock file's ending; temporary files of a session begin with its name and a dot.
const LOCK_SUFFIX: &str = ".lock";

impl Session {
    /// Begin a session whose lock lies in `locks_dir` and whose temporary files lie in `temp_dir`.
    pub(crate) fn start(locks_dir: &Path, temp_dir: &Path) -> Result<Self, StoreError> {
        const WHAT: &str = "begin a session";
        make_dir(locks_dir)?;
        make_dir(temp_dir)?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}", std::process::id());
            let lock_path = locks_dir.join(format!("{name}{LOCK_SUFFIX}"));
            let lock = match OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&lock_path)
            {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(StoreError::io(WHAT, &lock_path, &error)),
            };
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => {
                    return Err(StoreError::io(WHAT, &lock_path, &error));
                }
            }
            // A sweep may have come between making and locking it, and taken it for a leftover.
            if !lock_path.exists() {
                continue;
            }
            return Ok(Self {
                name,
                lock_path,
                _lock: lock,
                locks_dir: locks_dir.to_owned(),
                temp_dir: temp_dir.to_owned(),
                temps: AtomicU64::new(0),
            });
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn temp_dir(&self) -> &Path {
        &self.temp_dir
    }

    /// A name that nobody else uses. Only letters and digits of `extension` are taken.
    pub(crate) fn temp(&self, extension: &str) -> PathBuf {
        let number = self.temps.fetch_add(1, Ordering::Relaxed);
        let extension: String = extension
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(16)
            .collect();
        let dot = if extension.is_empty() { "" } else { "." };
        self.temp_dir
            .join(format!("{}.{number}{dot}{extension}", self.name))
    }

    /// Names of sessions that live, this one among them; locks of ended ones are removed.
    pub(crate) fn living(&self) -> Result<Vec<String>, StoreError> {
        const WHAT: &str = "look for other sessions";
        let mut living = Vec::new();
        for entry in fs::read_dir(&self.locks_dir).during(WHAT, &self.locks_dir)? {
            let entry = entry.during(WHAT, &self.locks_dir)?;
            let file_name = entry.file_name();
            let Some(name) = file_name
                .to_str()
                .and_then(|name| name.strip_suffix(LOCK_SUFFIX))
            else {
                continue;
            };
            if name == self.name || is_locked(&entry.path())? {
                living.push(name.to_owned());
            }
        }
        living.sort_unstable();
        Ok(living)
    }

    /// Remove temporary files of ended sessions. Names of another form are left alone.
    pub(crate) fn sweep_temps(&self) -> Result<u64, StoreError> {
        const WHAT: &str = "sweep temporary files";
        // Files first, then who lives: a session that begins in between has no file in the list.
        let entries: Vec<fs::DirEntry> = fs::read_dir(&self.temp_dir)
            .and_then(Iterator::collect)
            .during(WHAT, &self.temp_dir)?;
        let living = self.living()?;
        let mut removed = 0;
        for entry in entries {
            let file_name = entry.file_name();
            let Some(owner) = file_name.to_str().and_then(owner_of) else {
                continue;
            };
            if living
                .binary_search_by(|name| name.as_str().cmp(owner))
                .is_ok()
            {
                continue;
            }
            let path = entry.path();
            let done = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            match done {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io(WHAT, &path, &error)),
            }
        }
        Ok(removed)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A lock file left behind is unlocked by the system and swept by the next session.
        drop(fs::remove_file(&self.lock_path));
    }
}

/// `4711-2` of `4711-2.17.mp4`, and of `.4711-2.17.mp4.part`: what a writer put beside it first.
fn owner_of(file_name: &str) -> Option<&str> {
    let file_name = file_name.strip_prefix('.').unwrap_or(file_name);
    let (owner, rest) = file_name.split_once('.')?;
    let (pid, number) = owner.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_ours = digits(pid) && digits(number) && rest != "lock";
    is_ours.then_some(owner)
}

fn is_locked(path: &Path) -> Result<bool, StoreError> {
    const WHAT: &str = "look for another session";
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(StoreError::io(WHAT, path, &error)),
    };
    match file.try_lock() {
        Ok(()) => {
            // Ended. The lock is held while its name goes, see `Session::start`.
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(StoreError::io(WHAT, path, &error))
                }
                _ => Ok(false),
            }
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(StoreError::io(WHAT, path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_only_what_ended_sessions_left() {
        let dir = tempfile::tempdir().unwrap();
        let (locks, temps) = (dir.path().join("sessions"), dir.path().join("temp"));
        let first = Session::start(&locks, &temps).unwrap();
        let second = Session::start(&locks, &temps).unwrap();
        assert_ne!(first.name(), second.name());
        let kept = second.temp("mp4");
        fs::write(&kept, b"in work").unwrap();
        // A process that was killed: its lock file stays, unlocked, or is gone altogether.
        fs::write(locks.join("999999999-1.lock"), b"").unwrap();
        for left in [
            "999999999-1.0.mp4",
            "999999998-3.7",
            ".999999998-3.8.mp4.part",
        ] {
            fs::write(temps.join(left), b"half").unwrap();
        }
        fs::write(temps.join("readme.txt"), b"not ours").unwrap();
        assert_eq!(first.sweep_temps().unwrap(), 3);
        assert_eq!(first.living().unwrap().len(), 2);
        assert!(kept.exists() && temps.join("readme.txt").exists());
        drop(second);
        assert_eq!(first.living().unwrap(), [first.name()]);
    }

    #[test]
    fn extensions_cannot_leave_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let session = Session::start(dir.path(), dir.path()).unwrap();
        let temp = session.temp("../../etc/passwd");
        assert_eq!(temp.parent(), Some(dir.path()));
        assert_ne!(session.temp("mp4"), session.temp("mp4"));
        assert!(
            session
                .temp("")
                .extension()
                .is_some_and(|number| number == "2" || number == "3")
        );
    }
}
