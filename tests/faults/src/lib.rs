//! Hosts, links and processes to strike a cluster on, and receipts of what came of it.
//!
//! Duty: what the faults program and its tests need. It must not know the product's crates but its
//! store, which it reads afterwards: it sees `longtake` as its users do, as a program.
//!
//! Receipts are the same two files as the benches': their crate needs all of the product built.

#[path = "../../src/machine.rs"]
pub mod machine;
pub mod network;
#[path = "../../src/receipt.rs"]
pub mod receipt;

pub use receipt::{Better, Receipt};
