//! Checkpoints: named tensors in files, read where they lie.
//!
//! Duty: GGUF and safetensors on disk, as one trait, ncnn networks, and what packed blocks mean. It must not know
//! model families, devices or where files come from, and it reads no pickles and runs nothing a
//! checkpoint says.
//!
//! Entry points: [`open`] for any weights by their content, [`Gguf`] and [`SafeTensors`] for one
//! kind, [`Ncnn`] for networks to be converted by [`write_safetensors`], [`quant`] for the values of packed blocks, [`inspect`] for people.
//!
//! Every count, size and offset of a file is checked against the file's length before it is used,
//! so what is allocated stays within a small multiple of the header's own bytes.
//!
//! Files are memory-mapped. Whoever changes or cuts a file while it is open changes the tensors
//! under the reader, or ends the process (bus error): the hub writes files under a temporary name
//! and renames them, and never in place. Text is copied out at once, so that a changed file can
//! give wrong weights but never broken strings.

mod adapters;
mod checkpoint;
mod error;
mod finite;
mod gguf;
mod inspect;
mod mapped;
mod metadata;
mod ncnn;
pub mod quant;
mod renamed;
mod safetensors;
mod scaled;
mod sniff;
mod table;

pub use adapters::{
    Adapted, Adapter, AdapterError, AdapterPart, AdapterUse, NETWORK_PART, SECOND_TEXT_PART,
    TEXT_PART, family_of_modules,
};
pub use checkpoint::{Checkpoint, CheckpointKind, TensorRef, WeightFile};
pub use error::{Found, WeightsError};
pub use finite::first_non_finite;
pub use gguf::Gguf;
pub use inspect::{DtypeUse, Inspection, inspect};
pub use metadata::{Array, ArrayKind, Metadata, MetadataError, Value};
pub use ncnn::{Ncnn, NcnnLayer};
pub use renamed::{Renamed, TensorSource};
pub use safetensors::{HEADER_CAP_BYTES, SafeTensors, safetensors_bytes, write_safetensors};
pub use scaled::ScaledRows;
pub use sniff::open;
