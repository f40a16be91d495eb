//! The one error type of the command layer.

use engine_base::Code;

/// Why a command failed. Shells decide on the code and show the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error("{message}")]
pub struct StudioError {
    /// The kind of failure.
    pub code: Code,
    /// What was tried, got and expected.
    pub message: String,
}

impl StudioError {
    /// An error of this kind.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// A failed read or write of `path`.
    pub fn io(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::new(
            Code::of_io(error),
            format!("cannot {what}: {error}: {path:?}"),
        )
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
