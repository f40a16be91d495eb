//! What the voices' networks have in common.

use std::path::Path;

use engine_base::CancelToken;
use engine_onnx::{OnnxData, OnnxOptions, OnnxRuntime, OnnxSession, OnnxTensor};

use super::error::SpeechError;

/// Sampling rate of every voice.
pub(super) const RATE_HZ: u32 = 24_000;

/// Samples of one frame of the durations that networks predict: 25 ms.
pub(super) const FRAME_SAMPLES: usize = 600;

/// How much earlier a token is heard than the durations before it say: 3 frames. Kokoro's own
/// pipeline takes off as much (hexgrad/kokoro, `KPipeline.join_timestamps`), and hibari learned its
/// durations from it: with this, stops and vowels lie on their tokens in both.
const EARLY_SAMPLES: usize = 3 * FRAME_SAMPLES;

/// Most tokens a voice is given at once, with the silent ones at both ends. Kokoro takes 512;
/// both were trained on shorter sentences.
pub(super) const TOKENS_LIMIT: usize = 402;

/// The token of silence, first and last.
pub(super) const SILENT_TOKEN: i64 = 0;

/// Longest duration of a single token that is believed.
const TOKEN_LIMIT_FRAMES: usize = 400;

/// Sound of some tokens.
pub(super) struct Sound {
    /// One channel at [`RATE_HZ`].
    pub(super) samples: Vec<f32>,
    /// Where each token is heard to begin, and where the last one is heard to end.
    pub(super) begins: Vec<usize>,
}

/// A network that turns sounds of a language into sound.
pub(super) trait Network: Send + Sync {
    /// Speak `tokens`, silent ones at both ends included, `rate` times as fast as the voice would.
    fn sound(&self, tokens: &[i64], rate: f32, cancel: &CancelToken) -> Result<Sound, SpeechError>;
}

/// Open a network for `runs` runs at once, with `inner` values as outputs.
pub(super) fn load(
    runtime: &OnnxRuntime,
    path: &Path,
    runs: usize,
    inner: &[&str],
) -> Result<OnnxSession, SpeechError> {
    let options = OnnxOptions {
        runs,
        inner_outputs: inner.iter().map(|name| (*name).to_owned()).collect(),
    };
    Ok(OnnxSession::load(runtime, path, &options)?)
}

/// Floats of an output.
pub(super) fn floats(voice: &str, tensor: Option<OnnxTensor>) -> Result<Vec<f32>, SpeechError> {
    match tensor.map(OnnxTensor::into_data) {
        Some(OnnxData::F32(values)) => Ok(values),
        Some(OnnxData::I64(_)) => Err(bad(voice, "whole numbers", "floats")),
        None => Err(bad(voice, "too few outputs", "all that were asked for")),
    }
}

/// An error of a voice whose network gives nonsense.
pub(super) fn bad(voice: &str, got: impl Into<String>, expected: impl Into<String>) -> SpeechError {
    SpeechError::BadSound {
        voice: voice.to_owned(),
        got: got.into(),
        expected: expected.into(),
    }
}

/// Put a network's sound and its durations in frames together.
pub(super) fn timed(
    voice: &str,
    samples: Vec<f32>,
    frames: &[f32],
    tokens: usize,
) -> Result<Sound, SpeechError> {
    if frames.len() != tokens {
        let got = format!("{} durations", frames.len());
        return Err(bad(voice, got, tokens.to_string()));
    }
    if let Some(value) = samples.iter().find(|value| !value.is_finite()) {
        return Err(bad(voice, format!("a sample of {value}"), "finite ones"));
    }
    let mut begins = Vec::with_capacity(tokens + 1);
    let mut begin = 0usize;
    begins.push(begin);
    for frames in frames {
        // Not a number becomes 0 here.
        let frames = (frames.round() as usize).min(TOKEN_LIMIT_FRAMES);
        begin += frames * FRAME_SAMPLES;
        begins.push(begin);
    }
    if let Some((first, later)) = begins.split_first_mut() {
        for begin in later {
            *begin = begin.saturating_sub(EARLY_SAMPLES).max(*first);
        }
    }
    if begin != samples.len() {
        let got = format!("{} samples", samples.len());
        return Err(bad(voice, got, format!("the {begin} of its durations")));
    }
    Ok(Sound { samples, begins })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_must_fill_the_sound() {
        let sound = timed("v", vec![0.0; 4800], &[5.0, 2.0, 1.0], 3).unwrap();
        assert_eq!(sound.begins, [0, 1200, 2400, 3000]);
        let sound = timed("v", vec![0.0; 1800], &[1.0, 2.0], 2).unwrap();
        assert_eq!(sound.begins, [0, 0, 0]);
        for (samples, frames) in [
            (vec![0.0; 1800], &[1.0, 1.0][..]),
            (vec![0.0; 600], &[1.0]),
            (vec![f32::NAN; 1800], &[1.0, 2.0]),
            (vec![0.0; 600], &[1.0, f32::INFINITY]),
        ] {
            assert!(timed("v", samples, frames, 2).is_err(), "{frames:?}");
        }
    }
}
