//! Peak memory of a short and a long film, each made by the program in a process of its own.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use longtake_tests::film::scratch;
use longtake_tests::long_film::{FilmLine, LongFilm};
use longtake_tests::{Better, Receipt};

use crate::{Bench, Samples};

pub(crate) const BENCH: Bench = Bench {
    name: "memory",
    about: "peak memory of films of one and ten minutes",
    run,
};

/// Most memory a film may take.
const PEAK_FLOOR_MB: f64 = 1500.0;
/// How much more a film ten times as long may take.
const GROWTH_FLOOR: f64 = 1.1;
const SHORT_ROUNDS: usize = 3;

fn film(shots: usize, preset: &'static str) -> LongFilm {
    LongFilm {
        shots,
        shot_secs: 5,
        size_px: (1280, 720),
        fps: 24,
        preset,
    }
}

fn run(receipt: &mut Receipt, _peers: bool) -> Result<()> {
    let own = std::env::current_exe()?;
    let program = own.with_file_name(format!("longtake{}", std::env::consts::EXE_SUFFIX));
    ensure!(
        program.is_file(),
        "expected the program beside the benches: {program:?}"
    );
    let mut samples = Samples::new();
    for _ in 0..SHORT_ROUNDS {
        note(&mut samples, "1 minute", &program, &film(12, "ultrafast"))?;
    }
    note(
        &mut samples,
        "10 minutes",
        &program,
        &film(120, "ultrafast"),
    )?;
    // The default effort looks further ahead and so holds more frames.
    note(
        &mut samples,
        "1 minute, medium",
        &program,
        &film(12, "medium"),
    )?;
    let short = samples.middle("1 minute").context("no short film")?;
    let long = samples.middle("10 minutes").context("no long film")?;
    samples.add("10 minutes to 1", long / short);
    for name in ["1 minute", "10 minutes", "1 minute, medium"] {
        samples.row(receipt, name, "MB", Better::Lower, Some(PEAK_FLOOR_MB))?;
        let speed = format!("{name}, speed");
        samples.row(receipt, &speed, "x real time", Better::Higher, None)?;
    }
    let name = "10 minutes to 1";
    samples.row(receipt, name, "x", Better::Lower, Some(GROWTH_FLOOR))
}

fn note(samples: &mut Samples, name: &str, program: &Path, film: &LongFilm) -> Result<()> {
    let folder = tempfile::Builder::new()
        .prefix("longtake-memory-")
        .tempdir_in(scratch()?)?;
    let FilmLine {
        peak_bytes,
        wall_secs,
        ..
    } = film.make(program, folder.path())?;
    ensure!(peak_bytes > 0, "this system does not tell the peak memory");
    samples.add(name, peak_bytes as f64 / 1e6);
    samples.add(&format!("{name}, speed"), film.secs() / wall_secs);
    Ok(())
}
