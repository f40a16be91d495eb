//! What the fuzz targets run: each a function from any bytes to nothing, or to a panic that names
//! what did not hold.
//!
//! Two programs use it: the targets in `fuzz_targets/`, which search with a nightly compiler, and
//! the ordinary test `tests/tests/fuzz_seeds.rs`, which takes this file in by its path and runs
//! the seeds and some thousands of changes to them with no other tool. `subtitle.rs` stands beside
//! it because it alone links FFmpeg.

mod adapter;
mod document;
mod script;
mod store;
mod store_files;

pub use adapter::adapter;
pub use document::document;
pub use script::script;
pub use store::store;
pub use store_files::store_files;
