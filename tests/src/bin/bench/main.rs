//! The bench program: runs named benches and keeps a receipt of each.
//!
//! A bench is one file here with a `BENCH` and one line in `BENCHES`.
#![allow(
    clippy::print_stdout,
    reason = "a command line tool: its output is what it is for"
)]

mod executor;
mod export;
mod memory;
mod packs;
mod peer;
mod samples;
mod sound;
mod studio;
mod text;
mod upscale;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use longtake_tests::load::load_average;
use longtake_tests::receipt::Measured;
use longtake_tests::{Better, Receipt};

use samples::Samples;

/// Something that can be measured.
#[derive(Debug, Clone, Copy)]
struct Bench {
    /// Its name, which is that of its receipt.
    name: &'static str,
    /// What it measures, in one line.
    about: &'static str,
    /// Measures and fills the receipt; with peers when asked to.
    run: fn(&mut Receipt, bool) -> Result<()>,
}

const BENCHES: &[Bench] = &[
    executor::BENCH,
    export::BENCH,
    memory::BENCH,
    sound::BENCH,
    studio::BENCH,
    text::BENCH,
    upscale::BENCH,
];

/// Measures, and keeps receipts.
#[derive(Debug, Parser)]
struct Arguments {
    /// Benches to run, or `all`; without any they are listed.
    what: Vec<String>,
    /// Measure the peers of each bench in turn with ours.
    #[arg(long)]
    peers: bool,
    /// Print nothing but the last line, which is JSON.
    #[arg(long)]
    json: bool,
    /// Folder for the receipts.
    #[arg(long, default_value = "tests/receipts/local")]
    receipts: PathBuf,
}

/// The benches of these names, in the list's order for `all`.
fn chosen(benches: &[Bench], names: &[String]) -> Result<Vec<Bench>> {
    let known: Vec<&str> = benches.iter().map(|bench| bench.name).collect();
    let mut chosen = Vec::new();
    for name in names {
        if name == "all" {
            chosen.extend_from_slice(benches);
        } else if let Some(bench) = benches.iter().find(|bench| bench.name == name) {
            chosen.push(*bench);
        } else if known.is_empty() {
            bail!("no such bench: {name:?}; there are none yet");
        } else {
            bail!(
                "no such bench: {name:?}; expected one of {}",
                known.join(", ")
            );
        }
    }
    if !names.is_empty() && chosen.is_empty() {
        bail!("nothing to measure: there are no benches yet");
    }
    Ok(chosen)
}

fn run(arguments: &Arguments) -> Result<()> {
    let benches = chosen(BENCHES, &arguments.what)?;
    if benches.is_empty() {
        println!("{} benches", BENCHES.len());
        for bench in BENCHES {
            println!("  {:<16} {}", bench.name, bench.about);
        }
    }
    for bench in benches {
        if !arguments.json {
            println!("== {}: {}", bench.name, bench.about);
        }
        let mut receipt = Receipt::new(bench.name)?;
        let before = load_average();
        (bench.run)(&mut receipt, arguments.peers)
            .with_context(|| format!("bench {:?}", bench.name))?;
        add_load(&mut receipt, before)?;
        if !arguments.json {
            print_table(&receipt);
        }
        let path = receipt.write(&arguments.receipts)?;
        receipt.print_last_line(&path, std::io::stdout().lock())?;
    }
    Ok(())
}

/// How busy the machine was before and after, where it says so: the reader's measure of the
/// other figures.
fn add_load(receipt: &mut Receipt, before: Option<f64>) -> Result<()> {
    let samples: Vec<f64> = before.into_iter().chain(load_average()).collect();
    if !samples.is_empty() {
        receipt.add(Measured {
            name: "load average of the machine",
            unit: "threads",
            better: Better::Lower,
            samples: &samples,
            peer: None,
            floor: None,
        })?;
    }
    Ok(())
}

fn print_table(receipt: &Receipt) {
    let some = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
    println!(
        "{:<36} {:>10} {:<12} {:>10} {:>10} {:>10} {:>7} {:>8}",
        "", "median", "unit", "min", "max", "peer", "ratio", "floor"
    );
    for row in &receipt.rows {
        println!(
            "{:<36} {:>10.2} {:<12} {:>10.2} {:>10.2} {:>10} {:>7} {:>8}",
            row.name,
            row.value,
            row.unit,
            row.spread.min,
            row.spread.max,
            some(row.peer_value),
            some(row.ratio),
            some(row.floor),
        );
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[Bench] = &[
        Bench {
            name: "plan",
            about: "planning",
            run: |_, _| Ok(()),
        },
        Bench {
            name: "store",
            about: "commits",
            run: |_, _| Ok(()),
        },
    ];

    fn names(benches: &[Bench], asked: &[&str]) -> Result<Vec<&'static str>> {
        let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
        Ok(chosen(benches, &asked)?
            .iter()
            .map(|bench| bench.name)
            .collect())
    }

    #[test]
    fn benches_are_chosen_by_name_or_all() {
        assert_eq!(names(TWO, &["store"]).unwrap(), ["store"]);
        assert_eq!(names(TWO, &["all"]).unwrap(), ["plan", "store"]);
        assert_eq!(names(TWO, &[]).unwrap(), [""; 0]);
    }

    #[test]
    fn an_unknown_bench_is_refused_with_the_known_ones() {
        let error = names(TWO, &["plan", "hash"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "no such bench: \"hash\"; expected one of plan, store"
        );
        assert!(
            names(&[], &["hash"])
                .unwrap_err()
                .to_string()
                .contains("none yet")
        );
        assert!(names(&[], &["all"]).is_err());
    }
}
