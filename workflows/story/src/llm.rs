//! A language model as the producer sees it.

use engine_base::{CancelToken, Cancelled, Code};
use serde_json::Value;

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one who asks.
    User,
    /// The model, in examples.
    Assistant,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// The text.
    pub text: String,
}

/// What a model is asked for. The same request gives the same reply from the same local model.
#[derive(Debug, Clone, PartialEq)]
pub struct LlmRequest {
    /// Standing instructions.
    pub system: String,
    /// The conversation; the last message is the user's.
    pub messages: Vec<Message>,
    /// JSON schema that the reply must meet; absent means free text.
    pub schema: Option<Value>,
    /// Most tokens of the reply.
    pub max_tokens: usize,
    /// 0 takes the likeliest token always.
    pub temperature: f32,
    /// Decides every draw.
    pub seed: u64,
    /// Texts that end the reply; they are not part of it.
    pub stop: Vec<String>,
}

/// What a model replied.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LlmReply {
    /// The text.
    pub text: String,
    /// Tokens of the reply, as far as the model says.
    pub tokens: usize,
    /// Mean natural logarithm of the tokens' probabilities, where the model says it: which of
    /// several replies sounds most like language to it.
    pub mean_logprob: Option<f64>,
}

/// Whether replies can be trusted to meet the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LlmKind {
    /// The schema, patterns included, is enforced while the reply is drawn.
    Constrained,
    /// The schema is a wish: replies are read with tolerance, checked, and asked for again.
    Remote,
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LlmError {
    /// The kind of failure.
    pub code: Code,
    /// What was tried, got and expected.
    pub message: String,
    /// Whether another request may well succeed: this reply was bad, the model is not gone.
    pub passing: bool,
}

impl LlmError {
    /// A failure that ends the work.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            passing: false,
        }
    }

    /// A failure of this reply only, such as a refusal.
    pub fn passing(code: Code, message: impl Into<String>) -> Self {
        Self {
            passing: true,
            ..Self::new(code, message)
        }
    }
}

impl From<Cancelled> for LlmError {
    fn from(_: Cancelled) -> Self {
        Self::new(Code::Cancelled, "cancelled")
    }
}

/// A language model, ours or somebody else's.
pub trait Llm: Send {
    /// What decides its replies besides the request: the model's name and content.
    fn name(&self) -> &str;

    /// Whether it keeps to schemas.
    fn kind(&self) -> LlmKind;

    /// Whether it is too small to be let write freely: such a model fills in sentence forms.
    fn is_weak(&self) -> bool {
        false
    }

    /// BCP-47 tags of the languages it is made for; empty when nothing says so.
    fn languages(&self) -> &[String] {
        &[]
    }

    /// Reply to `request`.
    ///
    /// # Errors
    /// [`LlmError`]; a `passing` one is worth another try with another seed.
    fn complete(
        &mut self,
        request: &LlmRequest,
        cancel: &CancelToken,
    ) -> Result<LlmReply, LlmError>;
}
