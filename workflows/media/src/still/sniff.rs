//! What a file is, by its first bytes.

/// The kinds of picture file that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Png,
    Jpeg,
    WebP,
    Tiff,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::WebP => "WebP",
            Self::Tiff => "TIFF",
        }
    }
}

/// How many bytes from the start decide.
pub(crate) const HEAD_BYTES: usize = 512;

pub(super) fn kind(head: &[u8]) -> Option<Kind> {
    if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some(Kind::Png)
    } else if head.starts_with(&[0xff, 0xd8, 0xff]) {
        Some(Kind::Jpeg)
    } else if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        Some(Kind::WebP)
    } else if [&b"II*\0"[..], b"MM\0*", b"II+\0", b"MM\0+"]
        .iter()
        .any(|magic| head.starts_with(magic))
    {
        Some(Kind::Tiff)
    } else {
        None
    }
}

/// A phrase for people: what a file that is not one of [`Kind`] looks like.
pub(crate) fn looks_like(head: &[u8]) -> String {
    if let Some(kind) = kind(head) {
        return format!("a {} picture", kind.name());
    }
    let fixed: [(&[u8], &str); 20] = [
        (b"GIF8", "a GIF picture"),
        (b"BM", "a BMP picture"),
        (b"8BPS", "a Photoshop file"),
        (b"%PDF", "a PDF document"),
        (b"%!PS", "a PostScript file"),
        (b"\x1aE\xdf\xa3", "a Matroska or WebM video"),
        (b"OggS", "an Ogg sound or video file"),
        (b"fLaC", "a FLAC sound file"),
        (b"ID3", "an MP3 sound file"),
        (b"FLV\x01", "a Flash video"),
        (b"\0\0\x01\xba", "an MPEG video"),
        (b"\0\0\x01\xb3", "an MPEG video"),
        (b"PK\x03\x04", "a ZIP archive or an office document"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
        (b"\x7fELF", "a program"),
        (b"MZ", "a Windows program"),
        (b"\xff\x0a", "a JPEG XL picture"),
        (b"\0\0\0\x0cJXL ", "a JPEG XL picture"),
        (b"SQLite format 3\0", "a database"),
    ];
    if let Some((_, phrase)) = fixed.iter().find(|(magic, _)| head.starts_with(magic)) {
        return (*phrase).to_owned();
    }
    if head.starts_with(b"RIFF") {
        return match head.get(8..12) {
            Some(b"WAVE") => "a WAV sound file",
            Some(b"AVI ") => "an AVI video",
            _ => "a RIFF file of unknown content",
        }
        .to_owned();
    }
    if head.get(4..8) == Some(b"ftyp") {
        return match head.get(8..12) {
            Some(b"heic" | b"heix" | b"mif1" | b"msf1") => "a HEIC picture",
            Some(b"avif" | b"avis") => "an AVIF picture",
            Some(b"crx ") => "a camera raw picture",
            _ => "an MP4 or QuickTime video",
        }
        .to_owned();
    }
    if head.first() == Some(&0x47) && head.get(188) == Some(&0x47) {
        return "an MPEG transport stream".to_owned();
    }
    text_kind(head)
        .unwrap_or("binary data of unknown kind")
        .to_owned()
}

fn text_kind(head: &[u8]) -> Option<&'static str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character may be cut at the end of the head.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    if text
        .chars()
        .any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}'))
    {
        return None;
    }
    let start = text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .to_ascii_lowercase();
    Some(
        if start.starts_with("<!doctype html") || start.starts_with("<html") {
            "a web page (HTML)"
        } else if start.contains("<svg") {
            "an SVG drawing"
        } else if start.starts_with("<?xml") {
            "an XML file"
        } else if start.starts_with('{') || start.starts_with('[') {
            "a JSON or text file"
        } else if start.starts_with("version https://git-lfs") {
            "a Git LFS pointer, not the picture itself"
        } else {
            "a text file"
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_people_drop_by_mistake() {
        let cases: [(&[u8], &str); 9] = [
            (b"\n<!DOCTYPE html><html><body>404", "HTML"),
            (b"%PDF-1.7\n%\xe2\xe3", "PDF"),
            (b"\0\0\0\x20ftypisom\0\0\x02\0", "MP4"),
            (b"\0\0\0\x1cftypheic\0\0\0\0", "HEIC"),
            (b"GIF89a\x10\0", "GIF"),
            (b"Once upon a time", "text file"),
            (b"<?xml version=\"1.0\"?>\n<svg xmlns", "SVG"),
            (b"\x01\x02\x03\x04\xff\xfe", "unknown"),
            ("caf\u{e9}".as_bytes().split_at(4).0, "text file"),
        ];
        for (head, word) in cases {
            let phrase = looks_like(head);
            assert!(phrase.contains(word), "{head:?} was called {phrase:?}");
        }
    }
}
