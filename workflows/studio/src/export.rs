//! Results out of the store, under names that people chose.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use engine_base::{CancelToken, Code};

use crate::error::StudioError;

/// Copy the file at `source` to `out` so that `out` never names a half-written file: written
/// beside it under another name, synced, renamed. An old `out` is replaced only at the end.
///
/// # Errors
/// [`Code::NotPermitted`], [`Code::DiskFull`] and so on, naming `out`; [`Code::Cancelled`].
pub(crate) fn copy_out(source: &Path, out: &Path, cancel: &CancelToken) -> Result<(), StudioError> {
    let partial = partial_name(out)?;
    let copied = copy_synced(source, &partial, cancel).and_then(|()| {
        std::fs::rename(&partial, out).map_err(|error| StudioError::io("write", out, &error))
    });
    if copied.is_err() {
        // The error is already told; a leftover has a name that says what it is.
        drop(std::fs::remove_file(&partial));
        return copied;
    }
    sync_folder(out);
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
        std::fs::create_dir_all(folder)
            .map_err(|error| StudioError::io("make the folder of the film", folder, &error))?;
    }
    let partial = partial_name(out)?;
    File::create(&partial).map_err(|error| StudioError::io("write", out, &error))?;
    std::fs::remove_file(&partial).map_err(|error| StudioError::io("write", out, &error))
}

fn partial_name(out: &Path) -> Result<PathBuf, StudioError> {
    let Some(name) = out.file_name() else {
        let message = format!("expected a file name for the film, got {out:?}");
        return Err(StudioError::new(Code::BadInput, message));
    };
    let mut partial = std::ffi::OsString::from(".");
    partial.push(name);
    partial.push(format!(".{}.part", std::process::id()));
    Ok(out.with_file_name(partial))
}

fn copy_synced(source: &Path, partial: &Path, cancel: &CancelToken) -> Result<(), StudioError> {
    let failed = |error: &std::io::Error| StudioError::io("write", partial, error);
    let from = File::open(source).map_err(|error| StudioError::io("read", source, &error))?;
    let mut from = BufReader::with_capacity(1 << 20, from);
    let mut to = BufWriter::new(File::create(partial).map_err(|error| failed(&error))?);
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
    let file = to.into_inner().map_err(|error| failed(error.error()))?;
    file.sync_all().map_err(|error| failed(&error))
}

fn sync_folder(out: &Path) {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
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
