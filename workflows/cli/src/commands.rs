//! Each command line as a command of the studio.

mod bench;
mod image;
mod models;
mod project;
mod rebuild;
mod serve;
mod speak;
mod upscale;

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use engine_base::{CancelToken, Code};
use flow_studio::{
    FilmReport, FilmRequest, PlanReport, PremiseRequest, RunRequest, Speaking, Studio, StudioError,
    StudioOptions, Watcher,
};
use serde_json::{Value, json};

use crate::args::{CacheCommand, Cli, Command, FilmArgs, PlanArgs, RunArgs, ScriptCommand};
use crate::bars::{Bars, clock};
use crate::size;

pub(crate) use bench::BenchArgs;
pub(crate) use image::{IMAGE_EXAMPLES, ImageArgs};
pub(crate) use models::ModelsCommand;
pub(crate) use rebuild::RebuildArgs;
pub(crate) use serve::{MCP_EXAMPLES, McpArgs, SERVE_EXAMPLES, ServeArgs};
pub(crate) use speak::{SPEAK_EXAMPLES, SpeakArgs};

/// Carry out the command line; gives the exit status.
pub(crate) fn carry_out(cli: &Cli, cancel: &CancelToken) -> Result<u8, StudioError> {
    match &cli.command {
        Command::Film(args) => film(cli, args, cancel),
        Command::Rebuild(args) => rebuild::rebuild(cli, args, cancel),
        Command::Image(args) => image::image(cli, args, cancel),
        Command::Upscale(args) => upscale::upscale(cli, args, cancel),
        Command::Run(args) => run(cli, args, cancel),
        Command::Plan(args) => plan(cli, args),
        Command::Script(command) => script(cli, command),
        Command::Project(command) => project::project(cli, command, cancel),
        Command::Cache(command) => cache(cli, command),
        Command::Models(command) => models::models(cli, command, cancel),
        Command::Speak(args) => speak::speak(cli, args, cancel),
        Command::Bench(args) => bench::bench(cli, args),
        Command::Serve(args) => serve::serve(cli, args, cancel),
        Command::Mcp(args) => serve::mcp(cli, args),
        Command::Bindings { out } => serve::bindings(out),
        Command::Nodes { type_name } => nodes(cli, type_name.as_deref()),
    }
}

fn studio(cli: &Cli) -> Result<Studio, StudioError> {
    let mut options = StudioOptions::of_this_machine()?;
    if let Some(folder) = &cli.cache {
        options.cache_folder.clone_from(folder);
    }
    Studio::open(&options)
}

fn say(text: &str) {
    // A reader that has gone away (`| head`) is no failure.
    drop(writeln!(std::io::stdout(), "{text}"));
}

fn say_json(value: &Value) {
    say(&value.to_string());
}

fn film(cli: &Cli, args: &FilmArgs, cancel: &CancelToken) -> Result<u8, StudioError> {
    if args.premise.is_some() && args.script.is_some() {
        let message = "expected a premise or --script FILE, got both";
        return Err(StudioError::new(Code::BadInput, message));
    }
    let length = args
        .length
        .parse()
        .map_err(|error| StudioError::new(Code::BadInput, format!("--length: {error}")))?;
    let premise = args.premise.as_ref().map(|text| PremiseRequest {
        text: text.clone(),
        length: Some(length),
        seed: args.seed,
        llm: args.llm.clone(),
    });
    let size = args.size.as_deref().map(frame_size).transpose()?;
    let fps = args.fps.as_deref().map(|text| {
        text.parse()
            .map_err(|error| StudioError::new(Code::BadInput, format!("--fps: {error}")))
    });
    let request = FilmRequest {
        script: args.script.clone(),
        replace: args.replace,
        premise,
        folders: args.stills.iter().chain(&args.sounds).cloned().collect(),
        size,
        fps: fps.transpose()?,
        project: args.project.clone(),
        out: args.out.clone(),
        crf: args.crf,
        preset: args.preset.clone(),
        burn_subtitles: args.burn,
        speaking: Speaking {
            off: args.mute,
            narrator: args.voice.clone(),
            rate: args.pace,
        },
        as_they_are: args.no_upscale,
        only: None,
    };
    for folder in &request.folders {
        if !folder.is_dir() {
            let message = format!("there is no such folder: {folder:?}");
            return Err(StudioError::new(Code::NotFound, message));
        }
    }
    let bars = Arc::new(Bars::new(cli.quiet || cli.json));
    let watcher: Arc<dyn Watcher> = Arc::clone(&bars) as Arc<dyn Watcher>;
    let studio = studio(cli)?;
    if args.plan {
        let plan = studio.film_plan(&request, &watcher);
        bars.finish();
        return show_plan(cli, &plan?);
    }
    let report = studio.film(&request, &watcher, cancel);
    bars.finish();
    show_film(cli, &report?)
}

fn frame_size(text: &str) -> Result<flow_studio::FrameSize, StudioError> {
    let sides = text.split_once(['x', 'X', '×']);
    let parsed = sides.and_then(|(w, h)| Some((w.trim().parse().ok()?, h.trim().parse().ok()?)));
    let (width_px, height_px) = parsed.ok_or_else(|| {
        let message = format!("--size: expected a size such as 1280x720, got {text:?}");
        StudioError::new(Code::BadInput, message)
    })?;
    Ok(flow_studio::FrameSize {
        width_px,
        height_px,
    })
}

fn show_film(cli: &Cli, report: &FilmReport) -> Result<u8, StudioError> {
    let status = match report.code {
        None if report.out.is_some() => 0,
        code => code.unwrap_or(Code::BadInput).exit_status(),
    };
    if cli.json {
        say_json(&serde_json::to_value(report).unwrap_or_default());
        return Ok(status);
    }
    if !cli.quiet {
        let (made, reused, wall) = (report.made, report.reused, clock(report.wall_secs));
        let memory = size::show(report.peak_bytes);
        if let Some(out) = &report.out {
            say(&format!("{}  ({})", out.display(), clock(report.film_secs)));
        }
        for path in [&report.subtitles, &report.poster].into_iter().flatten() {
            say(&path.display().to_string());
        }
        say(&format!("project {}", report.project.display()));
        say(&format!(
            "made {made}, reused {reused}, failed {}, {wall}, {memory}",
            report.failed
        ));
    }
    if status != 0 {
        let mut message = "the film is not whole".to_owned();
        for error in &report.errors {
            write!(message, "\n  {error}").map_err(|error| internal(&error))?;
        }
        message.push_str("\nWhat was made is kept: mend the cause and run the same command.");
        if report.code == Some(Code::DiskFull) {
            message.push_str(" (longtake cache prune makes room)");
        }
        drop(writeln!(std::io::stderr(), "longtake: {message}"));
    }
    Ok(status)
}

fn internal(error: &dyn std::fmt::Display) -> StudioError {
    StudioError::new(Code::Internal, error.to_string())
}

fn show_plan(cli: &Cli, plan: &PlanReport) -> Result<u8, StudioError> {
    if cli.json {
        say_json(&serde_json::to_value(plan).unwrap_or_default());
        return Ok(0);
    }
    for node in &plan.nodes {
        if !cli.quiet && node.state != flow_studio::PlanState::Reused {
            say(&format!(
                "{:14} {} ({})",
                node.state.as_str(),
                node.node,
                node.type_name
            ));
        }
    }
    let left = plan
        .secs
        .filter(|_| plan.will_run > 0)
        .map(|secs| format!(", about {}", clock(secs)))
        .unwrap_or_default();
    let (run, reused, unknown) = (plan.will_run, plan.reused, plan.unknown);
    say(&format!(
        "{run} to make, {reused} there already, {unknown} not known yet{left}"
    ));
    Ok(0)
}

fn run(cli: &Cli, args: &RunArgs, cancel: &CancelToken) -> Result<u8, StudioError> {
    let bars = Arc::new(Bars::new(cli.quiet || cli.json));
    let watcher: Arc<dyn Watcher> = Arc::clone(&bars) as Arc<dyn Watcher>;
    let request = RunRequest {
        document: args.document.clone(),
        set: args.set.clone(),
        targets: args.target.clone(),
        out: args.out.clone(),
    };
    let report = studio(cli)?.run_document(&request, &watcher, cancel);
    bars.finish();
    let report = report?;
    let status = report.code.map_or(0, Code::exit_status);
    if cli.json {
        say_json(&serde_json::to_value(&report).unwrap_or_default());
        return Ok(status);
    }
    if !cli.quiet {
        for output in &report.outputs {
            say(&format!(
                "{}.{}: {}",
                output.node, output.output, output.shown
            ));
        }
        let (made, reused, failed) = (report.made, report.reused, report.failed);
        say(&format!(
            "made {made}, reused {reused}, failed {failed}, {:.1} s",
            report.wall_secs
        ));
    }
    for error in &report.errors {
        drop(writeln!(std::io::stderr(), "longtake: {error}"));
    }
    Ok(status)
}

fn plan(cli: &Cli, args: &PlanArgs) -> Result<u8, StudioError> {
    let studio = studio(cli)?;
    let is_project = args
        .what
        .extension()
        .is_some_and(|ending| ending == flow_studio::EXTENSION);
    let plan = if is_project {
        let request = FilmRequest {
            project: Some(args.what.clone()),
            ..FilmRequest::default()
        };
        let bars = Arc::new(Bars::new(cli.quiet || cli.json));
        let watcher: Arc<dyn Watcher> = Arc::clone(&bars) as Arc<dyn Watcher>;
        let plan = studio.film_plan(&request, &watcher);
        bars.finish();
        plan?
    } else {
        studio.plan_document(&args.what)?
    };
    show_plan(cli, &plan)
}

fn script(cli: &Cli, command: &ScriptCommand) -> Result<u8, StudioError> {
    match command {
        ScriptCommand::Check { script, stills } => {
            let warnings = flow_studio::check_script(script, stills)?;
            if cli.json {
                say_json(&json!({ "warnings": warnings }));
                return Ok(0);
            }
            for warning in &warnings {
                say(&warning.message);
            }
            let count = match warnings.len() {
                0 => "no warnings".to_owned(),
                1 => "1 warning".to_owned(),
                count => format!("{count} warnings"),
            };
            say(&format!("{} can be made, {count}", script.display()));
        }
        ScriptCommand::Diff { old, new } => {
            project::show_changes(cli, &flow_studio::diff_scripts(old, new)?);
        }
        ScriptCommand::Convert { from, to } => {
            flow_studio::convert_script(from, to)?;
            if cli.json {
                say_json(&json!({ "out": to }));
            } else if !cli.quiet {
                say(&to.display().to_string());
            }
        }
    }
    Ok(0)
}

fn cache(cli: &Cli, command: &CacheCommand) -> Result<u8, StudioError> {
    let studio = studio(cli)?;
    let (value, text, status) = match command {
        CacheCommand::Show => {
            let shown = studio.cache_show()?;
            let counts = &shown.counts;
            let text = format!(
                "{:?}\n{} results and {} files, {} of at most {}\n{} made since it began",
                shown.folder,
                counts.results,
                counts.blobs,
                size::show(counts.bytes),
                size::show(shown.cap_bytes),
                counts.commits_ever
            );
            (serde_json::to_value(&shown), text, 0)
        }
        CacheCommand::Prune { to, dry_run } => {
            let to_bytes = to.as_deref().map(size::parse).transpose()?;
            let pruned = studio.cache_prune(to_bytes, *dry_run)?;
            let text = format!(
                "{} {} results and {} files, {}; {} left, {} of it pinned or in use",
                if *dry_run { "would remove" } else { "removed" },
                pruned.results,
                pruned.blobs,
                size::show(pruned.bytes_freed),
                size::show(pruned.bytes_left),
                size::show(pruned.bytes_kept)
            );
            (serde_json::to_value(pruned), text, 0)
        }
        CacheCommand::Check { deep, repair } => {
            let found = if *repair {
                studio.cache_repair(*deep)?
            } else {
                studio.cache_check(*deep)?
            };
            let mut text = format!(
                "looked at {} results and {} files: ",
                found.results, found.blobs
            );
            if found.is_sound() {
                text.push_str("all whole");
            } else {
                let damaged = found.corrupt.len() + found.missing.len();
                let rows = found.rows_unreadable.len() + found.database.len();
                write!(
                    text,
                    "{damaged} files damaged or gone, {rows} faults in the database"
                )
                .map_err(|error| internal(&error))?;
                text.push_str(if *repair {
                    "; mended: what they held is made again when it is needed"
                } else {
                    "; --repair mends it"
                });
            }
            let status = if found.is_sound() || *repair {
                0
            } else {
                Code::Corrupt.exit_status()
            };
            (serde_json::to_value(&found), text, status)
        }
    };
    if cli.json {
        say_json(&value.unwrap_or_default())
    } else {
        say(&text)
    }
    Ok(status)
}

fn nodes(cli: &Cli, type_name: Option<&str>) -> Result<u8, StudioError> {
    let specs = flow_studio::node_specs()?;
    let Some(name) = type_name else {
        if cli.json {
            say_json(&serde_json::to_value(&specs).unwrap_or_default());
        } else {
            for spec in &specs {
                say(&format!("{:20} {}", spec.type_name, spec.title));
            }
        }
        return Ok(0);
    };
    let spec = specs
        .iter()
        .find(|spec| spec.type_name == name)
        .ok_or_else(|| {
            StudioError::new(
                Code::NotFound,
                format!("there is no node type {name:?}: longtake nodes lists them"),
            )
        })?;
    if cli.json {
        say_json(&serde_json::to_value(spec).unwrap_or_default());
        return Ok(0);
    }
    say(&format!(
        "{} (version {}): {}",
        spec.type_name, spec.version, spec.title
    ));
    say(spec.help);
    for input in &spec.inputs {
        let needed = if input.required { ", required" } else { "" };
        say(&format!(
            "  in  {:12} {}{needed}: {}",
            input.name, input.ty, input.help
        ));
    }
    for output in &spec.outputs {
        say(&format!(
            "  out {:12} {}: {}",
            output.name, output.ty, output.help
        ));
    }
    Ok(0)
}
