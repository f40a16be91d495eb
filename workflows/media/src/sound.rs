//! Sound: decode, mix, measure, limit and encode, all in bounded memory.
//!
//! Sound stays 32-bit float until the one final encode. A film's sound is a list of mixes, one a
//! shot or stretch, each made by [`mix`] as an f32 wave file ([`WaveWriter`] says how it is laid
//! out); [`measure`] gives the loudness of them all and the gain that brings it to
//! [`TARGET_LUFS`]; [`encode_film`] applies that gain, holds the true peak down and codes once.
//!
//! Values are two channels, left first, 1.0 = full scale; values above it are kept until the end.

mod convert;
mod decode;
mod duck;
mod encode;
mod limiter;
mod loudness;
mod mix;
mod place;
mod reader;
mod resample;
mod sink;
mod wave;
mod waveform;

pub use convert::{Converted, convert};
pub use duck::duck_reach;
pub use encode::{
    EncodeOptions, EncodeReport, FileLoudness, SoundFormat, encode_film, loudness_of,
};
pub use limiter::Limiter;
pub use loudness::{
    Loudness, MAX_GAIN_DB, SILENCE_DBTP, SILENCE_LUFS, TARGET_LUFS, measure, measure_for,
};
pub use mix::{MixReport, SourceNote, mix};
pub use reader::SoundReader;
pub use wave::{WaveReader, WaveWriter};
pub use waveform::{WaveformBar, waveform};

use crate::MediaError;

/// Lowest sample rate that is mixed or encoded.
pub const MIN_RATE_HZ: u32 = 8_000;
/// Highest sample rate that is mixed or encoded.
pub const MAX_RATE_HZ: u32 = 192_000;

/// Samples worked on at once: a sixth of a second at 48 kHz, so that a stop is seen in time.
const BLOCK: usize = 8_192;

fn check_rate(rate_hz: u32, what: &str) -> Result<(), MediaError> {
    if (MIN_RATE_HZ..=MAX_RATE_HZ).contains(&rate_hz) {
        Ok(())
    } else {
        Err(MediaError::BadRequest(format!(
            "cannot {what} at a sample rate of {rate_hz} Hz: expected {MIN_RATE_HZ} to {MAX_RATE_HZ}"
        )))
    }
}

/// Level of `db` decibels as a factor.
fn factor_of_db(db: f64) -> f64 {
    10f64.powf(db / 20.0)
}

/// Decibels of a factor; minus infinity for 0.
fn db_of_factor(factor: f64) -> f64 {
    20.0 * factor.log10()
}
