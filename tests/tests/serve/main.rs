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

use std::path::Path;

#[test]
fn the_bindings_are_of_the_command_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/src/api/generated.ts");
    let there = std::fs::read_to_string(path).unwrap();
    let fresh = flow_studio::desk::typescript();
    assert_eq!(there, fresh, "make them again: cargo xtask bindings");
}
