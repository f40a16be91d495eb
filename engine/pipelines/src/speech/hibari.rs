//! The voice of hibari-tts: a small network that predicts a spectrum.

mod synthesis;

use std::path::Path;

use engine_base::CancelToken;
use engine_onnx::{OnnxRuntime, OnnxSession, OnnxTensor};

use self::synthesis::{BINS, HOP, Spectrum, Synthesizer};
use super::error::SpeechError;
use super::network::{self, Network, Sound};
use super::noise::Noise;

/// The network's outputs, and inside it the durations of the tokens in frames of 25 ms.
const OUTPUTS: [&str; 7] = ["lh", "theta", "ln", "lr", "phi", "f0", DURATIONS];
const DURATIONS: &str = "/Clip_output_0";

const VOICE: &str = "hibari";

/// An opened voice.
pub(super) struct Hibari {
    session: OnnxSession,
    synthesizer: Synthesizer,
}

impl Hibari {
    pub(super) fn open(
        runtime: &OnnxRuntime,
        path: &Path,
        threads: usize,
    ) -> Result<Self, SpeechError> {
        Ok(Self {
            session: network::load(runtime, path, threads, &[DURATIONS])?,
            synthesizer: Synthesizer::new(),
        })
    }
}

impl Network for Hibari {
    fn sound(&self, tokens: &[i64], rate: f32, cancel: &CancelToken) -> Result<Sound, SpeechError> {
        let inputs = vec![
            ("ids", OnnxTensor::i64(&[1, tokens.len()], tokens.to_vec())?),
            ("speed", OnnxTensor::f32(&[1], vec![rate])?),
        ];
        let mut outputs = self.session.run(inputs, &OUTPUTS, cancel)?.into_iter();
        let mut next = || network::floats(VOICE, outputs.next());
        let (harmonic_log, harmonic_turn) = (next()?, next()?);
        let (noise_log, free_log, free_angle) = (next()?, next()?, next()?);
        let (pitch_hz, durations) = (next()?, next()?);
        let spectrum = Spectrum {
            frames: pitch_hz.len(),
            harmonic_log: &harmonic_log,
            harmonic_turn: &harmonic_turn,
            noise_log: &noise_log,
            free_log: &free_log,
            free_angle: &free_angle,
            pitch_hz: &pitch_hz,
        };
        if !spectrum.is_whole() {
            let got = format!(
                "{} values and {} frames",
                harmonic_log.len(),
                pitch_hz.len()
            );
            return Err(network::bad(VOICE, got, format!("{BINS} values a frame")));
        }
        // By what is said: the same sentence sounds the same wherever it stands.
        let mut noise = Noise::of(tokens);
        let samples = self.synthesizer.sound(&spectrum, &mut || noise.pair());
        debug_assert_eq!(samples.len(), spectrum.frames * HOP);
        network::timed(VOICE, samples, &durations, tokens.len())
    }
}
