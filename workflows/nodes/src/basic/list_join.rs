//! `list.join`: several lists as one.

use flow_graph::{
    Call, Node, NodeContext, NodeError, NodeSpec, Outcome, OutputSpec, PortOutput, PortType,
};

use crate::spec;

/// Up to sixteen lists, one after the other. Joins of joins make longer ones.
pub(crate) struct ListJoin {
    spec: NodeSpec,
}

impl ListJoin {
    /// Its inputs in order.
    pub(crate) const INPUTS: [&'static str; 16] = [
        "list_0", "list_1", "list_2", "list_3", "list_4", "list_5", "list_6", "list_7", "list_8",
        "list_9", "list_10", "list_11", "list_12", "list_13", "list_14", "list_15",
    ];

    pub(crate) fn new() -> Self {
        let help = "Puts up to sixteen lists one after the other. Absent ones are passed over.";
        let mut spec = spec::node("list.join", 1, "Join lists", "list", help);
        let help = "Elements in order.";
        let input = |&name| spec::optional(spec::list(name, PortType::ANY, help));
        spec.inputs = Self::INPUTS.iter().map(input).collect();
        let output = spec::gives("list", PortType::ANY, "All elements.");
        spec.outputs = vec![OutputSpec {
            list: true,
            ..output
        }];
        spec.durable = false;
        spec.cheap = true;
        Self { spec }
    }
}

impl Node for ListJoin {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn run(&self, _context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let all = Self::INPUTS
            .iter()
            .flat_map(|name| call.list(name).iter().cloned());
        Ok(Outcome::Values(vec![PortOutput::Many(all.collect())]))
    }
}
