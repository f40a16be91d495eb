//! HTTP pieces: who may ask, files by content with ranges, an event stream that can be resumed.
//!
//! Duty: what every HTTP surface of the product needs and must not build twice. [`Gate`] holds
//! the token, the allowed hosts and origins (against DNS rebinding); [`file_response`] serves a
//! file with ranges; [`artifact_routes`] serve a store to other machines; [`EventLog`] numbers
//! events and lets a websocket go on where it was cut off. It must not know commands, projects or what an event says.
//!
//! Invariants: a request without the token learns nothing but that; a request whose `Host` or
//! `Origin` is foreign is refused even with the token; every path is below the folder it was
//! given for.

mod artifacts;
mod events;
mod files;
mod gate;
mod sniff;

pub use artifacts::{
    ArtifactFile, ArtifactSource, ArtifactSourceError, artifact_routes, serve_artifacts,
};
pub use events::{EventLog, follow};
pub use files::{Caching, below, file_response, type_of_name};
pub use gate::{Gate, Pass, Refusal, Token};
pub use sniff::media_type_of;
