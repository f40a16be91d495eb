//! What can be wrong with a document, said so that a person can put it right.

use std::fmt;

use serde::Serialize;

use crate::document::NodeId;

/// The kind of a problem, stable across versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProblemKind {
    /// No node type of that name.
    UnknownType,
    /// No subgraph of that name.
    UnknownSubgraph,
    /// A subgraph holds itself.
    RecursiveSubgraph,
    /// Subgraphs nested deeper than is expanded.
    SubgraphTooDeep,
    /// More nodes after expansion than is run.
    TooManyNodes,
    /// Two nodes have one id after expansion.
    DuplicateId,
    /// A subgraph's input feeds, or its output comes from, something that is not there, or an
    /// inner input is fed twice.
    BadBoundary,
    /// Written with a newer version of the node type.
    NewerNodeVersion,
    /// Written with an older version of the node type; [`crate::migrate`] comes first.
    OlderNodeVersion,
    /// The node type has no input of that name.
    UnknownInput,
    /// The linked node has no output of that name.
    UnknownOutput,
    /// The linked node is not there.
    DanglingLink,
    /// The linked output does not give what the input takes.
    TypeMismatch,
    /// A value for an input that can only be linked.
    NotAWidget,
    /// A required input has neither a link that brings something nor a value.
    MissingInput,
    /// A value of another kind than the widget takes.
    ValueWrongType,
    /// A number below the smallest allowed.
    BelowMin,
    /// A number above the largest allowed.
    AboveMax,
    /// A choice that is not offered.
    NotInList,
    /// A text longer than allowed.
    TooLong,
    /// Not a content hash.
    BadAssetHash,
    /// The node type's own check.
    Custom,
    /// Nodes that wait for each other.
    Cycle,
    /// A target that is not there or does not run.
    BadTarget,
}

impl ProblemKind {
    /// The kind's name as written in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownType => "unknown_type",
            Self::UnknownSubgraph => "unknown_subgraph",
            Self::RecursiveSubgraph => "recursive_subgraph",
            Self::SubgraphTooDeep => "subgraph_too_deep",
            Self::TooManyNodes => "too_many_nodes",
            Self::DuplicateId => "duplicate_id",
            Self::BadBoundary => "bad_boundary",
            Self::NewerNodeVersion => "newer_node_version",
            Self::OlderNodeVersion => "older_node_version",
            Self::UnknownInput => "unknown_input",
            Self::UnknownOutput => "unknown_output",
            Self::DanglingLink => "dangling_link",
            Self::TypeMismatch => "type_mismatch",
            Self::NotAWidget => "not_a_widget",
            Self::MissingInput => "missing_input",
            Self::ValueWrongType => "value_wrong_type",
            Self::BelowMin => "below_min",
            Self::AboveMax => "above_max",
            Self::NotInList => "not_in_list",
            Self::TooLong => "too_long",
            Self::BadAssetHash => "bad_asset_hash",
            Self::Custom => "custom",
            Self::Cycle => "cycle",
            Self::BadTarget => "bad_target",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::UnknownType => "unknown node type",
            Self::UnknownSubgraph => "unknown subgraph",
            Self::RecursiveSubgraph => "subgraph holds itself",
            Self::SubgraphTooDeep => "subgraphs nested too deep",
            Self::TooManyNodes => "too many nodes",
            Self::DuplicateId => "two nodes have one id",
            Self::BadBoundary => "subgraph input or output leads nowhere",
            Self::NewerNodeVersion => "written with a newer version of the node type",
            Self::OlderNodeVersion => "written with an older version of the node type",
            Self::UnknownInput => "no such input",
            Self::UnknownOutput => "linked to an output that is not there",
            Self::DanglingLink => "linked to a node that is not there",
            Self::TypeMismatch => "linked to an output of another type",
            Self::NotAWidget => "a value where only a link can be",
            Self::MissingInput => "required input is missing",
            Self::ValueWrongType => "value of a wrong kind",
            Self::BelowMin => "value too small",
            Self::AboveMax => "value too large",
            Self::NotInList => "value not in the list",
            Self::TooLong => "text too long",
            Self::BadAssetHash => "not a content hash",
            Self::Custom => "value refused by the node type",
            Self::Cycle => "nodes wait for each other",
            Self::BadTarget => "target cannot be made",
        }
    }
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that is wrong. Its text form is one sentence with node, port, got and expected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The subgraph definition it lies in; `None` for the document itself, and for ids of the
    /// expanded graph such as `outer:inner`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subgraph: Option<String>,
    /// The node; empty when it is about a subgraph or the whole document.
    pub node: NodeId,
    /// The input or output, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Its kind.
    pub kind: ProblemKind,
    /// What was found. For a cycle, the path.
    pub got: String,
    /// What would be right.
    pub expected: String,
    /// The nearest name there is, when it is near.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub did_you_mean: Option<String>,
}

impl Problem {
    /// A problem of `node` in the document itself, or in the expanded graph.
    pub fn new(
        kind: ProblemKind,
        node: impl Into<NodeId>,
        got: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self {
            subgraph: None,
            node: node.into(),
            port: None,
            kind,
            got: got.into(),
            expected: expected.into(),
            did_you_mean: None,
        }
    }

    /// With the port it is about.
    #[must_use]
    pub fn at_port(mut self, port: impl Into<String>) -> Self {
        self.port = Some(port.into());
        self
    }

    pub(crate) fn within(mut self, subgraph: Option<&str>) -> Self {
        self.subgraph = subgraph.map(str::to_owned);
        self
    }

    pub(crate) fn near(mut self, name: Option<String>) -> Self {
        self.did_you_mean = name;
        self
    }
}

/// Problems as they are found. A hostile file must not fill memory with sentences: past
/// [`Problems::LISTED_MAX`] they are only counted.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    listed: Vec<Problem>,
    count: usize,
}

impl Problems {
    pub(crate) const LISTED_MAX: usize = 10_000;

    pub(crate) fn push(&mut self, problem: Problem) {
        self.count += 1;
        if self.listed.len() < Self::LISTED_MAX {
            self.listed.push(problem);
        }
    }

    /// How many there are, listed or not.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn into_listed(self) -> Vec<Problem> {
        self.listed
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subgraph = self
            .subgraph
            .as_ref()
            .map(|name| format!("subgraph {name:?}"));
        let node = Some(&self.node).filter(|id| !id.is_empty());
        let node = node.map(|id| format!("node {id:?}"));
        let port = self.port.as_ref().map(|name| format!("port {name:?}"));
        let place: Vec<_> = [subgraph, node, port].into_iter().flatten().collect();
        let colon = if place.is_empty() { "" } else { ": " };
        f.write_str(&place.join(" "))?;
        let (what, expected, got) = (self.kind.sentence(), &self.expected, &self.got);
        write!(f, "{colon}{what}: expected {expected}, got {got}")?;
        if let Some(name) = &self.did_you_mean {
            write!(f, "; did you mean {name:?}?")?;
        }
        Ok(())
    }
}
