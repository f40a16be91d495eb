//! A language model of our own engine.

use std::ops::ControlFlow;
use std::path::Path;

use engine_base::{CancelToken, Cancelled, Code};
use engine_hub::{Hub, ModelKind};
use engine_pipelines::{
    ChatMessage, Constraint, FinishReason, TextOptions, TextPipeline, TextRequest,
};
use flow_story::{Llm, LlmError, LlmKind, LlmReply, LlmRequest, Role};

use crate::config;
use crate::error::StudioError;

/// Tokens of the context that are kept for: more than any step of the producer takes.
const CONTEXT_TOKENS: usize = 2048;

/// Weights under which a model is not let write freely: one of 135 million wanders off within a
/// sentence.
const WEAK_ELEMENTS: usize = 1_000_000_000;

/// A language model on this machine.
#[derive(Debug)]
pub struct LocalLlm {
    pipeline: TextPipeline,
    name: String,
    languages: Vec<String>,
    weak: bool,
}

impl LocalLlm {
    /// The model called `what`: an id of the model list, a path to weights, or, without one, the
    /// list's default.
    ///
    /// # Errors
    /// [`Code::NotFound`] when it is not here; weights that cannot be read.
    pub fn open(what: Option<&str>, hub: &Hub) -> Result<Self, StudioError> {
        if let Some(path) = what.map(Path::new).filter(|path| path.exists()) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            return Self::of_file(path, &name);
        }
        let entry = match what {
            Some(id) => hub.entry(id)?,
            None => hub
                .entries()
                .iter()
                .find(|entry| entry.kind == ModelKind::Text && entry.default)
                .ok_or_else(|| {
                    let message = "the model list names no language model as default: give one \
                                   with --llm MODEL or a server with --llm http://host:port/v1";
                    StudioError::new(Code::NotFound, message)
                })?,
        };
        let id = &entry.id;
        let path = hub.path(id).ok_or_else(|| {
            let folder = hub.folder_of(entry);
            let message = format!(
                "the language model {id} is not here: fetch it with `longtake models pull {id}`, \
                 or name a server with --llm http://host:port/v1; looked in {folder:?}"
            );
            StudioError::new(Code::NotFound, message)
        })?;
        Self::of_file(&path, id)
    }

    fn of_file(path: &Path, name: &str) -> Result<Self, StudioError> {
        let checkpoint = engine_pipelines::open_checkpoint(path).map_err(|error| {
            StudioError::new(
                error.code(),
                format!("cannot open the language model: {error}"),
            )
        })?;
        let mut options = TextOptions::default();
        options.load.context_tokens = Some(CONTEXT_TOKENS);
        options.load.threads = config::threads()?;
        options.load.affinity = config::affinity()?;
        let pipeline = TextPipeline::open(checkpoint.as_ref(), options).map_err(|error| {
            let message = format!("cannot load the language model: {error}: {path:?}");
            StudioError::new(error.code(), message)
        })?;
        // A header that says nothing readable of its languages leaves them open.
        let languages = checkpoint.metadata().texts("general.languages");
        let languages = languages.ok().flatten().unwrap_or_default();
        let elements: usize = checkpoint
            .names()
            .filter_map(|tensor| checkpoint.tensor(tensor))
            .map(|tensor| tensor.elements())
            .sum();
        Ok(Self {
            pipeline,
            name: name.to_owned(),
            languages,
            weak: elements < WEAK_ELEMENTS,
        })
    }
}

impl Llm for LocalLlm {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> LlmKind {
        LlmKind::Constrained
    }

    fn is_weak(&self) -> bool {
        self.weak
    }

    fn languages(&self) -> &[String] {
        &self.languages
    }

    fn complete(
        &mut self,
        request: &LlmRequest,
        cancel: &CancelToken,
    ) -> Result<LlmReply, LlmError> {
        let mut messages = vec![ChatMessage::system(&request.system)];
        messages.extend(request.messages.iter().map(|message| match message.role {
            Role::User => ChatMessage::user(&message.text),
            Role::Assistant => ChatMessage::new("assistant", &message.text),
        }));
        let mut asked = TextRequest::chat(messages, request.max_tokens);
        asked.sampling.temperature = request.temperature;
        // The tails of a small model's distribution are noise.
        (
            asked.sampling.top_k,
            asked.sampling.top_p,
            asked.sampling.min_p,
        ) = (40, 0.95, 0.05);
        asked.sampling.seed = request.seed;
        asked.likelihood = true;
        asked.stop.clone_from(&request.stop);
        if let Some(schema) = &request.schema {
            asked.constraint = Constraint::JsonSchema(schema.clone());
        }
        let mut go_on = |_: &str| ControlFlow::Continue(());
        let reply = self
            .pipeline
            .generate(&asked, &mut go_on, cancel)
            .map_err(|error| {
                let message = error.to_string();
                match error {
                    // This reply could not be drawn; another seed or question may do.
                    engine_pipelines::TextError::Constraint(_) => {
                        LlmError::passing(Code::BadInput, message)
                    }
                    other => LlmError::new(other.code(), message),
                }
            })?;
        if reply.finish == FinishReason::Cancelled {
            return Err(Cancelled.into());
        }
        Ok(LlmReply {
            tokens: reply.tokens.len(),
            mean_logprob: reply.mean_logprob,
            text: reply.text,
        })
    }
}
