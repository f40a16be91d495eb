//! A file's sound as a picture of bars.

use std::path::Path;

use engine_base::CancelToken;
use serde::{Deserialize, Serialize};

use super::BLOCK;
use super::reader::SoundReader;
use crate::MediaError;

/// Rate at which waveforms are looked at.
const LOOK_RATE_HZ: u32 = 48_000;
/// Most bars of one waveform.
const MAX_BARS: usize = 1 << 16;

/// One bar of a waveform, over both channels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaveformBar {
    /// Smallest value; 1.0 is full scale.
    pub min: f32,
    /// Largest value.
    pub max: f32,
    /// Root of the mean square.
    pub rms: f32,
}

/// The sound of `path` in `bars` parts of equal length (to the sample), from its start. Parts of
/// no length, as when there are more bars than samples, are silent.
///
/// # Errors
/// [`MediaError::BadRequest`] for no bars or more than 65,536; errors of [`SoundReader::open`];
/// [`MediaError::Cancelled`].
pub fn waveform(
    path: &Path,
    bars: usize,
    cancel: &CancelToken,
) -> Result<Vec<WaveformBar>, MediaError> {
    if !(1..=MAX_BARS).contains(&bars) {
        return Err(MediaError::BadRequest(format!(
            "cannot draw a waveform: expected 1 to {MAX_BARS} bars, got {bars}"
        )));
    }
    let mut reader = SoundReader::open_with(path, LOOK_RATE_HZ, cancel)?;
    let samples = reader.samples()?;
    let edge = |bar: usize| (i128::from(samples) * bar as i128 / bars as i128) as i64;
    let mut block = vec![0.0f32; BLOCK * 2];
    let mut out = Vec::with_capacity(bars);
    for bar in 0..bars {
        let (first, last) = (edge(bar), edge(bar + 1));
        let (mut min, mut max, mut power) = (f32::INFINITY, f32::NEG_INFINITY, 0.0f64);
        let mut at = first;
        while at < last {
            let count = (last - at).min(BLOCK as i64) as usize;
            let part = &mut block[..count * 2];
            reader.read_at(at, part)?;
            for value in part.iter() {
                min = min.min(*value);
                max = max.max(*value);
                power += f64::from(*value).powi(2);
            }
            at += count as i64;
        }
        out.push(if first < last {
            let rms = (power / ((last - first) * 2) as f64).sqrt() as f32;
            WaveformBar { min, max, rms }
        } else {
            WaveformBar {
                min: 0.0,
                max: 0.0,
                rms: 0.0,
            }
        });
    }
    Ok(out)
}
