//! From documents to the nodes of a run, at its beginning and in the place of a call.

use std::sync::Arc;

use engine_base::Code;
use flow_graph::{
    Expansion, ExpansionOutput, FlatGraph, FlatInput, FlattenOptions, Link, NodeError, NodeId,
    NodeSpec, Registry, Value, flatten_runnable,
};

use crate::board::{OutputOf, Splice};
use crate::element::port_of;
use crate::limits::Limits;
use crate::net::{Net, NetNode, Source};

/// The nodes of a flat graph; `given` are the elements of inputs that come from outside.
pub(crate) fn net_of(graph: &FlatGraph, given: &[Arc<Vec<Value>>]) -> Net {
    let nodes = graph.nodes().iter().map(|flat| {
        let spec = flat.node.spec();
        let inputs = spec.inputs.iter().zip(&flat.inputs);
        let sources = inputs.map(|(input, from)| match from {
            FlatInput::Absent => Source::Absent,
            FlatInput::Literal(datum) => {
                Source::Fixed(Arc::new(vec![Value::Data(Arc::clone(datum))]))
            }
            FlatInput::Link { node, output } => Source::Link {
                node: *node as usize,
                output: *output as usize,
                lazy: input.lazy,
            },
            FlatInput::Given(at) => given
                .get(*at as usize)
                .map_or(Source::Absent, |list| Source::Fixed(Arc::clone(list))),
        });
        NetNode {
            id: flat.id.clone(),
            origin: flat.origin.clone(),
            node: Arc::clone(&flat.node),
            sources: sources.collect(),
        }
    });
    Net {
        nodes: nodes.collect(),
    }
}

/// The nodes of an expansion that a call of `spec` at `depth` gave.
///
/// # Errors
/// [`Code::Refused`] when it is nested too deep; [`Code::BadInput`] when the graph is not valid,
/// as with a cycle; [`Code::Internal`] when its outputs do not fit the spec.
pub(crate) fn splice(
    registry: &Registry,
    limits: &Limits,
    spec: &NodeSpec,
    depth: u32,
    expansion: Expansion,
) -> Result<Splice, NodeError> {
    let type_name = spec.type_name;
    if depth >= limits.depth {
        let most = limits.depth;
        return Err(NodeError::new(
            Code::Refused,
            format!("cannot expand {type_name:?}: it is nested {depth} deep, at most {most}"),
        ));
    }
    let mut names: Vec<(NodeId, String)> = Vec::new();
    let mut lists = Vec::new();
    for (node, input, list) in expansion.given {
        names.push((node, input));
        lists.push(Arc::new(list));
    }
    let linked = expansion.outputs.iter().filter_map(|output| match output {
        ExpansionOutput::Link(node, output) => Some(Link::new(node, output)),
        ExpansionOutput::Known(_) => None,
    });
    let wanted: Vec<Link> = linked.collect();
    let options = FlattenOptions {
        given: &names,
        wanted: &wanted,
    };
    let flattened = flatten_runnable(&expansion.document, registry, &options);
    if let Some(problem) = flattened.problems.first() {
        let count = flattened.problems.len();
        return Err(NodeError::new(
            Code::BadInput,
            format!(
                "the graph that {type_name:?} expands to has {count} problems, the first: {problem}"
            ),
        ));
    }
    let expected = spec.outputs.len();
    let got = expansion.outputs.len();
    if got != expected {
        return Err(NodeError::new(
            Code::Internal,
            format!("{type_name:?} expands to {got} outputs: expected {expected}"),
        ));
    }
    let mut sources = flattened.graph.wanted().iter().zip(&wanted);
    let mut outputs = Vec::with_capacity(got);
    for (output, from) in spec.outputs.iter().zip(expansion.outputs) {
        outputs.push(match from {
            ExpansionOutput::Known(known) => OutputOf::Known(port_of(type_name, output, known)?),
            ExpansionOutput::Link(..) => match sources.next() {
                Some((Some((node, output)), _)) => OutputOf::Link(*node as usize, *output as usize),
                other => {
                    let from =
                        other.map(|(_, link)| format!("{:?} of {:?}", link.output, link.node));
                    let (name, from) = (output.name, from.unwrap_or_default());
                    return Err(NodeError::new(
                        Code::Internal,
                        format!(
                            "{type_name:?} expands to a graph in which its output {name:?} comes \
                             from nothing: expected output {from} there"
                        ),
                    ));
                }
            },
        });
    }
    Ok(Splice {
        roots: flattened
            .graph
            .targets()
            .iter()
            .map(|n| *n as usize)
            .collect(),
        net: net_of(&flattened.graph, &lists),
        outputs,
        inputs: Vec::new(),
        wall_millis: 0,
    })
}
