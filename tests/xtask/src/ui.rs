//! The page of the studio: built with npm, checked, tested, and driven end to end.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::{film, models, setup, steps};

/// Folder of the page, from the root.
const PAGE: &str = "ui";

/// Results of test programs that print the Test Anything Protocol.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TapTally {
    /// Tests that passed.
    pub(crate) passed: usize,
    /// Tests that failed.
    pub(crate) failed: usize,
    /// Names of the tests that did not run, with their reasons.
    pub(crate) skipped: Vec<String>,
}

impl TapTally {
    /// Takes one line of output into account.
    fn read(&mut self, line: &str) {
        let (good, rest) = if let Some(rest) = line.strip_prefix("ok ") {
            (true, rest)
        } else if let Some(rest) = line.strip_prefix("not ok ") {
            (false, rest)
        } else {
            return;
        };
        let Some((number, name)) = rest.split_once(' ') else {
            return;
        };
        if number.parse::<u32>().is_err() {
            return;
        }
        let name = name.trim_start_matches("- ");
        if let Some((name, reason)) = name.split_once("# SKIP") {
            self.skipped
                .push(format!("{}: {}", name.trim(), reason.trim()));
        } else if good {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }
}

fn npm(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(args).current_dir(root.join(PAGE));
    command
}

/// What npm needs to be told so that its output is short and nothing is asked of anybody.
const QUIET: [&str; 3] = ["--no-audit", "--no-fund", "--loglevel=error"];

/// Installs the packages of the lock file, unless those of this very lock file are there.
fn packages(root: &Path) -> Result<()> {
    if !steps::answers(Command::new("npm").arg("--version")) {
        bail!("npm is not here: install Node 20 or newer, then run this again");
    }
    let lock = std::fs::read(root.join(PAGE).join("package-lock.json"))?;
    // npm empties the folder first, so that the note is there only after a whole install.
    let note = root.join(PAGE).join("node_modules/.longtake-lock");
    if std::fs::read(&note).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    let mut args = vec!["ci"];
    args.extend(QUIET);
    steps::pass(&mut npm(root, &args))?;
    std::fs::write(note, lock)?;
    Ok(())
}

/// Builds the page into `ui/dist`, from which the program takes it in.
///
/// # Errors
/// Node is not here, or a step fails.
pub(crate) fn build(root: &Path) -> Result<()> {
    packages(root)?;
    steps::pass(&mut npm(root, &["run", "--silent", "build"]))
}

/// Checks and tests the page by itself.
///
/// # Errors
/// A program could not be started, or ended without a result.
pub(crate) fn test(root: &Path) -> Result<TapTally> {
    packages(root)?;
    steps::pass(&mut npm(root, &["run", "--silent", "check"]))?;
    let args = ["run", "--silent", "test", "--", "--reporter=tap-flat"];
    tap(&mut npm(root, &args))
}

/// Where tests keep pictures of what they saw: `index.html` there shows all.
pub(crate) fn pictures_folder(root: &Path) -> Result<PathBuf> {
    Ok(film::target_folder(root)?.join("screenshots"))
}

/// Drives the page in a browser, and the window where its tools are, against the built programs.
///
/// # Errors
/// A program could not be started, or ended without a result.
pub(crate) fn end_to_end(root: &Path) -> Result<TapTally> {
    let programs = film::target_folder(root)?.join("debug");
    let mut tally = TapTally::default();
    // The last one makes the index of all pictures.
    for script in ["e2e", "e2e:window", "e2e:pictures"] {
        let mut command = npm(root, &["run", "--silent", script]);
        command
            .env("LONGTAKE_E2E_OUT", pictures_folder(root)?)
            .env("LONGTAKE_BIN", programs.join("longtake"))
            .env("LONGTAKE_DESKTOP_BIN", programs.join("longtake-desktop"));
        let found = tap(&mut command)?;
        tally.passed += found.passed;
        tally.failed += found.failed;
        tally.skipped.extend(found.skipped);
    }
    Ok(tally)
}

fn tap(command: &mut Command) -> Result<TapTally> {
    let mut tally = TapTally::default();
    let passed = steps::tee(command, |line| tally.read(line))?;
    if !passed && tally.failed == 0 {
        bail!("a test program ended without a result");
    }
    Ok(tally)
}

/// Sets up, builds and runs `longtake serve --ui`.
///
/// # Errors
/// Setup, the build or the studio failed.
pub(crate) fn studio(root: &Path, args: &[String]) -> Result<()> {
    setup::run(setup::Mode::Install, setup::For::Films)?;
    models::run(setup::Mode::Install)?;
    build(root)?;
    let mut studio = Command::new(film::build(root)?);
    studio.args(["serve", "--ui"]).args(args);
    become_program(&mut studio)
}

/// Runs `command` in the place of this process, so that what ends the task ends the program.
#[cfg(unix)]
fn become_program(command: &mut Command) -> Result<()> {
    let error = std::os::unix::process::CommandExt::exec(command);
    bail!("cannot start {}: {error}", command.get_program().display())
}

/// Runs `command` and waits for it.
#[cfg(not(unix))]
fn become_program(command: &mut Command) -> Result<()> {
    steps::pass(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_in_the_test_anything_protocol_add_up() {
        let mut tally = TapTally::default();
        for line in [
            "TAP version 13",
            "1..4",
            "ok 1 - story > a line is edited in place",
            "not ok 2 - board > 300 shots",
            "ok 3 - window opens # SKIP needs tauri-driver",
            "ok then",
            "    ok 4 - indented lines belong to another count",
            "not ok 5 - x # time=3ms",
        ] {
            tally.read(line);
        }
        let expected = TapTally {
            passed: 1,
            failed: 2,
            skipped: vec!["window opens: needs tauri-driver".to_owned()],
        };
        assert_eq!(tally, expected);
    }
}
