//! Whether a file is whole, by its outermost structure: MP4 boxes, Matroska segment, RIFF chunk.

use std::io::{self, Read, Seek, SeekFrom};

/// What the outermost structure says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// An MP4 or QuickTime file.
    pub(crate) is_mp4: bool,
    /// It has the index without which nothing can be read.
    pub(crate) has_moov: bool,
    /// It is written in fragments, each with an index of its own.
    pub(crate) is_fragmented: bool,
    /// What is missing at the end, in words.
    pub(crate) cut: Option<String>,
}

/// Top-level boxes that MP4 and QuickTime files begin with.
const FIRST_BOXES: [&[u8; 4]; 8] = [
    b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"styp", b"moof",
];
/// Boxes looked at; fragments of a day at one a second and two boxes each.
const MAX_BOXES: usize = 200_000;

pub(crate) fn outline<R: Read + Seek>(file: &mut R, len_bytes: u64) -> io::Result<Outline> {
    let mut head = [0u8; 64];
    file.seek(SeekFrom::Start(0))?;
    let got = read_up_to(file, &mut head)?;
    let head = &head[..got];
    let outline = if head
        .get(4..8)
        .is_some_and(|kind| FIRST_BOXES.iter().any(|first| *first == kind))
    {
        mp4(file, len_bytes)?
    } else if head.starts_with(b"\x1aE\xdf\xa3") {
        Outline {
            cut: matroska_end(head).and_then(|end| cut_at(len_bytes, end)),
            ..Outline::default()
        }
    } else if head.starts_with(b"RIFF") && head.len() >= 12 && head.get(8..12) != Some(b"WEBP") {
        let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        // Streamed files have 0 or all ones.
        let known = size != 0 && size != u32::MAX;
        Outline {
            cut: known
                .then(|| cut_at(len_bytes, u64::from(size) + 8))
                .flatten(),
            ..Outline::default()
        }
    } else {
        Outline::default()
    };
    file.seek(SeekFrom::Start(0))?;
    Ok(outline)
}

fn cut_at(len_bytes: u64, end: u64) -> Option<String> {
    (end > len_bytes).then(|| format!("the file has {len_bytes} of {end} bytes"))
}

fn read_up_to<R: Read>(file: &mut R, into: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match file.read(&mut into[got..]) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

fn mp4<R: Read + Seek>(file: &mut R, len_bytes: u64) -> io::Result<Outline> {
    let mut outline = Outline {
        is_mp4: true,
        ..Outline::default()
    };
    let mut at = 0u64;
    for _ in 0..MAX_BOXES {
        if at >= len_bytes {
            break;
        }
        file.seek(SeekFrom::Start(at))?;
        let mut head = [0u8; 16];
        let got = read_up_to(file, &mut head)?;
        if got < 8 {
            outline.cut = Some(format!(
                "the file ends after {len_bytes} bytes, inside a box header"
            ));
            break;
        }
        let kind = [head[4], head[5], head[6], head[7]];
        let short = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let size = match short {
            // To the end of the file.
            0 => len_bytes - at,
            1 if got == 16 => u64::from_be_bytes([
                head[8], head[9], head[10], head[11], head[12], head[13], head[14], head[15],
            ]),
            _ => u64::from(short),
        };
        if size < 8 {
            break;
        }
        let end = at.saturating_add(size);
        let is_whole = end <= len_bytes;
        outline.has_moov |= &kind == b"moov" && is_whole;
        outline.is_fragmented |= &kind == b"moof";
        if !is_whole {
            outline.cut = Some(format!(
                "the file ends after {len_bytes} bytes, inside the box {:?} that ends at byte {end}",
                String::from_utf8_lossy(&kind)
            ));
            break;
        }
        at = end;
    }
    Ok(outline)
}

/// Where a Matroska file's segment ends, if its size is written.
fn matroska_end(head: &[u8]) -> Option<u64> {
    let (header_bytes, at) = ebml_size(head, 4)?;
    let segment_at = at + usize::try_from(header_bytes?).ok()?;
    if head.get(segment_at..segment_at + 4)? != b"\x18\x53\x80\x67" {
        return None;
    }
    let (size, body_at) = ebml_size(head, segment_at + 4)?;
    Some(size?.saturating_add(body_at as u64))
}

/// A size at `at` (nothing when it says unknown), and where it ends.
fn ebml_size(head: &[u8], at: usize) -> Option<(Option<u64>, usize)> {
    let first = *head.get(at)?;
    let length = first.leading_zeros() as usize + 1;
    if length > 8 {
        return None;
    }
    let bytes = head.get(at..at + length)?;
    let mut value = u64::from(first) & ((1u64 << (8 - length)) - 1);
    for byte in &bytes[1..] {
        value = value << 8 | u64::from(*byte);
    }
    let unknown = (1u64 << (7 * length)) - 1;
    Some(((value != unknown).then_some(value), at + length))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn boxed(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let mut out = (body.len() as u32 + 8).to_be_bytes().to_vec();
        out.extend_from_slice(kind);
        out.extend_from_slice(body);
        out
    }

    #[test]
    fn finds_the_index_and_the_cut() {
        let whole = [
            boxed(b"ftyp", b"isom"),
            boxed(b"moov", &[1; 40]),
            boxed(b"mdat", &[2; 90]),
        ]
        .concat();
        let outline = |bytes: &[u8]| outline(&mut Cursor::new(bytes), bytes.len() as u64).unwrap();
        let got = outline(&whole);
        assert!(got.is_mp4 && got.has_moov && got.cut.is_none() && !got.is_fragmented);
        let got = outline(&whole[..120]);
        assert!(got.has_moov && got.cut.unwrap().contains("\"mdat\""));
        let got = outline(&whole[..30]);
        assert!(!got.has_moov && got.cut.unwrap().contains("\"moov\""));
        assert!(outline(&[boxed(b"ftyp", b"isom"), boxed(b"moof", b"")].concat()).is_fragmented);
    }

    #[test]
    fn matroska_and_riff_sizes() {
        let mut mkv = b"\x1aE\xdf\xa3\x82ab\x18\x53\x80\x67\x84".to_vec();
        assert_eq!(matroska_end(&mkv), Some(16));
        mkv[11] = 0xff;
        assert_eq!(matroska_end(&mkv), None, "unknown size");
        let riff = b"RIFF\x20\0\0\0WAVEfmt ";
        let got = outline(&mut Cursor::new(riff), 16).unwrap();
        assert_eq!(got.cut.as_deref(), Some("the file has 16 of 40 bytes"));
    }
}
