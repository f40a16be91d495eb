//! `longtake project`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_base::{CancelToken, Code};
use flow_studio::{
    Command as StudioCommand, DrawWhat, Edit, Kind, PremiseRequest, RewriteRequest, ScriptChange,
    StudioError, System, Watcher,
};
use serde_json::{Value, json};

use super::{internal, say, say_json, studio};
use crate::args::{Cli, ProjectCommand, RewriteArgs};
use crate::bars::Bars;

/// Carry out a command about a project; gives the exit status.
pub(super) fn project(
    cli: &Cli,
    asked: &ProjectCommand,
    cancel: &CancelToken,
) -> Result<u8, StudioError> {
    let system = |folder: &PathBuf, system| (folder.clone(), StudioCommand::System(system));
    let (folder, command) = match asked {
        ProjectCommand::Show { project } => {
            let (folder, command) = system(project, System::Script);
            let script = send(&folder, command)?;
            if cli.json {
                say_json(&script);
            } else {
                say(flow_studio::script_as_markdown(&script)?.trim_end());
            }
            return Ok(0);
        }
        ProjectCommand::Set {
            project,
            kind,
            id,
            field,
            value,
        } => {
            let kind = Kind::named(kind).ok_or_else(|| {
                let message = format!("expected film, cast, place, scene or shot, got {kind:?}");
                StudioError::new(Code::BadInput, message)
            })?;
            // Text need not be quoted: what is no JSON is taken as text.
            let value = serde_json::from_str(value).unwrap_or_else(|_not_json| json!(value));
            let (id, field) = (id.clone(), field.clone());
            (
                project.clone(),
                StudioCommand::Edit(Edit::Set {
                    kind,
                    id,
                    field,
                    value,
                }),
            )
        }
        ProjectCommand::Diff { project, script } => {
            let script = flow_studio::script_value(script)?;
            let answer = send(project, StudioCommand::System(System::Diff { script }))?;
            show_changes(cli, &changes(&answer)?);
            return Ok(0);
        }
        ProjectCommand::Take {
            project,
            script,
            accept,
        } => (
            project.clone(),
            flow_studio::take_from(script, accept.parse()?)?,
        ),
        ProjectCommand::Rewrite(args) => return rewrite(cli, args, cancel),
        ProjectCommand::Draw {
            project,
            shots,
            missing,
            count,
        } => {
            let what = if *missing {
                DrawWhat::Missing
            } else {
                DrawWhat::Shots(shots.clone())
            };
            return draw(cli, project, &what, *count, cancel);
        }
        ProjectCommand::Undo { project, yes } => {
            if !yes {
                check_undo(project)?;
            }
            system(project, System::Undo)
        }
        ProjectCommand::Redo { project } => system(project, System::Redo),
        ProjectCommand::History { project } => system(project, System::History),
    };
    let answer = send(&folder, command)?;
    if cli.json {
        say_json(&answer);
    } else if !cli.quiet {
        say(&in_words(asked, &answer));
    }
    Ok(0)
}

/// Draw pictures for shots and say which.
fn draw(
    cli: &Cli,
    project: &Path,
    what: &DrawWhat,
    count: u32,
    cancel: &CancelToken,
) -> Result<u8, StudioError> {
    let bars = Arc::new(Bars::new(cli.quiet || cli.json));
    let watcher: Arc<dyn Watcher> = Arc::clone(&bars) as Arc<dyn Watcher>;
    let drawn = studio(cli)?.draw_for(project, what, Some(count), &watcher, cancel);
    bars.finish();
    let drawn = drawn?;
    if cli.json {
        say_json(&json!({ "takes": drawn }));
    } else if !cli.quiet {
        for take in &drawn {
            let same = if take.new { "" } else { ", the same as before" };
            say(&format!(
                "{}: drawn from seed {}{same}",
                take.shot, take.seed
            ));
        }
    }
    Ok(0)
}

/// Refuse to take a whole script back unasked.
fn check_undo(project: &Path) -> Result<(), StudioError> {
    let history = send(project, StudioCommand::System(System::History))?;
    let next = &history["undo"];
    if next["name"] != "import_script" {
        return Ok(());
    }
    let message = format!(
        "this takes back the whole script ({}); nothing was changed: `longtake project undo --yes` \
         does it",
        edit_in_words(next)
    );
    Err(StudioError::new(Code::Refused, message))
}

/// What a project's owner answered.
fn in_words(asked: &ProjectCommand, answer: &Value) -> String {
    match asked {
        ProjectCommand::Undo { .. } if answer.is_null() => "there is nothing to undo".into(),
        ProjectCommand::Redo { .. } if answer.is_null() => "there is nothing to redo".into(),
        ProjectCommand::Undo { .. } => format!("took back: {}", edit_in_words(answer)),
        ProjectCommand::Redo { .. } => format!("did again: {}", edit_in_words(answer)),
        ProjectCommand::History { .. } => format!(
            "undo: {}\nredo: {}",
            edit_in_words(&answer["undo"]),
            edit_in_words(&answer["redo"])
        ),
        ProjectCommand::Set { .. }
        | ProjectCommand::Show { .. }
        | ProjectCommand::Diff { .. }
        | ProjectCommand::Take { .. }
        | ProjectCommand::Draw { .. }
        | ProjectCommand::Rewrite(_) => match answer["changed"].as_u64() {
            Some(0) => "it was so already".into(),
            _ => "changed".into(),
        },
    }
}

/// An edit on the undo log in one line.
fn edit_in_words(edit: &Value) -> String {
    let (name, body) = (edit["name"].as_str(), &edit["body"]);
    let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
    match name {
        None => "nothing".into(),
        Some("import_script") => {
            let title = body["script"]["title"].as_str().unwrap_or_default();
            format!("the script {title:?} read in")
        }
        Some("take") => "changes taken from another script".into(),
        Some("set") => format!("{} {}: {} set", text("kind"), text("id"), text("field")),
        Some(other) => format!("{other} {} {}", text("kind"), text("id")),
    }
}

fn send(folder: &Path, command: StudioCommand) -> Result<Value, StudioError> {
    flow_studio::send(
        folder,
        command,
        "longtake project",
        &flow_studio::system_clock(),
    )
}

fn changes(answer: &Value) -> Result<Vec<ScriptChange>, StudioError> {
    serde_json::from_value(answer.clone()).map_err(|error| internal(&error))
}

fn rewrite(cli: &Cli, args: &RewriteArgs, cancel: &CancelToken) -> Result<u8, StudioError> {
    let accepted = args.accept.as_deref().map(str::parse).transpose()?;
    let length = super::film_length(&args.length)?;
    let request = RewriteRequest {
        project: args.project.clone(),
        premise: PremiseRequest {
            text: args.premise.clone(),
            length: Some(length),
            seed: args.seed,
            llm: args.llm.clone(),
        },
        folders: args.stills.clone(),
    };
    let bars = Arc::new(Bars::new(cli.quiet || cli.json));
    let watcher: Arc<dyn Watcher> = Arc::clone(&bars) as Arc<dyn Watcher>;
    let report = studio(cli)?.rewrite(&request, watcher.as_ref(), cancel);
    bars.finish();
    let report = report?;
    let mut changed = None;
    if let (Some(accepted), Some(proposal)) = (accepted, &report.proposal) {
        let answer = send(&args.project, flow_studio::take_from(proposal, accepted)?)?;
        changed = answer["changed"].as_u64();
    }
    if cli.json {
        let mut told = serde_json::to_value(&report).unwrap_or_default();
        if let Value::Object(fields) = &mut told {
            fields.insert("changed".to_owned(), json!(changed));
        }
        say_json(&told);
        return Ok(0);
    }
    show_changes(cli, &report.changes);
    if !cli.quiet {
        match (&report.proposal, changed) {
            (None, _) => say("the project's script was written for this premise already"),
            (Some(_), Some(_)) => say("changed"),
            (Some(proposal), None) => say(&format!(
                "the proposal is in {}; longtake project take brings it in",
                proposal.display()
            )),
        }
    }
    Ok(0)
}

/// Changes as lines, or as JSON.
pub(super) fn show_changes(cli: &Cli, changes: &[ScriptChange]) {
    if cli.json {
        say_json(&json!({ "changes": changes }));
        return;
    }
    if changes.is_empty() {
        say("no changes");
    }
    for change in changes {
        let by = match &change.by {
            Some(by) => format!("  (by {by})"),
            None => String::new(),
        };
        let what = [&change.kind, &change.id, &change.field].map(String::as_str);
        let what: Vec<&str> = what.into_iter().filter(|word| !word.is_empty()).collect();
        say(&format!("{:3}  {}{by}", change.number, what.join(" ")));
        for (mark, value) in [("-", &change.old), ("+", &change.new)] {
            match value {
                Value::Null => {}
                Value::String(text) => say(&format!("     {mark} {text}")),
                other => say(&format!("     {mark} {other}")),
            }
        }
    }
}
