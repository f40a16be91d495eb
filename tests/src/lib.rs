//! What the tests and benches across crates share: receipts of measured figures, films and graphs
//! to measure with.
//!
//! May name any crate of the product; none may name this one. Tests stand in `tests/`, benches in
//! `src/bin/bench/`, one file and one line in its list each.

pub mod cluster;
pub mod film;
pub mod graphs;
pub mod load;
pub mod long_film;
pub mod machine;
pub mod receipt;

pub use machine::Machine;
pub use receipt::{Better, Measured, Receipt, ReceiptError, Row, Spread};
