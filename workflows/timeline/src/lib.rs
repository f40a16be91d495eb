//! Film model types: format, camera moves, cards (titles, subtitles), segments, sound mixes, cues.
//!
//! Duty: say what a film is, exactly and independent of how it is made. All places are whole
//! frames or samples and all rates are fractions; seconds as floats are for screens only. It must
//! not know files, codecs, graphs, language models or the store.
//!
//! Entry points: [`Segment`] is everything that decides the pictures of a stretch of film and
//! [`SoundMix`] everything that decides its sound; both are plain data, relative to their own
//! start, so that moving a segment changes neither. [`FilmPlan`] puts them in order.

mod camera;
mod card;
mod cue;
mod film;
mod format;
mod segment;
mod sound;

pub use camera::{CameraMove, Easing, View};
pub use card::{Card, CardRole};
pub use cue::{Chapter, Cue};
pub use film::{
    FilmMetadata, FilmPlan, PlanError, PlannedMix, PlannedSegment, SourceKind, SourceRef,
};
pub use format::{FilmFormat, FormatError};
pub use segment::{Blend, Fit, Layer, LayerKind, Segment};
pub use sound::{DuckRule, SoundClip, SoundMix, SoundRole};
