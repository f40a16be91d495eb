//! Story: scripts written and rewritten by a language model, read and written as text, voices.

use std::collections::BTreeMap;
use std::path::PathBuf;

use engine_base::Code;
use engine_pipelines::VoiceInfo;
use flow_store::project::Change;
use flow_story::{Picture, Script};
use flow_timeline::SourceKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use ts_rs::TS;

use super::Desk;
use super::events::DeskEvent;
use super::list::{CommandEntry, CommandKind, Done, NoArgs};
use super::project::{Edited, LintMessage, ProjectArgs, edited};
use super::queue::JobStarted;
use super::state::{OpenProject, PROPOSAL, lint_of};
use super::worker::kept;
use crate::command::{Edit, Kind};
use crate::error::StudioError;
use crate::film::format_of;
use crate::library::setting_of;
use crate::project::parse;
use crate::rewrite::{Accepted, ScriptChange, chosen, shown, to_value};
use crate::say::Say;
use crate::speak;

/// A script to be written from a premise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct WriteArgs {
    /// The project's folder.
    pub project: PathBuf,
    /// The premise.
    pub premise: String,
    /// Length of the film, `5 s` to `10 min`; absent means 45 s.
    #[serde(default)]
    pub length: Option<String>,
    /// Decides every draw; absent means 0.
    #[serde(default)]
    pub seed: Option<u64>,
    /// URL of a server, id of a model, or path of its weights; absent means that of the settings.
    #[serde(default)]
    pub llm: Option<String>,
}

/// A part of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct RewriteTarget {
    /// What the row is.
    pub kind: Kind,
    /// Its id in the script; anything for the film.
    pub id: String,
    /// JSON pointer of a text field, such as `/action` or `/lines/0/text`; absent means all its
    /// texts.
    #[serde(default)]
    pub field: Option<String>,
}

/// A part of a script to be written again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct RewriteArgs {
    /// The project's folder.
    pub project: PathBuf,
    /// The part.
    pub target: RewriteTarget,
    /// What should be otherwise, in words.
    #[serde(default)]
    pub wish: Option<String>,
    /// Decides every draw; absent means 0.
    #[serde(default)]
    pub seed: Option<u64>,
    /// As for `story.write`.
    #[serde(default)]
    pub llm: Option<String>,
}

/// Changes that wait to be taken or refused.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Proposal {
    /// The changes.
    pub changes: Vec<ScriptChange>,
    /// Where it comes from: the premise, or what was rewritten.
    pub from: String,
    /// When it came.
    pub at_unix_millis: u64,
}

/// Changes to take.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct TakeArgs {
    /// The project's folder.
    pub project: PathBuf,
    /// All, or those of these numbers or paths. What is left of the proposal stays.
    pub accepted: Accepted,
}

/// A script as text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ReadArgs {
    /// Markdown or JSON.
    pub text: String,
}

/// A script that was read.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct ReadScript {
    /// The script: give it to an `import_script` edit.
    #[ts(type = "Script")]
    pub script: Value,
    /// What could be better.
    pub lint: Vec<LintMessage>,
}

/// A script as Markdown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct ScriptText {
    /// The text.
    pub markdown: String,
}

/// A voice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct Voice {
    /// Its id, as a cast member's `voice` names it.
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// BCP-47 tag.
    pub language: String,
    /// SPDX expression.
    pub licence: String,
    /// Whether it is the one that speaks when none is named.
    pub default: bool,
}

/// A text to hear.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct HearArgs {
    /// The voice; absent means the default.
    #[serde(default)]
    pub voice: Option<String>,
    /// The text.
    pub text: String,
    /// BCP-47 tag of the text; absent means the voice's.
    #[serde(default)]
    pub language: Option<String>,
    /// 1 is the voice's own pace.
    #[serde(default)]
    pub pace: Option<f64>,
}

/// Commands of this page.
pub(super) fn commands() -> Vec<CommandEntry> {
    use CommandKind::{Edit, Job, System};
    vec![
        CommandEntry::new(
            "story.write",
            Job,
            "Let a language model write a script from a premise, as a proposal.",
            write,
        ),
        CommandEntry::new(
            "story.rewrite",
            Job,
            "Let a language model write a part of the script again, as a proposal.",
            rewrite,
        ),
        CommandEntry::new(
            "proposal.get",
            System,
            "The proposal that waits, if any.",
            proposal,
        ),
        CommandEntry::new("proposal.take", Edit, "Take changes of the proposal.", take),
        CommandEntry::new("proposal.refuse", System, "Drop the proposal.", refuse),
        CommandEntry::new(
            "story.read",
            System,
            "Read a script from text, as Markdown or JSON; faults come back as an error.",
            read,
        ),
        CommandEntry::new("story.text", System, "The script as Markdown.", text),
        CommandEntry::new(
            "voices.list",
            System,
            "Voices of this machine; the first is the default.",
            voices,
        ),
        CommandEntry::new("voice.hear", Job, "Speak a text.", hear),
    ]
}

fn write(desk: &Desk, args: WriteArgs) -> Result<JobStarted, StudioError> {
    let open = desk.project(&args.project)?;
    flow_story::Premise::read(&args.premise)
        .map_err(|error| StudioError::new(error.code(), error.to_string()))?;
    let title = Say::WriteFrom {
        premise: args.premise.chars().take(60).collect(),
    };
    let folder = Some(open.folder.clone());
    let job = desk.add_job("story.write", title, folder, kept(&args))?;
    Ok(JobStarted { job })
}

fn rewrite(desk: &Desk, args: RewriteArgs) -> Result<JobStarted, StudioError> {
    let open = desk.project(&args.project)?;
    let target = &args.target;
    let title = Say::RewriteRow {
        kind: target.kind.as_str().to_owned(),
        id: target.id.clone(),
    };
    let folder = Some(open.folder.clone());
    let job = desk.add_job("story.rewrite", title, folder, kept(&args))?;
    Ok(JobStarted { job })
}

/// A proposal as its project keeps it.
struct Kept {
    base: Script,
    script: Script,
    from: String,
    at_unix_millis: u64,
}

fn kept_proposal(open: &OpenProject) -> Result<Option<Kept>, StudioError> {
    let Some(value) = open.project.db().setting(PROPOSAL)? else {
        return Ok(None);
    };
    if value.is_null() {
        return Ok(None);
    }
    Ok(Some(Kept {
        base: parse(&value["base"])?,
        script: parse(&value["script"])?,
        from: value["from"].as_str().unwrap_or_default().to_owned(),
        at_unix_millis: value["at_unix_millis"].as_u64().unwrap_or(0),
    }))
}

fn proposal(desk: &Desk, args: ProjectArgs) -> Result<Option<Proposal>, StudioError> {
    let open = desk.project(&args.project)?;
    let kept = kept_proposal(&open)?;
    Ok(kept.map(|kept| Proposal {
        changes: shown(&flow_story::diff(&kept.base, &kept.script)),
        from: kept.from,
        at_unix_millis: kept.at_unix_millis,
    }))
}

/// Keep what is left of a proposal, or drop it.
fn leave(desk: &Desk, open: &OpenProject, left: Option<Value>) -> Result<(), StudioError> {
    open.project.db().apply(vec![Change::Set {
        name: PROPOSAL.to_owned(),
        value: left,
    }])?;
    desk.tell(&DeskEvent::ProposalChanged {
        project: open.folder.display().to_string(),
    });
    desk.project_changed(&open.folder);
    Ok(())
}

fn take(desk: &Desk, args: TakeArgs) -> Result<Edited, StudioError> {
    let open = desk.project(&args.project)?;
    let kept = kept_proposal(&open)?
        .ok_or_else(|| StudioError::new(Code::NotFound, "there is no proposal to take from"))?;
    // Changes are against the script that the proposal was made from; what a person changed
    // elsewhere since stays.
    let chosen = chosen(&kept.base, &kept.script, &args.accepted)?;
    let present = open.project.script()?;
    let faulty = |faults: Vec<flow_story::Fault>| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let message = format!("these changes cannot be taken:\n  {}", lines.join("\n  "));
        StudioError::new(Code::BadInput, message)
    };
    let script = flow_story::apply(&present, &chosen).map_err(faulty)?;
    let edit = Edit::Take {
        script: to_value(&script)?,
        accepted: Accepted::All,
    };
    let done = open.project.edit(&edit, None)?;
    let base = flow_story::apply(&kept.base, &chosen).map_err(faulty)?;
    let left = if flow_story::diff(&base, &kept.script).is_empty() {
        None
    } else {
        Some(json!({
            "base": to_value(&base)?,
            "script": to_value(&kept.script)?,
            "from": kept.from,
            "at_unix_millis": kept.at_unix_millis,
        }))
    };
    leave(desk, &open, left)?;
    edited(&open, (done.changed > 0).then_some(done.label))
}

fn refuse(desk: &Desk, args: ProjectArgs) -> Result<Done, StudioError> {
    let open = desk.project(&args.project)?;
    leave(desk, &open, None)?;
    Ok(Done {})
}

fn read(_: &Desk, args: ReadArgs) -> Result<ReadScript, StudioError> {
    let name = if args.text.trim_start().starts_with('{') {
        "script.json"
    } else {
        "script.md"
    };
    let parsed = flow_story::parse(args.text.as_bytes(), name).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let message = format!("the script is faulty:\n  {}", lines.join("\n  "));
        StudioError::new(Code::BadInput, message)
    })?;
    let format = format_of(&parsed.script)?;
    let lint = lint_of(&parsed.script, &format, &BTreeMap::new());
    Ok(ReadScript {
        script: to_value(&parsed.script)?,
        // No project is asked for files here.
        lint: lint
            .into_iter()
            .filter(|one| one.rule != "missing-file")
            .collect(),
    })
}

fn text(desk: &Desk, args: ProjectArgs) -> Result<ScriptText, StudioError> {
    let open = desk.project(&args.project)?;
    Ok(ScriptText {
        markdown: flow_story::to_markdown(&open.project.script()?),
    })
}

fn voices(_: &Desk, _: NoArgs) -> Result<Vec<Voice>, StudioError> {
    let voices = speak::voices()?.into_iter().enumerate();
    let voice = |(at, voice): (usize, VoiceInfo)| Voice {
        id: voice.id,
        title: voice.title,
        language: voice.language,
        licence: voice.licence,
        default: at == 0,
    };
    Ok(voices.map(voice).collect())
}

/// Longest text that is spoken to hear a voice, in characters.
const HEAR_CHARS_MAX: usize = 2_000;

fn hear(desk: &Desk, args: HearArgs) -> Result<JobStarted, StudioError> {
    let chars = args.text.chars().count();
    if args.text.trim().is_empty() || chars > HEAR_CHARS_MAX {
        let message = format!("expected a text of 1 to {HEAR_CHARS_MAX} characters, got {chars}");
        return Err(StudioError::new(Code::BadInput, message));
    }
    let title = Say::HearText {
        text: args.text.chars().take(40).collect(),
    };
    let job = desk.add_job("voice.hear", title, None, kept(&args))?;
    Ok(JobStarted { job })
}

impl Desk {
    /// Pictures of a project that a script may use.
    pub(super) fn pictures_of(&self, open: &OpenProject) -> Result<Vec<Picture>, StudioError> {
        let prefix = setting_of(SourceKind::Still, "");
        let settings = open.project.db().settings()?;
        let names = settings
            .keys()
            .filter_map(|setting| setting.strip_prefix(&prefix));
        let picture = |name: &str| Picture {
            name: name.to_owned(),
            caption: String::new(),
        };
        Ok(names.map(picture).collect())
    }
}
