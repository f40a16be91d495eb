//! `cargo xtask bench`: builds the bench program in release and runs it.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{film, models, setup, steps};

/// Runs the benches named in `what`; their receipts are kept under tests/receipts/, in `local/`
/// unless `keep`.
///
/// # Errors
/// Setup, the build or a bench failed.
pub(crate) fn run(root: &Path, what: &[String], keep: bool) -> Result<()> {
    setup::run(setup::Mode::Install)?;
    models::run(setup::Mode::Install)?;
    steps::pass(
        Command::new(film::cargo())
            .args(["build", "--release", "--locked"])
            .args(["--package", "longtake-tests", "--bin", "longtake-bench"])
            .args(["--package", "flow-cli", "--bin", "longtake"])
            .current_dir(root),
    )?;
    let receipts = if keep {
        "tests/receipts"
    } else {
        "tests/receipts/local"
    };
    steps::pass(
        Command::new(film::target_folder(root)?.join("release/longtake-bench"))
            .args(what)
            .args(["--receipts", receipts])
            .current_dir(root),
    )
}
