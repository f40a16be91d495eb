//! `longtake serve`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use engine_base::{CancelToken, Code};
use flow_studio::desk::DeskOptions;
use flow_studio::{
    Commands as _, Pages, RunningStudio, ServeOptions, Shell, StudioError, serve_mcp,
};
use serde_json::json;

use super::{say, say_json};
use crate::args::Cli;

/// How often the server looks whether it was asked to stop.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) const SERVE_EXAMPLES: &str = "Examples:
  longtake serve --ui
  longtake serve --ui --project Lighthouse.longtake
  longtake serve --ui --bind 0.0.0.0:7700 --name studio.lan    from other machines too

It prints an address with a token: who has it, has the studio. On addresses beyond this machine,
projects are confined to the projects folder and the one named.";

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Serve the pages too, not only commands
    #[arg(long)]
    ui: bool,

    /// Folder of built pages (default: those in the program)
    #[arg(long, value_name = "DIR", requires = "ui")]
    ui_dir: Option<PathBuf>,

    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0")]
    bind: SocketAddr,

    /// Name by which other machines call this one (may be given more than once)
    #[arg(long, value_name = "HOST")]
    name: Vec<String>,

    /// Project to open at once
    #[arg(long, value_name = "DIR.longtake")]
    project: Option<PathBuf>,

    /// Folder of the queue and the settings (default: the system's place for data, or
    /// $LONGTAKE_DATA)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Folder of new projects (default: that of the settings)
    #[arg(long, value_name = "DIR")]
    projects: Option<PathBuf>,
}

/// Carry out `longtake serve`; gives the exit status.
pub(super) fn serve(cli: &Cli, args: &ServeArgs, cancel: &CancelToken) -> Result<u8, StudioError> {
    let mut options = DeskOptions::of_this_machine("longtake serve")?;
    if let Some(folder) = &args.data {
        options.data_folder.clone_from(folder);
    }
    options.cache_folder.clone_from(&cli.cache);
    options.projects_folder = args.projects.as_deref().map(absolute).transpose()?;
    let project = args.project.as_deref().map(absolute).transpose()?;
    if !args.bind.ip().is_loopback() {
        options.confined_to = Some(project.iter().cloned().collect());
    }
    let pages = match (&args.ui_dir, args.ui) {
        (Some(folder), _) => Pages::Folder(folder.clone()),
        (None, true) => Pages::BuiltIn,
        (None, false) => Pages::Off,
    };
    let listen = ServeOptions {
        bind: args.bind,
        names: args.name.clone(),
        pages,
    };
    let data_folder = options.data_folder.clone();
    let shell = match Shell::start(options, &listen) {
        Err(error) if error.code == Code::Busy => {
            let running = join(&data_folder, error)?;
            return serve_joined(cli, &running, project.as_deref());
        }
        started => started?,
    };
    if let Some(project) = project {
        let opened = shell
            .desk()
            .call("project.open", json!({ "project": project }))?;
        tracing::debug!(name = %opened["name"], "a project is open");
    }
    if cli.json {
        say_json(&json!({
            "url": shell.url(),
            "address": shell.server().address(),
            "token": shell.server().token(),
            "pid": std::process::id(),
        }));
    } else {
        say(&shell.url());
        if !cli.quiet {
            let hint = "the studio runs until ctrl-c; the address holds the token that lets in";
            drop(writeln!(std::io::stderr(), "{hint}"));
        }
    }
    // Whoever waits for the line may read from a pipe.
    drop(std::io::stdout().flush());
    while !cancel.is_cancelled() {
        std::thread::sleep(LOOK);
    }
    Ok(0)
}

/// Where the studio that runs already is, with the project open in it.
fn serve_joined(
    cli: &Cli,
    running: &RunningStudio,
    project: Option<&Path>,
) -> Result<u8, StudioError> {
    if let Some(project) = project {
        running.call("project.open", json!({ "project": project }))?;
    }
    if cli.json {
        say_json(&json!({
            "url": running.url(),
            "address": running.address(),
            "token": running.token(),
            "pid": running.pid(),
            "joined": true,
        }));
    } else {
        say(&running.url());
    }
    Ok(0)
}

pub(crate) const MCP_EXAMPLES: &str = "Example, as an agent's settings have it:
  { \"mcpServers\": { \"longtake\": { \"command\": \"longtake\", \"args\": [\"mcp\"] } } }

Standard output holds the protocol alone; it ends when standard input ends.";

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Folder of the queue and the settings (default: the system's place for data, or
    /// $LONGTAKE_DATA)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Folder of new projects (default: that of the settings)
    #[arg(long, value_name = "DIR")]
    projects: Option<PathBuf>,
}

/// Carry out `longtake mcp`; gives the exit status.
pub(super) fn mcp(cli: &Cli, args: &McpArgs) -> Result<u8, StudioError> {
    let mut options = DeskOptions::of_this_machine("longtake mcp")?;
    if let Some(folder) = &args.data {
        options.data_folder.clone_from(folder);
    }
    options.cache_folder.clone_from(&cli.cache);
    options.projects_folder = args.projects.as_deref().map(absolute).transpose()?;
    let data_folder = options.data_folder.clone();
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    // Served too, so that a window, a browser or another agent can join this one.
    match Shell::start(options, &ServeOptions::default()) {
        Ok(shell) => serve_mcp(shell.desk().as_ref(), &mut input, &mut output)?,
        Err(error) if error.code == Code::Busy => {
            let running = join(&data_folder, error)?;
            serve_mcp(&running, &mut input, &mut output)?;
        }
        Err(error) => return Err(error),
    }
    Ok(0)
}

/// The studio that runs already, when it answers; else why this one could not be opened.
fn join(data_folder: &Path, error: StudioError) -> Result<RunningStudio, StudioError> {
    let running = RunningStudio::find(data_folder).map_err(|_silent| error)?;
    let (program, pid) = (running.program(), running.pid());
    let line = format!("joined the studio in {program:?} (process {pid})");
    drop(writeln!(std::io::stderr(), "{line}"));
    if running.version() != env!("CARGO_PKG_VERSION") {
        let line = format!("it is of version {}", running.version());
        drop(writeln!(std::io::stderr(), "{line}"));
    }
    Ok(running)
}

fn absolute(path: &Path) -> Result<PathBuf, StudioError> {
    std::path::absolute(path).map_err(|error| StudioError::io("find the folder", path, &error))
}

/// Write the bindings of the command list.
pub(super) fn bindings(out: &Path) -> Result<u8, StudioError> {
    let text = flow_studio::desk::typescript();
    if std::fs::read_to_string(out).is_ok_and(|there| there == text) {
        return Ok(0);
    }
    if let Some(folder) = out.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| StudioError::io("make the folder", folder, &error))?;
    }
    std::fs::write(out, text)
        .map_err(|error| StudioError::new(Code::of_io(&error), format!("{error}: {out:?}")))?;
    Ok(0)
}
