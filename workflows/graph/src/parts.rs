//! Subgraph definitions of a document, analysed: what their inputs take, what their outputs give,
//! which inner inputs they feed, and how large they become.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::document::{DocNode, Document, Link, Mode, NodeId, Subgraph};
use crate::node::Node;
use crate::problem::{Problem, ProblemKind, Problems};
use crate::registry::Registry;
use crate::spec::{InputSpec, PortType};
use crate::widget::quoted;

/// Subgraphs may be nested this deep; ids and messages grow with every level.
pub(crate) const NESTING_MAX: usize = 64;

/// One subgraph definition that can be expanded.
pub(crate) struct Part<'a> {
    pub(crate) def: &'a Subgraph,
    /// Specs of the innermost inputs that each input feeds, without repeats.
    pub(crate) inputs: BTreeMap<&'a str, Vec<&'a InputSpec>>,
    /// What each output gives; `None` where the inner type is not known.
    pub(crate) outputs: BTreeMap<&'a str, Option<&'a PortType>>,
    /// The place of each output by name.
    pub(crate) output_places: HashMap<&'a str, usize>,
    /// (inner node, its input) -> the input of the subgraph that feeds it.
    pub(crate) fed_by: HashMap<(&'a str, &'a str), &'a str>,
    /// Nodes after expansion.
    pub(crate) size: usize,
    /// Whether an input or output of it leads nowhere.
    pub(crate) faulty: bool,
    depth: usize,
}

impl<'a> Part<'a> {
    /// The inputs as sockets of a bypassed instance, by name.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = (&'a str, Option<&'a PortType>)> {
        let ty = |specs: &Vec<&'a InputSpec>| specs.first().map(|spec| &spec.ty);
        self.inputs
            .iter()
            .map(move |(name, specs)| (*name, ty(specs)))
    }
}

/// What a node of a document is.
#[derive(Clone, Copy)]
pub(crate) enum Shape<'p, 'a> {
    Type(&'a Arc<dyn Node>),
    Part(&'p Part<'a>),
    Unknown,
}

impl<'a> Shape<'_, 'a> {
    /// Whether it has output `name`, and its type if known. `Unknown` may have any.
    pub(crate) fn output(self, name: &str) -> Result<Option<&'a PortType>, ()> {
        match self {
            Self::Type(node) => {
                let spec = node.spec();
                let index = spec.output_index(name).ok_or(())?;
                Ok(Some(&spec.outputs[index].ty))
            }
            Self::Part(part) => part.outputs.get(name).copied().ok_or(()),
            Self::Unknown => Ok(None),
        }
    }
}

/// All definitions that can be expanded.
pub(crate) struct Parts<'a> {
    registry: &'a Registry,
    by_name: HashMap<&'a str, Part<'a>>,
}

impl<'a> Parts<'a> {
    pub(crate) fn shape(&self, node: &DocNode) -> Shape<'_, 'a> {
        match node.subgraph_name() {
            Some(name) => self.by_name.get(name).map_or(Shape::Unknown, Shape::Part),
            None => self
                .registry
                .get(&node.type_name)
                .map_or(Shape::Unknown, Shape::Type),
        }
    }

    /// Nodes of `nodes` after expansion.
    pub(crate) fn size_of(&self, nodes: &BTreeMap<NodeId, DocNode>) -> usize {
        let running = nodes.values().filter(|node| node.mode == Mode::Run);
        running.fold(0, |sum: usize, node| {
            sum.saturating_add(match self.shape(node) {
                Shape::Part(part) => part.size,
                Shape::Type(_) | Shape::Unknown => 1,
            })
        })
    }

    /// Analyse every definition of `document`, innermost first. Those that hold themselves or are
    /// nested too deep are reported and left out.
    pub(crate) fn of(
        document: &'a Document,
        registry: &'a Registry,
        problems: &mut Problems,
    ) -> Self {
        let mut parts = Self {
            registry,
            by_name: HashMap::new(),
        };
        for name in innermost_first(document, problems) {
            let def = &document.subgraphs[name];
            let part = parts.analyse(name, def, problems);
            if part.depth > NESTING_MAX {
                let got = format!("{} levels", part.depth);
                let expected = format!("at most {NESTING_MAX} levels of subgraphs");
                problems.push(
                    Problem::new(ProblemKind::SubgraphTooDeep, "", got, expected)
                        .within(Some(name)),
                );
            } else {
                parts.by_name.insert(name, part);
            }
        }
        parts
    }

    fn analyse(&self, name: &'a str, def: &'a Subgraph, problems: &mut Problems) -> Part<'a> {
        let mut part = Part {
            def,
            inputs: BTreeMap::new(),
            outputs: BTreeMap::new(),
            output_places: HashMap::new(),
            fed_by: HashMap::new(),
            size: self.size_of(&def.nodes),
            faulty: false,
            depth: 1,
        };
        for node in def.nodes.values() {
            if let Shape::Part(inner) = self.shape(node) {
                part.depth = part.depth.max(inner.depth + 1);
            }
        }
        let before = problems.count();
        let mut bad = |port: &str, got: String, expected: &str| {
            problems.push(
                Problem::new(ProblemKind::BadBoundary, "", got, expected)
                    .at_port(port)
                    .within(Some(name)),
            );
        };
        for (outer, fed) in &def.inputs {
            let (mut specs, mut seen) = (Vec::new(), HashSet::new());
            for link in fed {
                let (node, input) = (link.node.as_str(), link.output.as_str());
                let Some(found) = self.inner_specs(def, link) else {
                    let got = format!("input {input:?} of node {node:?}");
                    bad(outer, got, "an input of a node of the subgraph");
                    continue;
                };
                specs.extend(
                    found
                        .iter()
                        .filter(|spec| seen.insert(std::ptr::from_ref(**spec))),
                );
                if let Some(other) = part.fed_by.insert((node, input), outer)
                    && other != outer.as_str()
                {
                    let got = format!("{input:?} of node {node:?} fed by {other:?} too");
                    bad(outer, got, "one subgraph input for each inner input");
                }
            }
            part.inputs.insert(outer, specs);
        }
        for (outer, link) in &def.outputs {
            let inner = def.nodes.get(&link.node).map(|node| self.shape(node));
            match inner.map(|shape| shape.output(&link.output)) {
                Some(Ok(ty)) => {
                    part.outputs.insert(outer, ty);
                }
                Some(Err(())) | None => {
                    let got = format!("output {:?} of node {:?}", link.output, link.node);
                    bad(outer, got, "an output of a node of the subgraph");
                }
            }
        }
        part.output_places = part.outputs.keys().copied().zip(0..).collect();
        part.faulty = problems.count() > before;
        part
    }

    /// Specs of the input that `link` names; empty when its node's type is not known.
    fn inner_specs(&self, def: &Subgraph, link: &Link) -> Option<Vec<&'a InputSpec>> {
        match self.shape(def.nodes.get(&link.node)?) {
            Shape::Type(node) => Some(vec![node.spec().input(&link.output)?]),
            Shape::Part(part) => part.inputs.get(link.output.as_str()).cloned(),
            Shape::Unknown => Some(Vec::new()),
        }
    }
}

/// Names of definitions, each after those it holds; those that hold themselves are reported and
/// left out. Iterative: definitions may be chained as long as a file allows.
fn innermost_first<'a>(document: &'a Document, problems: &mut Problems) -> Vec<&'a str> {
    let children = |name: &str| -> Vec<&'a str> {
        let nodes = document.subgraphs[name].nodes.values();
        let live = nodes.filter(|node| node.mode != Mode::Mute);
        let names: BTreeSet<&str> = live.filter_map(DocNode::subgraph_name).collect();
        names
            .into_iter()
            .filter_map(|name| document.subgraphs.get_key_value(name))
            .map(|(name, _)| name.as_str())
            .collect()
    };
    let (mut order, mut rings) = (Vec::new(), 0usize);
    let mut done: HashSet<&str> = HashSet::new();
    for start in document.subgraphs.keys() {
        if done.contains(start.as_str()) {
            continue;
        }
        let mut path = vec![Visit::new(start, children(start))];
        let mut place_in_path: HashMap<&str, usize> = HashMap::from([(start.as_str(), 0)]);
        while let Some(visit) = path.last_mut() {
            let Some(child) = visit.rest.next() else {
                let (name, back_to) = (visit.name, visit.back_to);
                path.pop();
                place_in_path.remove(name);
                done.insert(name);
                // Its own place is now the length of the path.
                if back_to > path.len() {
                    order.push(name);
                } else if let Some(outer) = path.last_mut() {
                    outer.back_to = outer.back_to.min(back_to);
                }
                continue;
            };
            if let Some(&at) = place_in_path.get(child) {
                visit.back_to = visit.back_to.min(at);
                rings += 1;
                if rings > RINGS_TOLD {
                    continue;
                }
                let got = spelled(path[at..].iter().map(|visit| visit.name));
                let expected = "a subgraph that does not hold itself";
                problems.push(
                    Problem::new(ProblemKind::RecursiveSubgraph, "", got, expected)
                        .within(Some(child)),
                );
            } else if !done.contains(child) {
                place_in_path.insert(child, path.len());
                path.push(Visit::new(child, children(child)));
            }
        }
    }
    order
}

/// Recursions that are spelled out; each costs a walk along its path.
const RINGS_TOLD: usize = 100;

/// A definition on the path of the walk.
struct Visit<'a> {
    name: &'a str,
    rest: std::vec::IntoIter<&'a str>,
    /// Lowest place in the path that it or what it holds leads back to.
    back_to: usize,
}

impl<'a> Visit<'a> {
    fn new(name: &'a str, children: Vec<&'a str>) -> Self {
        Self {
            name,
            rest: children.into_iter(),
            back_to: usize::MAX,
        }
    }
}

/// A ring of names as a path that ends where it began; the middle of a long one is left out.
pub(crate) fn spelled<'n>(
    ring: impl ExactSizeIterator<Item = &'n str> + DoubleEndedIterator + Clone,
) -> String {
    const SHOWN: usize = 16;
    let first = ring.clone().next();
    let mut names: Vec<String> = Vec::new();
    if ring.len() > 2 * SHOWN {
        let left_out = ring.len() - 2 * SHOWN;
        names.extend(ring.clone().take(SHOWN).map(quoted_if_long));
        names.push(format!("({left_out} more)"));
        names.extend(ring.skip(left_out + SHOWN).map(quoted_if_long));
    } else {
        names.extend(ring.map(quoted_if_long));
    }
    names.extend(first.map(quoted_if_long));
    names.join(" -> ")
}

fn quoted_if_long(name: &str) -> String {
    if name.len() > 60 {
        quoted(name)
    } else {
        name.to_owned()
    }
}
