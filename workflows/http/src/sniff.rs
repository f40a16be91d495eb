//! Media types by the first bytes of a file.

/// Bytes that [`media_type_of`] looks at.
pub(crate) const HEAD_BYTES: usize = 64;

/// The media type of a file that begins with `head`; `application/octet-stream` when it is none
/// of those that a browser shows or plays.
pub fn media_type_of(head: &[u8]) -> &'static str {
    let at = |offset: usize, bytes: &[u8]| head.get(offset..).is_some_and(|h| h.starts_with(bytes));
    if at(0, b"\x89PNG\r\n\x1a\n") {
        "image/png"
    } else if at(0, b"\xff\xd8\xff") {
        "image/jpeg"
    } else if at(0, b"RIFF") && at(8, b"WEBP") {
        "image/webp"
    } else if at(0, b"II*\0") || at(0, b"MM\0*") {
        "image/tiff"
    } else if at(4, b"ftyp") {
        match head.get(8..12) {
            Some(b"M4A " | b"M4B ") => "audio/mp4",
            Some(b"qt  ") => "video/quicktime",
            _ => "video/mp4",
        }
    } else if at(0, b"\x1a\x45\xdf\xa3") {
        let is_webm = head.windows(4).any(|bytes| bytes == b"webm");
        if is_webm {
            "video/webm"
        } else {
            "video/x-matroska"
        }
    } else if at(0, b"RIFF") && at(8, b"WAVE") {
        "audio/wav"
    } else if at(0, b"OggS") {
        "audio/ogg"
    } else if at(0, b"fLaC") {
        "audio/flac"
    } else if at(0, b"ID3") || at(0, b"\xff\xfb") || at(0, b"\xff\xf3") {
        "audio/mpeg"
    } else {
        "application/octet-stream"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_by_content() {
        let cases: [(&[u8], &str); 8] = [
            (b"\x89PNG\r\n\x1a\n....", "image/png"),
            (b"RIFF....WEBPVP8 ", "image/webp"),
            (b"RIFF....WAVEfmt ", "audio/wav"),
            (b"\0\0\0 ftypisom", "video/mp4"),
            (b"\0\0\0 ftypM4A ", "audio/mp4"),
            (b"\x1a\x45\xdf\xa3....webm", "video/webm"),
            (b"<script>", "application/octet-stream"),
            (b"", "application/octet-stream"),
        ];
        for (head, expected) in cases {
            assert_eq!(media_type_of(head), expected, "{head:?}");
        }
    }
}
