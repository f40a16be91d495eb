//! Weights by their content, and names for what is not weights.

use std::path::{Path, PathBuf};

use crate::error::{Found, WeightsError};
use crate::mapped::map;
use crate::{Checkpoint, CheckpointKind, Gguf, SafeTensors};

/// Bytes looked at to name a file.
const SNIFFED_BYTES: usize = 1024;

/// Open the weights at `path`, by what the file holds: GGUF (any of its parts), safetensors, a
/// safetensors index, or a folder of one of them.
///
/// # Errors
/// [`WeightsError`]: what the file is instead, or what is wrong with it.
pub fn open(path: impl AsRef<Path>) -> Result<Box<dyn Checkpoint>, WeightsError> {
    let path = path.as_ref();
    if path.is_dir() {
        return open_folder(path);
    }
    if path
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        return Ok(Box::new(SafeTensors::open(path)?));
    }
    let bytes = map(path)?;
    if kind_of(&bytes) == Some(CheckpointKind::Gguf) {
        return Ok(Box::new(Gguf::of_mapped(bytes, path)?));
    }
    Ok(Box::new(SafeTensors::of_mapped(bytes, path)?))
}

fn open_folder(folder: &Path) -> Result<Box<dyn Checkpoint>, WeightsError> {
    let ggufs = files_ending(folder, ".gguf")?;
    let safetensors = files_ending(folder, ".safetensors")?;
    if ggufs.is_empty() || !safetensors.is_empty() {
        return Ok(Box::new(SafeTensors::open(folder)?));
    }
    let first = &ggufs[0];
    let parts = crate::gguf::part_of(first).map_or(1, |part| part.count as usize);
    if ggufs.len() != parts {
        return Err(WeightsError::Folder {
            what: format!(
                "{} GGUF files, expected one file or all parts of one: {}",
                ggufs.len(),
                listed(&ggufs)
            ),
            path: folder.to_owned(),
        });
    }
    Ok(Box::new(Gguf::open(first)?))
}

/// The first few file names, for a message.
pub(crate) fn listed(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .take(6)
        .filter_map(|path| path.file_name())
        .map(|name| format!("{name:?}"))
        .collect();
    names.join(", ")
}

/// Files of a folder whose names end so, sorted.
pub(crate) fn files_ending(folder: &Path, end: &str) -> Result<Vec<PathBuf>, WeightsError> {
    let io = |source| WeightsError::io("list a folder", folder, source);
    let mut found = Vec::new();
    for entry in folder.read_dir().map_err(io)? {
        let path = entry.map_err(io)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.ends_with(end)) && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Which reader these bytes are for, by their beginning.
pub(crate) fn kind_of(bytes: &[u8]) -> Option<CheckpointKind> {
    if bytes.starts_with(b"GGUF") {
        return Some(CheckpointKind::Gguf);
    }
    (bytes.get(8) == Some(&b'{')).then_some(CheckpointKind::SafeTensors)
}

/// The error for bytes that are not weights of the kind expected.
pub(crate) fn not_weights(bytes: &[u8], path: &Path) -> WeightsError {
    WeightsError::NotWeights {
        found: name_bytes(bytes),
        path: path.to_owned(),
    }
}

fn name_bytes(bytes: &[u8]) -> Found {
    if let Some(kind) = kind_of(bytes) {
        return Found::OtherKind(kind);
    }
    let head = bytes[..bytes.len().min(SNIFFED_BYTES)].to_vec();
    match &*head {
        [] => Found::Empty,
        [b'P', b'K', 3 | 5, ..] => Found::Zip,
        [0x80, 2..=5, ..] => Found::Pickle,
        [0x1f, 0x8b, ..] => Found::Named("a gzip archive"),
        [0x89, b'H', b'D', b'F', ..] => Found::Named("an HDF5 file"),
        [b'l', b'm', b'g', b'g', ..]
        | [b't', b'j', b'g', b'g', ..]
        | [b'f', b'm', b'g', b'g', ..] => Found::Named("a GGML file from before GGUF"),
        _ => name_text(&head, bytes.len()),
    }
}

fn name_text(head: &[u8], len: usize) -> Found {
    let text = String::from_utf8_lossy(head);
    if text.starts_with("version https://git-lfs") {
        let size = text.lines().find_map(|line| line.strip_prefix("size "));
        return Found::LfsPointer {
            real_bytes: size.and_then(|size| size.trim().parse().ok()),
        };
    }
    let start = text.trim_start_matches('\u{feff}').trim_start();
    if start.starts_with('<') {
        let lower = start.to_lowercase();
        if lower.contains("<!doctype html") || lower.contains("<html") {
            return Found::WebPage;
        }
        if lower.starts_with("<?xml") {
            return Found::Named("an XML document (often the error of a storage server)");
        }
    }
    // A character may be cut at the end of what is looked at, but not at the end of the file.
    let cut = if len > head.len() { 3 } else { 0 };
    let whole = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && head.len() - error.valid_up_to() <= cut,
    };
    let plain = |c: &u8| *c >= b' ' || matches!(c, b'\n' | b'\r' | b'\t');
    if whole && head.iter().all(plain) {
        return Found::Text;
    }
    Found::Unknown {
        first: head[..head.len().min(8)].to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_for_what_they_are() {
        let cases: &[(&[u8], &str)] = &[
            (b"", "empty"),
            (b"PK\x03\x04abc", "zip / PyTorch pickle container"),
            (b"\x80\x02\x8a\x0al\xfc", "this is a pickle"),
            (b"  \n<HTML><body>", "web page"),
            (b"\xef\xbb\xbf<!DOCTYPE html>", "web page"),
            (b"<?xml version=\"1.0\"?><Error>", "XML"),
            (b"{\"error\":\"Entry not found\"}", "text file"),
            (b"lmgg\x01", "before GGUF"),
            (
                b"version https://git-lfs.github.com/spec/v1\noid x\nsize 1234567\n",
                "1,234,567 bytes",
            ),
            (b"\x00\x01\x02", "begins with bytes 00 01 02"),
            (b"GGUF\x03", "gguf"),
        ];
        for (bytes, expected) in cases {
            let text = name_bytes(bytes).to_string();
            assert!(
                text.contains(expected),
                "{text:?} does not say {expected:?}"
            );
        }
    }
}
