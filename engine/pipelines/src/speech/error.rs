//! Why there is no speech.

use std::io;
use std::path::{Path, PathBuf};

use engine_base::{Cancelled, Code};
use engine_onnx::OnnxError;

use super::english::LeftOut;

/// Why a voice could not be opened or a text not be spoken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpeechError {
    /// A request that asks for nothing sensible.
    #[error("cannot speak with {what} {got}: expected {expected}")]
    Request {
        /// Which part of the request.
        what: &'static str,
        /// What it was.
        got: String,
        /// What it may be.
        expected: String,
    },
    /// The text holds nothing that can be spoken.
    #[error(
        "there is nothing to speak in a text of {bytes} bytes: expected at least one word{}",
        if left_out.is_empty() { String::new() } else { format!(", got {left_out}") }
    )]
    NothingToSpeak {
        /// Length of the text.
        bytes: usize,
        /// What it has instead.
        left_out: LeftOut,
    },
    /// A text that takes longer than is held at once.
    #[error("the text takes more than 2 hours to speak: expected it in parts")]
    TooLong,
    /// No voice of this id is here.
    #[error("there is no voice {voice:?}; voices here: {known}")]
    NoVoice {
        /// What was asked for.
        voice: String,
        /// Ids there are, with commas.
        known: String,
    },
    /// No voice speaks the language.
    #[error("no voice here speaks {language:?}; languages there are: {known}")]
    NoLanguage {
        /// What was asked for.
        language: String,
        /// Languages there are, with commas.
        known: String,
    },
    /// A text cannot be turned into the sounds of a language.
    #[error("cannot tell how to say {text:?}: {reason}")]
    Unspeakable {
        /// The word or passage.
        text: String,
        /// What was got and what was expected.
        reason: String,
    },
    /// A file of a voice is not what it must be.
    #[error("cannot use {what}: {reason}: {path:?}")]
    BadFile {
        /// Which file it should be.
        what: &'static str,
        /// What was got and what was expected.
        reason: String,
        /// The file.
        path: PathBuf,
    },
    /// A file of a voice cannot be read.
    #[error("cannot {what}: {error}: {path:?}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A voice's network gave something that no voice gives.
    #[error("the voice {voice:?} gave {got}: expected {expected}")]
    BadSound {
        /// The voice.
        voice: String,
        /// What came.
        got: String,
        /// What should have come.
        expected: String,
    },
    /// The library or a network of a voice failed.
    #[error(transparent)]
    Onnx(OnnxError),
    /// Asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl From<OnnxError> for SpeechError {
    fn from(error: OnnxError) -> Self {
        match error {
            OnnxError::Cancelled(cancelled) => Self::Cancelled(cancelled),
            error => Self::Onnx(error),
        }
    }
}

impl SpeechError {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { what, path, error }
    }

    /// The kind of failure, for shells and scripts.
    pub fn code(&self) -> Code {
        match self {
            Self::Request { .. }
            | Self::NothingToSpeak { .. }
            | Self::TooLong
            | Self::Unspeakable { .. } => Code::BadInput,
            Self::NoVoice { .. } | Self::NoLanguage { .. } => Code::NotFound,
            Self::BadFile { .. } => Code::Corrupt,
            Self::Io { error, .. } => Code::of_io(error),
            Self::BadSound { .. } => Code::Internal,
            Self::Onnx(error) => error.code(),
            Self::Cancelled(_) => Code::Cancelled,
        }
    }
}
