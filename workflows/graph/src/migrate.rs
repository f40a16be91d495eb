//! Bringing documents up to the versions of the node types there are.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::Serialize;

use crate::document::{DocNode, Document, Link, NodeId};
use crate::registry::Registry;

/// What migration did with one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum MigrationOutcome {
    /// It is at the type's version now.
    Migrated,
    /// It is of a newer version than this program knows, and was left as it is.
    Newer,
    /// The type does not know its version; it was left as it is.
    Refused {
        /// What the type said.
        reason: String,
    },
}

/// What migration did with a node that was not of its type's version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MigrationNote {
    /// The subgraph definition it lies in; `None` for the document itself.
    pub subgraph: Option<String>,
    /// The node.
    pub node: NodeId,
    /// Its type.
    pub type_name: String,
    /// The version it was written with.
    pub from: u32,
    /// The version of the type.
    pub to: u32,
    /// What was done.
    pub outcome: MigrationOutcome,
}

impl fmt::Display for MigrationNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(subgraph) = &self.subgraph {
            write!(f, "subgraph {subgraph:?} ")?;
        }
        let (type_name, from, to) = (&self.type_name, self.from, self.to);
        write!(f, "node {:?}: {type_name:?} version {from}", self.node)?;
        match &self.outcome {
            MigrationOutcome::Migrated => write!(f, " brought to version {to}"),
            MigrationOutcome::Newer => write!(f, " left as it is: expected at most version {to}"),
            MigrationOutcome::Refused { reason } => write!(f, " left as it is: {reason}"),
        }
    }
}

/// A copy of `document` with every node of an older version brought up to its type's, and a note for
/// each node that was of another version. Nodes of newer versions and of unknown types, and nodes
/// whose type refuses, are left untouched; the document handed in always is.
pub fn migrate(document: &Document, registry: &Registry) -> (Document, Vec<MigrationNote>) {
    let mut document = document.clone();
    let mut notes = Vec::new();
    let renamed = migrate_nodes(&mut document.nodes, None, registry, &mut notes);
    follow(&mut document.nodes, &renamed.outputs);
    for (name, part) in &mut document.subgraphs {
        let renamed = migrate_nodes(&mut part.nodes, Some(name), registry, &mut notes);
        follow(&mut part.nodes, &renamed.outputs);
        for link in part.inputs.values_mut().flatten() {
            rename(link, &renamed.inputs);
        }
        for link in part.outputs.values_mut() {
            rename(link, &renamed.outputs);
        }
    }
    (document, notes)
}

/// New names by node and old name.
type Renamed = HashMap<NodeId, Vec<(String, String)>>;

#[derive(Default)]
struct RenamedPorts {
    inputs: Renamed,
    outputs: Renamed,
}

fn migrate_nodes(
    nodes: &mut BTreeMap<NodeId, DocNode>,
    subgraph: Option<&str>,
    registry: &Registry,
    notes: &mut Vec<MigrationNote>,
) -> RenamedPorts {
    let mut renamed = RenamedPorts::default();
    for (id, node) in nodes {
        let Some(ty) = registry.get(&node.type_name) else {
            continue;
        };
        let (from, to) = (node.version, ty.spec().version);
        if from == to {
            continue;
        }
        let outcome = if from > to {
            MigrationOutcome::Newer
        } else {
            match ty.migrate(from, node.widgets.clone()) {
                Err(error) => MigrationOutcome::Refused {
                    reason: error.message,
                },
                Ok(widgets) => {
                    node.widgets = widgets;
                    node.version = to;
                    let ports = ty.renamed_ports(from);
                    for (old, new) in &ports.inputs {
                        if let Some(link) = node.links.remove(old) {
                            node.links.insert(new.clone(), link);
                        }
                    }
                    renamed.inputs.insert(id.clone(), ports.inputs);
                    renamed.outputs.insert(id.clone(), ports.outputs);
                    MigrationOutcome::Migrated
                }
            }
        };
        notes.push(MigrationNote {
            subgraph: subgraph.map(str::to_owned),
            node: id.clone(),
            type_name: node.type_name.clone(),
            from,
            to,
            outcome,
        });
    }
    renamed
}

fn follow(nodes: &mut BTreeMap<NodeId, DocNode>, outputs: &Renamed) {
    let links = nodes.values_mut().flat_map(|node| node.links.values_mut());
    links.for_each(|link| rename(link, outputs));
}

fn rename(link: &mut Link, ports: &Renamed) {
    let names = ports.get(&link.node).map_or(&[][..], Vec::as_slice);
    if let Some((_, new)) = names.iter().find(|(old, _)| *old == link.output) {
        link.output.clone_from(new);
    }
}
