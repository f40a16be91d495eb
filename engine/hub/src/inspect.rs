//! What kind of file something is, by its first bytes.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::Serialize;

use crate::error::HubError;

/// Bytes looked at.
const HEAD_BYTES: u64 = 24;

/// A format of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "format")]
pub enum FileFormat {
    /// GGUF.
    Gguf {
        /// Version of the format.
        version: u32,
        /// Tensors the header announces.
        tensors: u64,
        /// Metadata entries the header announces.
        entries: u64,
    },
    /// safetensors.
    Safetensors {
        /// Bytes of the JSON header.
        header_bytes: u64,
    },
    /// A pickle, or an archive that holds them: never read by the engine.
    Pickle,
    /// None of these.
    Other,
}

/// What a file says about itself in its first bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileInfo {
    /// Its size.
    pub bytes: u64,
    /// Its format.
    #[serde(flatten)]
    pub format: FileFormat,
}

fn u32_at(head: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(head: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?))
}

fn format_of(head: &[u8], bytes: u64, name: &str) -> FileFormat {
    let gguf = || {
        Some(FileFormat::Gguf {
            version: head.starts_with(b"GGUF").then(|| u32_at(head, 4))??,
            tensors: u64_at(head, 8)?,
            entries: u64_at(head, 16)?,
        })
    };
    let safetensors = || {
        let header_bytes = u64_at(head, 0)?;
        let fits = header_bytes >= 2 && header_bytes <= bytes.saturating_sub(8);
        (fits && head.get(8) == Some(&b'{')).then_some(FileFormat::Safetensors { header_bytes })
    };
    // A pickle begins with its protocol mark; newer ones lie in a zip.
    let is_pickle = || {
        matches!(head, [0x80, 2..=5, ..])
            || (crate::names::is_pickle(name) && head.starts_with(b"PK\x03\x04"))
    };
    gguf().or_else(safetensors).unwrap_or(if is_pickle() {
        FileFormat::Pickle
    } else {
        FileFormat::Other
    })
}

/// Look at the first bytes of the file at `path`.
///
/// # Errors
/// [`HubError::Io`].
pub fn inspect_file(path: &Path) -> Result<FileInfo, HubError> {
    let file = File::open(path).map_err(HubError::io("open", path))?;
    let found = file.metadata().map_err(HubError::io("look at", path))?;
    let mut head = Vec::new();
    file.take(HEAD_BYTES)
        .read_to_end(&mut head)
        .map_err(HubError::io("read", path))?;
    let bytes = found.len();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let format = format_of(&head, bytes, &name);
    Ok(FileInfo { bytes, format })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_first_bytes() {
        let mut gguf = b"GGUF\x03\0\0\0".to_vec();
        gguf.extend(7u64.to_le_bytes());
        gguf.extend(9u64.to_le_bytes());
        let told = format_of(&gguf, 100, "x");
        let (version, tensors, entries) = (3, 7, 9);
        assert_eq!(
            told,
            FileFormat::Gguf {
                version,
                tensors,
                entries
            }
        );
        assert_eq!(format_of(&gguf[..20], 20, "x"), FileFormat::Other);
        let mut tensors = 16u64.to_le_bytes().to_vec();
        tensors.extend(b"{\"a\":1}");
        let header_bytes = 16;
        let told = format_of(&tensors, 24, "x");
        assert_eq!(told, FileFormat::Safetensors { header_bytes });
        // A header longer than its file is none.
        assert_eq!(format_of(&tensors, 23, "x"), FileFormat::Other);
        assert_eq!(format_of(b"\x80\x04x", 3, "x"), FileFormat::Pickle);
        assert_eq!(format_of(b"PK\x03\x04", 4, "x.pt"), FileFormat::Pickle);
        assert_eq!(format_of(b"PK\x03\x04", 4, "x.onnx"), FileFormat::Other);
        assert_eq!(format_of(b"", 0, "x"), FileFormat::Other);
    }
}
