//! Flat graphs: what a run works on. Indices instead of names, subgraphs expanded, muted and
//! bypassed nodes gone, defaults filled in, nodes in the order in which they can run.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use engine_base::Datum;

use crate::checks::check_nodes;
use crate::document::{DocNode, Document, Link, NodeId};
use crate::expand::{Expander, Feed, NODES_MAX, Raw};
use crate::node::Node;
use crate::parts::{Parts, spelled};
use crate::problem::{Problem, ProblemKind, Problems};
use crate::registry::Registry;
use crate::spec::InputSpec;

/// Where an input of a flat node gets its value.
#[derive(Debug, Clone, PartialEq)]
pub enum FlatInput {
    /// Nowhere: optional, not linked, no default.
    Absent,
    /// A widget value or default, in the widget's one form.
    Literal(Arc<Datum>),
    /// An output of another node.
    Link {
        /// Its index; always lower than that of the node linked to.
        node: u32,
        /// The output's position in its spec.
        output: u32,
    },
    /// From outside: the position in [`FlattenOptions::given`].
    Given(u32),
}

/// One node of a [`FlatGraph`].
#[derive(Clone)]
pub struct FlatNode {
    /// Its id; `outer:inner` within subgraphs.
    pub id: NodeId,
    /// Its type's name.
    pub type_name: &'static str,
    /// Its type.
    pub node: Arc<dyn Node>,
    /// In port order, as many as the spec has inputs.
    pub inputs: Vec<FlatInput>,
    /// The node of the document itself that it came from: where an editor shows its state.
    pub origin: NodeId,
}

impl std::fmt::Debug for FlatNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlatNode")
            .field("id", &self.id)
            .field("type_name", &self.type_name)
            .field("inputs", &self.inputs)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// A graph ready to run. Node `i` links only to nodes below `i`.
#[derive(Debug, Clone, Default)]
pub struct FlatGraph {
    nodes: Vec<FlatNode>,
    targets: Vec<u32>,
    wanted: Vec<Option<(u32, u32)>>,
    /// Indices in order of id.
    by_id: Vec<u32>,
    /// Where each node's dependents begin in `dependents`; one longer than `nodes`.
    dependents_from: Vec<u32>,
    dependents: Vec<u32>,
}

impl FlatGraph {
    /// The nodes in an order in which they can run: each after those it links to, and of those
    /// that could come next the one with the lowest id.
    pub fn nodes(&self) -> &[FlatNode] {
        &self.nodes
    }

    /// The node at `index`.
    pub fn node(&self, index: u32) -> Option<&FlatNode> {
        self.nodes.get(index as usize)
    }

    /// How many nodes there are.
    pub const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Indices in an order in which the nodes can run.
    pub fn order(&self) -> std::ops::Range<u32> {
        0..self.nodes.len() as u32
    }

    /// Nodes whose results are asked for, ascending: the document's targets, or all output nodes.
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }

    /// Node and output behind each of [`FlattenOptions::wanted`]; `None` where nothing comes.
    pub fn wanted(&self) -> &[Option<(u32, u32)>] {
        &self.wanted
    }

    /// The index of the node called `id`.
    pub fn index_of(&self, id: &str) -> Option<u32> {
        let place = self
            .by_id
            .binary_search_by(|&index| self.nodes[index as usize].id.as_str().cmp(id));
        place.ok().map(|place| self.by_id[place])
    }

    /// Nodes that link to node `index`, ascending, each once.
    pub fn dependents(&self, index: u32) -> &[u32] {
        let at = index as usize;
        match (
            self.dependents_from.get(at),
            self.dependents_from.get(at + 1),
        ) {
            (Some(&from), Some(&to)) => &self.dependents[from as usize..to as usize],
            _ => &[],
        }
    }

    /// All that has to run for `targets`: them and everything they depend on, ascending.
    pub fn needed(&self, targets: &[u32]) -> Vec<u32> {
        let mut is_needed = vec![false; self.nodes.len()];
        for &target in targets {
            if let Some(needed) = is_needed.get_mut(target as usize) {
                *needed = true;
            }
        }
        // Links lead to lower indices only, so one pass downwards reaches everything.
        for index in (0..self.nodes.len()).rev() {
            if is_needed[index] {
                for input in &self.nodes[index].inputs {
                    if let FlatInput::Link { node, .. } = input {
                        is_needed[*node as usize] = true;
                    }
                }
            }
        }
        self.order()
            .filter(|&index| is_needed[index as usize])
            .collect()
    }

    /// A document of the same nodes with every value written out; flattening it gives this graph
    /// again. Inputs given from outside are left unset.
    pub fn to_document(&self) -> Document {
        let mut document = Document::new();
        for flat in &self.nodes {
            let spec = flat.node.spec();
            let mut node = DocNode::of(spec);
            for (input, feed) in spec.inputs.iter().zip(&flat.inputs) {
                node = match feed {
                    FlatInput::Literal(datum) => node.set(input.name, (**datum).clone()),
                    FlatInput::Link { node: from, output } => {
                        let source = &self.nodes[*from as usize];
                        let output = source.node.spec().outputs[*output as usize].name;
                        node.link(input.name, &source.id, output)
                    }
                    FlatInput::Absent | FlatInput::Given(_) => node,
                };
            }
            document.nodes.insert(flat.id.clone(), node);
        }
        let ids = self.targets.iter();
        document.targets = ids
            .map(|&index| self.nodes[index as usize].id.clone())
            .collect();
        document
    }

    fn index(&mut self) {
        let nodes = &self.nodes;
        self.by_id = (0..nodes.len() as u32).collect();
        self.by_id
            .sort_by(|&a, &b| nodes[a as usize].id.cmp(&nodes[b as usize].id));
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (index, flat) in (0u32..).zip(nodes) {
            for input in &flat.inputs {
                if let FlatInput::Link { node, .. } = input {
                    pairs.push((*node, index));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut from = Vec::with_capacity(nodes.len() + 1);
        let mut at = 0;
        for index in 0..=nodes.len() as u32 {
            while pairs.get(at).is_some_and(|(source, _)| *source < index) {
                at += 1;
            }
            from.push(at as u32);
        }
        self.dependents_from = from;
        self.dependents = pairs.into_iter().map(|(_, dependent)| dependent).collect();
    }
}

/// What flattening may be told.
#[derive(Debug, Clone, Copy, Default)]
pub struct FlattenOptions<'o> {
    /// Inputs (node id, input name) of the document's own nodes whose values come from outside,
    /// as in an expansion: they are not missing.
    pub given: &'o [(NodeId, String)],
    /// Outputs to find the source of, as an expansion's own outputs.
    pub wanted: &'o [Link],
}

/// A flat graph of everything that can run, and what is wrong with the rest.
#[derive(Debug, Clone, Default)]
pub struct Flattened {
    /// The nodes that are right and depend only on such.
    pub graph: FlatGraph,
    /// What is wrong, in a fixed order; the first 10,000.
    pub problems: Vec<Problem>,
    /// Ids of running nodes that are not in the graph, for their own problems or those of nodes
    /// they depend on; sorted.
    pub left_out: Vec<NodeId>,
}

/// The document has problems.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot run the document: {} problems, the first: {}", .problems.len(),
    .problems.first().map(ToString::to_string).unwrap_or_default())]
pub struct FlattenError {
    /// All of them, at least one.
    pub problems: Vec<Problem>,
}

/// Everything that is wrong with `document`, in a fixed order: nodes by themselves, then subgraphs,
/// then the expanded graph (missing inputs, cycles, targets). Empty means that it can run. Muted
/// nodes are not looked at. At most 10,000 are listed.
pub fn validate(document: &Document, registry: &Registry) -> Vec<Problem> {
    flatten_runnable(document, registry, &FlattenOptions::default()).problems
}

/// The flat graph of `document`, which must be right in every node.
///
/// # Errors
/// [`FlattenError`] with what [`validate`] gives.
pub fn flatten(document: &Document, registry: &Registry) -> Result<FlatGraph, FlattenError> {
    let flattened = flatten_runnable(document, registry, &FlattenOptions::default());
    if flattened.problems.is_empty() {
        Ok(flattened.graph)
    } else {
        Err(FlattenError {
            problems: flattened.problems,
        })
    }
}

/// The flat graph of those nodes of `document` that can run: a wrong node stops only what depends
/// on it.
pub fn flatten_runnable(
    document: &Document,
    registry: &Registry,
    options: &FlattenOptions<'_>,
) -> Flattened {
    let mut problems = Problems::default();
    let parts = Parts::of(document, registry, &mut problems);
    let broken = check_nodes(document, registry, &parts, &mut problems);
    let mut expander = Expander::expand(document, &parts, &broken, options.given, &mut problems);
    let wanted: Vec<Option<(u32, u32)>> = options
        .wanted
        .iter()
        .map(|link| {
            // The links of `options` live shorter than the document whose names walks keep.
            let (id, _) = document.nodes.get_key_value(&link.node)?;
            expander.output(id, &link.output)
        })
        .collect();
    let targets = find_targets(document, &mut expander, &mut problems);
    let raws = expander.raws;
    let order = order(&raws, &mut problems);
    assemble(&raws, &order, &targets, &wanted, problems)
}

fn find_targets(
    document: &Document,
    expander: &mut Expander<'_, '_, '_>,
    problems: &mut Problems,
) -> Vec<u32> {
    if document.targets.is_empty() {
        let all = (0u32..).zip(&expander.raws);
        let is_output = |raw: &Raw<'_>| raw.ty.is_some_and(|ty| ty.spec().output_node);
        return all
            .filter(|(_, raw)| is_output(raw))
            .map(|(index, _)| index)
            .collect();
    }
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for id in document
        .targets
        .iter()
        .filter(|id| seen.insert(id.as_str()))
    {
        if found.len() > NODES_MAX {
            let expected = format!("targets that name at most {NODES_MAX} nodes");
            problems.push(Problem::new(
                ProblemKind::TooManyNodes,
                "",
                "more",
                expected,
            ));
            break;
        }
        if let Some(nodes) = expander.target(id) {
            found.extend(nodes);
        } else {
            let got = match document.nodes.get(id) {
                Some(node) if node.mode != crate::Mode::Run => "a muted or bypassed node",
                Some(_) => "a subgraph without results",
                None => "no node of that id",
            };
            problems.push(Problem::new(
                ProblemKind::BadTarget,
                id.clone(),
                got,
                "a node that runs",
            ));
        }
    }
    found
}

/// Kahn's algorithm over nodes sorted by id: of those that can come next, the lowest. Nodes in
/// cycles, and those after them, do not come; each cycle is reported.
fn order(raws: &[Raw<'_>], problems: &mut Problems) -> Vec<u32> {
    let mut waits_for = vec![0u32; raws.len()];
    let mut dependents: Vec<Vec<u32>> = vec![Vec::new(); raws.len()];
    for (index, raw) in (0u32..).zip(raws) {
        for feed in &raw.feeds {
            if let Feed::Link { node, .. } = feed {
                dependents[*node as usize].push(index);
                waits_for[index as usize] += 1;
            }
        }
    }
    let mut ready: BinaryHeap<Reverse<u32>> = (0u32..)
        .zip(&waits_for)
        .filter(|(_, waits)| **waits == 0)
        .map(|(index, _)| Reverse(index))
        .collect();
    let mut order = Vec::with_capacity(raws.len());
    while let Some(Reverse(index)) = ready.pop() {
        order.push(index);
        for &dependent in &dependents[index as usize] {
            waits_for[dependent as usize] -= 1;
            if waits_for[dependent as usize] == 0 {
                ready.push(Reverse(dependent));
            }
        }
    }
    if order.len() < raws.len() {
        report_cycles(raws, &waits_for, problems);
    }
    order
}

/// Every node that still waits depends on another that does: walking back from each, marking as
/// one goes, ends in a cycle that is new or known.
fn report_cycles(raws: &[Raw<'_>], waits_for: &[u32], problems: &mut Problems) {
    let mut walk_of = vec![0usize; raws.len()];
    for start in 0..raws.len() {
        if waits_for[start] == 0 || walk_of[start] != 0 {
            continue;
        }
        let walk = start + 1;
        let mut path = Vec::new();
        let mut at = start;
        while walk_of[at] == 0 {
            walk_of[at] = walk;
            path.push(at);
            let before = raws[at].feeds.iter().find_map(|feed| match feed {
                Feed::Link { node, .. } if waits_for[*node as usize] > 0 => Some(*node as usize),
                _ => None,
            });
            let Some(before) = before else {
                path.clear();
                break;
            };
            at = before;
        }
        if walk_of[at] != walk {
            continue;
        }
        let Some(from) = path.iter().position(|&node| node == at) else {
            continue;
        };
        let mut ring = path.split_off(from);
        // Walked from dependents to sources; a path reads the other way, from its lowest id.
        ring.reverse();
        let lowest = (0..ring.len())
            .min_by_key(|&place| ring[place])
            .unwrap_or(0);
        ring.rotate_left(lowest);
        let ids: Vec<&str> = ring.iter().map(|&node| raws[node].id.as_str()).collect();
        problems.push(Problem::new(
            ProblemKind::Cycle,
            ids[0],
            spelled(ids.iter().copied()),
            "links that lead nowhere back",
        ));
    }
}

fn assemble(
    raws: &[Raw<'_>],
    order: &[u32],
    targets: &[u32],
    wanted: &[Option<(u32, u32)>],
    problems: Problems,
) -> Flattened {
    const LEFT_OUT: u32 = u32::MAX;
    let mut new_index = vec![LEFT_OUT; raws.len()];
    let mut literals = Literals::default();
    let mut graph = FlatGraph::default();
    for &index in order {
        let raw = &raws[index as usize];
        let Some(ty) = raw.ty.filter(|_| !raw.broken) else {
            continue;
        };
        let spec = ty.spec();
        let mut inputs = Vec::with_capacity(spec.inputs.len());
        for (input, feed) in spec.inputs.iter().zip(&raw.feeds) {
            inputs.push(match *feed {
                Feed::Link { node, output } => FlatInput::Link {
                    node: new_index[node as usize],
                    output,
                },
                Feed::Given(at) => FlatInput::Given(at),
                Feed::Value(datum) => literals.value(input, datum),
                Feed::Nothing => literals.unset(input),
            });
        }
        let depends_on_left_out = inputs
            .iter()
            .any(|input| matches!(input, FlatInput::Link { node, .. } if *node == LEFT_OUT));
        if depends_on_left_out {
            continue;
        }
        new_index[index as usize] = graph.nodes.len() as u32;
        graph.nodes.push(FlatNode {
            id: raw.id.clone(),
            type_name: spec.type_name,
            node: Arc::clone(ty),
            inputs,
            origin: raw.origin.to_owned(),
        });
    }
    let kept = |index: u32| Some(new_index[index as usize]).filter(|&index| index != LEFT_OUT);
    graph.targets = targets.iter().filter_map(|&index| kept(index)).collect();
    graph.targets.sort_unstable();
    graph.targets.dedup();
    graph.wanted = wanted
        .iter()
        .map(|source| source.and_then(|(node, output)| Some((kept(node)?, output))))
        .collect();
    graph.index();
    let left_out = raws.iter().zip(&new_index);
    let left_out = left_out
        .filter(|(_, index)| **index == LEFT_OUT)
        .map(|(raw, _)| raw.id.clone())
        .collect();
    Flattened {
        graph,
        problems: problems.into_listed(),
        left_out,
    }
}

/// Literals, each made once: a hundred thousand nodes share the defaults of a few types.
#[derive(Default)]
struct Literals {
    defaults: HashMap<*const InputSpec, FlatInput>,
    values: HashMap<(*const InputSpec, *const Datum), FlatInput>,
}

impl Literals {
    fn value(&mut self, input: &InputSpec, datum: &Datum) -> FlatInput {
        let Some(widget) = &input.widget else {
            return FlatInput::Absent;
        };
        let made = self
            .values
            .entry((std::ptr::from_ref(input), std::ptr::from_ref(datum)));
        made.or_insert_with(|| FlatInput::Literal(Arc::new(widget.normalise(datum).into_owned())))
            .clone()
    }

    fn unset(&mut self, input: &InputSpec) -> FlatInput {
        let made = self.defaults.entry(std::ptr::from_ref(input));
        made.or_insert_with(|| {
            let datum = input
                .widget
                .as_ref()
                .and_then(|widget| widget.default_datum());
            datum.map_or(FlatInput::Absent, |datum| {
                FlatInput::Literal(Arc::new(datum))
            })
        })
        .clone()
    }
}
