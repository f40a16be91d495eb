//! Why a picture was not drawn.

use std::path::PathBuf;

use engine_base::Code;
use engine_models::{LoadError, PictureError};
use engine_nn::{ModelError, ScheduleError};
use engine_tensor::TensorError;
use engine_weights::{AdapterError, WeightsError};

use crate::TokenizerError;

/// Why a picture was not drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// A folder that is no model of ours.
    #[error("cannot open a picture model: {what}, in {}", path.display())]
    Folder {
        /// What was found and what was expected.
        what: String,
        /// The folder.
        path: PathBuf,
    },
    /// A family that is known by name only, or not at all.
    #[error("cannot draw with a model of family {got:?}: known are {known}; in {}", path.display())]
    Family {
        /// What the folder says it is.
        got: String,
        /// What can be drawn with.
        known: String,
        /// The folder.
        path: PathBuf,
    },
    /// A part that is not there.
    #[error("cannot open the picture model: its {part} is missing, expected {expected}")]
    MissingPart {
        /// Such as `text encoder`.
        part: &'static str,
        /// Where it was looked for.
        expected: String,
    },
    /// A configuration file that cannot be read.
    #[error("cannot read the picture model's configuration: {reason}, in {}", path.display())]
    Config {
        /// What is wrong.
        reason: String,
        /// The file.
        path: PathBuf,
    },
    /// A file that cannot be read or written.
    #[error("cannot {what}: {source}, at {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
        /// The file.
        path: PathBuf,
    },
    /// Weights that cannot be read.
    #[error("cannot open the picture model: {0}")]
    Weights(#[from] WeightsError),
    /// Weights of another network.
    #[error("cannot open the picture model: {0}")]
    Load(#[from] LoadError),
    /// A tokenizer that cannot be built or run.
    #[error("cannot read the prompt: {0}")]
    Tokenizer(#[from] TokenizerError),
    /// The text encoder stopped.
    #[error("cannot read the prompt: {0}")]
    Text(#[from] ModelError),
    /// A size that the model does not draw.
    #[error(
        "cannot draw {width_px} x {height_px} px: {why}; the nearest that can be drawn is \
         {nearest_width_px} x {nearest_height_px}"
    )]
    Size {
        /// Width asked for.
        width_px: u32,
        /// Height asked for.
        height_px: u32,
        /// What is wrong with it.
        why: String,
        /// Width that can be drawn.
        nearest_width_px: u32,
        /// Height that can be drawn.
        nearest_height_px: u32,
    },
    /// A value of the request that cannot be.
    #[error("cannot draw: {what} is {got}, expected {expected}")]
    Request {
        /// Which.
        what: &'static str,
        /// Its value.
        got: String,
        /// What it has to be.
        expected: String,
    },
    /// An adapter that cannot be merged.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    /// A picture that was handed in and cannot be used.
    #[error("cannot use a picture: {0}")]
    Given(String),
    /// A schedule that cannot be.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// A latent with values that are no numbers.
    #[error(
        "the picture is no number any more after step {step} of {of}: the model or its weights are at fault"
    )]
    NotANumber {
        /// The step after which it was seen, from 1; 0 for the latent that was begun with.
        step: u32,
        /// Steps of the run.
        of: u32,
    },
    /// A latent of another picture.
    #[error("cannot go on with a kept latent: {0}")]
    Kept(String),
    /// The model could not run.
    #[error("cannot draw: {0}")]
    Tensor(#[from] TensorError),
    /// Asked to stop.
    #[error(transparent)]
    Cancelled(#[from] engine_base::Cancelled),
}

impl From<PictureError> for ImageError {
    fn from(error: PictureError) -> Self {
        match error {
            PictureError::Cancelled(cancelled) => Self::Cancelled(cancelled),
            PictureError::Tensor(error) => Self::Tensor(error),
        }
    }
}

impl ImageError {
    /// The kind of failure.
    pub fn code(&self) -> Code {
        match self {
            Self::Folder { .. } | Self::Family { .. } | Self::Request { .. } => Code::BadInput,
            Self::Size { .. } | Self::Schedule(_) | Self::Kept(_) | Self::Given(_) => {
                Code::BadInput
            }
            Self::Adapter(error) => error.code(),
            Self::MissingPart { .. } => Code::NotFound,
            Self::Config { .. } | Self::NotANumber { .. } => Code::Corrupt,
            Self::Io { source, .. } => Code::of_io(source),
            Self::Weights(error) => error.code(),
            Self::Load(error) => error.code(),
            Self::Tokenizer(error) => error.code(),
            Self::Text(error) => error.code(),
            Self::Tensor(TensorError::Picture { .. }) => Code::OutOfMemory,
            Self::Tensor(_) => Code::Internal,
            Self::Cancelled(_) => Code::Cancelled,
        }
    }
}
