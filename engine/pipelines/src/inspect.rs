//! What a checkpoint is, and whether it can be run here, for people.

use std::path::Path;

use engine_models::{FAMILIES, check_family};
use engine_weights::{Checkpoint, Inspection, WeightsError, open};
use serde::Serialize;

use crate::{ChatTemplate, Tokenizer, TokenizerError};

/// A checkpoint and what this engine can do with it. Only headers and side files are read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelInspection {
    /// What the file holds.
    #[serde(flatten)]
    pub inspection: Inspection,
    /// The family of ours that runs it; absent when none does.
    pub family: Option<&'static str>,
    /// Why none does, or why this one cannot.
    pub cannot_run: Option<String>,
    /// All names of families that are known.
    pub known_families: Vec<&'static str>,
    /// Most tokens it was made for, where the configuration says so.
    pub context_tokens: Option<u64>,
    /// Kind of the tokenizer, such as `gpt2`, `llama` or `tokenizer.json`; absent when there is none.
    pub tokenizer: Option<String>,
    /// Tokens of the tokenizer; absent when it cannot be built.
    pub vocab_tokens: Option<u64>,
    /// Why the tokenizer cannot be built.
    pub tokenizer_fault: Option<String>,
    /// Whether there is a chat template that can be read.
    pub has_chat_template: bool,
    /// Why the chat template cannot be read.
    pub chat_template_fault: Option<String>,
}

/// Open the weights at `path` and say what they are.
///
/// # Errors
/// What opening them fails with. A family, tokenizer or template that is not understood is part of
/// the answer.
pub fn inspect_model(path: &Path) -> Result<ModelInspection, WeightsError> {
    let checkpoint = open(path)?;
    let checkpoint = checkpoint.as_ref();
    let (family, context_tokens, cannot_run) = match check_family(checkpoint) {
        Ok(found) => (Some(found.family), Some(found.context_tokens as u64), None),
        Err(error) => (None, None, Some(error.to_string())),
    };
    let built = Tokenizer::of_checkpoint(checkpoint);
    let (template, chat_template_fault) = match &built {
        Ok(tokenizer) => match ChatTemplate::of_checkpoint(checkpoint, tokenizer) {
            Ok(template) => (template.is_some(), None),
            Err(error) => (false, Some(error.to_string())),
        },
        Err(_) => (false, None),
    };
    let (vocab_tokens, tokenizer_fault) = match &built {
        Ok(tokenizer) => (Some(tokenizer.vocab_tokens() as u64), None),
        Err(TokenizerError::Missing { .. }) => (None, None),
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(ModelInspection {
        inspection: Inspection::of(checkpoint),
        family,
        cannot_run,
        known_families: known_families(),
        context_tokens,
        tokenizer: tokenizer_kind(checkpoint),
        vocab_tokens,
        tokenizer_fault,
        has_chat_template: template,
        chat_template_fault,
    })
}

fn known_families() -> Vec<&'static str> {
    let names = FAMILIES
        .iter()
        .flat_map(|family| family.model_types.iter().chain(family.architectures));
    let mut names: Vec<&str> = names.copied().collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn tokenizer_kind(checkpoint: &dyn Checkpoint) -> Option<String> {
    let metadata = checkpoint.metadata();
    let of = |key| metadata.text(key).ok().flatten();
    match (of("tokenizer.ggml.model"), of("tokenizer.ggml.pre")) {
        (Some(model), Some(pre)) => Some(format!("{model} ({pre})")),
        (Some(model), None) => Some(model.to_owned()),
        (None, _) => metadata
            .side_file("tokenizer.json")
            .map(|_| "tokenizer.json".to_owned()),
    }
}
