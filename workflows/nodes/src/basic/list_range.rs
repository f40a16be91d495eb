//! `list.range`: whole numbers in a row; what is linked behind it runs once for each.

use engine_base::{Code, Datum};
use flow_graph::{
    Call, Node, NodeContext, NodeError, NodeSpec, Outcome, OutputSpec, PortOutput, PortType, Value,
    Widget,
};

use crate::spec;

/// Whole numbers from `first`, `count` of them, `step` apart.
pub(crate) struct ListRange {
    spec: NodeSpec,
}

impl ListRange {
    pub(crate) fn new() -> Self {
        let help = "Whole numbers in a row. A node linked behind it runs once for each of them.";
        let mut spec = spec::node("list.range", 1, "Range", "list", help);
        let int = |name, default, min, max, help| {
            spec::set(name, PortType::INT, Widget::Int { default, min, max }, help)
        };
        spec.inputs = vec![
            int("first", 0, i64::MIN, i64::MAX, "The first number."),
            int("count", 1, 0, 100_000, "How many."),
            int("step", 1, i64::MIN, i64::MAX, "How far apart."),
        ];
        let output = spec::gives("numbers", PortType::INT, "The numbers.");
        spec.outputs = vec![OutputSpec {
            list: true,
            ..output
        }];
        spec.durable = false;
        spec.cheap = true;
        Self { spec }
    }
}

impl Node for ListRange {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn run(&self, _context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let (first, count, step) = (call.int("first")?, call.int("count")?, call.int("step")?);
        let numbers = (0..count)
            .map(|n| {
                let number = n
                    .checked_mul(step)
                    .and_then(|offset| first.checked_add(offset));
                number
                    .map(|number| Value::data(Datum::Int(number)))
                    .ok_or_else(|| {
                        let what =
                            format!("number {n} of {first} + n * {step} does not fit 64 bits");
                        NodeError::new(Code::BadInput, what)
                    })
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Outcome::Values(vec![PortOutput::Many(numbers)]))
    }
}
