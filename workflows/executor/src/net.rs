//! The nodes of a run by index, with where their inputs come from.

use std::sync::Arc;

use flow_graph::{Node, Value};

/// Where an input comes from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Nowhere.
    Absent,
    /// A widget value, or elements given to an expansion.
    Fixed(Arc<Vec<Value>>),
    /// An output of another node, by index.
    Link {
        node: usize,
        output: usize,
        /// Waits until the node asks for it.
        lazy: bool,
    },
}

/// A node before it takes part in a run.
pub(crate) struct NetNode {
    /// Id in its document.
    pub(crate) id: String,
    /// The node of the document itself that it came from.
    pub(crate) origin: String,
    pub(crate) node: Arc<dyn Node>,
    /// By input in port order.
    pub(crate) sources: Vec<Source>,
}

/// Nodes that link only to each other.
#[derive(Default)]
pub(crate) struct Net {
    pub(crate) nodes: Vec<NetNode>,
}

impl Net {
    /// For every node how many links of nodes that `roots` can reach lead to it; `None` for
    /// nodes out of reach.
    pub(crate) fn consumers(&self, roots: impl IntoIterator<Item = usize>) -> Vec<Option<usize>> {
        let mut consumers: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut open: Vec<usize> = Vec::new();
        let reach = |node: usize, consumers: &mut Vec<Option<usize>>, open: &mut Vec<usize>| {
            if consumers[node].is_none() {
                open.push(node);
            }
            consumers[node].get_or_insert(0);
        };
        for root in roots {
            reach(root, &mut consumers, &mut open);
        }
        while let Some(at) = open.pop() {
            for source in &self.nodes[at].sources {
                if let Source::Link { node, .. } = source {
                    reach(*node, &mut consumers, &mut open);
                    consumers[*node] = consumers[*node].map(|count| count + 1);
                }
            }
        }
        consumers
    }
}
