#![allow(
    unsafe_code,
    reason = "FFmpeg's C interface: fields and calls that the safe bindings do not cover; each block says why it holds"
)]
//! Media in and out: probe, decode, stills, camera moves, titles, encode, sound, mux.
//!
//! Duty: turn a [`flow_timeline::Segment`] or [`flow_timeline::SoundMix`] and source files into
//! coded files, in bounded memory, and join those without coding them again. The only crate that
//! links FFmpeg. It must not know graphs, keys, the store, projects or language models.
//!
//! Entry points: [`still`], [`video`] and [`probe`] read; [`render`] makes picture segments ([`text`]
//! draws their cards, [`encode`] codes them);
//! [`sound`] mixes, measures and encodes; [`mux`] joins; [`restream`] redraws the pictures of a
//! file and copies the rest; [`subtitle`] reads and writes SRT.

pub mod encode;
mod error;
mod ff;
pub mod manifest;
mod memory;
pub mod mux;
pub mod paper;
mod picture;
pub mod probe;
pub mod render;
pub mod restream;
mod segment_file;
pub mod sound;
pub mod still;
pub mod subtitle;
pub mod text;
mod versions;
pub mod video;

pub use error::MediaError;
pub use memory::return_large_blocks;
pub use picture::{Picture, Pixels};
pub use versions::codec_versions;
