//! A script in its JSON form, as types for shells that are not written in Rust.
//!
//! Nothing is read through these: scripts are read by `flow-story`, which names every fault. A
//! test holds them to what `flow-story` writes.

use std::collections::BTreeMap;

use serde::Deserialize;
use ts_rs::TS;

/// Who wrote a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum WrittenBy {
    /// A language model.
    Model,
    /// A rule of the producer.
    Rule,
    /// A person.
    User,
}

/// A film's script. Texts that are not given are absent. Lengths are texts such as `4 s`, `2.5 s`
/// or `96 frames`.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "Script", optional_fields)]
pub struct ScriptForm {
    /// Version of the form.
    pub longtake: u32,
    /// Title of the film.
    pub title: String,
    /// The film in one sentence.
    pub logline: Option<String>,
    /// BCP-47 tag of the language spoken and written in the film.
    pub language: String,
    /// How the film looks, in words.
    pub style: Option<String>,
    /// Width and height: `1280x720`.
    pub size: Option<String>,
    /// Frames a second: `24`, `30000/1001`.
    pub fps: Option<String>,
    /// Sound sample rate in Hz.
    pub sample_rate: Option<u32>,
    /// Length that the film should have.
    pub length: Option<String>,
    /// Who speaks or is seen.
    pub cast: Option<Vec<CastForm>>,
    /// Where it happens.
    pub places: Option<Vec<PlaceForm>>,
    /// Music under stretches of the film.
    pub music: Option<Vec<MusicForm>>,
    /// The film itself.
    pub scenes: Vec<SceneForm>,
    /// Text after the last shot.
    pub credits: Option<CreditsForm>,
    /// Who wrote its fields.
    pub by: Option<BTreeMap<String, WrittenBy>>,
}

/// Somebody who speaks or is seen.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "CastMember", optional_fields)]
pub struct CastForm {
    /// Name by which lines call them; also the row's id.
    pub name: String,
    /// What they look like.
    pub look: Option<String>,
    /// What they sound like: a voice's id, or words.
    pub voice: Option<String>,
    /// File names of pictures of them.
    pub references: Option<Vec<String>>,
    /// Who wrote its fields.
    pub by: Option<BTreeMap<String, WrittenBy>>,
}

/// Somewhere.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "Place", optional_fields)]
pub struct PlaceForm {
    /// Id by which scenes call it.
    pub id: String,
    /// Its name.
    pub name: Option<String>,
    /// What it looks like.
    pub look: Option<String>,
    /// File names of pictures of it.
    pub references: Option<Vec<String>>,
    /// Who wrote its fields.
    pub by: Option<BTreeMap<String, WrittenBy>>,
}

/// Shots in one place and time.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "Scene", optional_fields)]
pub struct SceneForm {
    /// Id, unique among scenes.
    pub id: String,
    /// Heading; also the chapter's name.
    pub heading: Option<String>,
    /// Id of a place.
    pub place: Option<String>,
    /// Time of day.
    pub time: Option<String>,
    /// A note for whoever makes the film; never shown.
    pub note: Option<String>,
    /// The shots, at least one.
    pub shots: Vec<ShotForm>,
    /// Who wrote its fields.
    pub by: Option<BTreeMap<String, WrittenBy>>,
}

/// One continuous view.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "Shot", optional_fields)]
pub struct ShotForm {
    /// Id, unique in the script.
    pub id: String,
    /// Length, with the parts shared with neighbours in transitions.
    pub length: String,
    /// Framing in words: wide, close, over the shoulder.
    pub framing: Option<String>,
    /// What happens.
    pub action: Option<String>,
    /// File name of a still picture. One of `picture`, `video` and `colour` at most.
    pub picture: Option<String>,
    /// What the picture shows, for making one.
    pub depicts: Option<String>,
    /// What a made picture must not show.
    pub negative: Option<String>,
    /// Decides every draw of a made picture: `42`, or `42 locked`.
    pub seed: Option<String>,
    /// What makes the picture: the id of a model, or `stills`.
    pub model: Option<String>,
    /// Moving pictures instead of a still.
    pub video: Option<VideoForm>,
    /// One colour instead of a picture: `#1a1a1a`, `black`, `white`.
    pub colour: Option<String>,
    /// How the picture fills the frame.
    pub fit: FitForm,
    /// How the camera moves: `still`, `push 1 -> 1.15 at 40% 60%, ease-in-out`,
    /// `pan 30% -> 70% at 1.3`, …
    #[serde(rename = "move")]
    pub camera: String,
    /// How the film comes into this shot: `cut`, `cross-fade 1 s`, `through-black 1 s`.
    pub transition: String,
    /// Time over which the shot comes from black.
    pub fade_in: Option<String>,
    /// Time over which the shot goes to black.
    pub fade_out: Option<String>,
    /// How it follows from another shot: `cut`, `continue SHOT`, `re-anchor SHOT`.
    pub continuity: String,
    /// Text over the picture.
    pub titles: Option<Vec<TitleForm>>,
    /// Sounds of the place and in the picture.
    pub sounds: Option<Vec<ShotSoundForm>>,
    /// What is said, in order.
    pub lines: Option<Vec<LineForm>>,
    /// A note for whoever makes the film; never shown.
    pub note: Option<String>,
    /// Who wrote its fields.
    pub by: Option<BTreeMap<String, WrittenBy>>,
}

/// How a picture of another shape fills the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
#[ts(rename = "Fit")]
pub enum FitForm {
    /// Fills the frame; what sticks out is cut.
    Cover,
    /// Shown whole; the rest is black.
    Contain,
}

/// A stretch of a file with moving pictures.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "VideoUse", optional_fields)]
pub struct VideoForm {
    /// File name.
    pub file: String,
    /// Where in the file it starts.
    pub from: Option<String>,
    /// Level of the file's own sound in dB; absent leaves it out.
    pub sound: Option<f64>,
}

/// What text over the picture is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum TitleRole {
    /// Film title: large, centred.
    Title,
    /// Line under a title, or a place and time: centred, smaller.
    Subtitle,
    /// Name or place at the lower left.
    LowerThird,
    /// End credits: centred lines.
    Credits,
    /// Spoken words: lower centre, outlined.
    Caption,
}

/// Text over the picture.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "Title", optional_fields)]
pub struct TitleForm {
    /// What it is for.
    pub role: TitleRole,
    /// The text; may hold line breaks.
    pub text: String,
    /// When it appears, from the shot's start; absent means at the start.
    pub at: Option<String>,
    /// How long it stays; absent means to the shot's end.
    #[serde(rename = "for")]
    pub length: Option<String>,
    /// How long it takes to appear and to go.
    pub fade: Option<String>,
}

/// What a shot's sound is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum SoundKind {
    /// Sound of the place, looped over the whole shot.
    Ambience,
    /// A sound in the picture: once, from its start.
    Effect,
}

/// A sound of a shot.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "ShotSound", optional_fields)]
pub struct ShotSoundForm {
    /// What it is.
    pub kind: SoundKind,
    /// File name, or the name of a sound we ship.
    pub file: String,
    /// When it starts, from the shot's start; effects only.
    pub at: Option<String>,
    /// Level change in dB.
    pub gain: Option<f64>,
}

/// Something said, in the picture or over it.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "Line", optional_fields)]
pub struct LineForm {
    /// Name of a cast member; absent for the narrator.
    pub speaker: Option<String>,
    /// Marks after the name, such as `V.O.`.
    pub extensions: Option<Vec<String>>,
    /// The words.
    pub text: String,
    /// File name of the recorded voice.
    pub voice: Option<String>,
    /// When it starts, from the shot's start; absent lines follow each other.
    pub at: Option<String>,
    /// Level change of the voice in dB.
    pub gain: Option<f64>,
    /// Who wrote its fields.
    pub by: Option<BTreeMap<String, WrittenBy>>,
}

/// Music under a stretch of the film.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "MusicCue", optional_fields)]
pub struct MusicForm {
    /// File name, or the name of a bed we ship.
    pub file: String,
    /// Id of the first shot; absent means the film's start.
    pub from: Option<String>,
    /// Id of the last shot; absent means the film's end.
    pub to: Option<String>,
    /// Level change in dB.
    pub gain: Option<f64>,
    /// Time over which it comes in.
    pub fade_in: Option<String>,
    /// Time over which it goes out.
    pub fade_out: Option<String>,
}

/// Text after the last shot, on black.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "Credits")]
pub struct CreditsForm {
    /// How long all of it stays.
    pub length: String,
    /// Lines in order.
    pub lines: Vec<String>,
}
