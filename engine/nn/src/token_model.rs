//! What a language model is to those who draw tokens from it.

use engine_base::{CancelToken, Cancelled, Code};

/// Why a model could not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// More tokens than the context holds.
    #[error("the text is {got_tokens} tokens long, expected at most {max_tokens}")]
    ContextFull {
        /// Tokens asked for.
        got_tokens: usize,
        /// Tokens that fit.
        max_tokens: usize,
    },
    /// A token id outside the vocabulary.
    #[error("cannot read token {got}: expected an id under {vocab}")]
    BadToken {
        /// The id.
        got: u32,
        /// Size of the vocabulary.
        vocab: usize,
    },
    /// A weight or result that is no number.
    #[error("{0}")]
    NotANumber(String),
    /// Asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl From<Cancelled> for ModelError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl ModelError {
    /// The kind of failure.
    pub const fn code(&self) -> Code {
        match self {
            Self::ContextFull { .. } | Self::BadToken { .. } => Code::BadInput,
            Self::NotANumber(_) => Code::Corrupt,
            Self::Cancelled => Code::Cancelled,
        }
    }
}

/// One stream of tokens through a language model, with its KV cache.
pub trait TokenModel: Send {
    /// Size of the vocabulary: the length of logits.
    fn vocab_tokens(&self) -> usize;

    /// Most tokens of the stream.
    fn context_tokens(&self) -> usize;

    /// Tokens in the KV cache.
    fn cached_tokens(&self) -> usize;

    /// Append `tokens` (at least one) and give the logits `[vocab]` after the last of them.
    /// Long inputs are run in fixed chunks aligned to absolute positions, so that the bits do not
    /// depend on how a text was cut into calls.
    ///
    /// # Errors
    /// [`ModelError`]; what was cached before the call is still cached.
    fn extend(&mut self, tokens: &[u32], cancel: &CancelToken) -> Result<&[f32], ModelError>;

    /// Forget everything after the first `tokens` of the stream.
    fn truncate(&mut self, tokens: usize);
}
