//! Text generation: a prompt or a conversation in, text out, piece by piece.

use std::ops::ControlFlow;

use engine_base::{CancelToken, Code};
use engine_nn::{ModelError, SampleError, Sampling, TokenModel};

use crate::constraint::{Constraint, ConstraintError};
use crate::template::{ChatMessage, ChatTemplate, TemplateError};
use crate::tokenizer::{Tokenizer, TokenizerError};

/// What the model reads before it writes.
#[derive(Debug, Clone, PartialEq)]
pub enum TextPrompt {
    /// Plain text, continued as it stands.
    Plain(String),
    /// A conversation, put into text by the model's chat template.
    Messages(Vec<ChatMessage>),
}

/// One piece of text asked for.
#[derive(Debug, Clone)]
pub struct TextRequest {
    /// What is read first.
    pub prompt: TextPrompt,
    /// Most tokens of the reply.
    pub max_tokens: usize,
    /// How tokens are drawn, with the seed.
    pub sampling: Sampling,
    /// Texts that end the reply; they are not part of it.
    pub stop: Vec<String>,
    /// What the reply must be.
    pub constraint: Constraint,
}

impl TextRequest {
    /// A conversation answered with at most `max_tokens`, drawn as `Sampling::default()` says.
    pub fn chat(messages: Vec<ChatMessage>, max_tokens: usize) -> Self {
        Self::of(TextPrompt::Messages(messages), max_tokens)
    }

    /// A text continued by at most `max_tokens`, drawn as `Sampling::default()` says.
    pub fn plain(prompt: impl Into<String>, max_tokens: usize) -> Self {
        Self::of(TextPrompt::Plain(prompt.into()), max_tokens)
    }

    fn of(prompt: TextPrompt, max_tokens: usize) -> Self {
        Self {
            prompt,
            max_tokens,
            sampling: Sampling::default(),
            stop: Vec::new(),
            constraint: Constraint::None,
        }
    }
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model ended it.
    Stop,
    /// `max_tokens` or the context is used up.
    Length,
    /// A stop text came.
    StopString,
    /// The constraint is met and nothing may follow.
    ConstraintDone,
    /// The caller asked to stop.
    Cancelled,
}

/// A reply and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct TextReply {
    /// The text, without stop texts and special tokens.
    pub text: String,
    /// The drawn tokens in order, without the end token.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub finish: FinishReason,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens of the prompt that were already in the KV cache.
    pub reused_tokens: usize,
    /// Tokens the constraint forced, for which the model was not asked.
    pub forced_tokens: usize,
    /// Time over the prompt.
    pub prefill_secs: f64,
    /// Time over the reply.
    pub decode_secs: f64,
    /// Part of `decode_secs` spent on the constraint.
    pub constraint_secs: f64,
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The text does not become tokens.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The conversation does not become text.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The constraint cannot be used or met.
    #[error(transparent)]
    Constraint(#[from] ConstraintError),
    /// No token could be drawn.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl TextError {
    /// The kind of failure.
    pub fn code(&self) -> Code {
        match self {
            Self::Tokenizer(error) => error.code(),
            Self::Template(error) => error.code(),
            Self::Constraint(error) => error.code(),
            Self::Sample(error) => error.code(),
            Self::Model(error) => error.code(),
        }
    }
}

/// How a pipeline is opened.
#[derive(Debug, Clone, Default)]
pub struct TextOptions {}

/// A language model with everything between text and tokens.
pub struct TextPipeline {
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    model: Box<dyn TokenModel>,
}
