//! Workflow graphs: documents, node specs, the [`Node`] trait, opaque values, validation, order, keys.
//!
//! Duty: say what a graph is and what identifies a piece of work in it. It must not know the
//! engine, the store, files, film, or how a graph is run; node types live elsewhere and are handed
//! in as a [`Registry`].
//!
//! Invariants: a [`engine_base::Key`] never depends on node ids, titles, layout, paths, time or
//! host; equal documents serialize to equal bytes.

mod checks;
mod compose;
mod document;
mod expand;
mod flat;
mod key;
mod migrate;
mod node;
mod parts;
mod problem;
mod read;
mod registry;
mod spec;
mod suggest;
mod value;
mod widget;
mod write;

pub use compose::IdTaken;
pub use document::{DocNode, Document, Layout, Link, Mode, NodeId, Position, Subgraph};
pub use flat::{
    FlatGraph, FlatInput, FlatNode, FlattenError, FlattenOptions, Flattened, flatten,
    flatten_runnable, validate,
};
pub use key::{KeyError, KeyInput, KeyMaker, key};
pub use migrate::{MigrationNote, MigrationOutcome, migrate};
pub use node::{
    Artifacts, Call, Expansion, ExpansionOutput, Node, NodeContext, NodeError, Outcome, PortOutput,
    PortRenames, TempBlob,
};
pub use problem::{Problem, ProblemKind};
pub use read::{Limits, ReadError};
pub use registry::{Registry, RegistryError};
pub use spec::{Exactness, InputSpec, Lane, NodeSpec, OutputSpec, PortType, Widget};
pub use value::{BlobRef, Handle, Value};
pub use write::WriteError;
