//! Why a premise did not become a script.

use engine_base::{Cancelled, Code};

use crate::length::Length;
use crate::llm::LlmError;

/// Why a premise did not become a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProduceError {
    /// Nothing to make a film from.
    #[error(
        "cannot make a film from the premise {got:?}: expected a sentence such as \"a lighthouse \
         keeper finds a message in a bottle\""
    )]
    NoWords {
        /// Its beginning.
        got: String,
    },
    /// More than is read.
    #[error("cannot read the premise: got {got_bytes} bytes, expected at most {max_bytes}")]
    TooLong {
        /// Its size.
        got_bytes: usize,
        /// Largest size.
        max_bytes: usize,
    },
    /// A length that the producer does not fill.
    #[error("cannot plan a film of {got}: expected a length from 5 s to 10 min")]
    Length {
        /// The length asked for.
        got: Length,
    },
    /// What was written cannot be planned: a fault of ours.
    #[error("the script that was written is faulty: {0}")]
    Faulty(String),
    /// The model failed.
    #[error("the language model failed: {0}")]
    Llm(#[from] LlmError),
}

impl ProduceError {
    /// The kind of failure.
    pub const fn code(&self) -> Code {
        match self {
            Self::NoWords { .. } | Self::TooLong { .. } | Self::Length { .. } => Code::BadInput,
            Self::Faulty(_) => Code::Internal,
            Self::Llm(error) => error.code,
        }
    }
}

impl From<Cancelled> for ProduceError {
    fn from(cancelled: Cancelled) -> Self {
        Self::Llm(cancelled.into())
    }
}
