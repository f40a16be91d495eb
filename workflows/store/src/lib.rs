//! Results and files by content, and the database of a project.
//!
//! Duty: remember which work gave which content ([`Store`]), hold the files by content hash, and
//! hold a project's entities, settings and undo log ([`project::ProjectDb`]) and the jobs of a
//! studio ([`jobs::JobsDb`]), and what an owner of a cluster knows ([`cluster::ClusterDb`]). The only crate with SQL. It must not know graphs, nodes, media or film: it sees keys, plain data, files and JSON.
//!
//! Entry points: [`Store::open`], [`Store::lookup`], [`Store::adopt`], [`Store::submit`];
//! [`project::ProjectDb::open`]; [`jobs::JobsDb::open`].
//!
//! Invariants:
//! - A file under its content hash is whole: it is written under a temporary name, synced and
//!   renamed. A result is committed only after all its files are there.
//! - The first committed content of a key wins, between threads and between processes.
//! - A call that returned is durable. Nothing is ordered by the wall clock.
//! - A database of a newer schema is never opened for writing.

mod cbor;
mod check;
pub mod cluster;
mod commit;
mod db;
mod error;
mod faults;
mod files;
pub mod jobs;
mod migrate;
pub mod project;
mod prune;
mod session;
mod store;
mod values;
mod writer;

pub use check::CheckReport;
pub use error::StoreError;
pub use faults::Faults;
pub use prune::PruneReport;
pub use store::{
    CommitMark, CommitRecord, HoldGuard, MadeRecord, PendingCommit, Store, StoreCounts,
    StoreOptions,
};
pub use values::{
    Committed, DecodeError, Exactness, NewResult, Provenance, RESULT_MAX_BYTES, SMALL_MAX_BYTES,
    StoredBlob, StoredPort, StoredResult, StoredValue, content_of, decode_ports, encode_ports,
};
