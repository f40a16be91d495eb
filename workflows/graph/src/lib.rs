//! Workflow graphs: documents, node specs, the [`Node`] trait, opaque values, validation, order, keys.
//!
//! Duty: say what a graph is and what identifies a piece of work in it. It must not know the
//! engine, the store, files, film, or how a graph is run; node types live elsewhere and are handed
//! in as a [`Registry`].
//!
//! Invariants: a [`engine_base::Key`] never depends on node ids, titles, layout, paths, time or
//! host; equal documents serialize to equal bytes.

mod document;
mod node;
mod registry;
mod spec;
mod value;

pub use document::{DocNode, Document, Layout, Link, Mode, NodeId, Position, Subgraph};
pub use node::{
    Artifacts, Call, Expansion, ExpansionOutput, Node, NodeContext, NodeError, Outcome, PortOutput,
    TempBlob,
};
pub use registry::{Registry, RegistryError};
pub use spec::{Exactness, InputSpec, Lane, NodeSpec, OutputSpec, PortType, Widget};
pub use value::{BlobRef, Handle, Value};
