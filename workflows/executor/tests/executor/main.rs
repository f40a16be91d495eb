//! The executor with stub nodes and a record of what ran.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod elsewhere;
mod expansion;
mod failure;
mod kit;
mod lists;
mod planning;
mod random;
mod reuse;
mod running;
mod scale;
