//! `text.join`: texts of a list as one.

use engine_base::{Code, Datum};
use flow_graph::{Call, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType, Value, Widget};

use crate::spec;

/// Texts of a list as one text.
pub(crate) struct TextJoin {
    spec: NodeSpec,
}

impl TextJoin {
    pub(crate) fn new() -> Self {
        let help = "Joins the texts and numbers of a list into one text.";
        let mut spec = spec::node("text.join", 1, "Join texts", "text", help);
        let between = Widget::Text {
            default: "",
            multiline: true,
            max_chars: 1000,
        };
        spec.inputs = vec![
            spec::list("items", PortType::ANY, "Texts and numbers, in order."),
            spec::set("between", PortType::TEXT, between, "Put between two items."),
        ];
        spec.outputs = vec![spec::gives("text", PortType::TEXT, "The joined text.")];
        spec.durable = false;
        spec.cheap = true;
        Self { spec }
    }
}

impl Node for TextJoin {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn run(&self, _context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let mut parts = Vec::new();
        for (at, item) in call.list("items").iter().enumerate() {
            parts.push(match item {
                Value::Data(datum) => match datum.as_ref() {
                    Datum::Text(text) => text.clone(),
                    Datum::Int(number) => number.to_string(),
                    Datum::Uint(number) => number.to_string(),
                    Datum::Float(number) => number.to_string(),
                    other => return Err(refused(at, other.kind())),
                },
                Value::Blob(_) => return Err(refused(at, "a file")),
                Value::Handle(_) => return Err(refused(at, "a loaded thing")),
                Value::Blocked(_) => return Err(refused(at, "a blocked value")),
            });
        }
        Ok(Outcome::data(parts.join(call.text("between")?)))
    }
}

fn refused(at: usize, got: &str) -> NodeError {
    let what = format!("input \"items\", item {at}: expected text or a number, got {got}");
    NodeError::new(Code::BadInput, what)
}
