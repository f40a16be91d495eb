//! Running other programs: one line before, the wall time after.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

/// The command as a person would type it.
fn shown(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| {
            let word = word.to_string_lossy();
            if word.is_empty() || word.contains([' ', '"', '\'', '\\', '$']) {
                format!("{word:?}")
            } else {
                word.into_owned()
            }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs `command` with its output on ours.
///
/// # Errors
/// It cannot be started, or ends other than with 0.
pub(crate) fn pass(command: &mut Command) -> Result<()> {
    println!("$ {}", shown(command));
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs `command`, shows each line of its standard output as it comes and hands it to `line`.
///
/// # Errors
/// It cannot be started or read. How it ended is the returned success.
pub(crate) fn tee(command: &mut Command, mut line: impl FnMut(&str)) -> Result<bool> {
    println!("$ {}", shown(command));
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if let Some(stdout) = child.stdout.take() {
        let mut reader = BufReader::new(stdout);
        let mut bytes = Vec::new();
        // Bytes, not `lines()`: a test may print what is not UTF-8.
        while reader.read_until(b'\n', &mut bytes)? > 0 {
            // What follows must not be glued to a last line that was left open.
            if bytes.last() != Some(&b'\n') {
                bytes.push(b'\n');
            }
            std::io::stdout().write_all(&bytes)?;
            line(String::from_utf8_lossy(&bytes).trim_end());
            bytes.clear();
        }
    }
    Ok(child.wait()?.success())
}

/// Standard output of `command`.
///
/// # Errors
/// It cannot be started, or ends other than with 0.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let out = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !out.status.success() {
        bail!("{} ended with {}", shown(command), out.status);
    }
    Ok(out.stdout)
}

/// Whether `command` can be started and ends with 0; it prints nothing.
pub(crate) fn answers(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Named steps with their wall times; one that fails does not keep the next from running.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    name: &'static str,
    secs: f64,
    failure: Option<String>,
}

impl Steps {
    /// Runs one step.
    pub(crate) fn run(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) -> bool {
        println!("\n== {name}");
        let start = Instant::now();
        let failure = work().err().map(|error| format!("{error:#}"));
        if let Some(text) = &failure {
            eprintln!("{name} failed: {text}");
        }
        let passed = failure.is_none();
        self.done.push(Step {
            name,
            secs: start.elapsed().as_secs_f64(),
            failure,
        });
        passed
    }

    /// How many steps failed.
    pub(crate) fn failed(&self) -> usize {
        self.done
            .iter()
            .filter(|step| step.failure.is_some())
            .count()
    }

    /// One line per step: name, wall time, outcome.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        for step in &self.done {
            let outcome = step.failure.as_deref().unwrap_or("ok");
            let first_line = outcome.lines().next().unwrap_or_default();
            text += &format!("{:<12} {:>8.1} s  {first_line}\n", step.name, step.secs);
        }
        let total: f64 = self.done.iter().map(|step| step.secs).sum();
        text + &format!("{:<12} {total:>8.1} s\n", "total")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_names_itself_and_its_status() {
        let error = pass(Command::new("false").arg("with space"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("false \"with space\""), "{error}");
        assert!(error.contains("exit status: 1"), "{error}");
        let error = pass(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(
            format!("{error:#}").contains("cannot start no-such-program-here"),
            "{error:#}"
        );
    }

    #[test]
    fn tee_hands_over_every_line_and_the_outcome() {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "printf 'one\\ntwo \\377\\nlast'; exit 3"]);
        let passed = tee(&mut command, |line| lines.push(line.to_owned())).unwrap();
        assert!(!passed);
        assert_eq!(lines, ["one", "two \u{fffd}", "last"]);
    }

    #[test]
    fn a_failed_step_is_counted_and_the_next_one_runs() {
        let mut steps = Steps::default();
        assert!(!steps.run("first", || bail!("it broke\nin two lines")));
        assert!(steps.run("second", || Ok(())));
        assert_eq!(steps.failed(), 1);
        let table = steps.table();
        assert!(
            table.contains("it broke") && !table.contains("two lines"),
            "{table}"
        );
        assert_eq!(table.lines().count(), 3);
    }
}
