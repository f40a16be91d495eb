//! Expansion: subgraph instances become their nodes, muted and bypassed nodes vanish, every input
//! finds what feeds it. All walks are loops: a file decides how long they get.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use engine_base::Datum;

use crate::checks::Place;
use crate::document::{DocNode, Document, Link, Mode, NodeId};
use crate::node::Node;
use crate::parts::{Part, Parts, Shape};
use crate::problem::{Problem, ProblemKind, Problems};
use crate::spec::{InputSpec, PortType};
use crate::widget::quoted;

/// Most nodes of an expanded graph.
pub(crate) const NODES_MAX: usize = 1_000_000;
/// Most bytes of ids of an expanded graph: long names times deep nesting multiply.
const ID_BYTES_MAX: usize = 256 << 20;

static ANY: PortType = PortType::ANY;

/// What feeds an input.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Feed<'a> {
    Nothing,
    Link { node: u32, output: u32 },
    Value(&'a Datum),
    Given(u32),
}

/// A node of the expanded graph.
pub(crate) struct Raw<'a> {
    pub(crate) id: NodeId,
    /// The node of the document itself that it came from.
    pub(crate) origin: &'a str,
    pub(crate) doc: &'a DocNode,
    pub(crate) ty: Option<&'a Arc<dyn Node>>,
    /// In port order; for an unknown type, its links by name.
    pub(crate) feeds: Vec<Feed<'a>>,
    /// It has a problem of its own.
    pub(crate) broken: bool,
    instance: u32,
    local_id: &'a str,
}

#[derive(Clone, Copy)]
enum Slot {
    Raw(u32),
    Child(u32),
}

/// A subgraph instance, or the document itself (the first).
struct Instance<'p, 'a> {
    /// Where it stands: the instance around it and its node id there.
    outer: Option<(u32, &'a str)>,
    /// Its node of the document itself.
    origin: &'a str,
    prefix: String,
    nodes: &'a BTreeMap<NodeId, DocNode>,
    part: Option<&'p Part<'a>>,
    /// The definition's name.
    scope: Option<&'a str>,
    broken: bool,
}

/// An input of a bypassed node: its name and type.
type Socket<'a> = (&'a str, &'a PortType);

/// What bypassed instances of one subgraph pass on.
#[derive(Default)]
struct Passing<'a> {
    sockets: Option<Vec<Socket<'a>>>,
    /// By the types given and wanted, where no input of the output's number will do.
    first: HashMap<(String, String), Option<&'a str>>,
}

/// A port of a node in an instance: instance, node, and its output or input.
type Step<'a> = (u32, &'a str, &'a str);

pub(crate) struct Expander<'p, 'a, 'o> {
    parts: &'p Parts<'a>,
    instances: Vec<Instance<'p, 'a>>,
    slots: HashMap<(u32, &'a str), Slot>,
    pub(crate) raws: Vec<Raw<'a>>,
    given: HashMap<(&'o str, &'o str), u32>,
    /// By type name.
    passing: HashMap<&'a str, Passing<'a>>,
    /// Where walks that passed through bypassed nodes or into subgraphs ended, by wanted type.
    ended: HashMap<(Step<'a>, String), Option<(u32, u32)>>,
}

impl<'p, 'a, 'o> Expander<'p, 'a, 'o> {
    /// Expand `document`; `given` are inputs of its own nodes that get their value from outside.
    pub(crate) fn expand(
        document: &'a Document,
        parts: &'p Parts<'a>,
        broken: &HashSet<Place<'a>>,
        given: &'o [(NodeId, String)],
        problems: &mut Problems,
    ) -> Self {
        let mut expander = Self {
            parts,
            instances: Vec::new(),
            slots: HashMap::new(),
            raws: Vec::new(),
            given: HashMap::new(),
            passing: HashMap::new(),
            ended: HashMap::new(),
        };
        for (at, (node, input)) in (0u32..).zip(given) {
            expander.given.insert((node, input), at);
        }
        let size = parts.size_of(&document.nodes);
        if size > NODES_MAX {
            let got = if size == usize::MAX {
                "more than can be counted".to_owned()
            } else {
                size.to_string()
            };
            let expected = format!("at most {NODES_MAX} after expanding subgraphs");
            problems.push(Problem::new(ProblemKind::TooManyNodes, "", got, expected));
            return expander;
        }
        expander.instances.push(Instance {
            outer: None,
            origin: "",
            prefix: String::new(),
            nodes: &document.nodes,
            part: None,
            scope: None,
            broken: false,
        });
        if !expander.place_nodes(broken) {
            let expected = format!("ids of at most {ID_BYTES_MAX} bytes after expanding subgraphs");
            problems.push(Problem::new(
                ProblemKind::TooManyNodes,
                "",
                "longer ones",
                expected,
            ));
            expander.raws.clear();
            expander.slots.clear();
            return expander;
        }
        expander.sort(problems);
        expander.feed(problems);
        expander
    }

    /// Give every running node its place; `false` when ids grow too long.
    fn place_nodes(&mut self, broken: &HashSet<Place<'a>>) -> bool {
        let (mut at, mut id_bytes) = (0, 0usize);
        while at < self.instances.len() {
            let instance = &self.instances[at];
            let (number, nodes, scope) = (at as u32, instance.nodes, instance.scope);
            let (origin, prefix) = (instance.origin, instance.prefix.clone());
            let instance_broken = instance.broken;
            for (local_id, doc) in nodes {
                if doc.mode != Mode::Run {
                    continue;
                }
                let broken = instance_broken || broken.contains(&(scope, local_id.as_str()));
                let origin = if origin.is_empty() { local_id } else { origin };
                let id = format!("{prefix}{local_id}");
                id_bytes += id.len();
                if id_bytes > ID_BYTES_MAX {
                    return false;
                }
                let parts = self.parts;
                let slot = match parts.shape(doc) {
                    Shape::Part(part) => {
                        self.instances.push(Instance {
                            outer: Some((number, local_id)),
                            origin,
                            prefix: id + ":",
                            nodes: &part.def.nodes,
                            part: Some(part),
                            scope: doc.subgraph_name(),
                            broken: broken || part.faulty,
                        });
                        Slot::Child((self.instances.len() - 1) as u32)
                    }
                    shape => {
                        let ty = match shape {
                            Shape::Type(ty) => Some(ty),
                            Shape::Part(_) | Shape::Unknown => None,
                        };
                        self.raws.push(Raw {
                            id,
                            origin,
                            doc,
                            ty,
                            feeds: Vec::new(),
                            broken: broken || ty.is_none(),
                            instance: number,
                            local_id,
                        });
                        Slot::Raw((self.raws.len() - 1) as u32)
                    }
                };
                self.slots.insert((number, local_id), slot);
            }
            at += 1;
        }
        true
    }

    /// Order nodes by id, so that nothing later depends on how they were reached.
    fn sort(&mut self, problems: &mut Problems) {
        self.raws.sort_by(|a, b| a.id.cmp(&b.id));
        for (index, raw) in (0u32..).zip(&self.raws) {
            self.slots
                .insert((raw.instance, raw.local_id), Slot::Raw(index));
        }
        for at in 1..self.raws.len() {
            if self.raws[at - 1].id == self.raws[at].id {
                let id = self.raws[at].id.clone();
                let got = "a node and a node within a subgraph";
                let expected = "one node of that id after expansion";
                problems.push(Problem::new(ProblemKind::DuplicateId, id, got, expected));
                self.raws[at - 1].broken = true;
                self.raws[at].broken = true;
            }
        }
    }

    fn feed(&mut self, problems: &mut Problems) {
        for index in 0..self.raws.len() {
            let raw = &self.raws[index];
            let (instance, local_id, doc, ty) = (raw.instance, raw.local_id, raw.doc, raw.ty);
            let Some(ty) = ty else {
                let feeds = doc.links.iter();
                self.raws[index].feeds = feeds
                    .map(|(name, _)| self.fed(instance, local_id, name, &ANY))
                    .collect();
                continue;
            };
            let mut feeds = Vec::with_capacity(ty.spec().inputs.len());
            for input in &ty.spec().inputs {
                let mut feed = self.fed(instance, local_id, input.name, &input.ty);
                if matches!(feed, Feed::Value(_)) && input.widget.is_none() {
                    feed = Feed::Nothing;
                }
                if matches!(feed, Feed::Nothing) && is_missing(input) {
                    // A node of another version may call its inputs otherwise, and of a link that
                    // is wrong in itself more was said already.
                    let told = self.raws[index].broken && doc.links.contains_key(input.name);
                    if doc.version == ty.spec().version && !told {
                        problems.push(missing(&self.raws[index], input));
                    }
                    self.raws[index].broken = true;
                }
                feeds.push(feed);
            }
            self.raws[index].feeds = feeds;
        }
    }

    /// The input of the surrounding instance that feeds this one.
    fn outward(&self, instance: u32, node: &str, input: &str) -> Option<(u32, &'a str, &'a str)> {
        let here = &self.instances[instance as usize];
        let outer_input = *here.part?.fed_by.get(&(node, input))?;
        let (outer, outer_node) = here.outer?;
        Some((outer, outer_node, outer_input))
    }

    /// What feeds an input: links and values of the outermost instance win over those within.
    fn fed(&mut self, instance: u32, node: &'a str, input: &'a str, want: &PortType) -> Feed<'a> {
        if self.instances[instance as usize].outer.is_none() {
            return self.fed_here((instance, node, input), want);
        }
        let mut levels = vec![(instance, node, input)];
        let mut last = levels[0];
        while let Some(outer) = self.outward(last.0, last.1, last.2) {
            levels.push(outer);
            last = outer;
        }
        for level in levels.into_iter().rev() {
            let feed = self.fed_here(level, want);
            if !matches!(feed, Feed::Nothing) {
                return feed;
            }
        }
        Feed::Nothing
    }

    fn fed_here(&mut self, (instance, node, input): Step<'a>, want: &PortType) -> Feed<'a> {
        if instance == 0
            && let Some(&at) = self.given.get(&(node, input))
        {
            return Feed::Given(at);
        }
        let Some(doc) = self.instances[instance as usize].nodes.get(node) else {
            return Feed::Nothing;
        };
        if let Some(link) = doc.links.get(input)
            && let Some((node, output)) = self.source(instance, link, want)
        {
            return Feed::Link { node, output };
        }
        doc.widgets.get(input).map_or(Feed::Nothing, Feed::Value)
    }

    /// The running node and output that `link` comes from in the end, wanted as `want`.
    pub(crate) fn source(
        &mut self,
        instance: u32,
        link: &'a Link,
        want: &PortType,
    ) -> Option<(u32, u32)> {
        let mut step: Step<'a> = (instance, &link.node, &link.output);
        let mut passed: Vec<(Step<'a>, String)> = Vec::new();
        let found = loop {
            let (instance, node, output) = step;
            if let Some(Slot::Raw(index)) = self.slots.get(&(instance, node)) {
                let output = match self.raws[*index as usize].ty {
                    Some(ty) => ty.spec().output_index(output),
                    None => Some(0),
                };
                // What was passed on through bypassed nodes may be of another type in the end: then
                // nothing comes. A link of its own is judged where it stands.
                let agrees = |output: &usize| {
                    let ty = self.raws[*index as usize].ty;
                    passed.is_empty()
                        || ty.is_none_or(|ty| ty.spec().outputs[*output].ty.feeds(want))
                };
                break output.filter(agrees).map(|output| (*index, output as u32));
            }
            let key = (step, want.as_str().to_owned());
            if let Some(ended) = self.ended.get(&key) {
                break *ended;
            }
            // Bypassed nodes in a ring come to this mark and give nothing.
            self.ended.insert(key.clone(), None);
            passed.push(key);
            match self.next_step(step, want) {
                Some(next) => step = next,
                None => break None,
            }
        };
        for key in passed {
            self.ended.insert(key, found);
        }
        found
    }

    fn next_step(
        &mut self,
        (instance, node, output): Step<'a>,
        want: &PortType,
    ) -> Option<Step<'a>> {
        if let Some(Slot::Child(child)) = self.slots.get(&(instance, node)) {
            let part = self.instances[*child as usize].part?;
            let link = part.def.outputs.get(output)?;
            return Some((*child, &link.node, &link.output));
        }
        let doc = self.instances[instance as usize].nodes.get(node)?;
        if doc.mode != Mode::Bypass {
            return None;
        }
        let input = self.passed_input(instance, node, doc, output, want)?;
        let (instance, link) = self.outermost_link(instance, node, input)?;
        Some((instance, &link.node, &link.output))
    }

    fn outermost_link(
        &self,
        instance: u32,
        node: &'a str,
        input: &'a str,
    ) -> Option<(u32, &'a Link)> {
        let mut at = (instance, node, input);
        let mut found = None;
        loop {
            let doc = self.instances[at.0 as usize].nodes.get(at.1)?;
            if let Some(link) = doc.links.get(at.2) {
                found = Some((at.0, link));
            }
            match self.outward(at.0, at.1, at.2) {
                Some(outer) => at = outer,
                None => return found,
            }
        }
    }

    /// Which input of a bypassed node is passed on to its `output`. Sockets are the inputs that
    /// can only be linked, then the linked ones that have a widget, each in port order.
    fn passed_input(
        &mut self,
        instance: u32,
        node: &'a str,
        doc: &'a DocNode,
        output: &str,
        want: &PortType,
    ) -> Option<&'a str> {
        let parts = self.parts;
        match parts.shape(doc) {
            Shape::Type(ty) => {
                let spec = ty.spec();
                let plain = spec.inputs.iter().filter(|input| input.widget.is_none());
                let linked = spec.inputs.iter().filter(|input| {
                    input.widget.is_some()
                        && self.outermost_link(instance, node, input.name).is_some()
                });
                let sockets = plain.chain(linked);
                let sockets: Vec<Socket<'_>> =
                    sockets.map(|input| (input.name, &input.ty)).collect();
                let index = spec.output_index(output)?;
                let same = sockets.get(index).copied();
                let rest = || sockets.iter().copied();
                pick(same, rest, &spec.outputs[index].ty, want)
            }
            Shape::Part(part) => {
                let index = *part.output_places.get(output)?;
                let gives = part.outputs.get(output).copied().flatten().unwrap_or(&ANY);
                let sockets = || part.sockets().map(|(name, ty)| (name, ty.unwrap_or(&ANY)));
                let passing = self.passing.entry(doc.type_name.as_str()).or_default();
                let list = &*passing.sockets.get_or_insert_with(|| sockets().collect());
                let same = list.get(index).copied();
                if let Some((name, _)) = same.filter(|same| passes(*same, gives, want)) {
                    return Some(name);
                }
                // Without one of the same number the answer depends on the types alone; a large
                // instance must not be searched again for each of its outputs.
                let types = (gives.as_str().to_owned(), want.as_str().to_owned());
                *passing
                    .first
                    .entry(types)
                    .or_insert_with(|| pick(None, || list.iter().copied(), gives, want))
            }
            Shape::Unknown => None,
        }
    }

    /// The running node and output behind `output` of a node of the document itself.
    pub(crate) fn output(&mut self, id: &'a str, output: &str) -> Option<(u32, u32)> {
        match *self.slots.get(&(0, id))? {
            Slot::Raw(index) => {
                let at = self.raws[index as usize].ty?.spec().output_index(output)?;
                Some((index, at as u32))
            }
            Slot::Child(child) => {
                let def = self.instances[child as usize].part?.def;
                self.source(child, def.outputs.get(output)?, &ANY)
            }
        }
    }

    /// The running nodes that a target names: a node, or those behind a subgraph's outputs.
    pub(crate) fn target(&mut self, id: &str) -> Option<Vec<u32>> {
        if let Ok(at) = self.raws.binary_search_by(|raw| raw.id.as_str().cmp(id)) {
            return Some(vec![at as u32]);
        }
        let Slot::Child(child) = *self.slots.get(&(0, id))? else {
            return None;
        };
        let def = self.instances[child as usize].part?.def;
        let sources = def.outputs.values();
        let found: Vec<u32> = sources
            .filter_map(|link| self.source(child, link, &ANY))
            .map(|(node, _)| node)
            .collect();
        (!found.is_empty()).then_some(found)
    }
}

/// Whether nothing at all would stand in `input`.
fn is_missing(input: &InputSpec) -> bool {
    let has_default =
        |widget: &crate::spec::Widget| !matches!(widget, crate::spec::Widget::Asset { .. });
    input.required && !input.widget.as_ref().is_some_and(has_default)
}

fn missing(raw: &Raw<'_>, input: &InputSpec) -> Problem {
    let got = raw.doc.links.get(input.name).map_or_else(
        || "nothing".to_owned(),
        |link| {
            let node = quoted(&link.node);
            format!("a link to node {node} through which nothing comes")
        },
    );
    let expected = if input.widget.is_some() {
        format!("a value or a link of type {:?}", input.ty.as_str())
    } else {
        format!("a link of type {:?}", input.ty.as_str())
    };
    Problem::new(ProblemKind::MissingInput, raw.id.clone(), got, expected).at_port(input.name)
}

/// Whether a bypassed node passes its socket on to the output of the same number, of type `gives`,
/// wanted as `want`.
fn passes((_, ty): Socket<'_>, gives: &PortType, want: &PortType) -> bool {
    let want = if *want == ANY { gives } else { want };
    *want == ANY || ty.feeds(gives) && ty.feeds(want)
}

/// The input that a bypassed node passes on to an output of type `gives`, wanted as `want`: the
/// `same`, of the output's number, where it agrees with both types, else the first of exactly the
/// wanted type, else the first that agrees with both. Where anything is wanted, the output's own
/// type is; where that is anything too, the input of the same number, else the first.
fn pick<'n, 't, I: Iterator<Item = (&'n str, &'t PortType)>>(
    same: Option<(&'n str, &'t PortType)>,
    sockets: impl Fn() -> I,
    gives: &PortType,
    want: &PortType,
) -> Option<&'n str> {
    let exact = if *want == ANY { gives } else { want };
    same.filter(|socket| passes(*socket, gives, want))
        .or_else(|| sockets().find(|(_, ty)| *ty == exact))
        .or_else(|| sockets().find(|socket| passes(*socket, gives, want)))
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bypass_picks_the_input_by_number_then_exact_type_then_agreement() {
        let (picture, mask) = (PortType::named("picture"), PortType::named("mask"));
        let either = PortType::named("picture,mask");
        let sockets = [("mask", &mask), ("both", &either), ("picture", &picture)];
        let picked = |count: usize, index: usize, gives: &PortType, want: &PortType| {
            let sockets = &sockets[..count];
            pick(
                sockets.get(index).copied(),
                || sockets.iter().copied(),
                gives,
                want,
            )
        };
        assert_eq!(picked(3, 1, &picture, &picture), Some("both"));
        assert_eq!(picked(3, 0, &picture, &picture), Some("picture"));
        assert_eq!(picked(2, 0, &picture, &picture), Some("both"));
        assert_eq!(picked(1, 0, &picture, &picture), None);
        assert_eq!(picked(3, 0, &picture, &ANY), Some("picture"));
        assert_eq!(picked(3, 2, &ANY, &ANY), Some("picture"));
        assert_eq!(picked(3, 9, &ANY, &ANY), Some("mask"));
        assert_eq!(picked(0, 0, &picture, &ANY), None);
    }
}
