//! A text that a film carries about itself behind its pictures and sound.
//!
//! It lies in a `uuid` box at the end of the MP4 file (ISO/IEC 14496-12, 4.2), which players pass
//! over. So it can be added when a film is written out, and never decides the film's own bytes.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::MediaError;

/// Marks our box: a version 4 UUID.
const ID: [u8; 16] = *b"longta\x4be\x8dmanifst";

/// Longest text that is written or read.
pub const MANIFEST_BYTES_MAX: usize = 64 << 20;

/// Boxes of a film that are looked at: more than any film has.
const BOXES_MAX: usize = 100_000;

/// The box that holds `text`, to be put behind the last byte of a film; absent when the text is
/// longer than [`MANIFEST_BYTES_MAX`].
pub fn manifest_box(text: &str) -> Option<Vec<u8>> {
    if text.len() > MANIFEST_BYTES_MAX {
        return None;
    }
    let size = u32::try_from(8 + ID.len() + text.len()).ok()?;
    let mut bytes = Vec::with_capacity(size as usize);
    bytes.extend(size.to_be_bytes());
    bytes.extend(b"uuid");
    bytes.extend(ID);
    bytes.extend(text.as_bytes());
    Some(bytes)
}

/// The text that the film `path` carries; absent when it has none or is no MP4 file.
///
/// # Errors
/// [`MediaError::Io`]; [`MediaError::BadFile`] for one that is no UTF-8 text or too long.
pub fn read_manifest(path: &Path) -> Result<Option<String>, MediaError> {
    let io = |source| MediaError::Io {
        what: "cannot read a film's manifest",
        path: path.to_owned(),
        source,
    };
    let bad = |what: String| MediaError::BadFile {
        what,
        path: path.to_owned(),
    };
    let mut file = File::open(path).map_err(io)?;
    let end = file.metadata().map_err(io)?.len();
    let mut at = 0u64;
    let mut found = None;
    for _ in 0..BOXES_MAX {
        let mut head = [0u8; 32];
        let left = end - at;
        if left < 8 {
            break;
        }
        let part = usize::try_from(left).unwrap_or(head.len()).min(head.len());
        file.seek(SeekFrom::Start(at)).map_err(io)?;
        file.read_exact(&mut head[..part]).map_err(io)?;
        let [s0, s1, s2, s3, kind @ ..] = head;
        let (size, header) = match u32::from_be_bytes([s0, s1, s2, s3]) {
            0 => (left, 8),
            1 => {
                let [_, _, _, _, a, b, c, d, e, f, g, h, ..] = kind;
                (u64::from_be_bytes([a, b, c, d, e, f, g, h]), 16)
            }
            size => (u64::from(size), 8),
        };
        if size < header || size > left {
            break;
        }
        let ours = kind.starts_with(b"uuid") && header == 8 && head[8..24] == ID && size >= 24;
        if ours {
            found = Some((at + 24, size - 24));
        }
        at += size;
    }
    let Some((at, bytes)) = found else {
        return Ok(None);
    };
    if bytes > MANIFEST_BYTES_MAX as u64 {
        return Err(bad(format!(
            "expected a manifest of at most {MANIFEST_BYTES_MAX} bytes, got {bytes}"
        )));
    }
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(at)).map_err(io)?;
    file.take(bytes).read_to_end(&mut text).map_err(io)?;
    String::from_utf8(text)
        .map(Some)
        .map_err(|_not_text| bad("expected UTF-8 in the film's manifest, got other bytes".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Option<String>, MediaError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        read_manifest(file.path())
    }

    fn boxed(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let mut bytes = (8 + body.len() as u32).to_be_bytes().to_vec();
        bytes.extend(kind);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn a_text_comes_back_from_behind_a_film_whatever_lies_before_it() {
        let text = "{\"longtake\":1,\"script\":\"Größe 灯台\"}";
        let mut film = boxed(b"ftyp", b"isom");
        // A long box with a 64-bit size, and a stranger's uuid.
        film.extend(1u32.to_be_bytes());
        film.extend(b"mdat");
        film.extend(20u64.to_be_bytes());
        film.extend([7; 4]);
        film.extend(boxed(b"uuid", &[9; 30]));
        assert_eq!(read(&film).unwrap(), None);
        film.extend(manifest_box(text).unwrap());
        assert_eq!(read(&film).unwrap().as_deref(), Some(text));
        film.extend(manifest_box("later").unwrap());
        assert_eq!(read(&film).unwrap().as_deref(), Some("later"));
        let cut = &film[..film.len() - 1];
        assert_eq!(read(cut).unwrap().as_deref(), Some(text));
    }

    #[test]
    fn files_of_other_kinds_have_none_and_bytes_that_are_no_text_are_refused() {
        for bytes in [
            &b""[..],
            b"RIFF",
            &[0; 7],
            &[0; 64],
            &[255; 100],
            b"\0\0\0\x04free",
        ] {
            assert_eq!(read(bytes).unwrap(), None, "{bytes:?}");
        }
        let mut broken = boxed(b"ftyp", b"isom");
        let mut manifest = manifest_box("abc").unwrap();
        let last = manifest.len() - 1;
        manifest[last] = 0xff;
        broken.extend(manifest);
        assert!(read(&broken).unwrap_err().to_string().contains("UTF-8"));
    }
}
