//! Text generation: a prompt or a conversation in, text out, piece by piece.

mod reply;
mod stop;

use std::ops::ControlFlow;

use engine_base::{CancelToken, Code};
use engine_models::{LoadError, LoadOptions, load_token_model};
use engine_nn::{ModelError, SampleError, Sampling, TokenModel};
use engine_weights::Checkpoint;
use serde::{Deserialize, Serialize};

use crate::constraint::{Constraint, ConstraintError, GrammarSet};
use crate::template::{ChatMessage, ChatTemplate, TemplateError, TemplateInput, TemplateTime};
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
    /// Say how likely the drawn tokens were; takes a pass over the logits of each.
    pub likelihood: bool,
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
            likelihood: false,
        }
    }
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// Mean natural logarithm of the drawn tokens' probabilities by the model alone: at temperature
    /// 1, and with what the constraint ruled out in the count. Where it was asked for and a token
    /// was drawn; forced tokens are left out.
    pub mean_logprob: Option<f64>,
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
    /// The prompt leaves no room for a reply.
    #[error(
        "the prompt is {prompt_tokens} tokens long, expected fewer than the {context_tokens} of \
         the context"
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Tokens the model can hold.
        context_tokens: usize,
    },
    /// A request that asks for nothing sensible.
    #[error("cannot make a reply with {what} {got}: expected {expected}")]
    BadRequest {
        /// The field.
        what: &'static str,
        /// Its value.
        got: String,
        /// What it may be.
        expected: &'static str,
    },
    /// Tokenizer and model are not of one checkpoint.
    #[error(
        "the tokenizer has {tokenizer_tokens} tokens and the model {model_tokens}, expected at \
         least as many in the model"
    )]
    Mismatch {
        /// Tokens of the tokenizer.
        tokenizer_tokens: usize,
        /// Logits of the model.
        model_tokens: usize,
    },
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
    /// The model cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl TextError {
    /// The kind of failure.
    pub fn code(&self) -> Code {
        match self {
            Self::PromptTooLong { .. } | Self::BadRequest { .. } => Code::BadInput,
            Self::Mismatch { .. } => Code::Corrupt,
            Self::Tokenizer(error) => error.code(),
            Self::Template(error) => error.code(),
            Self::Constraint(error) => error.code(),
            Self::Sample(error) => error.code(),
            Self::Model(error) => error.code(),
            Self::Load(error) => error.code(),
        }
    }
}

/// How a pipeline works. Nothing here changes a reply, except `now` where a template tells it.
#[derive(Debug, Clone, Default)]
pub struct TextOptions {
    /// Ask the model for logits also where the constraint leaves one token only. The reply is the
    /// same, later.
    pub ask_for_forced_tokens: bool,
    /// The moment that chat templates may tell; without it they find no clock.
    pub now: Option<TemplateTime>,
    /// How [`TextPipeline::open`] loads the model.
    pub load: LoadOptions,
}

/// A language model with everything between text and tokens.
///
/// The model's KV cache is kept between replies: a prompt that begins like the last one's text is
/// read from where they part.
pub struct TextPipeline {
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    model: Box<dyn TokenModel>,
    options: TextOptions,
    /// Made when the first constraint comes.
    grammars: Option<GrammarSet>,
    /// What the KV cache holds.
    stream: Vec<u32>,
    /// Set where the model has logits that belong to no token.
    known: Option<Vec<u32>>,
}

impl std::fmt::Debug for TextPipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextPipeline")
            .field("tokenizer", &self.tokenizer)
            .field("context_tokens", &self.model.context_tokens())
            .finish_non_exhaustive()
    }
}

impl TextPipeline {
    /// A pipeline of parts that belong together. What `model` has cached is forgotten.
    ///
    /// # Errors
    /// [`TextError::Mismatch`].
    pub fn new(
        tokenizer: Tokenizer,
        template: Option<ChatTemplate>,
        mut model: Box<dyn TokenModel>,
        options: TextOptions,
    ) -> Result<Self, TextError> {
        let (tokenizer_tokens, model_tokens) = (tokenizer.vocab_tokens(), model.vocab_tokens());
        if tokenizer_tokens > model_tokens {
            return Err(TextError::Mismatch {
                tokenizer_tokens,
                model_tokens,
            });
        }
        let known = (tokenizer_tokens < model_tokens).then(|| reply::first_bits(tokenizer_tokens));
        model.truncate(0);
        Ok(Self {
            tokenizer,
            template,
            model,
            options,
            grammars: None,
            stream: Vec::new(),
            known,
        })
    }

    /// The model of a checkpoint with its own tokenizer and chat template.
    ///
    /// # Errors
    /// [`TextError::Load`], [`TextError::Tokenizer`], [`TextError::Template`],
    /// [`TextError::Mismatch`].
    pub fn open(checkpoint: &dyn Checkpoint, options: TextOptions) -> Result<Self, TextError> {
        let tokenizer = Tokenizer::of_checkpoint(checkpoint)?;
        let template = ChatTemplate::of_checkpoint(checkpoint, &tokenizer)?;
        let model = load_token_model(checkpoint, &options.load)?;
        Self::new(tokenizer, template, model, options)
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The chat template, if the model has one.
    pub fn template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    /// Most tokens of prompt and reply together.
    pub fn context_tokens(&self) -> usize {
        self.model.context_tokens()
    }

    /// The tokens a prompt becomes. A conversation ends where the answer begins, and has no tokens
    /// but those of its template; plain text has the begin token the model was trained with. An
    /// empty prompt becomes one token, since there has to be something to go on from.
    ///
    /// # Errors
    /// [`TextError::Template`], [`TextError::Tokenizer`].
    pub fn prompt_tokens(&self, prompt: &TextPrompt) -> Result<Vec<u32>, TextError> {
        let mut tokens = match prompt {
            TextPrompt::Plain(text) => self.tokenizer.encode(text)?,
            TextPrompt::Messages(messages) => {
                let template = self.template.as_ref().ok_or(TemplateError::Missing)?;
                let text = template.render_input(&TemplateInput {
                    messages,
                    add_generation_prompt: true,
                    now: self.options.now,
                    ..TemplateInput::default()
                })?;
                self.tokenizer.encode_bare(&text)?
            }
        };
        if tokens.is_empty() {
            let first = self.tokenizer.bos().or(self.tokenizer.eos());
            tokens.push(first.unwrap_or(0));
        }
        Ok(tokens)
    }

    /// Make a reply. `on_text` gets its text in pieces of whole characters, as soon as they are
    /// certain, and may break off; `cancel` is looked at between tokens. Either way the reply so
    /// far is given back as [`FinishReason::Cancelled`].
    ///
    /// # Errors
    /// See [`TextError`]. The pipeline can be used again afterwards.
    pub fn generate(
        &mut self,
        request: &TextRequest,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
        cancel: &CancelToken,
    ) -> Result<TextReply, TextError> {
        if let Some(at) = request.stop.iter().position(String::is_empty) {
            return Err(TextError::BadRequest {
                what: "stop text",
                got: format!("{at}, which is empty"),
                expected: "texts of at least one character",
            });
        }
        request.sampling.check()?;
        let prompt = self.prompt_tokens(&request.prompt)?;
        let context_tokens = self.model.context_tokens();
        if prompt.len() >= context_tokens {
            return Err(TextError::PromptTooLong {
                prompt_tokens: prompt.len(),
                context_tokens,
            });
        }
        self.reply(&prompt, request, on_text, cancel)
    }
}

#[cfg(test)]
mod tests;
