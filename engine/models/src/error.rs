//! Why a model could not be loaded.

use engine_base::Code;
use engine_nn::LayerError;
use engine_tensor::TensorError;
use engine_weights::{MetadataError, WeightsError};

/// Why a checkpoint is no model we run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A family nobody here knows.
    #[error("cannot run a model of family {got:?}: known are {known}")]
    UnknownFamily {
        /// What the checkpoint says.
        got: String,
        /// Names that are known.
        known: String,
    },
    /// Tensors of no picture model anybody here knows.
    #[error("cannot tell the family of a picture model: found {found}; known are {known}")]
    UnknownPicture {
        /// What there is.
        found: String,
        /// Families that are known.
        known: String,
    },
    /// No configuration to be found.
    #[error("cannot tell the model's family: expected {expected}")]
    NoConfig {
        /// What was looked for.
        expected: &'static str,
    },
    /// A configuration value that cannot be right.
    #[error("cannot load the model: {key} is {got}, expected {expected}")]
    Config {
        /// Its key.
        key: String,
        /// Its value.
        got: String,
        /// What it has to be.
        expected: String,
    },
    /// A context beyond what the model was made for.
    #[error("cannot load the model for {got} tokens: expected at most {max}")]
    Context {
        /// Tokens asked for.
        got: usize,
        /// The model's own limit.
        max: usize,
    },
    /// A layer that cannot be made.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// A metadata value of another type.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

impl From<WeightsError> for LoadError {
    fn from(error: WeightsError) -> Self {
        Self::Layer(LayerError::Weights(error))
    }
}

impl From<TensorError> for LoadError {
    fn from(error: TensorError) -> Self {
        Self::Layer(LayerError::Tensor(error))
    }
}

/// Most of a size in a configuration that is taken for real.
pub(crate) const SIZE_CAP: usize = 1 << 20;

/// A configuration value that cannot be right.
#[expect(
    clippy::needless_pass_by_value,
    reason = "called with what it writes out"
)]
pub(crate) fn wrong(key: &str, got: impl ToString, expected: &str) -> LoadError {
    LoadError::Config {
        key: key.to_owned(),
        got: got.to_string(),
        expected: expected.to_owned(),
    }
}

/// `Ok` for sizes from 1 to [`SIZE_CAP`].
pub(crate) fn check_sizes<'a>(
    sizes: impl IntoIterator<Item = (&'a str, usize)>,
) -> Result<(), LoadError> {
    for (key, size) in sizes {
        if size == 0 || size > SIZE_CAP {
            return Err(wrong(key, size, "a whole number from 1 to 2^20"));
        }
    }
    Ok(())
}

/// `Ok` for turned elements of axes that fit in a head.
pub(crate) fn check_axes(key: &str, axes: &[usize], head_dim: usize) -> Result<(), LoadError> {
    let turned: usize = axes.iter().map(|dims| dims.min(&SIZE_CAP)).sum();
    if turned > head_dim {
        return Err(wrong(key, turned, "at most a head's elements together"));
    }
    Ok(())
}

impl LoadError {
    /// The kind of failure.
    pub fn code(&self) -> Code {
        match self {
            Self::Layer(LayerError::Weights(error)) => error.code(),
            Self::Layer(LayerError::Tensor(TensorError::Threads { .. })) => Code::Io,
            Self::UnknownFamily { .. } | Self::UnknownPicture { .. } | Self::Context { .. } => {
                Code::BadInput
            }
            _ => Code::Corrupt,
        }
    }
}
