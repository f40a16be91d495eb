//! Scripts: the model, its readable Markdown and JSON forms, the linter, and film planning.
//!
//! Duty: turn what a person (or a model) wrote into exact [`flow_timeline`] types, and say clearly
//! what is wrong with it. Everything here is pure: it must not read files, know codecs, graphs,
//! the store or a clock.
//!
//! Entry points: [`parse`] reads a script in either form and reports all its faults at once;
//! [`to_markdown`] and [`to_json`] write it; [`lint`] says what could be
//! better; [`plan_film`] resolves it to frames and samples.

mod build;
mod check;
mod continuity;
mod diff;
mod escape;
mod fault;
mod fields;
mod json;
mod layout;
mod length;
mod lines;
mod lint;
mod llm;
mod markdown;
mod mix;
mod moves;
mod origin;
mod parse;
mod picture;
mod plan;
mod producer;
mod sayings;
mod script;
mod seed;
mod speaker;
mod speech;
mod spoken;
mod text;
mod transition;
mod tree;
mod value;
mod write;

pub use check::{ENTRIES_MAX, PARTS_MAX, SHOTS_MAX};
pub use continuity::Continuity;
pub use diff::{ChangePlace, FieldChange, apply, diff};
pub use fault::{FAULTS_MAX, Fault};
pub use length::{LENGTH_SECS_MAX, Length};
pub use lines::ScriptLines;
pub use lint::{Mend, Warning, lint};
pub use llm::{Llm, LlmError, LlmKind, LlmReply, LlmRequest, Message, Role};
pub use moves::{Framing, Move, MoveKind, Point};
pub use origin::{By, Origins};
pub use parse::{FILE_BYTES_MAX, Parsed, parse, parse_json, parse_markdown};
pub use picture::{
    PictureGround, PictureLight, PictureSpec, PictureSubject, PictureWeather, picture_spec,
    picture_spec_seeded, wants_picture,
};
pub use plan::{Assets, CREDITS_ROWS_MAX, plan_film};
pub use producer::{
    FILM_SECS_MAX, FILM_SECS_MIN, PREMISE_CHARS_MAX, Picture, Premise, ProduceCounts, ProduceError,
    ProduceEvent, ProduceOptions, Produced, Writing, check_film_length, choose_pictures,
    match_pictures, near_json, produce,
};
pub use sayings::ScriptText;
pub use script::{
    CastMember, Colour, Credits, FilmSettings, FrameSize, Line, MusicCue, Place, SCRIPT_VERSION,
    Scene, Script, Shot, ShotSound, ShotSoundKind, Title, VideoUse,
};
pub use seed::{SEED_MAX, Seed};
pub use speech::{CUE_COLUMNS_MAX, CUE_ROWS_MAX};
pub use spoken::{Fitted, SpokenLine, WordTime, fit_lines, speech_name};
pub use text::{Coded, Figure, TextValue, figure};
pub use transition::Transition;
pub use value::ValueError;
pub use write::{to_json, to_markdown};
