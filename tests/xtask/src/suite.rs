//! `cargo xtask test`: everything a change has to pass, in the order that fails soonest.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::film::cargo;
use crate::steps::{self, Steps};
use crate::{check, kernels, models, nats, package, setup, ui};

/// Seconds of fuzzing per target: a smoke test, not a search.
const FUZZ_SECS: u32 = 10;

/// What only `engine-bench` on a machine with a GPU checks.
const GPU_ONLY: &[&str] = &[
    "case tables of the ops against the CPU",
    "rows 1 to 16 of every product against a row alone",
    "repeats and replayed graphs bit for bit",
    "tokens of the tiny models against the CPU",
    "the upscaler's pictures against the CPU",
    "memcheck over all of them",
    "timed rows",
];

/// Sums over the test programs of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    /// Names of the tests that did not run.
    skipped: Vec<String>,
}

impl Tally {
    /// Takes the results of the page's tests into account.
    fn add(&mut self, page: ui::TapTally) {
        self.passed += page.passed;
        self.failed += page.failed;
        self.skipped.extend(page.skipped);
    }

    /// Takes one line of the test harness's output into account.
    fn read(&mut self, line: &str) {
        // A test that left its line open may stand before it.
        if let Some((_, counts)) = line.split_once("test result: ") {
            self.passed += count_before(counts, " passed");
            self.failed += count_before(counts, " failed");
        } else if let Some(test) = line.strip_prefix("test ")
            && let Some((name, outcome)) = test.split_once(" ... ")
            && outcome.starts_with("ignored")
        {
            let reason = outcome
                .trim_start_matches("ignored")
                .trim_start_matches([',', ' ']);
            let name = name.to_owned();
            self.skipped.push(if reason.is_empty() {
                name
            } else {
                format!("{name}: {reason}")
            });
        }
    }
}

/// The number right before `word`; 0 where there is none.
fn count_before(text: &str, word: &str) -> usize {
    let before = text.split_once(word).map_or("", |(before, _)| before);
    before
        .rsplit([' ', ';'])
        .next()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

fn cargo_in(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(cargo());
    command.args(args).current_dir(root);
    command
}

/// Names of the fuzz targets, by the files in `tests/fuzz/fuzz_targets`.
fn fuzz_targets(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("tests/fuzz/fuzz_targets");
    let mut names = Vec::new();
    if folder.is_dir() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "rs")
                && let Some(stem) = path.file_stem()
            {
                names.push(stem.to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Fuzzes each target shortly where the machine has the tools; says by name what it skips. The
/// tests run the same targets over their seeds without them.
fn fuzz(root: &Path, tally: &mut Tally) -> Result<()> {
    let targets = fuzz_targets(root)?;
    // rustup's proxy, not the pinned cargo: instrumented builds need the nightly compiler.
    let ready = steps::answers(Command::new("cargo").args(["+nightly", "fuzz", "--version"]));
    let folder = root.join("tests/fuzz");
    let mut failed = Vec::new();
    for target in targets {
        if !ready {
            tally.skipped.push(format!(
                "fuzz {target}: needs cargo-fuzz and a nightly compiler"
            ));
            continue;
        }
        let corpus = format!("corpus/{target}");
        std::fs::create_dir_all(folder.join(&corpus))?;
        let mut command = Command::new("cargo");
        command
            .args(["+nightly", "fuzz", "run", "--fuzz-dir", "."])
            .args([&target, &corpus, &format!("seeds/{target}"), "--"])
            .arg(format!("-max_total_time={FUZZ_SECS}"));
        let dictionary = format!("dictionaries/{target}.dict");
        if folder.join(&dictionary).is_file() {
            command.arg(format!("-dict={dictionary}"));
        }
        command
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO")
            .current_dir(&folder);
        match steps::pass(&mut command) {
            Ok(()) => tally.passed += 1,
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("; "));
    }
    Ok(())
}

/// How much of the suite runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everything but documentation.
    Quick,
    /// Everything a change has to pass. Fuzz targets run over their seeds, as tests.
    Whole,
    /// And a short search with each fuzz target.
    WithSearch,
}

/// Runs every step; the last line printed is `N passed, N failed`.
///
/// # Errors
/// A step or a test failed.
pub(crate) fn run(root: &Path, extent: Extent) -> Result<()> {
    let mut steps = Steps::default();
    let mut tally = Tally::default();
    let ready = steps.run("setup", || {
        setup::run(setup::Mode::Install, setup::For::Everything)?;
        models::run(setup::Mode::Install)?;
        nats::run(root, setup::Mode::Install)
    });
    steps.run("format", || {
        steps::pass(&mut cargo_in(root, &["fmt", "--all", "--check"]))
    });
    steps.run("check", || check::run(root));
    if ready {
        build_and_test(root, extent, &mut steps, &mut tally);
    }
    println!("\n{}", steps.table());
    for name in &tally.skipped {
        println!("skipped: {name}");
    }
    let failed = tally.failed + steps.failed();
    println!("{} passed, {failed} failed", tally.passed);
    if failed > 0 {
        bail!("{failed} failed");
    }
    Ok(())
}

fn build_and_test(root: &Path, extent: Extent, steps: &mut Steps, tally: &mut Tally) {
    // First: the programs take the built page in.
    let page = steps.run("page", || {
        ui::build(root)?;
        tally.add(ui::test(root)?);
        Ok(())
    });
    steps.run("clippy", || {
        let args = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ];
        steps::pass(&mut cargo_in(root, &args))
    });
    // Some tests start the product's binary, which `cargo test` builds only for its own package.
    let built = steps.run("build", || {
        steps::pass(&mut cargo_in(
            root,
            &["build", "--workspace", "--bins", "--locked"],
        ))?;
        steps::pass(&mut cargo_in(
            root,
            &["test", "--workspace", "--locked", "--no-run"],
        ))
    });
    if built {
        steps.run("tests", || {
            let args = ["test", "--workspace", "--locked", "--no-fail-fast"];
            let before = tally.failed;
            let passed = steps::tee(&mut cargo_in(root, &args), |line| tally.read(line))?;
            // Failed tests are counted one by one; the step fails only for what they don't explain.
            if !passed && tally.failed == before {
                bail!("a test program ended without a result");
            }
            Ok(())
        });
    }
    // What a package holds and asks for; that it installs and starts, `cargo xtask package --test`.
    if built && package::can_make_deb() {
        steps.run("package", || package::quick(root));
    } else if built {
        let name = "package: needs dpkg-deb and dpkg-shlibdeps";
        tally.skipped.push(name.to_owned());
    }
    if built && page {
        steps.run("end to end", || {
            tally.add(ui::end_to_end(root)?);
            Ok(())
        });
    }
    // Compiled for every target here; run only where there is a device.
    steps.run("kernels", || kernels::run(root, kernels::TARGETS, false));
    for name in GPU_ONLY {
        tally.skipped.push(format!(
            "gpu {name}: needs a CUDA device, see tests/gpu/results.md"
        ));
    }
    if extent == Extent::Quick {
        return;
    }
    steps.run("docs", || {
        let mut docs = cargo_in(root, &["doc", "--workspace", "--no-deps", "--locked"]);
        steps::pass(docs.env("RUSTDOCFLAGS", "-D warnings"))
    });
    if extent == Extent::WithSearch {
        steps.run("fuzz", || fuzz(root, tally));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_test_programs_add_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test hash::tests::short ... ok",
            "test gpu::matmul ... ignored, needs a CUDA device",
            "test slow ... ignored",
            "left opentest result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s",
            "a line that says 7 passed; 9 failed",
        ] {
            tally.read(line);
        }
        let skipped = vec![
            "gpu::matmul: needs a CUDA device".to_owned(),
            "slow".to_owned(),
        ];
        assert_eq!(
            tally,
            Tally {
                passed: 15,
                failed: 2,
                skipped
            }
        );
    }

    #[test]
    fn a_line_without_counts_counts_nothing() {
        assert_eq!(count_before("ok. nothing here", " passed"), 0);
        assert_eq!(count_before("ok. 41 passed; 7 failed", " failed"), 7);
    }
}
