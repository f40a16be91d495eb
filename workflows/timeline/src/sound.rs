//! Sound of a stretch of film.

use serde::{Deserialize, Serialize};

/// What a sound is for; decides what makes room for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SoundRole {
    /// Speech: everything else makes room for it.
    Voice,
    /// Music: ducks under speech.
    Music,
    /// Sound of a place: ducks under speech.
    Ambience,
    /// A sound in the picture: keeps its level.
    Effect,
}

/// A source placed in a mix. All places are samples at the mix's rate, relative to its start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoundClip {
    /// Index into the sources handed in beside the mix.
    pub source: usize,
    /// What it is for.
    pub role: SoundRole,
    /// Sample of the mix at which the clip starts; below 0 when it began before this stretch.
    pub start: i64,
    /// Length in samples; may reach past the stretch.
    pub samples: i64,
    /// Sample of the source (after resampling to the mix's rate) at which the clip starts.
    pub source_start: i64,
    /// Whether a source shorter than the clip starts again (with a short cross-fade) at its end.
    #[serde(default)]
    pub looped: bool,
    /// Level change in dB.
    pub gain_db: f64,
    /// Fade at the clip's start, in samples.
    #[serde(default)]
    pub fade_in: i64,
    /// Fade at the clip's end, in samples.
    #[serde(default)]
    pub fade_out: i64,
}

/// How music and ambience make room for speech.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DuckRule {
    /// How far the level goes down, in dB below 0.
    pub depth_db: f64,
    /// Samples before speech over which it goes down.
    pub attack: i64,
    /// Samples after speech over which it comes back.
    pub release: i64,
}

/// Everything that decides the sound of a stretch of film.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoundMix {
    /// Sample rate; two channels always.
    pub sample_rate_hz: u32,
    /// Length in samples.
    pub samples: i64,
    /// What is heard. Speech that lies just outside the stretch is included too, so that the
    /// ducking curve is the same on both sides of a join.
    pub clips: Vec<SoundClip>,
    /// How music and ambience make room.
    pub duck: DuckRule,
}

impl DuckRule {
    /// 6 dB down, 0.25 s before, 0.6 s after, at `sample_rate_hz`: enough for speech to be followed
    /// over a bed that lies 7 dB below it, and little enough not to pump.
    pub fn standard(sample_rate_hz: u32) -> Self {
        let rate = i64::from(sample_rate_hz);
        Self {
            depth_db: -6.0,
            attack: rate / 4,
            release: rate * 6 / 10,
        }
    }
}
