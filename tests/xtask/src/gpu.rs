//! `cargo xtask gpu`: what a machine with a GPU and without Rust needs, in parts that can be carried, and what it
//! brought back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::check::gpu_results;
use crate::{film, models, setup, steps};

/// Largest part, in bytes.
const PART_BYTES: u64 = 60 << 20;

const UPSCALER: &str = "realesr-animevideov3-x2/realesr-animevideov3-x2.safetensors";
const DENSE: &str = "realesrgan-x4plus/realesrgan-x4plus.safetensors";

/// Run there, in the folder that holds all parts.
const RUN: &str = r#"#!/bin/sh
# Run on the machine with the GPU, in the folder that all parts were put into. Writes results/.
set -e
cd "$(dirname "$0")"
for first in $(find . -name '*.piece000'); do
  cat "${first%000}"[0-9][0-9][0-9] > "${first%.piece000}"
done
mkdir -p results
common="--commit COMMIT --fixtures fixtures --upscaler upscaler.safetensors --dense dense.safetensors --cache cache"
./engine-bench fault
memcheck=""
if command -v compute-sanitizer >/dev/null; then
  compute-sanitizer --tool memcheck ./engine-bench check $common > results/memcheck.txt 2>&1 || true
  memcheck="--memcheck results/memcheck.txt"
fi
./engine-bench check $common $memcheck --out results/gpu-checks.json
python3 peers.py results/peers.json || echo "no peers"
peers=""; [ -f results/peers.json ] && peers="--peers results/peers.json"
./engine-bench time $common $peers --out results/gpu.json
"#;

/// Packs into `out`, as `part-1`, `part-2` …
///
/// # Errors
/// Setup or the build failed, a file is missing, or `out` cannot be written.
pub(crate) fn pack(root: &Path, out: &Path) -> Result<()> {
    models::run(setup::Mode::Install)?;
    let target = film::target_folder(root)?;
    steps::pass(
        Command::new(film::cargo())
            .args([
                "build",
                "--release",
                "--locked",
                "--package",
                "engine-bench",
            ])
            .current_dir(root),
    )?;
    let stage = out.join("stage");
    if out.exists() {
        bail!("expected a new folder: {}", out.display());
    }
    fs::create_dir_all(&stage)?;
    let program = stage.join("engine-bench");
    fs::copy(target.join("release/engine-bench"), &program)?;
    if steps::answers(Command::new("strip").arg("--version")) {
        steps::pass(Command::new("strip").arg(&program))?;
    }
    let models = engine_hub::HubOptions::of_this_machine()?.folder;
    for (from, to) in [
        (UPSCALER, "upscaler.safetensors"),
        (DENSE, "dense.safetensors"),
    ] {
        let from = models.join(from);
        fs::copy(&from, stage.join(to)).with_context(|| {
            format!(
                "cargo xtask setup, or longtake models pull, fetches it: {}",
                from.display()
            )
        })?;
    }
    for model in ["llama", "qwen3"] {
        let to = stage.join("fixtures").join(model);
        fs::create_dir_all(&to)?;
        for file in ["config.json", "model.safetensors"] {
            let from = root.join("tests/fixtures").join(model).join(file);
            fs::copy(&from, to.join(file)).with_context(|| from.display().to_string())?;
        }
    }
    fs::copy(root.join("tests/gpu/peers.py"), stage.join("peers.py"))?;
    let commit = steps::output(
        Command::new("git")
            .args(["rev-parse", "HEAD"])
            .current_dir(root),
    )?;
    let commit = String::from_utf8_lossy(&commit).trim().to_owned();
    let dirty = !steps::output(
        Command::new("git")
            .args(["status", "--porcelain"])
            .current_dir(root),
    )?
    .is_empty();
    let commit = if dirty {
        format!("{commit}+dirty")
    } else {
        commit
    };
    fs::write(stage.join("run.sh"), RUN.replace("COMMIT", &commit))?;
    let parts = split(&stage, out, PART_BYTES)?;
    fs::remove_dir_all(&stage)?;
    println!(
        "{parts} parts of at most {} MB: {}",
        PART_BYTES >> 20,
        out.display()
    );
    println!(
        "put them into one folder there, run `sh run.sh`, and bring its results/ back for `cargo xtask gpu --results FOLDER`"
    );
    Ok(())
}

/// Files below `folder`, relative, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(relative) = path.strip_prefix(folder) {
                found.push(relative.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Moves what is in `stage` to parts of at most `limit` bytes below `out`; larger files become pieces.
fn split(stage: &Path, out: &Path, limit: u64) -> Result<usize> {
    let (mut part, mut room) = (1, limit);
    let mut place = |name: &Path, bytes: &[u8]| -> Result<()> {
        let len = bytes.len() as u64;
        if len > room {
            part += 1;
            room = limit;
        }
        room -= len;
        let to = out.join(format!("part-{part}")).join(name);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&to, bytes).with_context(|| format!("cannot write: {}", to.display()))
    };
    for name in files(stage)? {
        let from = stage.join(&name);
        let bytes = fs::read(&from)?;
        if bytes.len() as u64 <= limit {
            place(&name, &bytes)?;
            let to = files(out)?
                .into_iter()
                .find(|path| path.ends_with(&name) && !path.starts_with("stage"));
            if let Some(to) = to {
                fs::set_permissions(out.join(to), fs::metadata(&from)?.permissions())?;
            }
            continue;
        }
        let step = usize::try_from(limit)?;
        for (at, piece) in bytes.chunks(step).enumerate() {
            place(
                Path::new(&format!("{}.piece{at:03}", name.display())),
                piece,
            )?;
        }
    }
    Ok(part)
}

/// Takes the receipts in `results` into the tree and renders their table.
///
/// # Errors
/// A receipt is missing or no receipt.
pub(crate) fn take(root: &Path, results: &Path) -> Result<()> {
    let mut taken = 0;
    for name in files(results)? {
        let from = results.join(&name);
        let called = name.to_string_lossy();
        if !called.starts_with("gpu") || !called.ends_with(".json") {
            continue;
        }
        let text = fs::read_to_string(&from).with_context(|| from.display().to_string())?;
        let read: Value = serde_json::from_str(&text)
            .with_context(|| format!("not a receipt: {}", from.display()))?;
        if !read["rows"].is_array() || read["commit"].is_null() {
            bail!("not a receipt: {}", from.display());
        }
        fs::write(root.join("tests/receipts").join(&name), text)?;
        taken += 1;
    }
    if taken == 0 {
        bail!(
            "expected receipts such as gpu.json or gpu-checks.json in {}",
            results.display()
        );
    }
    render(root)
}

/// Writes the table of the kept receipts.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn render(root: &Path) -> Result<()> {
    let mut receipts = Vec::new();
    for entry in fs::read_dir(root.join("tests/receipts"))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with("gpu") && name.ends_with(".json") {
            receipts.push((format!("tests/receipts/{name}"), fs::read_to_string(&path)?));
        }
    }
    receipts.sort();
    let borrowed = receipts
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()));
    let to = root.join(gpu_results::PLACE);
    fs::write(&to, gpu_results::rendered(borrowed))?;
    println!("{}", to.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_under_the_limit_and_pieces_join_again() {
        let root = crate::root().unwrap();
        let name = format!("xtask-gpu-{}", std::process::id());
        let folder = film::target_folder(&root).unwrap().join(name);
        let stage = folder.join("stage");
        fs::create_dir_all(stage.join("sub")).unwrap();
        let large: Vec<u8> = (0..250u8).collect();
        fs::write(stage.join("large"), &large).unwrap();
        fs::write(stage.join("sub/small"), [7; 60]).unwrap();
        fs::write(stage.join("tiny"), [1; 30]).unwrap();
        let parts = split(&stage, &folder, 100).unwrap();
        let mut joined = Vec::new();
        for part in 1..=parts {
            let at = folder.join(format!("part-{part}"));
            let mut bytes = 0;
            for name in files(&at).unwrap() {
                let piece = fs::read(at.join(&name)).unwrap();
                bytes += piece.len();
                if name.to_string_lossy().contains(".piece") {
                    joined.extend(piece);
                }
            }
            assert!(bytes <= 100, "part {part} has {bytes}");
        }
        assert_eq!(joined, large);
        fs::remove_dir_all(&folder).unwrap();
    }
}
