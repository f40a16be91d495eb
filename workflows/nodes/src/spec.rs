//! Short forms for writing node specs.

use engine_base::{Code, Datum};
use flow_graph::{Exactness, InputSpec, Lane, NodeError, NodeSpec, OutputSpec, PortType, Widget};
use serde::de::DeserializeOwned;

/// A node type's description with the usual answers: exact, durable, on the processor.
pub(crate) fn node(
    type_name: &'static str,
    version: u32,
    title: &'static str,
    category: &'static str,
    help: &'static str,
) -> NodeSpec {
    NodeSpec {
        type_name,
        version,
        title,
        category,
        help,
        inputs: Vec::new(),
        outputs: Vec::new(),
        exactness: Exactness::Exact,
        durable: true,
        cheap: false,
        lane: Lane::Cpu,
        output_node: false,
    }
}

/// An input that can only be linked.
pub(crate) fn linked(name: &'static str, ty: PortType, help: &'static str) -> InputSpec {
    InputSpec {
        name,
        ty,
        widget: None,
        required: true,
        lazy: false,
        whole_list: false,
        help,
    }
}

/// An input that takes a whole list at once.
pub(crate) fn list(name: &'static str, ty: PortType, help: &'static str) -> InputSpec {
    InputSpec {
        whole_list: true,
        ..linked(name, ty, help)
    }
}

/// An input that may be absent.
pub(crate) fn optional(input: InputSpec) -> InputSpec {
    InputSpec {
        required: false,
        ..input
    }
}

/// An input set by a widget unless linked.
pub(crate) fn set(
    name: &'static str,
    ty: PortType,
    widget: Widget,
    help: &'static str,
) -> InputSpec {
    InputSpec {
        widget: Some(widget),
        required: false,
        ..linked(name, ty, help)
    }
}

/// An input of structured data.
pub(crate) fn data(name: &'static str, default: Datum, help: &'static str) -> InputSpec {
    set(name, PortType::DATA, Widget::Data { default }, help)
}

/// An output of one element.
pub(crate) const fn gives(name: &'static str, ty: PortType, help: &'static str) -> OutputSpec {
    OutputSpec {
        name,
        ty,
        list: false,
        help,
    }
}

/// Structured data as a Rust value, or an error naming the input.
pub(crate) fn read<T: DeserializeOwned>(input: &str, datum: &Datum) -> Result<T, NodeError> {
    serde_json::to_value(datum)
        .and_then(serde_json::from_value)
        .map_err(|error| NodeError::new(Code::BadInput, format!("input {input:?}: {error}")))
}
