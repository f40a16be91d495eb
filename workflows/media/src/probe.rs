//! What a media file holds.

pub(crate) mod boxes;
pub(crate) mod open;
mod rate;
mod streams;

use std::path::Path;

use engine_base::Rational;
use serde::{Deserialize, Serialize};

use crate::MediaError;

/// What a media file holds. Times are in seconds; those of streams count from the picture's start
/// (from the first sound where there is no picture).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// FFmpeg's name of the container, such as `mov,mp4,m4a,3gp,3g2,mj2`.
    pub container: String,
    /// Size of the file.
    pub len_bytes: u64,
    /// Length of the longest stream, from its own start.
    pub duration_secs: Option<Rational>,
    /// What the container's clock says when the clip starts: 3600 for a transport stream of one
    /// hour. Never to be added to anything; told so that people can find their time code.
    pub start_secs: Rational,
    /// The end of the file is missing.
    pub is_cut: bool,
    /// Moving pictures, the one to show first. Covers are not among them.
    pub video: Vec<VideoStream>,
    /// Sound.
    pub audio: Vec<AudioStream>,
    /// Subtitles.
    pub subtitles: Vec<SubtitleStream>,
    /// What is odd, for people.
    pub notes: Vec<String>,
}

/// A moving picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VideoStream {
    /// Index in the file.
    pub index: usize,
    /// Codec, such as `h264`.
    pub codec: String,
    /// Coded width.
    pub width_px: u32,
    /// Coded height.
    pub height_px: u32,
    /// Width over height of a coded pixel.
    pub sample_aspect: Rational,
    /// Width on screen: upright, square pixels.
    pub display_width_px: u32,
    /// Height on screen.
    pub display_height_px: u32,
    /// EXIF orientation that turns the coded picture upright, 1 to 8.
    pub orientation: u8,
    /// Row-wise 16.16 display matrix, where the file has one.
    pub display_matrix: Option<[i32; 9]>,
    /// Frames over time.
    pub average_fps: Option<Rational>,
    /// One over the shortest distance of two frames: what a film's rate must not be chosen from
    /// when [`Self::is_vfr`].
    pub largest_fps: Option<Rational>,
    /// The lowest rate at which FFmpeg can express all time stamps; often 90000 or 120: for show.
    pub base_fps: Option<Rational>,
    /// Frames come at uneven distances.
    pub is_vfr: bool,
    /// A usual rate that suits this clip: for constant rates the nearest, for variable ones the
    /// next above the average.
    pub suggested_fps: Rational,
    /// Number of frames, where the container tells.
    pub frames: Option<u64>,
    /// First frame to the end of the last.
    pub duration_secs: Rational,
    /// FFmpeg's name of the pixel format.
    pub pixel_format: String,
    /// Bits of a channel.
    pub bit_depth: u8,
    /// Colour tags.
    pub colour: ColourTags,
}

/// Colour tags as FFmpeg names them; nothing where the file does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColourTags {
    /// Matrix, such as `bt709`.
    pub matrix: Option<String>,
    /// Primaries.
    pub primaries: Option<String>,
    /// Transfer, such as `smpte2084`.
    pub transfer: Option<String>,
    /// `tv` or `pc`.
    pub range: Option<String>,
    /// The transfer is PQ or HLG.
    pub is_hdr: bool,
}

/// A sound stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AudioStream {
    /// Index in the file.
    pub index: usize,
    /// Codec, such as `aac`.
    pub codec: String,
    /// Sample rate.
    pub sample_rate_hz: u32,
    /// Channels.
    pub channels: u32,
    /// Language code, where the file has one.
    pub language: Option<String>,
    /// When the first decoded sample comes; negative = before the picture. Encoder delay is off
    /// where the container marks it, which Matroska and transport streams may not: it is then
    /// silence at the start of the sound, up to 0.05 s.
    pub start_secs: Rational,
    /// Length, where it is known.
    pub duration_secs: Option<Rational>,
}

/// A subtitle stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtitleStream {
    /// Index in the file.
    pub index: usize,
    /// Codec, such as `subrip`.
    pub codec: String,
    /// Language code, where the file has one.
    pub language: Option<String>,
    /// Title, where the file has one.
    pub title: Option<String>,
    /// Only shown where the film speaks another language.
    pub is_forced: bool,
}

/// Look into a media file.
///
/// # Errors
/// [`MediaError::BadFile`] for anything that is not video or sound and for files that were not
/// finished when written, saying so; [`MediaError::Codec`]; [`MediaError::Io`].
pub fn probe(path: &Path) -> Result<Probe, MediaError> {
    streams::probe(path)
}

#[cfg(test)]
mod tests;
