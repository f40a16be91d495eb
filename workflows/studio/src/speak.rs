//! Text spoken by the voices of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use engine_base::{CancelToken, Code};
use engine_hub::Hub;
use engine_pipelines::{
    LeftOut, SpeechError, SpeechFiles, SpeechPipeline, SpeechRequest, SpokenSentence, SpokenWord,
    VoiceInfo, runtime_path,
};
use serde::Serialize;

use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::models::{handing_on, hub};

/// Ids of the models that speak.
const RUNTIME: &str = "onnxruntime";
const HIBARI: &str = "hibari-0.2.1";
const KOKORO: &str = "kokoro-82m-int8";

/// A text larger than this is not read from a file.
const TEXT_LIMIT_BYTES: u64 = 16 << 20;

/// Samples that a WAV file of 16 bits can hold: its length in bytes is a number of 32 bits.
const WAVE_SAMPLES_MAX: u64 = (u32::MAX as u64 - 4096) / 2;

impl From<SpeechError> for StudioError {
    fn from(error: SpeechError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// What was spoken.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpeakReport {
    /// The sound.
    pub out: PathBuf,
    /// Its length.
    pub secs: f64,
    /// Its words, with their times.
    pub words: Vec<SpokenWord>,
    /// Parts of the text that have no sound, each once.
    pub left_out: Vec<String>,
}

/// What would be spoken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpokenLines {
    /// The words of each sentence.
    pub sentences: Vec<String>,
    /// Parts of the text that have no sound, each once.
    pub left_out: Vec<String>,
    /// The same as a sentence; absent where everything has a sound.
    pub note: Option<String>,
}

/// A sentence that says what has no sound.
pub(crate) fn note_of(left_out: &LeftOut) -> Option<String> {
    (!left_out.is_empty()).then(|| format!("left out of what is spoken: {left_out}"))
}

/// The voices of this machine, opened.
///
/// # Errors
/// A file of the default voice, or the library that runs it, is not here; the message says how to
/// bring it.
pub fn open_speech(threads: usize) -> Result<SpeechPipeline, StudioError> {
    let hub = hub()?;
    let files = SpeechFiles {
        runtime: runtime_path(None, hub.path(RUNTIME))
            .map_err(|error| StudioError::new(error.code(), error.to_string()))?,
        hibari: here(&hub, HIBARI)?,
        kokoro: hub.path(KOKORO),
    };
    Ok(SpeechPipeline::open(&files, threads)?)
}

/// Models of the list that decide how a voice sounds: its own, and hibari's for words that no
/// lexicon has.
pub(crate) fn models_of(voice: &str) -> &'static [&'static str] {
    if voice.starts_with("kokoro:") {
        &[KOKORO, HIBARI]
    } else {
        &[HIBARI]
    }
}

fn here(hub: &Hub, id: &str) -> Result<PathBuf, StudioError> {
    hub.path(id).ok_or_else(|| {
        let message = format!(
            "the voice {id:?} is not on this machine: `longtake models pull {id}` fetches it"
        );
        StudioError::new(Code::NotFound, message)
    })
}

/// The text to speak out of a file.
///
/// # Errors
/// The file cannot be read, is larger than 16 MB or is no UTF-8 text.
pub fn text_to_speak(path: &Path) -> Result<String, StudioError> {
    let io = |error| StudioError::io("read the text", path, &error);
    let bytes = fs::metadata(path).map_err(io)?.len();
    if bytes > TEXT_LIMIT_BYTES {
        let message = format!("expected a text of at most 16 MB, got {bytes} bytes: {path:?}");
        return Err(StudioError::new(Code::BadInput, message));
    }
    let bytes = fs::read(path).map_err(io)?;
    String::from_utf8(bytes).map_err(|error| {
        let message = format!("expected UTF-8 text: {error}: {path:?}");
        StudioError::new(Code::BadInput, message)
    })
}

/// The voices there are; the first is the default.
///
/// # Errors
/// As [`open_speech`].
pub fn voices() -> Result<Vec<VoiceInfo>, StudioError> {
    Ok(open_speech(1)?.voices().to_vec())
}

/// The words that would be said, a line a sentence.
///
/// # Errors
/// As [`speak`].
pub fn words_to_speak(request: &SpeechRequest) -> Result<SpokenLines, StudioError> {
    let sentences = open_speech(1)?.lines(request)?;
    let left_out = LeftOut::of(&request.text);
    Ok(SpokenLines {
        sentences,
        note: note_of(&left_out),
        left_out: left_out.parts().to_vec(),
    })
}

/// Speak a text into the WAV file `out` (24 kHz, 16 bits, one channel). The file takes its place
/// when it is whole.
///
/// # Errors
/// As [`open_speech`]; a text or request that cannot be spoken; the file cannot be written; the sound
/// is longer than such a file can be, 24 hours.
pub fn speak(
    request: &SpeechRequest,
    out: &Path,
    watcher: &dyn Watcher,
    cancel: &CancelToken,
) -> Result<SpeakReport, StudioError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let pipeline = open_speech(threads)?;
    let rate_hz = pipeline.rate_hz();
    let left_out = LeftOut::of(&request.text);
    let failed = |error: WaveError| match error {
        WaveError::Hound(hound::Error::IoError(error)) => {
            StudioError::io("write the sound", out, &error)
        }
        error => StudioError::new(
            Code::Refused,
            format!("cannot write the sound: {error}: {out:?}"),
        ),
    };
    let folder = match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let part = tempfile::Builder::new()
        .prefix(".speech-")
        .tempfile_in(folder)
        .map_err(|error| StudioError::io("begin the sound", out, &error))?;
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: rate_hz,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let file = std::io::BufWriter::new(part.as_file());
    let mut wave = hound::WavWriter::new(file, spec).map_err(|error| failed(error.into()))?;
    let mut words: Vec<SpokenWord> = Vec::new();
    let mut written = 0u64;
    let mut fault = None;
    let mut told = note_of(&left_out);
    let taken = pipeline.speak_each(request, cancel, &handing_on(watcher), &mut |sentence| {
        // Only of a text that can be spoken: an error says it otherwise.
        if let Some(what) = told.take() {
            let what = what.into();
            watcher.event(StudioEvent::Warning { what });
        }
        let begin = written as f64 / f64::from(rate_hz);
        let result = add(&mut wave, &sentence, rate_hz, written).map_err(&failed);
        words.extend(sentence.words.into_iter().map(|word| SpokenWord {
            start_secs: begin + word.start_secs,
            end_secs: begin + word.end_secs,
            ..word
        }));
        match result {
            Ok(count) => {
                written += count;
                Ok(())
            }
            Err(error) => {
                fault = Some(error);
                Err(SpeechError::Cancelled(engine_base::Cancelled))
            }
        }
    });
    if let Some(error) = fault {
        return Err(error);
    }
    taken?;
    wave.finalize().map_err(|error| failed(error.into()))?;
    keep(part, out)?;
    Ok(SpeakReport {
        out: out.to_owned(),
        secs: written as f64 / f64::from(rate_hz),
        words,
        left_out: left_out.parts().to_vec(),
    })
}

/// Why a sentence is not in the file.
#[derive(Debug, thiserror::Error)]
enum WaveError {
    #[error(transparent)]
    Hound(#[from] hound::Error),
    #[error("a WAV file holds at most 24 hours, and the text takes longer: expected it in parts")]
    Long,
}

/// Write a sentence and the rest after it behind `written` samples; gives how many it wrote.
fn add<W: std::io::Write + std::io::Seek>(
    wave: &mut hound::WavWriter<W>,
    sentence: &SpokenSentence,
    rate_hz: u32,
    written: u64,
) -> Result<u64, WaveError> {
    let rest = (sentence.rest_secs * f64::from(rate_hz)).round() as u64;
    let count = sentence.samples.len() as u64 + rest;
    if written.saturating_add(count) > WAVE_SAMPLES_MAX {
        return Err(WaveError::Long);
    }
    for sample in &sentence.samples {
        let sample = (sample.clamp(-1.0, 1.0) * f32::from(i16::MAX)).round() as i16;
        wave.write_sample(sample)?;
    }
    for _ in 0..rest {
        wave.write_sample(0i16)?;
    }
    Ok(count)
}

/// Put the finished file into its place, with the rights of a file that was made there.
fn keep(part: tempfile::NamedTempFile, out: &Path) -> Result<(), StudioError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let rights = fs::Permissions::from_mode(0o644);
        fs::set_permissions(part.path(), rights)
            .map_err(|error| StudioError::io("finish the sound", out, &error))?;
    }
    part.persist(out)
        .map_err(|error| StudioError::io("finish the sound", out, &error.error))?;
    Ok(())
}
