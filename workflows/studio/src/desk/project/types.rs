//! What the commands of a project take and give.

use std::collections::BTreeMap;
use std::path::PathBuf;

use flow_story::Coded;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::command::{Edit, Kind};

/// A shape of frame to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// 2.39:1.
    Cinema,
    /// 16:9.
    Wide,
    /// 9:16.
    Tall,
    /// 1:1.
    Square,
}

/// A new project.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct NewProject {
    /// The film's title; also the folder's name, as far as a folder can be called so.
    pub name: String,
    /// Where its folder goes; absent means the projects folder.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    /// Shape of the frame.
    pub preset: Preset,
    /// Frames a second: `24`, `25`, `30000/1001`.
    pub fps: String,
    /// BCP-47 tag.
    pub language: String,
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ProjectArgs {
    /// Its folder.
    pub project: PathBuf,
}

/// A named step on the undo log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct UndoStep {
    /// What it was, in a few words.
    pub label: String,
    /// The same for pages in another language.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Coded")]
    pub label_coded: Option<Coded>,
    /// When it was made.
    pub at_unix_millis: u64,
}

/// What a file that the script names is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// A still picture.
    Picture,
    /// Moving pictures.
    Video,
    /// A voice, music or another sound.
    Sound,
    /// Anything else.
    Other,
}

/// A file of a project, under the name that scripts call it by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(optional_fields)]
pub struct MediaFile {
    /// What it is.
    pub kind: MediaKind,
    /// Its content: `/media/{hash}`, `/thumb/{hash}`. Absent when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Its media type; empty when it is missing.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
    /// Width of a picture or video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width_px: Option<u32>,
    /// Height of a picture or video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height_px: Option<u32>,
    /// Whether the script names it and nothing is there.
    pub missing: bool,
    /// Whether the script names it.
    pub used: bool,
    /// Whether it is a sound that the program carries with it.
    pub shipped: bool,
}

/// How bad a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum LintLevel {
    /// The film cannot be made like this.
    Fault,
    /// It could be better.
    Warning,
}

/// An edit that mends what a message is about.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct LintFix {
    /// What the button says.
    pub label: String,
    /// The same for pages in another language.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Coded")]
    pub label_coded: Option<Coded>,
    /// The edit.
    pub edit: Edit,
}

/// Something that could be better in the script, at its place.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(optional_fields)]
pub struct LintMessage {
    /// How bad it is.
    pub level: LintLevel,
    /// What it is about, in a stable word such as `speech-rate`.
    pub rule: String,
    /// What is the matter, with figures.
    pub what: String,
    /// What would mend it, in words.
    pub advice: String,
    /// What is the matter, for pages in another language.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Coded")]
    pub what_coded: Option<Coded>,
    /// What would mend it, for pages in another language.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Coded")]
    pub advice_coded: Option<Coded>,
    /// What the row is; absent for the film as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The row's id in the script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// JSON pointer of the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What mends it at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<LintFix>,
}

/// A named state of the script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// When it was taken.
    pub at_unix_millis: u64,
}

/// Whether a shot's pictures are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ShotState {
    /// Made, as the script has it now.
    Made,
    /// Not made yet, or not as the script has it now.
    Missing,
    /// In the making.
    Running,
    /// A file that it needs is missing, or it could not be made.
    Failed,
}

/// A shot in the film.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(optional_fields)]
pub struct ShotStatus {
    /// Whether its pictures are made.
    pub state: ShotState,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The same for pages in another language.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Coded")]
    pub why_coded: Option<Coded>,
    /// Where it starts in the film.
    pub start_secs: f64,
    /// Its length.
    pub length_secs: f64,
    /// Content of its picture or video: `/thumb/{picture}`. Where nobody chose one, of the one that was drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// Whether nobody chose what it shows: a picture is drawn for it when it is made.
    pub to_draw: bool,
    /// Content of its pictures as made, an MP4 without sound: `/media/{made}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
    /// Whether those are a draft: half as large and coarse.
    pub draft: bool,
}

/// Frame and length of a film.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct FilmShape {
    /// Width of the frame.
    pub width_px: u32,
    /// Height of the frame.
    pub height_px: u32,
    /// Frames a second, as the script has it: `24`, `30000/1001`.
    pub fps: String,
    /// Length of the film.
    pub secs: f64,
}

/// A project as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(optional_fields)]
pub struct ProjectState {
    /// Its folder.
    pub project: PathBuf,
    /// The folder's name without its ending.
    pub name: String,
    /// Grows with every change.
    pub revision: u64,
    /// The script.
    #[ts(type = "Script")]
    pub script: Value,
    /// What undo takes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<UndoStep>,
    /// What redo does again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redo: Option<UndoStep>,
    /// Files by the names that scripts call them by: those that the script names, and those that
    /// the project keeps.
    pub pictures: BTreeMap<String, MediaFile>,
    /// What is wrong or could be better, in script order.
    pub lint: Vec<LintMessage>,
    /// Named states, newest first.
    pub snapshots: Vec<Snapshot>,
    /// Every shot, by id.
    pub shots: BTreeMap<String, ShotStatus>,
    /// Frame and length.
    pub film: FilmShape,
    /// The premise that a script was last written from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub premise: Option<String>,
    /// Whether a proposal waits to be taken or refused.
    pub proposal: bool,
}

/// An edit of a project.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct EditArgs {
    /// The project's folder.
    pub project: PathBuf,
    /// The edit.
    pub edit: Edit,
    /// The client's own name for this edit, at most 64 characters, never used twice: the same one
    /// again is carried out once, so that it can be sent again when its answer was lost.
    #[serde(default)]
    pub edit_key: Option<String>,
}

/// What an edit, an undo or a redo did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(optional_fields)]
pub struct Edited {
    /// The project's revision now.
    pub revision: u64,
    /// What was done, in a few words; absent when nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The same for pages in another language.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Coded")]
    pub label_coded: Option<Coded>,
}

/// A project and a name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct NamedArgs {
    /// The project's folder.
    pub project: PathBuf,
    /// The name.
    pub name: String,
}

/// Text to look for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct FindArgs {
    /// The project's folder.
    pub project: PathBuf,
    /// The text; case is ignored.
    pub text: String,
}

/// A place where a text was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct Found {
    /// What the row is.
    pub kind: Kind,
    /// Its id in the script; empty for the film.
    pub id: String,
    /// JSON pointer of the field.
    pub field: String,
    /// The field's text.
    pub text: String,
}

/// A file that was brought into a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct Uploaded {
    /// The name by which scripts call it.
    pub name: String,
    /// Its content.
    pub hash: String,
    /// Its media type.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
}
