//! Nodes that ask a language model.

mod generate;
mod produce;

use std::sync::Arc;

use engine_base::{CancelToken, Code, Datum};
use flow_graph::{Node, NodeError};
use flow_story::{Llm, LlmError};

/// Opens language models by what a person calls them: an id, a path, the URL of a server, or
/// nothing for the default.
pub trait LlmSource: Send + Sync {
    /// Open the model called `what`.
    ///
    /// # Errors
    /// The model is not here or does not answer.
    fn open(&self, what: &str, cancel: &CancelToken) -> Result<Box<dyn Llm>, NodeError>;

    /// What decides the replies of models that are called by an id: their content hashes.
    fn side_data(&self) -> Datum;
}

/// Types of this folder, which open their models with `source`.
pub fn language_node_types(source: &Arc<dyn LlmSource>) -> Vec<Arc<dyn Node>> {
    vec![
        Arc::new(generate::Generate::new(Arc::clone(source))),
        Arc::new(produce::Produce::new(Arc::clone(source))),
    ]
}

/// A model's error as a node's.
fn failed(error: LlmError) -> NodeError {
    NodeError::new(error.code, error.message)
}

fn seed(value: &Datum) -> Result<u64, NodeError> {
    let whole = match value {
        Datum::Uint(seed) => Some(*seed),
        Datum::Int(seed) => u64::try_from(*seed).ok(),
        _ => None,
    };
    whole.ok_or_else(|| {
        let message = "input \"seed\": expected a whole number from 0 to 2^64 - 1";
        NodeError::new(Code::BadInput, message)
    })
}

#[cfg(test)]
mod tests;
