//! `longtake bench`: the bench program that lies beside this one.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use engine_base::Code;
use flow_studio::StudioError;

use crate::args::Cli;

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Benches to run, or `all`; without any they are listed
    what: Vec<String>,

    /// Measure what each is compared with too (`cargo xtask bench NAME --peers` builds that)
    #[arg(long)]
    peers: bool,

    /// Folder for the receipts
    #[arg(long, value_name = "DIR")]
    receipts: Option<PathBuf>,
}

/// Runs them in a process of their own, so that what they measure holds nothing of ours.
pub(crate) fn bench(cli: &Cli, args: &BenchArgs) -> Result<u8, StudioError> {
    let here = std::env::current_exe().map_err(|error| {
        StudioError::new(Code::Io, format!("cannot find this program: {error}"))
    })?;
    let program = here.with_file_name(format!("longtake-bench{}", std::env::consts::EXE_SUFFIX));
    if !program.is_file() {
        let message = format!(
            "the benches are not built: expected them beside this program, as `cargo xtask bench` \
             builds them: {}",
            program.display()
        );
        return Err(StudioError::new(Code::NotFound, message));
    }
    let mut command = Command::new(&program);
    command.args(&args.what);
    if args.peers {
        command.arg("--peers");
    }
    if cli.json {
        command.arg("--json");
    }
    if let Some(folder) = &args.receipts {
        command.arg("--receipts").arg(folder);
    }
    let status = command
        .status()
        .map_err(|error| StudioError::io("start the benches", &program, &error))?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1))
}
