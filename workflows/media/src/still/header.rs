//! What the headers of PNG, JPEG and WebP files say, read before anything is decoded.

use std::io::{self, Read, Seek, SeekFrom};

/// Facts from a PNG's chunks.
#[derive(Debug, Default)]
pub(super) struct PngFacts {
    pub(super) cicp: Option<(u8, u8)>,
    pub(super) gamma: Option<f32>,
    pub(super) has_srgb: bool,
    /// What is missing at the end, in words.
    pub(super) cut: Option<String>,
}

/// Walk the chunks of a PNG; each is only skipped, so that cost is in their number.
pub(super) fn png<R: Read + Seek>(reader: &mut R, len_bytes: u64) -> io::Result<PngFacts> {
    let mut facts = PngFacts::default();
    let mut at = 8u64;
    loop {
        if at + 8 > len_bytes {
            facts.cut = Some(format!(
                "the file ends after {len_bytes} bytes, before its last chunk (IEND)"
            ));
            return Ok(facts);
        }
        reader.seek(SeekFrom::Start(at))?;
        let mut head = [0u8; 8];
        reader.read_exact(&mut head)?;
        let length = u64::from(u32::from_be_bytes([head[0], head[1], head[2], head[3]]));
        let kind = [head[4], head[5], head[6], head[7]];
        let end = at + 12 + length;
        if end > len_bytes {
            facts.cut = Some(format!(
                "the file ends after {len_bytes} bytes, inside the chunk {:?} that ends at byte {end}",
                String::from_utf8_lossy(&kind)
            ));
            return Ok(facts);
        }
        match &kind {
            b"IEND" => return Ok(facts),
            b"sRGB" => facts.has_srgb = true,
            b"cICP" if length >= 4 => {
                let mut body = [0u8; 4];
                reader.read_exact(&mut body)?;
                facts.cicp = Some((body[0], body[1]));
            }
            b"gAMA" if length >= 4 => {
                let mut body = [0u8; 4];
                reader.read_exact(&mut body)?;
                let value = u32::from_be_bytes(body);
                facts.gamma = (value > 0).then(|| 100_000.0 / value as f32);
            }
            _ => {}
        }
        at = end;
    }
}

/// Facts from a JPEG's markers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct JpegFacts {
    pub(super) width_px: u32,
    pub(super) height_px: u32,
    pub(super) components: u8,
    pub(super) precision_bits: u8,
    /// An Adobe APP14 segment is there: four-channel samples are stored inverted.
    pub(super) has_adobe: bool,
    /// The end marker was found.
    pub(super) has_end: bool,
    /// Coded picture data was reached.
    pub(super) has_scan: bool,
}

/// Walk the markers of a JPEG to its end marker. Stops quietly where the data makes no sense.
pub(super) fn jpeg(data: &[u8]) -> JpegFacts {
    let mut facts = JpegFacts::default();
    let mut at = 2;
    while let Some(marker) = next_marker(data, &mut at) {
        match marker {
            0xd9 => {
                facts.has_end = true;
                return facts;
            }
            0x01 | 0xd0..=0xd8 => continue,
            _ => {}
        }
        let Some(length) = data.get(at..at + 2) else {
            return facts;
        };
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let body = data.get(at + 2..at + length.max(2)).unwrap_or_default();
        match marker {
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf
                if body.len() >= 6 && facts.width_px == 0 =>
            {
                facts.precision_bits = body[0];
                facts.height_px = u32::from(u16::from_be_bytes([body[1], body[2]]));
                facts.width_px = u32::from(u16::from_be_bytes([body[3], body[4]]));
                facts.components = body[5];
            }
            0xda => facts.has_scan = true,
            0xee if body.starts_with(b"Adobe") => facts.has_adobe = true,
            _ => {}
        }
        at += length.max(2);
    }
    facts
}

/// The next marker code at or after `at`, which moves behind it. Coded data holds `ff 00` only.
fn next_marker(data: &[u8], at: &mut usize) -> Option<u8> {
    loop {
        let found = data.get(*at..)?.iter().position(|byte| *byte == 0xff)?;
        let mut code_at = *at + found + 1;
        while data.get(code_at) == Some(&0xff) {
            code_at += 1;
        }
        let code = *data.get(code_at)?;
        *at = code_at + 1;
        if code != 0 {
            return Some(code);
        }
    }
}

/// How many bytes a WebP file says it has.
pub(super) fn webp_len_bytes(head: &[u8]) -> Option<u64> {
    let size = head.get(4..8)?;
    Some(u64::from(u32::from_le_bytes([size[0], size[1], size[2], size[3]])) + 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jpeg_walk_finds_size_and_end() {
        let mut data = vec![0xff, 0xd8, 0xff, 0xee, 0, 14];
        data.extend_from_slice(b"Adobe\0\0\0\0\0\0\x02");
        data.extend_from_slice(&[0xff, 0xc2, 0, 8, 8, 0, 20, 0, 30, 4]);
        data.extend_from_slice(&[0xff, 0xda, 0, 3, 1, 9, 9, 0xff, 0, 7, 0xff, 0xd0, 5]);
        let facts = jpeg(&data);
        assert_eq!(
            (facts.width_px, facts.height_px, facts.components),
            (30, 20, 4)
        );
        assert!(facts.has_adobe && facts.has_scan && !facts.has_end);
        data.extend_from_slice(&[0xff, 0xd9]);
        assert!(jpeg(&data).has_end);
    }

    #[test]
    fn walks_end_on_any_bytes() {
        for seed in 0u32..2000 {
            let bytes: Vec<u8> = (0..64u32)
                .map(
                    |n| match (n.wrapping_mul(2_654_435_761) ^ seed.wrapping_mul(40_503)) >> 7 {
                        v if v % 3 == 0 => 0xff,
                        v => v as u8,
                    },
                )
                .collect();
            jpeg(&bytes);
            let mut cursor = io::Cursor::new(&bytes);
            assert!(png(&mut cursor, 64).is_ok());
        }
    }
}
