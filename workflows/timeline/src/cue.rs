//! Subtitles and chapters, in frames of the whole film. They enter only at the final mux.

use serde::{Deserialize, Serialize};

/// One subtitle.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cue {
    /// First frame.
    pub first_frame: i64,
    /// Length in frames.
    pub frames: i64,
    /// The words, in logical order; may hold line breaks.
    pub text: String,
}

/// A named place in the film.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chapter {
    /// First frame.
    pub first_frame: i64,
    /// Its name.
    pub title: String,
}
