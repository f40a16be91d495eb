//! A stretch of film pictures that is rendered and encoded as one closed run.

use serde::{Deserialize, Serialize};

use crate::camera::CameraMove;
use crate::card::Card;
use crate::format::FilmFormat;

/// How a picture of another shape fills the frame at zoom 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// Fills the frame; what sticks out is cut.
    #[default]
    Cover,
    /// Shown whole; the rest is black.
    Contain,
}

/// What a layer's source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum LayerKind {
    /// A still picture.
    Still,
    /// Moving pictures, conformed to the film's rate: film frame n shows the source frame whose
    /// time span holds n / fps (held or dropped, never blended); past the end the last is held.
    Video {
        /// Film frame of the source, counted from its start at the film's rate, that stands at
        /// the shot's first frame.
        first_frame: i64,
    },
    /// One colour, no source.
    Colour {
        /// sRGB, 8 bits each.
        rgb: [u8; 3],
    },
}

/// A picture source seen through a camera move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// What the source is.
    pub source: LayerKind,
    /// How it fills the frame.
    #[serde(default)]
    pub fit: Fit,
    /// The move over the whole shot.
    pub camera: CameraMove,
    /// Frame of the shot at which this segment begins.
    pub shot_first_frame: i64,
    /// Length of the whole shot in frames, over which the move runs.
    pub shot_frames: i64,
}

/// How two layers become one over the whole segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blend {
    /// First dissolves into second, in linear light.
    CrossFade,
    /// First to black in the first half, second from black in the second half.
    ThroughBlack,
}

/// Everything that decides the pictures of a stretch of film. Frames count from its own start.
///
/// Sources are handed in beside it: layer `i` takes source `i` (colours take none but keep the
/// numbering).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Size and rate.
    pub format: FilmFormat,
    /// Length, at least 1.
    pub frames: i64,
    /// One layer, or two with `blend`.
    pub layers: Vec<Layer>,
    /// How two layers become one; absent with one layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blend: Option<Blend>,
    /// Frames over which the picture comes from black at the start.
    #[serde(default)]
    pub fade_in_frames: i64,
    /// Frames over which the picture goes to black at the end.
    #[serde(default)]
    pub fade_out_frames: i64,
    /// Text over the picture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<Card>,
}
