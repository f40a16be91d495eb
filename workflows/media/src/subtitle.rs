//! SRT in and out.
//!
//! Reading takes what players take: any encoding that can be told, any line end, dots for commas,
//! missing numbers, odd arrows, invisible marks. What cannot be read is named with its line and
//! everything else is kept. Where the encoding cannot be told the answer is a question, never wrong
//! letters in silence. The text stays in logical order and nothing is added to it.

mod encoding;
mod parse;
mod write;

use std::fmt;

pub use encoding::decode;
pub use write::{SrtStyle, frame_to_millis, write_srt};

/// One subtitle as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SrtCue {
    /// Start.
    pub start_millis: i64,
    /// End, after the start.
    pub end_millis: i64,
    /// The words; lines parted by `\n`.
    pub text: String,
}

/// Something odd in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SrtNote {
    /// Line, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// What was found and what was done.
    pub what: String,
}

impl fmt::Display for SrtNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}", self.what)
        } else {
            write!(f, "line {}: {}", self.line, self.what)
        }
    }
}

/// A read subtitle file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SrtFile {
    /// Cues in the file's order.
    pub cues: Vec<SrtCue>,
    /// The encoding it was read with.
    pub encoding: &'static str,
    /// What was odd, for people.
    pub notes: Vec<SrtNote>,
}

/// One way to read a file whose encoding is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodingChoice {
    /// Name to hand to [`read_subtitles_as`].
    pub encoding: &'static str,
    /// How the first words would read.
    pub sample: String,
}

/// Why a subtitle file could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubtitleError {
    /// Several encodings fit; somebody who can read it must say which.
    #[error("read subtitles: the encoding is not clear, expected one of {}", names(.0))]
    EncodingUnclear(Vec<EncodingChoice>),
    /// Not a name of an encoding.
    #[error("read subtitles: got the encoding {0:?}, expected a name such as utf-8 or gbk")]
    UnknownEncoding(String),
    /// Larger than any subtitle file.
    #[error("read subtitles: got {bytes} bytes, expected at most {MAX_BYTES}")]
    TooLarge {
        /// Size got.
        bytes: usize,
    },
    /// Nothing in it has the form of a cue.
    #[error(
        "read subtitles: found no cue in {lines} lines, expected times like 00:00:01,000 --> 00:00:02,000"
    )]
    NoCues {
        /// Lines looked at.
        lines: usize,
    },
}

/// Largest file read.
pub const MAX_BYTES: usize = 64 << 20;

fn names(choices: &[EncodingChoice]) -> String {
    let quoted: Vec<String> = choices
        .iter()
        .map(|choice| format!("{} ({:?})", choice.encoding, choice.sample))
        .collect();
    quoted.join(", ")
}

/// Read a subtitle file of any encoding.
///
/// # Errors
/// [`SubtitleError::EncodingUnclear`], [`SubtitleError::TooLarge`], [`SubtitleError::NoCues`].
pub fn read_subtitles(bytes: &[u8]) -> Result<SrtFile, SubtitleError> {
    check_size(bytes)?;
    let decoded = encoding::detect(bytes)?;
    finish(decoded)
}

/// Read a subtitle file whose encoding is known by name (any label of the web's encodings).
///
/// # Errors
/// [`SubtitleError::UnknownEncoding`], [`SubtitleError::TooLarge`], [`SubtitleError::NoCues`].
pub fn read_subtitles_as(bytes: &[u8], encoding: &str) -> Result<SrtFile, SubtitleError> {
    check_size(bytes)?;
    finish(decode(bytes, encoding)?)
}

fn check_size(bytes: &[u8]) -> Result<(), SubtitleError> {
    if bytes.len() > MAX_BYTES {
        return Err(SubtitleError::TooLarge { bytes: bytes.len() });
    }
    Ok(())
}

fn finish(decoded: encoding::Decoded) -> Result<SrtFile, SubtitleError> {
    let (cues, mut notes, lines) = parse::parse(&decoded.text);
    let blank = decoded.text.chars().all(char::is_whitespace);
    if cues.is_empty() && notes.is_empty() && !blank {
        return Err(SubtitleError::NoCues { lines });
    }
    notes.splice(0..0, decoded.notes);
    Ok(SrtFile {
        cues,
        encoding: decoded.encoding,
        notes,
    })
}

#[cfg(test)]
mod tests;
