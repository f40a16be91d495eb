//! The one error type of the command layer.

use engine_base::Code;
use flow_story::Coded;

use crate::say::{Said, Say};

/// Why a command failed. Shells decide on the code and show the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error("{message}")]
pub struct StudioError {
    /// The kind of failure.
    pub code: Code,
    /// What was tried, got and expected.
    pub message: String,
    /// The same for pages in another language, where it has a code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coded: Option<Box<Coded>>,
}

impl StudioError {
    /// An error of this kind.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            coded: None,
        }
    }

    /// An error that pages say in their own language.
    pub(crate) fn said(code: Code, say: &Say) -> Self {
        Self {
            coded: Some(Box::new(say.coded())),
            ..Self::new(code, say.to_string())
        }
    }

    /// As one text.
    pub(crate) fn as_said(&self) -> Said {
        Said {
            text: self.message.clone(),
            coded: self.coded.as_deref().cloned(),
        }
    }

    /// A failed read or write of `path`.
    pub fn io(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        let message = format!("cannot {what}: {error}: {path:?}");
        let coded = crate::say::of_io(what, path, error).map(|say| Box::new(say.coded()));
        Self {
            coded,
            ..Self::new(Code::of_io(error), message)
        }
    }
}

impl From<flow_graph::NodeError> for StudioError {
    fn from(error: flow_graph::NodeError) -> Self {
        Self::new(error.code, error.message)
    }
}

impl From<flow_executor::RunError> for StudioError {
    fn from(error: flow_executor::RunError) -> Self {
        let message = match &error {
            flow_executor::RunError::Invalid(problems) => {
                let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
                format!("the document cannot be run:\n  {}", lines.join("\n  "))
            }
            _ => error.to_string(),
        };
        Self::new(error.code(), message)
    }
}
