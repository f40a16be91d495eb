//! `cargo xtask bench`: builds the bench program as packages hold it and runs it; `--peers` builds what it is
//! compared with first.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::{film, models, setup, steps, ui};

/// Where a peer's packages lie, and what tells the bench so.
struct Peer {
    /// The bench that it belongs to.
    bench: &'static str,
    /// Requirements of it in tests/tools/peers, and name of its folder.
    name: &'static str,
    /// Variable that names its Python.
    variable: &'static str,
    /// Settings of its build.
    build: &'static [(&'static str, &'static str)],
    /// Packages that are built here from source, so that they use this machine's instructions.
    from_source: &'static str,
}

const PEERS: &[Peer] = &[
    Peer {
        bench: "text",
        name: "llama_cpp",
        variable: "LONGTAKE_LLAMA_CPP_PYTHON",
        build: &[("CMAKE_ARGS", "-DGGML_NATIVE=ON")],
        from_source: "llama-cpp-python",
    },
    Peer {
        bench: "upscale",
        name: "realesrgan_ncnn",
        variable: "LONGTAKE_NCNN_PYTHON",
        build: &[],
        from_source: "",
    },
];

/// What to measure and how.
pub(crate) struct Order<'a> {
    /// Names of benches.
    pub(crate) what: &'a [String],
    /// Keep receipts under tests/receipts/ and not in `local/` there.
    pub(crate) keep: bool,
    /// Measure peers too; they are built first.
    pub(crate) peers: bool,
    /// Print one line of JSON a bench.
    pub(crate) json: bool,
}

/// Runs benches.
///
/// # Errors
/// Setup, a build or a bench failed.
pub(crate) fn run(root: &Path, order: &Order<'_>) -> Result<()> {
    let asked = |bench: &str| order.what.iter().any(|name| name == bench || name == "all");
    let with_window = asked("studio");
    setup::run(
        setup::Mode::Install,
        match with_window {
            true => setup::For::Everything,
            false => setup::For::Films,
        },
    )?;
    models::run(setup::Mode::Install)?;
    let target = film::target_folder(root)?;
    let mut build_all = Command::new(film::cargo());
    build_all
        .args(["build", "--profile", "dist", "--locked"])
        .args(["--package", "longtake-tests", "--bin", "longtake-bench"])
        .args(["--package", "flow-cli", "--bin", "longtake"])
        .current_dir(root);
    if with_window {
        ui::build(root)?;
        build_all.args(["--package", "longtake-desktop", "--bin", "longtake-desktop"]);
    }
    steps::pass(&mut build_all)?;
    let mut bench = Command::new(target.join("dist/longtake-bench"));
    bench.args(order.what).current_dir(root);
    let receipts = match order.keep {
        true => "tests/receipts",
        false => "tests/receipts/local",
    };
    bench.args(["--receipts", receipts]);
    if order.json {
        bench.arg("--json");
    }
    if order.peers {
        bench.arg("--peers");
        for peer in PEERS.iter().filter(|peer| asked(peer.bench)) {
            if std::env::var_os(peer.variable).is_none() {
                bench.env(peer.variable, build(peer, root, &target)?);
            }
        }
    }
    steps::pass(&mut bench)
}

/// The Python of `peer` with its packages: made once, in the target folder.
fn build(peer: &Peer, root: &Path, target: &Path) -> Result<PathBuf> {
    let folder = target.join("peers").join(peer.name);
    let python = folder.join("bin/python");
    let done = folder.join("built");
    let list = root.join(format!("tests/tools/peers/{}.txt", peer.name));
    let wanted = std::fs::read(&list)?;
    if std::fs::read(&done).is_ok_and(|built| built == wanted) {
        return Ok(python);
    }
    steps::pass(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--requirement"])
        .arg(&list)
        .envs(peer.build.iter().copied());
    if !peer.from_source.is_empty() {
        pip.args(["--no-binary", peer.from_source]);
    }
    steps::pass(&mut pip)?;
    std::fs::write(&done, wanted)?;
    Ok(python)
}
