//! Chat templates: a conversation into the text a model was trained on.

mod functions;
mod json;
mod limits;

use std::collections::BTreeMap;

use engine_base::Code;
use engine_weights::Checkpoint;
use minijinja::machinery::{self, Instructions};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value as JinjaValue;
use minijinja::{AutoEscape, Environment, ErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::tokenizer::{Tokenizer, TokenizerError};
pub use functions::TemplateTime;

/// Longest template, in bytes. The longest known ones have some 20 thousand.
const MAX_TEMPLATE_BYTES: usize = 1 << 20;

/// Longest text a template may give, in bytes.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// Steps a template may take, and times 64 bytes it may allocate, besides one for each four bytes
/// and 64 for each value given to it.
const BASE_FUEL: u64 = 1_000_000;

/// Deepest calls inside a template.
const MAX_DEPTH: usize = 100;

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// `system`, `user` or `assistant`, or what else the template knows.
    pub role: String,
    /// What was said.
    pub content: String,
}

impl ChatMessage {
    /// A turn of `role`.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            content: content.into(),
        }
    }

    /// What the model is to be.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }

    /// What a person says.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// What the model said.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }
}

/// Why a conversation does not become text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The model brings none.
    #[error("the model has no chat template: expected one in its metadata, or a plain prompt")]
    Missing,
    /// Not a template.
    #[error("cannot read the chat template: {reason}{place}")]
    Syntax {
        /// What is wrong.
        reason: String,
        /// Where.
        place: Place,
    },
    /// The template refuses the conversation by its own rule.
    #[error("the chat template refuses the conversation: {message:?}")]
    Raised {
        /// Its own words.
        message: String,
    },
    /// The template asks for what is not there.
    #[error("the chat template uses what is not there: {reason}{place}")]
    NotThere {
        /// What.
        reason: String,
        /// Where.
        place: Place,
    },
    /// The template does not come to an end within its limits.
    #[error("the chat template did not end: {reason}{place}")]
    Endless {
        /// Which limit.
        reason: String,
        /// Where.
        place: Place,
    },
    /// Anything else that fails while it runs.
    #[error("the chat template failed: {reason}{place}")]
    Failed {
        /// What.
        reason: String,
        /// Where.
        place: Place,
    },
    /// More than is read.
    #[error("cannot read {what} of {got} bytes: expected at most {max}")]
    TooLong {
        /// What.
        what: &'static str,
        /// Its length.
        got: usize,
        /// The limit.
        max: usize,
    },
    /// The file that holds it cannot be read.
    #[error(transparent)]
    Source(#[from] TokenizerError),
}

impl TemplateError {
    /// The kind of failure.
    pub fn code(&self) -> Code {
        match self {
            Self::Missing => Code::NotFound,
            Self::Raised { .. } => Code::BadInput,
            Self::Syntax { .. } | Self::NotThere { .. } | Self::Failed { .. } => Code::Corrupt,
            Self::Endless { .. } | Self::TooLong { .. } => Code::Refused,
            Self::Source(error) => error.code(),
        }
    }
}

/// A line of a template, where it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(Option<usize>);

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(line) => write!(f, ", in line {line}"),
            None => Ok(()),
        }
    }
}

/// What a template is given.
#[derive(Debug, Clone, Default)]
pub struct TemplateInput<'a> {
    /// The conversation.
    pub messages: &'a [ChatMessage],
    /// End with the beginning of an answer.
    pub add_generation_prompt: bool,
    /// Other names the template may know, such as `tools`; they replace ours.
    pub extra: Map<String, Value>,
    /// What `strftime_now` tells; without it the template finds no such function.
    pub now: Option<TemplateTime>,
}

/// A model's chat template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTemplate {
    source: String,
    bos: String,
    eos: String,
}

impl ChatTemplate {
    /// A template from its source, with the names of the begin and end tokens (empty for none).
    ///
    /// # Errors
    /// [`TemplateError::Syntax`] or [`TemplateError::TooLong`].
    pub fn new(
        source: impl Into<String>,
        bos: impl Into<String>,
        eos: impl Into<String>,
    ) -> Result<Self, TemplateError> {
        let source = source.into();
        check_length("a chat template", source.len(), MAX_TEMPLATE_BYTES)?;
        let syntax = syntax().map_err(|error| of_jinja(&error))?;
        limits::check_source(&source, syntax).map_err(|(reason, line)| TemplateError::Endless {
            reason,
            place: Place(Some(line)),
        })?;
        limits::on_large_stack(|| {
            environment(None, Given::default())
                .and_then(|e| e.template_from_str(&source).map(|_| ()))
                .map_err(|error| of_jinja(&error))
        })?;
        Ok(Self {
            source,
            bos: bos.into(),
            eos: eos.into(),
        })
    }

    /// The template of a checkpoint: in GGUF metadata, `chat_template.jinja` or
    /// `tokenizer_config.json`; `None` when it has none.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`], or what reading its file fails with.
    pub fn of_checkpoint(
        checkpoint: &dyn Checkpoint,
        tokenizer: &Tokenizer,
    ) -> Result<Option<Self>, TemplateError> {
        let metadata = checkpoint.metadata();
        let source = metadata
            .text("tokenizer.chat_template")
            .map_err(TokenizerError::from)?
            .map(str::to_owned);
        let side = |name: &str| -> Result<Option<Vec<u8>>, TemplateError> {
            let bytes = metadata.read_side_file(name);
            Ok(bytes.map_err(TokenizerError::from)?)
        };
        let source = match source {
            Some(source) => Some(source),
            None => match side("chat_template.jinja")? {
                Some(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
                None => side("tokenizer_config.json")?.and_then(|bytes| template_of_config(&bytes)),
            },
        };
        let name = |token: Option<u32>| token.and_then(|t| tokenizer.token_name(t));
        let (bos, eos) = (name(tokenizer.bos()), name(tokenizer.eos()));
        source
            .map(|source| Self::new(source, bos.unwrap_or_default(), eos.unwrap_or_default()))
            .transpose()
    }

    /// The text of a conversation; with `add_generation_prompt` it ends where the answer begins.
    ///
    /// # Errors
    /// See [`TemplateError`].
    pub fn render(
        &self,
        messages: &[ChatMessage],
        add_generation_prompt: bool,
    ) -> Result<String, TemplateError> {
        self.render_input(&TemplateInput {
            messages,
            add_generation_prompt,
            ..TemplateInput::default()
        })
    }

    /// The text of a conversation with everything a template may be given.
    ///
    /// # Errors
    /// See [`TemplateError`].
    pub fn render_input(&self, input: &TemplateInput<'_>) -> Result<String, TemplateError> {
        let mut names = Map::new();
        names.insert("bos_token".to_owned(), json!(self.bos));
        names.insert("eos_token".to_owned(), json!(self.eos));
        let messages = input
            .messages
            .iter()
            .map(|m| json!({"role": m.role, "content": m.content}))
            .collect();
        names.insert("messages".to_owned(), Value::Array(messages));
        let generate = json!(input.add_generation_prompt);
        names.insert("add_generation_prompt".to_owned(), generate);
        names.extend(input.extra.clone());
        let given_bytes = input
            .messages
            .iter()
            .map(|m| m.content.len())
            .sum::<usize>()
            + input.extra.values().map(weight_bytes).sum::<usize>();
        check_length("a conversation", given_bytes, MAX_TEXT_BYTES)?;

        let given = Given {
            bytes: given_bytes as u64,
            values: names.values().map(count_values).sum(),
        };
        let environment = environment(input.now, given).map_err(|error| of_jinja(&error))?;
        let names = names
            .iter()
            .map(|(name, value)| (name.as_str(), jinja_of(value)));
        let context = JinjaValue::from_pairs(names);
        let text = limits::on_large_stack(move || {
            run(&environment, &self.source, context).map_err(|error| of_jinja(&error))
        })?;
        if text.len() > MAX_TEXT_BYTES {
            return Err(TemplateError::Endless {
                reason: format!("it wrote more than {MAX_TEXT_BYTES} bytes"),
                place: Place(None),
            });
        }
        Ok(text)
    }
}

/// Compile a template, put the limits into it and run it.
fn run<'e>(
    environment: &'e Environment<'e>,
    source: &'e str,
    context: JinjaValue,
) -> Result<String, minijinja::Error> {
    let template = environment.template_from_str(source)?;
    let compiled = machinery::get_compiled_template(&template);
    let code = limits::bounded(&compiled.instructions)?;
    let blocks: BTreeMap<&str, Instructions<'_>> = compiled
        .blocks
        .iter()
        .map(|(name, block)| Ok((*name, limits::bounded(block)?)))
        .collect::<Result<_, minijinja::Error>>()?;
    let mut text = String::new();
    let mut output = machinery::make_string_output(&mut text);
    let done = machinery::eval(
        environment,
        &code,
        context,
        &blocks,
        &mut output,
        AutoEscape::None,
    );
    done.map(drop)?;
    drop(output);
    Ok(text)
}

fn check_length(what: &'static str, got: usize, max: usize) -> Result<(), TemplateError> {
    if got > max {
        return Err(TemplateError::TooLong { what, got, max });
    }
    Ok(())
}

/// `chat_template` of a `tokenizer_config.json`: a text, or a list of named ones.
fn template_of_config(bytes: &[u8]) -> Option<String> {
    let config: Value = serde_json::from_slice(bytes).ok()?;
    match &config["chat_template"] {
        Value::String(source) => Some(source.clone()),
        Value::Array(named) => named
            .iter()
            .find(|entry| entry["name"] == "default")
            .or_else(|| named.first())
            .and_then(|entry| entry["template"].as_str())
            .map(str::to_owned),
        _ => None,
    }
}

/// How much a template is given; what it may do grows with it.
#[derive(Clone, Copy, Default)]
struct Given {
    /// Of all texts.
    bytes: u64,
    /// Texts, numbers, lists and maps.
    values: u64,
}

/// As the templates' authors run them.
fn syntax() -> Result<SyntaxConfig, minijinja::Error> {
    SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
}

fn environment(
    now: Option<TemplateTime>,
    given: Given,
) -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_syntax(syntax()?);
    environment.set_debug(false);
    environment.set_fuel(Some(BASE_FUEL + given.bytes / 4 + given.values * 64));
    environment.set_recursion_limit(MAX_DEPTH);
    functions::add(&mut environment, now);
    environment.add_filter("tojson", json::tojson);
    limits::add(&mut environment, given.values + given.bytes / 64);
    Ok(environment)
}

/// Whole errors of the template engine, sorted by what a caller can do about them.
fn of_jinja(error: &minijinja::Error) -> TemplateError {
    // The innermost error of calls inside calls says what happened.
    let mut cause = error;
    let mut next = std::error::Error::source(error);
    while let Some(inner) = next {
        if let Some(inner) = inner.downcast_ref::<minijinja::Error>() {
            cause = inner;
        }
        next = inner.source();
    }
    if let Some(message) = functions::raised(cause) {
        return TemplateError::Raised { message };
    }
    let place = Place(error.line().or_else(|| cause.line()));
    let reason = match cause.detail() {
        Some(detail) => format!("{}: {detail}", cause.kind()),
        None => cause.kind().to_string(),
    };
    match cause.kind() {
        ErrorKind::SyntaxError | ErrorKind::BadEscape => TemplateError::Syntax { reason, place },
        ErrorKind::OutOfFuel => TemplateError::Endless {
            reason: match cause.detail() {
                Some(detail) => detail.to_owned(),
                None => "it took more steps than allowed".to_owned(),
            },
            place,
        },
        ErrorKind::UnknownFilter
        | ErrorKind::UnknownFunction
        | ErrorKind::UnknownMethod
        | ErrorKind::UnknownTest
        | ErrorKind::UnknownBlock
        | ErrorKind::TemplateNotFound
        | ErrorKind::UndefinedError => TemplateError::NotThere { reason, place },
        ErrorKind::InvalidOperation if reason.contains("recursion limit") => {
            TemplateError::Endless { reason, place }
        }
        _ => TemplateError::Failed { reason, place },
    }
}

/// Texts, numbers, lists and maps inside a value, itself included.
fn count_values(value: &Value) -> u64 {
    match value {
        Value::Array(values) => 1 + values.iter().map(count_values).sum::<u64>(),
        Value::Object(entries) => 1 + entries.values().map(|v| 1 + count_values(v)).sum::<u64>(),
        _ => 1,
    }
}

/// Bytes of the texts inside a value.
fn weight_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(weight_bytes).sum::<usize>() + values.len(),
        Value::Object(entries) => entries.iter().map(|(k, v)| k.len() + weight_bytes(v)).sum(),
        _ => 1,
    }
}

/// The same value for the template engine; the order of keys is kept.
fn jinja_of(value: &Value) -> JinjaValue {
    match value {
        Value::Null => JinjaValue::from(()),
        Value::Bool(flag) => JinjaValue::from(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(n), _) => JinjaValue::from(n),
            (None, Some(n)) => JinjaValue::from(n),
            (None, None) => JinjaValue::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => JinjaValue::from(text.as_str()),
        Value::Array(values) => values.iter().map(jinja_of).collect(),
        Value::Object(entries) => {
            JinjaValue::from_pairs(entries.iter().map(|(k, v)| (k.as_str(), jinja_of(v))))
        }
    }
}

#[cfg(test)]
mod tests;
