//! What GGUF metadata says about a tokenizer.

use engine_weights::{Metadata, MetadataError};

/// The keys `tokenizer.ggml.*` of a GGUF file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GgufVocabulary {
    /// `model`: the kind, such as `gpt2` or `llama`.
    pub model: String,
    /// `pre`: how text is cut into words first.
    pub pre: Option<String>,
    /// `tokens`: names by id.
    pub tokens: Vec<String>,
    /// `token_type`: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte; empty when
    /// all are normal.
    pub token_types: Vec<i64>,
    /// `scores`: how early a token is merged; empty for kinds that list merges.
    pub scores: Vec<f64>,
    /// `merges`: pairs of names with a blank between, in their order.
    pub merges: Vec<String>,
    /// `bos_token_id`.
    pub bos: Option<u32>,
    /// `eos_token_id`.
    pub eos: Option<u32>,
    /// `eot_token_id`: ends a turn.
    pub eot: Option<u32>,
    /// `eom_token_id`: ends a message.
    pub eom: Option<u32>,
    /// `unknown_token_id`.
    pub unknown: Option<u32>,
    /// `add_bos_token`.
    pub add_bos: Option<bool>,
    /// `add_eos_token`.
    pub add_eos: Option<bool>,
    /// `add_space_prefix`.
    pub add_space_prefix: Option<bool>,
}

impl GgufVocabulary {
    /// Read from metadata; `None` when there is no `tokenizer.ggml.model`.
    ///
    /// # Errors
    /// A key of another type.
    pub fn from_metadata(metadata: &Metadata) -> Result<Option<Self>, MetadataError> {
        let key = |name: &str| format!("tokenizer.ggml.{name}");
        let Some(model) = metadata.text(&key("model"))? else {
            return Ok(None);
        };
        // Some writers give -1 for a token that is not there.
        let token = |name: &str| -> Result<Option<u32>, MetadataError> {
            let id = metadata.integer(&key(name))?;
            Ok(id.and_then(|id| u32::try_from(id).ok()))
        };
        Ok(Some(Self {
            model: model.to_owned(),
            pre: metadata.text(&key("pre"))?.map(str::to_owned),
            tokens: metadata
                .texts(&key("tokens"))?
                .ok_or_else(|| MetadataError::missing(&key("tokens")))?,
            token_types: metadata.integers(&key("token_type"))?.unwrap_or_default(),
            scores: metadata.floats(&key("scores"))?.unwrap_or_default(),
            merges: metadata.texts(&key("merges"))?.unwrap_or_default(),
            bos: token("bos_token_id")?,
            eos: token("eos_token_id")?,
            eot: token("eot_token_id")?,
            eom: token("eom_token_id")?,
            unknown: token("unknown_token_id")?,
            add_bos: metadata.bool(&key("add_bos_token"))?,
            add_eos: metadata.bool(&key("add_eos_token"))?,
            add_space_prefix: metadata.bool(&key("add_space_prefix"))?,
        }))
    }

    /// Whether encoded texts begin with the begin token; where the file says nothing, as the kind
    /// is trained.
    pub(super) fn adds_bos(&self) -> bool {
        self.add_bos.unwrap_or(match self.model.as_str() {
            "llama" => true,
            "gpt2" => matches!(
                self.pre.as_deref(),
                Some("llama-bpe" | "llama3" | "llama-v3")
            ),
            _ => false,
        })
    }

    /// Whether encoded texts end with the end token.
    pub(super) fn adds_eos(&self) -> bool {
        self.add_eos.unwrap_or(self.model == "t5")
    }
}
