//! The studio as one who uses it meets it: how long until it can be used, and how it answers in a
//! large film. The scripts that drive the window and the browser measure; this keeps what they say.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use longtake_tests::{Better, Receipt};
use serde_json::Value;

use crate::{Bench, Samples};

pub(crate) const BENCH: Bench = Bench {
    name: "studio",
    about: "from a start to a usable page; keys and frames in a film of 300 shots",
    run,
};

/// Starts of the window, and of the server with a page.
const STARTS: u32 = 7;
/// Runs of the keys and the frames.
const ROUNDS: u32 = 3;
/// Longest that a start may take.
const START_MILLIS_MAX: f64 = 1_500.0;
/// Longest that a key or a frame may take.
const FRAME_MILLIS_MAX: f64 = 50.0;

/// The program `name` beside this one.
fn program(name: &str) -> Result<PathBuf> {
    let here = std::env::current_exe().context("cannot tell where this program lies")?;
    let path = here.with_file_name(name);
    if !path.is_file() {
        bail!("expected the program to measure: {}", path.display());
    }
    Ok(path)
}

/// What `script` of the page's tests prints, which is JSON.
fn told(script: &str, args: &[String]) -> Result<Value> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui");
    let told = Command::new("node")
        .arg(page.join("tests/e2e").join(script))
        .args(args)
        .env("LONGTAKE_BIN", program("longtake")?)
        .env("LONGTAKE_DESKTOP_BIN", program("longtake-desktop")?)
        .current_dir(page)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start node")?;
    if !told.status.success() {
        bail!("{script} ended with {}", told.status);
    }
    serde_json::from_slice(&told.stdout).with_context(|| format!("{script} prints no JSON"))
}

fn run(receipt: &mut Receipt, _peers: bool) -> Result<()> {
    let mut samples = Samples::new();
    let starts = told("start.mjs", &[STARTS.to_string()])?;
    for (kind, row) in [
        ("window", "start of the window"),
        ("browser", "start in a browser"),
    ] {
        let millis = starts[kind].as_array().context("no starts were told")?;
        for one in millis.iter().filter_map(Value::as_f64) {
            samples.add(row, one);
        }
        samples.row(receipt, row, "ms", Better::Lower, Some(START_MILLIS_MAX))?;
    }
    let rows = [
        ("/typing/work_per_key/max", "work of a key, slowest"),
        ("/typing/key_to_picture/median", "key to picture, median"),
        ("/typing/key_to_picture/max", "key to picture, slowest"),
        ("/scrolling/median", "frame of a scrolled board, median"),
        ("/scrolling/max", "frame of a scrolled board, slowest"),
    ];
    for _ in 0..ROUNDS {
        let speed = told("speed.mjs", &[])?;
        for (place, row) in rows {
            let value = speed.pointer(place).and_then(Value::as_f64);
            let value = value.with_context(|| format!("speed.mjs tells no {place}"))?;
            samples.add(row, value);
        }
    }
    for (_, row) in rows {
        samples.row(receipt, row, "ms", Better::Lower, Some(FRAME_MILLIS_MAX))?;
    }
    Ok(())
}
