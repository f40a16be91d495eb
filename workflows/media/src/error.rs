//! The errors of this crate.

use std::path::PathBuf;

use engine_base::{Cancelled, Code};

/// Why media could not be read or made. Texts say what was tried, got and expected; the path comes last.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The file is not what was expected, or is damaged.
    #[error("{what}: {path:?}")]
    BadFile {
        /// What was tried, got and expected.
        what: String,
        /// The file.
        path: PathBuf,
    },
    /// The file is larger than what is read.
    #[error("{what}: {path:?}")]
    TooLarge {
        /// Size got and limit.
        what: String,
        /// The file.
        path: PathBuf,
    },
    /// A parameter is out of range.
    #[error("{0}")]
    BadRequest(String),
    /// A codec, format or filter is not there or failed.
    #[error("{what}: {source}")]
    Codec {
        /// What was tried.
        what: String,
        /// FFmpeg's answer.
        source: ffmpeg_next::Error,
    },
    /// Reading or writing failed.
    #[error("{what}: {source}: {path:?}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl From<Cancelled> for MediaError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl MediaError {
    /// The kind of failure.
    pub fn code(&self) -> Code {
        match self {
            Self::BadFile { .. } | Self::BadRequest(_) => Code::BadInput,
            Self::TooLarge { .. } => Code::Refused,
            Self::Codec { source, .. } => match source {
                ffmpeg_next::Error::Other { errno } => {
                    Code::of_io(&std::io::Error::from_raw_os_error(*errno))
                }
                _ => Code::Io,
            },
            Self::Io { source, .. } => Code::of_io(source),
            Self::Cancelled => Code::Cancelled,
        }
    }
}
