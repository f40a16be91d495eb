//! The `longtake` command line: a shell over `flow-studio`.
//!
//! Duty: read arguments, show progress and results. It must not know how anything is made: every
//! command is one of the studio's.

mod args;
mod bars;
mod commands;
mod size;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use engine_base::{CancelToken, Code};
use flow_studio::StudioError;

use crate::args::Cli;

/// Run one command line (the first item is the program's name) and give its exit status: 0 done,
/// 2 wrong usage, 3 bad input, 4 refused or busy, 5 disk or rights, 6 damaged, 130 cancelled.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => {
            let status = if error.use_stderr() { 2 } else { 0 };
            if status != 0 && args.iter().any(|arg| arg == "--json") {
                let message = error.to_string();
                let error = StudioError::new(Code::BadInput, message.trim());
                say_json(&error);
            }
            // Nothing is left to say it to when the terminal is gone.
            drop(error.print());
            return ExitCode::from(status);
        }
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("LONGTAKE_LOG")
        .unwrap_or_else(|_not_set| tracing_subscriber::EnvFilter::new("warn"));
    // A second call in one process (tests) keeps the first's.
    drop(
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .without_time()
            .try_init(),
    );
    let cancel = CancelToken::new();
    if let Err(error) = stop_on_signals(&cancel) {
        tracing::warn!("ctrl-c will end the program at once: {error}");
    }
    match commands::carry_out(&cli, &cancel) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            complain(&cli, &error);
            ExitCode::from(error.code.exit_status())
        }
    }
}

fn complain(cli: &Cli, error: &StudioError) {
    if cli.json {
        say_json(error);
    }
    let hint = match error.code {
        Code::Cancelled => "\nWhat was made is kept: run the same command to go on.",
        Code::DiskFull => {
            "\nNothing half-made is kept. Make room (longtake cache prune) and run \
                           the same command to go on."
        }
        _ => "",
    };
    drop(writeln!(
        std::io::stderr(),
        "longtake: {}{hint}",
        error.message
    ));
}

fn say_json(error: &StudioError) {
    let line = serde_json::json!({ "error": error });
    // A reader that has gone away is no failure.
    drop(writeln!(std::io::stdout(), "{line}"));
}

/// The first signal asks for an orderly stop, the second ends the program.
fn stop_on_signals(cancel: &CancelToken) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let cancel = cancel.clone();
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                if cancel.is_cancelled() {
                    drop(signal_hook::low_level::emulate_default_handler(signal));
                }
                cancel.cancel();
            }
        })?;
    Ok(())
}
