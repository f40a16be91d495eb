//! `longtake models`.

use clap::Subcommand;
use engine_base::{CancelToken, Code};
use flow_studio::{FileFormat, FileState, ModelInspection, ModelRow, ModelState, StudioError};
use serde_json::json;

use super::{say, say_json};
use crate::args::Cli;
use crate::bars::Bars;
use crate::size;

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the models: what is here, what their licences allow, what they take
    List,
    /// Fetch models; without ids the default ones
    #[command(
        after_help = "A broken download goes on where it stopped: run the same command again."
    )]
    Pull {
        /// Ids as `longtake models list` shows them
        id: Vec<String>,
    },
    /// Hash files again; without ids those of every model here
    Verify {
        /// Ids as `longtake models list` shows them
        id: Vec<String>,
    },
    /// Say what is known of a model or a file of weights
    Inspect {
        /// An id, or a file or folder of weights
        #[arg(value_name = "ID|FILE")]
        what: String,
    },
    /// Remove models from this machine
    Rm {
        /// Ids as `longtake models list` shows them
        #[arg(required = true)]
        id: Vec<String>,
    },
}

/// Carry out a command about models; gives the exit status.
pub(super) fn models(
    cli: &Cli,
    command: &ModelsCommand,
    cancel: &CancelToken,
) -> Result<u8, StudioError> {
    match command {
        ModelsCommand::List => list(cli),
        ModelsCommand::Pull { id } => pull(cli, id, cancel),
        ModelsCommand::Verify { id } => verify(cli, id, cancel),
        ModelsCommand::Inspect { what } => inspect(cli, what),
        ModelsCommand::Rm { id } => remove(cli, id),
    }
}

fn here(row: &ModelRow) -> String {
    match row.state {
        ModelState::Installed => "installed".into(),
        ModelState::Unverified => "here, not verified".into(),
        ModelState::Partial { bytes_here } => {
            format!("{} % here", bytes_here * 100 / row.bytes.max(1))
        }
        ModelState::Missing if row.entry.files.iter().any(|file| file.from.is_none()) => {
            "to be put there by hand".into()
        }
        ModelState::Missing => "available".into(),
    }
}

fn terms(row: &ModelRow) -> String {
    let can = |yes: bool| if yes { "yes" } else { "no" };
    let allows = &row.entry.allows;
    let note = match allows.note.as_str() {
        "" => String::new(),
        note => format!("; {note}"),
    };
    format!(
        "{}: commercial use {}, redistribution {}{note}",
        row.entry.licence.spdx,
        can(allows.commercial),
        can(allows.redistribution)
    )
}

fn list(cli: &Cli) -> Result<u8, StudioError> {
    let rows = flow_studio::models_list()?;
    if cli.json {
        say_json(&json!({ "models": rows }));
        return Ok(0);
    }
    for row in &rows {
        let kind = serde_json::to_value(row.entry.kind).unwrap_or_default();
        let default = if row.entry.default { ", default" } else { "" };
        say(&format!(
            "{}  [{}]{default}\n  {}, {}, {} on disk, {} in memory\n  {}",
            row.entry.id,
            here(row),
            row.entry.title,
            kind.as_str().unwrap_or_default(),
            size::show(row.bytes),
            size::show(row.entry.memory_bytes),
            terms(row)
        ));
    }
    Ok(0)
}

fn pull(cli: &Cli, ids: &[String], cancel: &CancelToken) -> Result<u8, StudioError> {
    let bars = Bars::new(cli.quiet || cli.json);
    let pulled = flow_studio::models_pull(ids, &bars, cancel);
    bars.finish();
    let pulled = pulled?;
    if cli.json {
        say_json(&json!({ "models": pulled }));
    } else if !cli.quiet {
        for model in &pulled {
            say(&format!("{}  {}", model.id, model.path.display()));
        }
    }
    Ok(0)
}

fn verify(cli: &Cli, ids: &[String], cancel: &CancelToken) -> Result<u8, StudioError> {
    let bars = Bars::new(cli.quiet || cli.json);
    let verified = flow_studio::models_verify(ids, &bars, cancel);
    bars.finish();
    let verified = verified?;
    let status = if verified.iter().all(|model| model.whole) {
        0
    } else {
        Code::Corrupt.exit_status()
    };
    if cli.json {
        say_json(&json!({ "models": verified }));
        return Ok(status);
    }
    for model in &verified {
        for file in &model.files {
            let state = match &file.state {
                FileState::Whole if cli.quiet => continue,
                FileState::Whole => "whole".to_owned(),
                FileState::Missing => "missing".to_owned(),
                FileState::WrongSize { bytes } => format!("wrong size: {bytes} bytes"),
                FileState::WrongHash { sha256 } => format!("wrong content: sha256 {sha256}"),
            };
            say(&format!("{}  {}: {state}", model.id, file.name));
        }
        if !model.whole {
            say(&format!("longtake models pull {} mends it", model.id));
        }
    }
    Ok(status)
}

fn inspect(cli: &Cli, what: &str) -> Result<u8, StudioError> {
    let inspected = flow_studio::models_inspect(what)?;
    if cli.json {
        say_json(&serde_json::to_value(&inspected).unwrap_or_default());
        return Ok(0);
    }
    if let Some(row) = &inspected.model {
        say(&format!(
            "{}  [{}]\n{}, family {}, {} in memory\n{}\n{}",
            row.entry.id,
            here(row),
            row.entry.title,
            row.entry.family,
            size::show(row.entry.memory_bytes),
            terms(row),
            row.entry.licence.link
        ));
    }
    for file in &inspected.files {
        let told = match &file.info {
            None => "not here".to_owned(),
            Some(info) => format!("{}, {}", size::show(info.bytes), format(info.format)),
        };
        say(&format!("{}: {told}", file.path.display()));
        if let Some(fault) = &file.fault {
            say(&format!("  cannot be read: {fault}"));
        }
        if let Some(weights) = &file.weights {
            say(describe(weights).trim_end());
        }
    }
    Ok(0)
}

/// The weights in a file, in lines.
fn describe(model: &ModelInspection) -> String {
    let found = &model.inspection;
    let mut lines = Vec::new();
    let architecture = found.architecture.as_deref().unwrap_or("not said");
    let runs = match (model.family, &model.cannot_run) {
        (Some(family), _) => format!("runs as family {family}"),
        (None, Some(why)) => why.clone(),
        (None, None) => "cannot be run".to_owned(),
    };
    lines.push(format!("architecture: {architecture}; {runs}"));
    if let Some(name) = &found.name {
        lines.push(format!("name: {name}"));
    }
    lines.push(format!(
        "{} tensors, {} parameters, {}",
        found.tensors,
        found.parameters,
        size::show(found.bytes)
    ));
    lines.extend(found.dtypes.iter().map(|(name, used)| {
        let (tensors, parameters) = (used.tensors, used.parameters);
        let bytes = size::show(used.bytes);
        format!("  {name}: {tensors} tensors, {parameters} parameters, {bytes}")
    }));
    if let Some(tokens) = model.context_tokens {
        lines.push(format!("context: {tokens} tokens"));
    }
    let tokenizer = model.tokenizer.as_deref().unwrap_or("none");
    lines.push(match (model.vocab_tokens, &model.tokenizer_fault) {
        (_, Some(fault)) => format!("tokenizer: {tokenizer}; {fault}"),
        (Some(tokens), None) => format!("tokenizer: {tokenizer}, {tokens} tokens"),
        (None, None) => format!("tokenizer: {tokenizer}"),
    });
    lines.push(
        match (&model.chat_template_fault, model.has_chat_template) {
            (Some(fault), _) => format!("chat template: {fault}"),
            (None, true) => "chat template: yes".to_owned(),
            (None, false) => "chat template: none".to_owned(),
        },
    );
    lines.extend(found.notes.iter().map(|note| format!("note: {note}")));
    if !found.metadata.is_empty() {
        lines.push("metadata:".to_owned());
        let entries = found.metadata.iter();
        lines.extend(entries.map(|(key, value)| format!("  {key}: {value}")));
    }
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

fn format(format: FileFormat) -> String {
    match format {
        FileFormat::Gguf {
            version,
            tensors,
            entries,
        } => format!("GGUF version {version}, {tensors} tensors, {entries} metadata entries"),
        FileFormat::Safetensors { header_bytes } => {
            format!("safetensors, header of {header_bytes} bytes")
        }
        FileFormat::Pickle => "a pickle: it can run code, so it is never read".into(),
        FileFormat::Other => "not a format of weights that is told by its first bytes".into(),
    }
}

fn remove(cli: &Cli, ids: &[String]) -> Result<u8, StudioError> {
    let removed = flow_studio::models_remove(ids)?;
    if cli.json {
        say_json(&json!({ "models": removed }));
    } else if !cli.quiet {
        for model in &removed {
            say(&format!(
                "{}: {} given back",
                model.id,
                size::show(model.removed.bytes)
            ));
            for path in &model.removed.left {
                say(&format!("  stays, not the model's: {}", path.display()));
            }
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Command;

    fn parse(words: &str) -> Result<ModelsCommand, clap::Error> {
        let words = ["longtake", "models"]
            .into_iter()
            .chain(words.split_whitespace());
        match Cli::try_parse_from(words)?.command {
            Command::Models(command) => Ok(command),
            other => panic!("not a command about models: {other:?}"),
        }
    }

    #[test]
    fn pull_takes_ids_or_none_and_rm_wants_them() {
        assert!(matches!(parse("list").unwrap(), ModelsCommand::List));
        let ModelsCommand::Pull { id } = parse("pull a b").unwrap() else {
            panic!("not a pull")
        };
        assert_eq!(id, ["a", "b"]);
        assert!(matches!(parse("pull").unwrap(), ModelsCommand::Pull { id } if id.is_empty()));
        assert!(parse("rm").is_err() && parse("inspect").is_err());
        assert!(parse("rm a").is_ok());
    }
}
