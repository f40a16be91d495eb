//! Results out of the store, under names that people chose.

use std::fs::{File, TryLockError};
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use engine_base::{CancelToken, Code};

use crate::error::StudioError;
use crate::fault;

/// Copy the file at `source` to `out` so that `out` never names a half-written file: written
/// beside it under another name, synced, renamed. An old `out` is replaced only at the end.
///
/// # Errors
/// [`Code::NotPermitted`], [`Code::DiskFull`] and so on, naming `out`; [`Code::Cancelled`].
pub(crate) fn copy_out(source: &Path, out: &Path, cancel: &CancelToken) -> Result<(), StudioError> {
    copy_out_with(source, &[], out, cancel)
}

/// As [`copy_out`], with `tail` behind the file's last byte.
///
/// # Errors
/// As [`copy_out`].
pub(crate) fn copy_out_with(
    source: &Path,
    tail: &[u8],
    out: &Path,
    cancel: &CancelToken,
) -> Result<(), StudioError> {
    let (partial, file) = begin(out)?;
    let copied = copy_synced(source, tail, file, &partial, cancel).and_then(|_locked| {
        fault::pass("export.before_rename");
        std::fs::rename(&partial, out).map_err(|error| StudioError::io("write", out, &error))
    });
    if copied.is_err() {
        // The error is already told; a leftover has a name that says what it is.
        drop(std::fs::remove_file(&partial));
        return copied;
    }
    sync_folder(out);
    fault::pass("export.after_rename");
    Ok(())
}

/// Fails early, before hours of work, when `out` cannot be written: its folder is made if needed.
///
/// # Errors
/// [`Code::BadInput`] for a folder, [`Code::NotPermitted`] and so on, naming `out`.
pub(crate) fn check_writable(out: &Path) -> Result<(), StudioError> {
    if out.is_dir() {
        let message = format!("expected a file name for the film, got a folder: {out:?}");
        return Err(StudioError::new(Code::BadInput, message));
    }
    if let Some(folder) = out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let no_folder = folder
            .ancestors()
            .find(|above| above.exists())
            .filter(|above| !above.is_dir());
        if let Some(file) = no_folder {
            let message = format!("cannot write {out:?}: expected a folder, got a file: {file:?}");
            return Err(StudioError::new(Code::BadInput, message));
        }
        std::fs::create_dir_all(folder)
            .map_err(|error| StudioError::io("make the folder of the film", folder, &error))?;
    }
    let (partial, _file) = begin(out)?;
    std::fs::remove_file(&partial).map_err(|error| StudioError::io("write", out, &error))
}

const PARTIAL: &str = ".part";

/// A new file beside `out`, locked for as long as it is open. What ended processes left there of
/// the same `out` is removed: nobody locks it.
fn begin(out: &Path) -> Result<(PathBuf, File), StudioError> {
    let Some(name) = out.file_name() else {
        let message = format!("expected a file name for the film, got {out:?}");
        return Err(StudioError::new(Code::BadInput, message));
    };
    let failed = |error: &std::io::Error| StudioError::io("write", out, error);
    sweep(out, &name.to_string_lossy());
    let mut partial = std::ffi::OsString::from(".");
    partial.push(name);
    partial.push(format!(".{}{PARTIAL}", std::process::id()));
    let partial = out.with_file_name(partial);
    let file = File::create(&partial).map_err(|error| failed(&error))?;
    match file.try_lock() {
        // Where a disk knows no locks, two processes do not write one film either.
        Ok(()) | Err(TryLockError::Error(_)) => Ok((partial, file)),
        Err(TryLockError::WouldBlock) => {
            let message = format!("cannot write: another process writes it now: {out:?}");
            Err(StudioError::new(Code::Busy, message))
        }
    }
}

/// Remove `.NAME.PID.part` of processes that have ended. Nothing depends on it, so failures are
/// not told.
fn sweep(out: &Path, name: &str) {
    let Ok(entries) = std::fs::read_dir(folder_of(out)) else {
        return;
    };
    for entry in entries.flatten() {
        let found = entry.file_name();
        let found = found.to_string_lossy();
        let pid = found
            .strip_prefix('.')
            .and_then(|rest| rest.strip_prefix(name))
            .and_then(|rest| rest.strip_prefix('.'))
            .and_then(|rest| rest.strip_suffix(PARTIAL));
        let is_partial =
            pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()));
        if is_partial && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

/// Copies into `file`, which lies at `partial`; gives it back still locked.
fn copy_synced(
    source: &Path,
    tail: &[u8],
    file: File,
    partial: &Path,
    cancel: &CancelToken,
) -> Result<File, StudioError> {
    let failed = |error: &std::io::Error| StudioError::io("write", partial, error);
    let from = File::open(source).map_err(|error| StudioError::io("read", source, &error))?;
    let mut from = BufReader::with_capacity(1 << 20, from);
    let mut to = BufWriter::new(file);
    loop {
        if cancel.is_cancelled() {
            return Err(StudioError::new(Code::Cancelled, "cancelled"));
        }
        let chunk = std::io::BufRead::fill_buf(&mut from)
            .map_err(|error| StudioError::io("read", source, &error))?;
        if chunk.is_empty() {
            break;
        }
        to.write_all(chunk).map_err(|error| failed(&error))?;
        let taken = chunk.len();
        std::io::BufRead::consume(&mut from, taken);
    }
    to.write_all(tail).map_err(|error| failed(&error))?;
    let file = to.into_inner().map_err(|error| failed(error.error()))?;
    file.sync_all().map_err(|error| failed(&error))?;
    Ok(file)
}

fn folder_of(out: &Path) -> &Path {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn sync_folder(out: &Path) {
    if let Ok(folder) = File::open(folder_of(out)) {
        // Where a folder cannot be synced (some network disks) the rename is as safe as it gets.
        drop(folder.sync_all());
    }
}

/// A title as a file name: letters, digits, spaces and a few marks, at most 80 characters.
pub(crate) fn file_stem(title: &str) -> String {
    let kept: String = title
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || " -_.,'()".contains(c) {
                c
            } else {
                ' '
            }
        })
        .take(80)
        .collect();
    let words: Vec<&str> = kept.split_whitespace().collect();
    let stem = words.join(" ").trim_matches(['.', ' ']).to_owned();
    if stem.is_empty() {
        "film".to_owned()
    } else {
        stem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_become_file_names() {
        for (title, stem) in [
            ("The Lamp", "The Lamp"),
            ("a/b\\c:d*e", "a b c d e"),
            ("../..", "film"),
            ("灯台", "灯台"),
            ("", "film"),
        ] {
            assert_eq!(file_stem(title), stem);
        }
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let (source, out) = (folder.path().join("new"), folder.path().join("film.mp4"));
        std::fs::write(&source, b"new").unwrap();
        std::fs::write(&out, b"old").unwrap();
        let cancel = CancelToken::new();
        cancel.cancel();
        assert_eq!(
            copy_out(&source, &out, &cancel).unwrap_err().code,
            Code::Cancelled
        );
        assert_eq!(std::fs::read(&out).unwrap(), b"old");
        copy_out(&source, &out, &CancelToken::new()).unwrap();
        assert_eq!(std::fs::read(&out).unwrap(), b"new");
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            2,
            "nothing is left over"
        );
    }

    #[test]
    fn what_a_killed_process_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("film.mp4");
        let left = folder.path().join(".film.mp4.999999999.part");
        let living = folder.path().join(".film.mp4.999999998.part");
        let others = [".film.mp4.x.part", ".film2.mp4.1.part", ".film.mp4..part"];
        for other in others {
            std::fs::write(folder.path().join(other), b"not ours").unwrap();
        }
        std::fs::write(&left, b"half").unwrap();
        let held = File::create(&living).unwrap();
        held.lock().unwrap();
        check_writable(&out).unwrap();
        assert!(!left.exists() && living.exists());
        for other in others {
            assert!(folder.path().join(other).exists(), "{other}");
        }
    }

    #[test]
    fn an_unwritable_place_is_said_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a-file");
        std::fs::write(&file, b"").unwrap();
        assert!(check_writable(&file.join("film.mp4")).is_err());
        assert_eq!(
            check_writable(folder.path()).unwrap_err().code,
            Code::BadInput
        );
        check_writable(&folder.path().join("new/film.mp4")).unwrap();
    }
}
