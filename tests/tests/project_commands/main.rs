//! The program's other commands, as a person or a script would call them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod kit;
mod others;
mod project;
