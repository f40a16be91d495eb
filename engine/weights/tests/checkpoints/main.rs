//! Checkpoints read as their writers meant them, and damaged ones refused within bounds.

mod build;
mod cases;
mod damaged;
mod folders;
mod gguf;
mod heap;
mod safetensors_files;
mod vectors;

use std::path::{Path, PathBuf};

/// A file of the repository's `tests` folder.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests")
        .join(path)
}
