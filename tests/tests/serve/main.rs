//! The studio over HTTP, as a browser or an agent would use it.
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test that cannot go on fails there; its calls read like those of a client"
)]

mod edits;
mod gate;
mod jobs;
mod joined;
mod kit;
mod media;
mod models;
mod trouble;
