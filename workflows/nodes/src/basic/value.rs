//! `data.value`: a constant.

use engine_base::Datum;
use flow_graph::{Call, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType};

use crate::spec;

/// A constant of any kind, so that several nodes can share one value.
pub(crate) struct Constant {
    spec: NodeSpec,
}

impl Constant {
    pub(crate) fn new() -> Self {
        let help = "A value that several nodes share. Typing it into them instead changes nothing.";
        let mut spec = spec::node("data.value", 1, "Value", "data", help);
        spec.inputs = vec![spec::data(
            "value",
            Datum::Null,
            "Text, number, list or map.",
        )];
        spec.outputs = vec![spec::gives("value", PortType::ANY, "The value.")];
        spec.durable = false;
        spec.cheap = true;
        Self { spec }
    }
}

impl Node for Constant {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn run(&self, _context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        Ok(Outcome::data(call.datum("value")?.clone()))
    }
}
