//! Sound in and out: reading, mixing, measuring, coding, with signals made in code.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on fails with the message at hand; figures are for people"
)]

mod film;
mod long;
mod mix;
mod read;
mod support;
