//! The longtake command.
fn main() {}
