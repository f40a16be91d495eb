//! `cargo xtask bindings`: the command list in TypeScript.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{film, steps};

/// Where the pages read it, from the root.
pub(crate) const FILE: &str = "ui/src/api/generated.ts";

/// Builds the program and lets it write its command list down.
///
/// # Errors
/// The build failed, or the file cannot be written.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut write = Command::new(film::build(root)?);
    write.arg("bindings").arg(root.join(FILE));
    steps::pass(&mut write)
}
