//! Plain data and lists.

mod list_join;
mod list_range;
mod text_join;
mod value;

use std::sync::Arc;

use flow_graph::Node;

pub(crate) use list_join::ListJoin;

/// All types of this folder.
pub(crate) fn node_types() -> Vec<Arc<dyn Node>> {
    vec![
        Arc::new(list_join::ListJoin::new()),
        Arc::new(list_range::ListRange::new()),
        Arc::new(text_join::TextJoin::new()),
        Arc::new(value::Constant::new()),
    ]
}
