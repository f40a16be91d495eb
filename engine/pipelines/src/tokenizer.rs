//! Text to tokens and back.

mod build;
mod bytes;
mod vocabulary;

use std::sync::Arc;

use engine_base::Code;
use engine_weights::{Checkpoint, MetadataError, WeightsError};
use serde_json::Value;

pub use vocabulary::GgufVocabulary;

/// Longest token, in bytes. Real ones end at some hundred.
pub(crate) const MAX_TOKEN_BYTES: usize = 4096;

/// Most tokens of a vocabulary. Real ones end at some hundred thousand.
pub(crate) const MAX_VOCAB_TOKENS: usize = 4 << 20;

/// Names of tokens that end a turn or a text, where they are special.
const END_TOKENS: &[&str] = &[
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<end_of_turn>",
    "<|END_OF_TURN_TOKEN|>",
    "</s>",
];

/// Why a tokenizer cannot be made or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The checkpoint has none.
    #[error("the checkpoint has no tokenizer: expected {expected}")]
    Missing {
        /// Where one is looked for.
        expected: &'static str,
    },
    /// A kind this engine does not build.
    #[error(
        "cannot build a tokenizer with {what} {got:?}: expected one of {known}; others wait for support"
    )]
    UnknownKind {
        /// The metadata key.
        what: &'static str,
        /// Its value.
        got: String,
        /// Values that are known.
        known: String,
    },
    /// Parts that do not fit together.
    #[error("the tokenizer is broken: {0}")]
    Broken(String),
    /// A metadata key of another type.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A file beside the weights cannot be read.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A text or token that the tokenizer itself refuses.
    #[error("cannot turn {what}: {reason}")]
    Refused {
        /// What was tried.
        what: &'static str,
        /// What it said.
        reason: String,
    },
}

impl TokenizerError {
    /// The kind of failure.
    pub fn code(&self) -> Code {
        match self {
            Self::Missing { .. } => Code::NotFound,
            Self::UnknownKind { .. } => Code::Refused,
            Self::Broken(_) | Self::Metadata(_) => Code::Corrupt,
            Self::Weights(error) => error.code(),
            Self::Refused { .. } => Code::BadInput,
        }
    }
}

/// Turns text into token ids and back. Cheap to clone.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<tokenizers::Tokenizer>,
    table: Arc<bytes::TokenTable>,
    /// Added in front of each encoded text by this type, not by `inner`.
    bos_in_front: Option<u32>,
    /// Added after each encoded text by this type, not by `inner`.
    eos_behind: Option<u32>,
    bos: Option<u32>,
    eos: Option<u32>,
    end_tokens: Vec<u32>,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("vocab_tokens", &self.vocab_tokens())
            .field("bos", &self.bos)
            .field("end_tokens", &self.end_tokens)
            .finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// The tokenizer in the bytes of a `tokenizer.json`, with the special tokens that the bytes of
    /// a `tokenizer_config.json` name.
    ///
    /// # Errors
    /// [`TokenizerError::Broken`] says what does not fit.
    pub fn from_json(tokenizer: &[u8], config: Option<&[u8]>) -> Result<Self, TokenizerError> {
        let inner = tokenizers::Tokenizer::from_bytes(tokenizer)
            .map_err(|error| TokenizerError::Broken(format!("tokenizer.json: {error}")))?;
        let config: Value = match config {
            None => Value::Null,
            Some(bytes) => serde_json::from_slice(bytes).map_err(|error| {
                TokenizerError::Broken(format!("tokenizer_config.json: {error}"))
            })?,
        };
        let named = |key: &str| {
            let name = match &config[key] {
                Value::String(name) => name.as_str(),
                Value::Object(token) => token.get("content")?.as_str()?,
                _ => return None,
            };
            inner.token_to_id(name)
        };
        let (bos, eos) = (named("bos_token"), named("eos_token"));
        Self::assemble(inner, bos, eos, None)
    }

    /// The tokenizer that GGUF metadata describes.
    ///
    /// # Errors
    /// [`TokenizerError::UnknownKind`] or [`TokenizerError::Broken`].
    pub fn from_gguf(vocabulary: &GgufVocabulary) -> Result<Self, TokenizerError> {
        let inner = build::build(vocabulary)?;
        let mut made = Self::assemble(
            inner,
            vocabulary.bos,
            vocabulary.eos,
            Some(vocabulary.tokens.len()),
        )?;
        for end in [vocabulary.eot, vocabulary.eom].into_iter().flatten() {
            if !made.end_tokens.contains(&end) {
                made.end_tokens.push(end);
            }
        }
        made.bos_in_front = vocabulary.bos.filter(|_| vocabulary.adds_bos());
        made.eos_behind = vocabulary.eos.filter(|_| vocabulary.adds_eos());
        Ok(made)
    }

    /// The tokenizer of a checkpoint: in GGUF metadata, or `tokenizer.json` beside safetensors.
    ///
    /// # Errors
    /// [`TokenizerError::Missing`] when there is none; see [`Tokenizer::from_json`] and
    /// [`Tokenizer::from_gguf`].
    pub fn of_checkpoint(checkpoint: &dyn Checkpoint) -> Result<Self, TokenizerError> {
        let metadata = checkpoint.metadata();
        if let Some(vocabulary) = GgufVocabulary::from_metadata(metadata)? {
            return Self::from_gguf(&vocabulary);
        }
        let Some(tokenizer) = metadata.read_side_file("tokenizer.json")? else {
            return Err(TokenizerError::Missing {
                expected: "metadata key tokenizer.ggml.model, or tokenizer.json beside the weights",
            });
        };
        let config = metadata.read_side_file("tokenizer_config.json")?;
        let mut made = Self::from_json(&tokenizer, config.as_deref())?;
        if let Some(generation) = metadata.read_side_file("generation_config.json")? {
            made.add_end_tokens(&generation);
        }
        Ok(made)
    }

    /// Add what `eos_token_id` in the bytes of a `generation_config.json` names: an id or a list.
    fn add_end_tokens(&mut self, generation_config: &[u8]) {
        let config: Value = serde_json::from_slice(generation_config).unwrap_or_default();
        let ids = match &config["eos_token_id"] {
            Value::Array(ids) => ids.clone(),
            one => vec![one.clone()],
        };
        for id in ids.iter().filter_map(Value::as_u64) {
            if let Ok(id) = u32::try_from(id)
                && (id as usize) < self.vocab_tokens()
                && !self.end_tokens.contains(&id)
            {
                self.end_tokens.push(id);
            }
        }
    }

    fn assemble(
        inner: tokenizers::Tokenizer,
        bos: Option<u32>,
        eos: Option<u32>,
        vocab: Option<usize>,
    ) -> Result<Self, TokenizerError> {
        let table = bytes::TokenTable::of(&inner, vocab)?;
        for (name, token) in [("bos", bos), ("eos", eos)] {
            if let Some(token) = token
                && token as usize >= table.len()
            {
                return Err(TokenizerError::Broken(format!(
                    "its {name} token is {token}, expected an id under {}",
                    table.len()
                )));
            }
        }
        let mut end_tokens: Vec<u32> = eos.into_iter().collect();
        for name in END_TOKENS {
            if let Some(token) = inner.token_to_id(name)
                && table.is_special(token)
                && !end_tokens.contains(&token)
            {
                end_tokens.push(token);
            }
        }
        Ok(Self {
            inner: Arc::new(inner),
            table: Arc::new(table),
            bos_in_front: None,
            eos_behind: None,
            bos,
            eos,
            end_tokens,
        })
    }

    /// One more than the highest token id.
    pub fn vocab_tokens(&self) -> usize {
        self.table.len()
    }

    /// The token that begins a text, if the model has one.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The token that ends a text, if the model has one.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// All tokens that end a reply.
    pub fn end_tokens(&self) -> &[u32] {
        &self.end_tokens
    }

    /// Whether a token ends a reply.
    pub fn is_end(&self, token: u32) -> bool {
        self.end_tokens.contains(&token)
    }

    /// Whether a token is a mark of the format rather than text.
    pub fn is_special(&self, token: u32) -> bool {
        self.table.is_special(token)
    }

    /// The bytes a token stands for in a running text; empty for ids without a token. Special
    /// tokens give their name.
    pub fn token_bytes(&self, token: u32) -> &[u8] {
        self.table.bytes(token)
    }

    /// The name of a token, as written in its vocabulary.
    pub fn token_name(&self, token: u32) -> Option<String> {
        self.inner.id_to_token(token)
    }

    /// The id of a token, by its name in the vocabulary.
    pub fn token_id(&self, name: &str) -> Option<u32> {
        self.inner.token_to_id(name)
    }

    /// Tokens of a whole text, with the begin and end tokens that the model was trained with.
    /// Names of special tokens in the text become those tokens.
    ///
    /// # Errors
    /// [`TokenizerError::Refused`].
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let tokens = self.ids(text, true)?;
        Ok(self
            .bos_in_front
            .into_iter()
            .chain(tokens)
            .chain(self.eos_behind)
            .collect())
    }

    /// Tokens of a text as it stands, with nothing added.
    ///
    /// # Errors
    /// [`TokenizerError::Refused`].
    pub fn encode_bare(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        self.ids(text, false)
    }

    /// Tokens of a text as it stands, in which names of special tokens become those tokens.
    ///
    /// # Errors
    /// [`TokenizerError::Refused`].
    pub fn encode_marked(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        self.ids(text, true)
    }

    fn ids(&self, text: &str, marks: bool) -> Result<Vec<u32>, TokenizerError> {
        let encoding =
            self.inner
                .encode_fast(text, marks)
                .map_err(|error| TokenizerError::Refused {
                    what: "text into tokens",
                    reason: error.to_string(),
                })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The text of tokens, with the names of special ones or without.
    ///
    /// # Errors
    /// [`TokenizerError::Refused`].
    pub fn decode(&self, tokens: &[u32], with_special: bool) -> Result<String, TokenizerError> {
        self.inner
            .decode(tokens, !with_special)
            .map_err(|error| TokenizerError::Refused {
                what: "tokens into text",
                reason: error.to_string(),
            })
    }

    /// Whether tokens hold the bytes of a text one to one, without marks for word beginnings.
    pub(crate) fn is_byte_exact(&self) -> bool {
        self.table.is_byte_exact()
    }
}

#[cfg(test)]
pub(crate) mod tests;
