//! Making documents in code.
//!
//! ```
//! use flow_graph::{DocNode, Document};
//!
//! let mut document = Document::new();
//! let still = document.add("still", DocNode::new("film.still", 1).set("seed", 7u64))?;
//! document.add("segment", DocNode::new("film.segment", 1).link("picture", &still, "picture"))?;
//! document.targets.push("segment".into());
//! # Ok::<(), flow_graph::IdTaken>(())
//! ```

use std::collections::BTreeMap;

use engine_base::Datum;

use crate::document::{DocNode, Document, Link, Mode, NodeId, Subgraph};
use crate::spec::NodeSpec;

/// What stands before a subgraph's name in the type of its instances.
pub(crate) const SUBGRAPH_PREFIX: &str = "subgraph:";

/// A node id is taken already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot add a node: two nodes would be called {0:?}")]
pub struct IdTaken(pub NodeId);

impl DocNode {
    /// A node with nothing set.
    pub fn new(type_name: impl Into<String>, version: u32) -> Self {
        Self {
            type_name: type_name.into(),
            version,
            widgets: BTreeMap::new(),
            links: BTreeMap::new(),
            mode: Mode::Run,
            title: None,
        }
    }

    /// A node of the type that `spec` describes, at its version.
    pub fn of(spec: &NodeSpec) -> Self {
        Self::new(spec.type_name, spec.version)
    }

    /// An instance of the subgraph called `name`.
    pub fn subgraph(name: &str) -> Self {
        Self::new(format!("{SUBGRAPH_PREFIX}{name}"), 1)
    }

    /// With `value` in widget `name`, instead of what was there.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<Datum>) -> Self {
        self.widgets.insert(name.into(), value.into());
        self
    }

    /// With input `name` linked to `output` of `node`, instead of what it was linked to.
    #[must_use]
    pub fn link(
        mut self,
        name: impl Into<String>,
        node: impl AsRef<str>,
        output: impl Into<String>,
    ) -> Self {
        self.links
            .insert(name.into(), Link::new(node.as_ref(), output));
        self
    }

    /// With this mode.
    #[must_use]
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// With this title.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The subgraph it is an instance of, if it is one.
    pub fn subgraph_name(&self) -> Option<&str> {
        self.type_name.strip_prefix(SUBGRAPH_PREFIX)
    }
}

fn add(
    nodes: &mut BTreeMap<NodeId, DocNode>,
    id: NodeId,
    node: DocNode,
) -> Result<NodeId, IdTaken> {
    if nodes.contains_key(&id) {
        return Err(IdTaken(id));
    }
    nodes.insert(id.clone(), node);
    Ok(id)
}

impl Document {
    /// Add a node; gives its id back.
    ///
    /// # Errors
    /// [`IdTaken`]; the node that has the id is kept.
    pub fn add(&mut self, id: impl Into<NodeId>, node: DocNode) -> Result<NodeId, IdTaken> {
        add(&mut self.nodes, id.into(), node)
    }

    /// Add a node under `stem`, or under the first of `stem-2`, `stem-3`… that is free.
    pub fn add_numbered(&mut self, stem: &str, node: DocNode) -> NodeId {
        let mut id = stem.to_owned();
        let mut number = 2u64;
        while self.nodes.contains_key(&id) {
            id = format!("{stem}-{number}");
            number += 1;
        }
        self.nodes.insert(id.clone(), node);
        id
    }
}

impl Subgraph {
    /// A subgraph with no nodes.
    pub const fn new() -> Self {
        Self {
            inputs: BTreeMap::new(),
            outputs: BTreeMap::new(),
            nodes: BTreeMap::new(),
        }
    }

    /// Add an inner node; gives its id back.
    ///
    /// # Errors
    /// [`IdTaken`]; the node that has the id is kept.
    pub fn add(&mut self, id: impl Into<NodeId>, node: DocNode) -> Result<NodeId, IdTaken> {
        add(&mut self.nodes, id.into(), node)
    }

    /// Let the subgraph's input `name` feed `input` of the inner `node`, beside what it feeds.
    #[must_use]
    pub fn feeding(
        mut self,
        name: impl Into<String>,
        node: impl AsRef<str>,
        input: impl Into<String>,
    ) -> Self {
        let fed = self.inputs.entry(name.into()).or_default();
        fed.push(Link::new(node.as_ref(), input));
        self
    }

    /// Let the subgraph's output `name` be `output` of the inner `node`.
    #[must_use]
    pub fn giving(
        mut self,
        name: impl Into<String>,
        node: impl AsRef<str>,
        output: impl Into<String>,
    ) -> Self {
        self.outputs
            .insert(name.into(), Link::new(node.as_ref(), output));
        self
    }
}
