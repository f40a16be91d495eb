//! `cargo xtask films`: ten films from ten premises, with a sheet of their frames.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{film, models, setup, steps};

/// The premises, one a line.
const PREMISES: &str = "assets/premises.txt";

/// Frames of each film on the sheet.
const FRAMES: u32 = 6;

/// Makes the films, and writes `sheet.png` and `films.json` beside them.
///
/// # Errors
/// Setup, the build or a film failed; two films have the same script.
pub(crate) fn run(root: &Path, length: &str, seed: u64, out: &Path) -> Result<()> {
    setup::run(setup::Mode::Install, setup::For::Films)?;
    models::run(setup::Mode::Install)?;
    let program = film::build(root)?;
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let premises = fs::read_to_string(root.join(PREMISES))
        .with_context(|| format!("cannot read {PREMISES}"))?;
    let mut rows = Vec::new();
    let mut strips = Vec::new();
    let mut scripts = BTreeSet::new();
    for (at, premise) in premises.lines().filter(|line| !line.is_empty()).enumerate() {
        let name = format!("{:02}-{}", at + 1, film::file_name(premise));
        let path = out.join(format!("{name}.mp4"));
        println!("== {premise}");
        let told = steps::output(
            Command::new(&program)
                .args(["film", premise, "--json", "--length", length])
                .args(["--seed", &seed.to_string()])
                .arg("--out")
                .arg(&path),
        )?;
        let told: Value = serde_json::from_slice(&told).context("cannot read the film's report")?;
        let script = fs::read_to_string(path.with_extension("md"))
            .with_context(|| format!("the film has no script: {}", path.display()))?;
        let secs = told["film_secs"].as_f64().unwrap_or_default();
        println!(
            "   {secs:.1} s of film in {:.0} s, {} made",
            told["wall_secs"].as_f64().unwrap_or_default(),
            told["made"]
        );
        strips.push(strip(&path, secs, &out.join(format!("{name}.strip.png")))?);
        let is_new = scripts.insert(script.lines().skip(3).collect::<Vec<_>>().join("\n"));
        ensure!(is_new, "two films have the same script, one of {premise:?}");
        rows.push(json!({ "premise": premise, "film": path, "report": told }));
    }
    ensure!(
        !rows.is_empty(),
        "expected premises in {PREMISES}, got none"
    );
    let sheet = out.join("sheet.png");
    stack(&strips, &sheet)?;
    let text = serde_json::to_string_pretty(&rows)? + "\n";
    fs::write(out.join("films.json"), text).context("cannot write films.json")?;
    println!("{} films; frames of each: {}", rows.len(), sheet.display());
    Ok(())
}

/// Frames of a film side by side.
fn strip(film: &Path, secs: f64, out: &Path) -> Result<std::path::PathBuf> {
    if secs <= 0.0 {
        bail!("expected a film, got one of {secs} s: {}", film.display());
    }
    let every = secs / f64::from(FRAMES);
    let filter = format!("fps=1/{every:.4},scale=320:180,tile={FRAMES}x1");
    steps::pass(
        Command::new("ffmpeg")
            .args(["-v", "error", "-y", "-i"])
            .arg(film)
            .args(["-vf", &filter, "-frames:v", "1"])
            .arg(out),
    )?;
    Ok(out.to_owned())
}

/// Strips one under the other.
fn stack(strips: &[std::path::PathBuf], out: &Path) -> Result<()> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-y"]);
    for strip in strips {
        command.arg("-i").arg(strip);
    }
    if strips.len() > 1 {
        let filter = format!("vstack=inputs={}", strips.len());
        command.args(["-filter_complex", &filter]);
    }
    steps::pass(command.args(["-frames:v", "1"]).arg(out))?;
    for strip in strips {
        fs::remove_file(strip).with_context(|| format!("cannot remove {}", strip.display()))?;
    }
    Ok(())
}
