use std::collections::BTreeMap;

use engine_base::{ContentHash, NoProgress};
use flow_graph::{
    Artifacts, BlobRef, Call, NodeContext, Outcome, PortOutput, TempBlob, Value, Widget,
};
use flow_story::{LlmKind, LlmReply, LlmRequest};

use super::*;

/// Says what it was asked, or one line under a schema.
struct Echo;

impl Llm for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn kind(&self) -> LlmKind {
        LlmKind::Remote
    }

    fn complete(&mut self, request: &LlmRequest, _: &CancelToken) -> Result<LlmReply, LlmError> {
        let text = format!("{} {}", request.messages[0].text, request.seed);
        Ok(LlmReply {
            text,
            tokens: 2,
            mean_logprob: None,
        })
    }
}

struct Source;

impl LlmSource for Source {
    fn open(&self, what: &str, _: &CancelToken) -> Result<Box<dyn Llm>, NodeError> {
        if what.is_empty() {
            return Ok(Box::new(Echo));
        }
        Err(NodeError::new(
            Code::NotFound,
            format!("there is no model {what:?}"),
        ))
    }

    fn side_data(&self) -> Datum {
        Datum::from("echo")
    }
}

struct NoFiles;

impl Artifacts for NoFiles {
    fn temp(&self, _: &str) -> Result<TempBlob, NodeError> {
        Err(NodeError::new(Code::Internal, "no files here"))
    }

    fn adopt(&self, _: TempBlob, _: &str) -> Result<BlobRef, NodeError> {
        Err(NodeError::new(Code::Internal, "no files here"))
    }

    fn path(&self, _: &ContentHash) -> Result<std::path::PathBuf, NodeError> {
        Err(NodeError::new(Code::Internal, "no files here"))
    }
}

/// Run node `at` with these inputs over its defaults.
fn run(at: usize, given: &[(&str, Datum)]) -> Result<Datum, NodeError> {
    let source: Arc<dyn LlmSource> = Arc::new(Source);
    let node = language_node_types(&source).remove(at);
    let mut inputs = BTreeMap::new();
    for input in &node.spec().inputs {
        let given = given.iter().find(|(name, _)| *name == input.name);
        let default = input.widget.as_ref().map(|widget| match widget {
            Widget::Int { default, .. } => Datum::Int(*default),
            Widget::Seed { default } => Datum::Uint(*default),
            Widget::Float { default, .. } => Datum::Float(*default),
            Widget::Text { default, .. } => Datum::from(*default),
            Widget::Data { default } => default.clone(),
            Widget::Bool { .. } | Widget::Choice { .. } | Widget::Asset { .. } => Datum::Null,
        });
        let value = given.map(|(_, value)| value.clone()).or(default);
        inputs.insert(input.name.to_owned(), vec![Value::data(value.unwrap())]);
    }
    let context = NodeContext {
        artifacts: &NoFiles,
        cancel: &CancelToken::new(),
        progress: &NoProgress,
        threads: 1,
    };
    match node.run(&context, &Call { inputs })? {
        Outcome::Values(values) => match &values[0] {
            PortOutput::One(value) => Ok(value.as_datum().unwrap().clone()),
            PortOutput::Many(_) => panic!("a list"),
        },
        Outcome::Expand(_) => panic!("an expansion"),
    }
}

#[test]
fn text_comes_from_the_model_that_is_named() {
    let got = run(
        0,
        &[("prompt", Datum::from("Hello")), ("seed", Datum::Uint(7))],
    )
    .unwrap();
    assert_eq!(got, Datum::from("Hello 7"));
    let error = run(0, &[("model", Datum::from("gpt-x"))]).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
}

#[test]
fn a_script_is_valid_even_by_a_model_that_only_echoes() {
    let premise = Datum::from("A cat finds a key.");
    let got = run(1, &[("premise", premise), ("length", Datum::from("10 s"))]).unwrap();
    let json = serde_json::to_string(&got).unwrap();
    let script = flow_story::parse_json(&json).unwrap().script;
    assert_eq!(script.shots().count(), 2);
    let none = run(1, &[("premise", Datum::from("..."))]).unwrap_err();
    assert_eq!(none.code, Code::BadInput);
    let length = run(1, &[("length", Datum::from("soon"))]).unwrap_err();
    assert!(length.message.starts_with("input \"length\""), "{length}");
}
