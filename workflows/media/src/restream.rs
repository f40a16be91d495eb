//! A video file whose pictures are redrawn and whose everything else stays.
//!
//! [`Source`] gives the pictures of a file one after the other as full-range RGB of 16 bits, with
//! their times in the file's own ticks. What was drawn from them is coded in segments of fixed
//! length by [`SegmentEncoder`] in the same matrix, range and depth. [`join`] puts the segments into
//! a new file beside the source's other streams, which are copied packet for packet, at the times
//! that the pictures had.
//!
//! Segments hold frames by index and know no times, so a segment's bytes depend on its pictures and
//! the [`SegmentFormat`] alone. Memory does not grow with the number of frames but by their times,
//! 8 bytes each.

mod coding;
mod copies;
mod deinterlace;
mod join;
mod rgb;
mod segment;
mod source;
mod turn;
mod yuv;

use std::path::Path;

use crate::MediaError;

pub use join::{JoinReport, JoinRequest, join};
pub use segment::{SegmentEncoder, SegmentFormat};
pub use source::{Facts, FrameTimes, Source, SourceFrame};

/// A picture: full-range RGB, three values a pixel, rows from the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RgbPicture {
    /// Width.
    pub width_px: u32,
    /// Height.
    pub height_px: u32,
    /// `width_px * height_px * 3` values, 0 to 65535.
    pub values: Vec<u16>,
}

/// Kinds of files that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// MP4 (ISO/IEC 14496-14).
    Mp4,
    /// QuickTime.
    Mov,
    /// Matroska. Holds times in whole milliseconds, and no turn of the picture.
    Mkv,
}

impl Container {
    /// The kind that the ending of a file's name says; nothing for other endings.
    pub fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "mp4" | "m4v" => Some(Self::Mp4),
            "mov" => Some(Self::Mov),
            "mkv" => Some(Self::Mkv),
            _ => None,
        }
    }

    /// The same, or what is wrong with the name.
    ///
    /// # Errors
    /// [`MediaError::BadRequest`].
    pub fn of_name(path: &Path) -> Result<Self, MediaError> {
        Self::of(path).ok_or_else(|| {
            MediaError::BadRequest(format!(
                "cannot write a video under this name: expected one ending in .mp4, .m4v, .mov or \
                 .mkv: {path:?}"
            ))
        })
    }

    const fn muxer(self) -> &'static str {
        match self {
            Self::Mp4 => "mp4",
            Self::Mov => "mov",
            Self::Mkv => "matroska",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Mp4 => "MP4",
            Self::Mov => "QuickTime",
            Self::Mkv => "Matroska",
        }
    }

    /// Whether a turn stands in the file, so that pictures stay as they were coded.
    const fn holds_turns(self) -> bool {
        match self {
            Self::Mp4 | Self::Mov => true,
            Self::Mkv => false,
        }
    }
}

#[cfg(test)]
mod tests;
