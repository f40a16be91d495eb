//! Why a run or a plan could not begin or go on.

use engine_base::Code;
use flow_graph::Problem;
use flow_store::StoreError;

/// Why there is no report at all. Failures of nodes stand in the report instead.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The document is not valid in a way that leaves nothing to run.
    #[error("cannot run the document: {} problems, the first: {}", .0.len(),
        .0.first().map(ToString::to_string).unwrap_or_default())]
    Invalid(Vec<Problem>),
    /// An empty list of targets was given.
    #[error("cannot run an empty list of targets: expected at least one node")]
    NoTargets,
    /// The document has no targets and no output nodes.
    #[error("cannot run the document: it has no targets and no output nodes")]
    NothingAsked,
    /// A plan was asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The store failed as a whole.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gave no thread.
    #[error("cannot start a thread: {0}")]
    Thread(String),
    /// A fault of ours.
    #[error("the executor failed: {0}")]
    Internal(String),
}

impl RunError {
    /// The kind of the failure.
    pub const fn code(&self) -> Code {
        match self {
            Self::Invalid(_) | Self::NoTargets | Self::NothingAsked => Code::BadInput,
            Self::Cancelled => Code::Cancelled,
            Self::Store(error) => error.code(),
            Self::Thread(_) => Code::OutOfMemory,
            Self::Internal(_) => Code::Internal,
        }
    }
}
