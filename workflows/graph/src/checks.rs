//! Checks of each node by itself: type, version, values, and links within its own definition.

use std::collections::{BTreeMap, HashSet};

use engine_base::Datum;

use crate::document::{DocNode, Document, Link, Mode, NodeId};
use crate::node::Node;
use crate::parts::{Part, Parts, Shape};
use crate::problem::{Problem, ProblemKind, Problems};
use crate::registry::Registry;
use crate::spec::InputSpec;
use crate::suggest::Suggestions;
use crate::widget::{listed, quoted, shown};

/// A node by the definition it lies in (`None` for the document itself) and its id there.
pub(crate) type Place<'a> = (Option<&'a str>, &'a str);

pub(crate) struct Checks<'p, 'a> {
    registry: &'a Registry,
    document: &'a Document,
    parts: &'p Parts<'a>,
    suggestions: Suggestions,
    problems: &'p mut Problems,
    broken: HashSet<Place<'a>>,
    /// The definition being checked.
    scope: Option<&'a str>,
    nodes: &'a BTreeMap<NodeId, DocNode>,
}

/// Check every node that is not muted; gives the places of those with problems.
pub(crate) fn check_nodes<'a>(
    document: &'a Document,
    registry: &'a Registry,
    parts: &Parts<'a>,
    problems: &mut Problems,
) -> HashSet<Place<'a>> {
    let mut checks = Checks {
        registry,
        document,
        parts,
        suggestions: Suggestions::default(),
        problems,
        broken: HashSet::new(),
        scope: None,
        nodes: &document.nodes,
    };
    checks.check_scope();
    for (name, part) in &document.subgraphs {
        checks.scope = Some(name);
        checks.nodes = &part.nodes;
        checks.check_scope();
    }
    checks.broken
}

impl<'a> Checks<'_, 'a> {
    fn check_scope(&mut self) {
        let nodes = self.nodes;
        for (id, node) in nodes {
            if node.mode == Mode::Mute {
                continue;
            }
            let before = self.problems.count();
            self.check_node(id, node);
            if self.problems.count() > before {
                self.broken.insert((self.scope, id));
            }
        }
    }

    fn report(&mut self, problem: Problem) {
        self.problems.push(problem.within(self.scope));
    }

    fn check_node(&mut self, id: &'a str, node: &'a DocNode) {
        let parts = self.parts;
        match parts.shape(node) {
            Shape::Type(ty) => {
                if self.check_version(id, node, ty.as_ref()) {
                    if node.mode == Mode::Run {
                        self.check_values(id, node, ty.as_ref());
                    }
                    let spec = ty.spec();
                    for (name, link) in &node.links {
                        match spec.input(name) {
                            Some(input) => self.check_link(id, name, link, &[input]),
                            None => self.unknown_input(
                                id,
                                name,
                                spec.inputs.iter().map(|input| input.name),
                            ),
                        }
                    }
                }
            }
            Shape::Part(part) => self.check_instance(id, node, part),
            Shape::Unknown => {
                self.check_unknown(id, node);
                for (name, link) in &node.links {
                    self.check_link(id, name, link, &[]);
                }
            }
        }
    }

    fn check_unknown(&mut self, id: &str, node: &DocNode) {
        let problem = match node.subgraph_name() {
            Some(name) => {
                if let Some((name, _)) = self.document.subgraphs.get_key_value(name) {
                    // The definition itself was reported; its instances say that they cannot run.
                    Problem::new(
                        ProblemKind::UnknownSubgraph,
                        id,
                        quoted(name),
                        "a subgraph that can be expanded",
                    )
                } else {
                    let names = self.document.subgraphs.keys().map(String::as_str);
                    let near = self.suggestions.nearest(name, names);
                    Problem::new(
                        ProblemKind::UnknownSubgraph,
                        id,
                        quoted(name),
                        "a subgraph of this document",
                    )
                    .near(near)
                }
            }
            None => {
                let names = self.registry.iter().map(|ty| ty.spec().type_name);
                let near = self.suggestions.nearest(&node.type_name, names);
                let got = quoted(&node.type_name);
                Problem::new(
                    ProblemKind::UnknownType,
                    id,
                    got,
                    "a node type of this version",
                )
                .near(near)
            }
        };
        self.report(problem);
    }

    /// Whether the node is of the type's version; names and values of another cannot be judged.
    fn check_version(&mut self, id: &str, node: &DocNode, ty: &dyn Node) -> bool {
        let spec = ty.spec();
        let kind = match node.version.cmp(&spec.version) {
            std::cmp::Ordering::Equal => return true,
            std::cmp::Ordering::Less => ProblemKind::OlderNodeVersion,
            std::cmp::Ordering::Greater => ProblemKind::NewerNodeVersion,
        };
        let got = format!("version {}", node.version);
        let expected = format!("{:?} version {}", spec.type_name, spec.version);
        self.report(Problem::new(kind, id, got, expected));
        false
    }

    fn check_values(&mut self, id: &str, node: &DocNode, ty: &dyn Node) {
        let spec = ty.spec();
        let before = self.problems.count();
        for (name, datum) in &node.widgets {
            match spec.input(name) {
                Some(input) => self.check_value(id, name, datum, input),
                None => self.unknown_input(id, name, spec.inputs.iter().map(|input| input.name)),
            }
        }
        if self.problems.count() > before {
            return;
        }
        let free = spec
            .inputs
            .iter()
            .filter(|input| !node.links.contains_key(input.name));
        let widgets: BTreeMap<String, Datum> = free
            .filter_map(|input| {
                let widget = input.widget.as_ref()?;
                let datum = match node.widgets.get(input.name) {
                    Some(datum) => widget.normalise(datum).into_owned(),
                    None => widget.default_datum()?,
                };
                Some((input.name.to_owned(), datum))
            })
            .collect();
        for text in ty.check(&widgets) {
            self.report(Problem::new(
                ProblemKind::Custom,
                id,
                text,
                "values that the node type takes",
            ));
        }
    }

    fn check_value(&mut self, id: &str, name: &str, datum: &Datum, input: &InputSpec) {
        let problem = match &input.widget {
            None => {
                let expected = format!("a link to an output of type {:?}", input.ty.as_str());
                Problem::new(ProblemKind::NotAWidget, id, shown(datum), expected)
            }
            Some(widget) => match widget.check(datum) {
                Ok(()) => return,
                Err(fault) => Problem::new(fault.kind, id, fault.got, fault.expected),
            },
        };
        self.report(problem.at_port(name));
    }

    fn unknown_input<'n>(
        &mut self,
        id: &str,
        name: &str,
        inputs: impl ExactSizeIterator<Item = &'n str> + Clone,
    ) {
        let near = self.suggestions.nearest(name, inputs.clone());
        let expected = if inputs.len() == 0 {
            "no inputs".to_owned()
        } else {
            format!("one of {}", listed(inputs))
        };
        self.report(
            Problem::new(ProblemKind::UnknownInput, id, quoted(name), expected)
                .at_port(name)
                .near(near),
        );
    }

    fn check_instance(&mut self, id: &'a str, node: &'a DocNode, part: &Part<'a>) {
        for (name, datum) in &node.widgets {
            match part.inputs.get(name.as_str()) {
                None => self.unknown_input(id, name, part.inputs.keys().copied()),
                Some(specs) => {
                    for spec in specs {
                        self.check_value(id, name, datum, spec);
                    }
                }
            }
        }
        for (name, link) in &node.links {
            match part.inputs.get(name.as_str()) {
                None => self.unknown_input(id, name, part.inputs.keys().copied()),
                Some(specs) => self.check_link(id, name, link, specs),
            }
        }
    }

    /// Check that `link` comes from an output that every one of `inputs` takes.
    fn check_link(&mut self, id: &str, name: &str, link: &Link, inputs: &[&InputSpec]) {
        let Some(source) = self.nodes.get(&link.node) else {
            // Ids are long lists in large documents; a suggestion is for those a person reads.
            let near = if self.nodes.len() <= 1000 {
                let ids = self.nodes.keys().map(String::as_str);
                self.suggestions.nearest(&link.node, ids)
            } else {
                None
            };
            let got = quoted(&link.node);
            let problem = Problem::new(ProblemKind::DanglingLink, id, got, "a node beside it");
            self.report(problem.at_port(name).near(near));
            return;
        };
        let parts = self.parts;
        let shape = match parts.shape(source) {
            // Its outputs may have been others in that version.
            Shape::Type(ty) if ty.spec().version != source.version => Shape::Unknown,
            shape => shape,
        };
        match shape.output(&link.output) {
            Ok(Some(ty)) => {
                for input in inputs {
                    if !ty.feeds(&input.ty) {
                        let got = format!(
                            "{:?} from output {:?} of node {:?}",
                            ty.as_str(),
                            link.output,
                            link.node
                        );
                        let expected = format!("{:?}", input.ty.as_str());
                        self.report(
                            Problem::new(ProblemKind::TypeMismatch, id, got, expected)
                                .at_port(name),
                        );
                    }
                }
            }
            Ok(None) => {}
            Err(()) => match shape {
                Shape::Type(ty) => {
                    let outputs = ty.spec().outputs.iter().map(|output| output.name);
                    self.unknown_output(id, name, link, outputs);
                }
                Shape::Part(part) => {
                    self.unknown_output(id, name, link, part.outputs.keys().copied());
                }
                Shape::Unknown => {}
            },
        }
    }

    fn unknown_output<'n>(
        &mut self,
        id: &str,
        name: &str,
        link: &Link,
        outputs: impl ExactSizeIterator<Item = &'n str> + Clone,
    ) {
        let near = self.suggestions.nearest(&link.output, outputs.clone());
        let got = format!("output {} of node {:?}", quoted(&link.output), link.node);
        let expected = if outputs.len() == 0 {
            "a node with outputs".to_owned()
        } else {
            format!("one of {}", listed(outputs))
        };
        self.report(
            Problem::new(ProblemKind::UnknownOutput, id, got, expected)
                .at_port(name)
                .near(near),
        );
    }
}
