//! The voices of Kokoro-82M: one network, and a table of styles a voice.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_base::CancelToken;
use engine_onnx::{OnnxRuntime, OnnxSession, OnnxTensor};

use super::error::SpeechError;
use super::network::{self, Network, Sound};

/// Styles of a voice: one for each number of tokens.
const STYLES: usize = 510;
/// Values of a style.
const STYLE_VALUES: usize = 256;
/// Size of a voice's file.
pub(super) const STYLE_FILE_BYTES: u64 = (STYLES * STYLE_VALUES * 4) as u64;

/// The sound, and inside the network the durations of the tokens in frames of 25 ms.
const OUTPUTS: [&str; 2] = ["audio", DURATIONS];
const DURATIONS: &str = "/encoder/Clip_output_0";

const VOICE: &str = "kokoro";

/// The network, for all voices.
pub(super) fn open(
    runtime: &OnnxRuntime,
    path: &Path,
    threads: usize,
) -> Result<Arc<OnnxSession>, SpeechError> {
    Ok(Arc::new(network::load(
        runtime,
        path,
        threads,
        &[DURATIONS],
    )?))
}

/// A voice.
pub(super) struct Kokoro {
    session: Arc<OnnxSession>,
    styles: PathBuf,
}

impl Kokoro {
    /// The voice whose styles are in the file `styles`.
    pub(super) const fn new(session: Arc<OnnxSession>, styles: PathBuf) -> Self {
        Self { session, styles }
    }

    /// The style for a number of tokens, the silent ones at both ends not counted.
    fn style(&self, tokens: usize) -> Result<Vec<f32>, SpeechError> {
        let row = tokens.min(STYLES - 1) as u64;
        let mut bytes = [0; STYLE_VALUES * 4];
        File::open(&self.styles)
            .and_then(|mut file| {
                file.seek(SeekFrom::Start(row * bytes.len() as u64))?;
                file.read_exact(&mut bytes)
            })
            .map_err(SpeechError::io("read the voice's styles", &self.styles))?;
        let values = bytes.chunks_exact(4);
        Ok(values
            .map(|bytes| bytes.try_into().map_or(0.0, f32::from_le_bytes))
            .collect())
    }
}

impl Network for Kokoro {
    fn sound(&self, tokens: &[i64], rate: f32, cancel: &CancelToken) -> Result<Sound, SpeechError> {
        let style = self.style(tokens.len().saturating_sub(2))?;
        let inputs = vec![
            (
                "tokens",
                OnnxTensor::i64(&[1, tokens.len()], tokens.to_vec())?,
            ),
            ("style", OnnxTensor::f32(&[1, STYLE_VALUES], style)?),
            ("speed", OnnxTensor::f32(&[1], vec![rate])?),
        ];
        let mut outputs = self.session.run(inputs, &OUTPUTS, cancel)?.into_iter();
        let samples = network::floats(VOICE, outputs.next())?;
        let durations = network::floats(VOICE, outputs.next())?;
        network::timed(VOICE, samples, &durations, tokens.len())
    }
}
