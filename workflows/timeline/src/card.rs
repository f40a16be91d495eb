//! Text over the picture.

use serde::{Deserialize, Serialize};

/// What a card is for; decides its place, size and look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CardRole {
    /// Film title: large, centred.
    Title,
    /// Line under a title, or a place and time: centred, smaller.
    Subtitle,
    /// Name or place at the lower left.
    LowerThird,
    /// End credits: centred lines.
    Credits,
    /// Spoken words burned in: lower centre, outlined.
    Caption,
}

/// Text shown for a stretch of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// The text, in logical order; may hold line breaks.
    pub text: String,
    /// What it is for.
    pub role: CardRole,
    /// First frame, relative to the segment; may be below 0 when it began earlier.
    pub first_frame: i64,
    /// Length; may reach past the segment.
    pub frames: i64,
    /// Frames over which it appears and disappears.
    pub fade_frames: i64,
}
