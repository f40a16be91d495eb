//! `cargo xtask faults`: a small film on a small cluster while something goes wrong.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{film, models, nats, setup, steps};

/// What to strike with.
pub(crate) struct Order<'a> {
    /// Moments of each kind.
    pub(crate) moments: u32,
    /// Decides the moments.
    pub(crate) seed: u64,
    /// Only these kinds.
    pub(crate) only: &'a [String],
    /// Long cuts last as long as they are called.
    pub(crate) full: bool,
    /// Keep the receipt where tables may refer to it.
    pub(crate) keep: bool,
    /// Print nothing but one line of JSON.
    pub(crate) json: bool,
}

/// Builds the program, its product and the faults, and runs them.
///
/// # Errors
/// Setup or the build failed; a fault lost something, or had it made twice.
pub(crate) fn run(root: &Path, order: &Order<'_>) -> Result<()> {
    setup::run(setup::Mode::Install, setup::For::Films)?;
    models::run(setup::Mode::Install)?;
    nats::run(root, setup::Mode::Install)?;
    let target = film::target_folder(root)?;
    steps::pass(
        Command::new(film::cargo())
            .args(["build", "--locked", "--package", "longtake-faults"])
            .args([
                "--package",
                "flow-cli",
                "--bin",
                "longtake-faults",
                "--bin",
                "longtake",
            ])
            .current_dir(root),
    )?;
    let mut faults = Command::new(target.join("debug/longtake-faults"));
    faults.current_dir(root);
    faults.args(["--moments", &order.moments.to_string()]);
    faults.args(["--seed", &order.seed.to_string()]);
    if !order.only.is_empty() {
        faults.args(["--only", &order.only.join(",")]);
    }
    if order.full {
        faults.arg("--full");
    }
    if order.json {
        faults.arg("--json");
    }
    let receipts = match order.keep {
        true => "tests/receipts",
        false => "tests/receipts/local",
    };
    faults.args(["--receipts", receipts]);
    steps::pass(&mut faults)
}
