//! Documents: saved workflow graphs.

use std::collections::BTreeMap;

use engine_base::Datum;
use serde::{Deserialize, Serialize};

use crate::read;

/// Name of a node in a document. Free to change: no key depends on it.
pub type NodeId = String;

/// Where an input comes from: an output of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "(NodeId, String)", into = "(NodeId, String)")]
pub struct Link {
    /// The node it comes from.
    pub node: NodeId,
    /// The name of that node's output.
    pub output: String,
}

impl Link {
    /// The output `output` of node `node`.
    pub fn new(node: impl Into<NodeId>, output: impl Into<String>) -> Self {
        Self {
            node: node.into(),
            output: output.into(),
        }
    }
}

impl From<(NodeId, String)> for Link {
    fn from((node, output): (NodeId, String)) -> Self {
        Self { node, output }
    }
}

impl From<Link> for (NodeId, String) {
    fn from(link: Link) -> Self {
        (link.node, link.output)
    }
}

/// Whether a node takes part in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It runs.
    #[default]
    Run,
    /// It and its outputs are absent.
    Mute,
    /// Its inputs are passed on to outputs of the same type.
    Bypass,
}

impl Mode {
    fn is_run(&self) -> bool {
        *self == Self::Run
    }
}

/// One step of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocNode {
    /// Node type, or `subgraph:NAME`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Version of the type it was written with.
    pub version: u32,
    /// Values by input name. Absent means the default.
    #[serde(
        default,
        deserialize_with = "read::widgets",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub widgets: BTreeMap<String, Datum>,
    /// Links by input name. A link wins over a widget value.
    #[serde(
        default,
        deserialize_with = "read::links",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub links: BTreeMap<String, Link>,
    /// Whether it takes part.
    #[serde(default, skip_serializing_if = "Mode::is_run")]
    pub mode: Mode,
    /// A person's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A reusable part with its own inputs and outputs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subgraph {
    /// Outer input name -> inner (node, input) pairs it feeds.
    #[serde(deserialize_with = "read::boundary_inputs")]
    pub inputs: BTreeMap<String, Vec<Link>>,
    /// Outer output name -> inner output.
    #[serde(deserialize_with = "read::boundary_outputs")]
    pub outputs: BTreeMap<String, Link>,
    /// Its nodes.
    #[serde(deserialize_with = "read::nodes")]
    pub nodes: BTreeMap<NodeId, DocNode>,
}

/// Where a node is drawn. No meaning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Left edge.
    pub x: f64,
    /// Top edge.
    pub y: f64,
}

/// How a document is drawn. No meaning, in no key.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Places by node.
    #[serde(
        default,
        deserialize_with = "read::positions",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub nodes: BTreeMap<NodeId, Position>,
    /// Anything else the editor wants kept (groups, colours, notes).
    #[serde(
        default,
        deserialize_with = "read::extra",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub extra: BTreeMap<String, Datum>,
}

/// A saved workflow graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Format of the file; [`Document::FORMAT`] when written by this version.
    pub longtake: u32,
    /// The steps.
    #[serde(deserialize_with = "read::nodes")]
    pub nodes: BTreeMap<NodeId, DocNode>,
    /// Reusable parts by name.
    #[serde(
        default,
        deserialize_with = "read::subgraphs",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub subgraphs: BTreeMap<String, Subgraph>,
    /// Nodes whose results are asked for; empty means all output nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<NodeId>,
    /// How it is drawn.
    #[serde(default, skip_serializing_if = "layout_is_empty")]
    pub layout: Layout,
}

fn layout_is_empty(layout: &Layout) -> bool {
    *layout == Layout::default()
}

impl Document {
    /// The format this version writes.
    pub const FORMAT: u32 = 1;

    /// A document with no nodes.
    pub const fn new() -> Self {
        Self {
            longtake: Self::FORMAT,
            nodes: BTreeMap::new(),
            subgraphs: BTreeMap::new(),
            targets: Vec::new(),
            layout: Layout {
                nodes: BTreeMap::new(),
                extra: BTreeMap::new(),
            },
        }
    }
}

impl Default for Document {
    fn default() -> Self {
        Self::new()
    }
}
