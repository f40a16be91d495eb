//! Scripts: the model, its readable Markdown and JSON forms, the linter, and film planning.
//!
//! Duty: turn what a person (or a model) wrote into exact [`flow_timeline`] types, and say clearly
//! what is wrong with it. Everything here is pure: it must not read files, know codecs, graphs,
//! the store or a clock.
//!
//! Entry points: [`Script`] and its parts.

mod continuity;
mod fault;
mod length;
mod moves;
mod script;
mod transition;
mod value;

pub use continuity::Continuity;
pub use fault::{FAULTS_MAX, Fault};
pub use length::{LENGTH_SECS_MAX, Length};
pub use moves::{Framing, Move, MoveKind, Point};
pub use script::{
    CastMember, Colour, Credits, FilmSettings, FrameSize, Line, MusicCue, Place, SCRIPT_VERSION,
    Scene, Script, Shot, ShotSound, ShotSoundKind, Title, VideoUse,
};
pub use transition::Transition;
pub use value::ValueError;
