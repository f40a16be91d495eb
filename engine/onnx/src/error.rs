//! Why a network could not be run.

use std::io;
use std::path::PathBuf;

use engine_base::{Cancelled, Code};

/// What brings the library.
const FETCH: &str = "`cargo xtask setup` or `longtake models pull onnxruntime` fetches it";

/// Why the library, a model or a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// There is no library.
    #[error("there is no ONNX Runtime on this machine: {FETCH}")]
    NoRuntime,
    /// The library is not where it should be.
    #[error("there is no ONNX Runtime library here ({reason}): {FETCH}: {path:?}")]
    MissingRuntime {
        /// What was found instead.
        reason: String,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file is no library of this system, or one of another kind.
    #[error("cannot load the ONNX Runtime library: {reason}: {FETCH}: {path:?}")]
    BadRuntime {
        /// What the system or the library said.
        reason: String,
        /// The file.
        path: PathBuf,
    },
    /// The library is too old.
    #[error(
        "the ONNX Runtime library has version {found}, expected {needed} or newer: {FETCH}: {path:?}"
    )]
    RuntimeVersion {
        /// Its version.
        found: String,
        /// The oldest version that works.
        needed: String,
        /// The library.
        path: PathBuf,
    },
    /// Another library is in use, and a process can hold only one.
    #[error(
        "another ONNX Runtime library is in use by this process ({loaded:?}), and only one can be: \
         {path:?}"
    )]
    AnotherRuntime {
        /// The one in use.
        loaded: PathBuf,
        /// The one asked for.
        path: PathBuf,
    },
    /// A model cannot be read from the disk.
    #[error("cannot read the ONNX model: {error}: {path:?}")]
    Io {
        /// What the system said.
        error: io::Error,
        /// The model.
        path: PathBuf,
    },
    /// A file is no model, or one that the library cannot run.
    #[error("cannot open the ONNX model: {reason}: {path:?}")]
    BadModel {
        /// What was got and what was expected.
        reason: String,
        /// The model.
        path: PathBuf,
    },
    /// A tensor whose data do not fill its shape.
    #[error("cannot make a tensor of shape {shape:?} from {values} values: expected {expected}")]
    BadTensor {
        /// The shape.
        shape: Vec<usize>,
        /// Values there are.
        values: usize,
        /// How many it takes.
        expected: String,
    },
    /// An input that the model does not take.
    #[error("cannot run with the input {name:?}: {reason}: {model:?}")]
    BadInput {
        /// The input's name.
        name: String,
        /// What was got and what was expected.
        reason: String,
        /// The model.
        model: PathBuf,
    },
    /// An output that is not there or of another kind.
    #[error("the model's output {name:?} is {got}: expected {expected}")]
    BadOutput {
        /// The output's name.
        name: String,
        /// What it is.
        got: String,
        /// What was asked for.
        expected: String,
    },
    /// The library failed while it ran a model.
    #[error("the ONNX model failed: {reason}: {model:?}")]
    Failed {
        /// What the library said.
        reason: String,
        /// The model.
        model: PathBuf,
    },
    /// Asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl OnnxError {
    /// The kind of failure, for shells and scripts.
    pub fn code(&self) -> Code {
        match self {
            Self::NoRuntime | Self::MissingRuntime { .. } => Code::NotFound,
            Self::BadRuntime { .. } | Self::RuntimeVersion { .. } | Self::BadModel { .. } => {
                Code::BadInput
            }
            Self::AnotherRuntime { .. } => Code::Busy,
            Self::Io { error, .. } => Code::of_io(error),
            Self::BadTensor { .. }
            | Self::BadInput { .. }
            | Self::BadOutput { .. }
            | Self::Failed { .. } => Code::Internal,
            Self::Cancelled(_) => Code::Cancelled,
        }
    }
}
