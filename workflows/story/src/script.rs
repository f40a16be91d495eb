//! The script: who, where, and every shot of the film, as a person or a model wrote it.

use std::fmt;
use std::str::FromStr;

use engine_base::Rational;
use flow_timeline::{CardRole, FilmFormat, Fit};
use serde::Serialize;

use crate::continuity::Continuity;
use crate::length::Length;
use crate::moves::Move;
use crate::origin::Origins;
use crate::seed::Seed;
use crate::transition::Transition;
use crate::value::ValueError;

/// Version of the script form that this code writes, and the newest that it reads.
pub const SCRIPT_VERSION: u32 = 1;

/// A film's script. Texts that are not given are empty; lists keep the order written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Script {
    /// Version of the form, [`SCRIPT_VERSION`].
    #[serde(rename = "longtake")]
    pub version: u32,
    /// Title of the film.
    pub title: String,
    /// The film in one sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub logline: String,
    /// BCP-47 tag of the language spoken and written in the film.
    pub language: String,
    /// How the film looks, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub style: String,
    /// Size, rates and the length asked for.
    #[serde(flatten)]
    pub film: FilmSettings,
    /// Who speaks or is seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cast: Vec<CastMember>,
    /// Where it happens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
    /// Music under stretches of the film.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub music: Vec<MusicCue>,
    /// The film itself.
    pub scenes: Vec<Scene>,
    /// Text after the last shot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credits: Option<Credits>,
    /// Who wrote its fields.
    #[serde(skip_serializing_if = "Origins::is_empty")]
    pub by: Origins,
}

/// Picture and sound settings; absent ones are decided by whoever makes the film.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FilmSettings {
    /// Width and height in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<FrameSize>,
    /// Frames per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fps: Option<Rational>,
    /// Sound sample rate in Hz.
    #[serde(rename = "sample_rate", skip_serializing_if = "Option::is_none")]
    pub sample_rate_hz: Option<u32>,
    /// Length that the film should have; the linter compares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<Length>,
}

/// Width and height, written `1280x720`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameSize {
    /// Width.
    pub width_px: u32,
    /// Height.
    pub height_px: u32,
}

/// Somebody who speaks or is seen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CastMember {
    /// Name by which lines call them.
    pub name: String,
    /// What they look like.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub look: String,
    /// What they sound like.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub voice: String,
    /// File names of pictures of them, for models that take pictures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    /// Who wrote its fields.
    #[serde(skip_serializing_if = "Origins::is_empty")]
    pub by: Origins,
}

/// Somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Place {
    /// Id by which scenes call it.
    pub id: String,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What it looks like.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub look: String,
    /// File names of pictures of it, for models that take pictures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    /// Who wrote its fields.
    #[serde(skip_serializing_if = "Origins::is_empty")]
    pub by: Origins,
}

/// Shots in one place and time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scene {
    /// Id, unique among scenes.
    pub id: String,
    /// Heading; also the chapter's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub heading: String,
    /// Id of a [`Place`]; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Time of day; may be empty.
    #[serde(rename = "time", skip_serializing_if = "String::is_empty")]
    pub time_of_day: String,
    /// A note for whoever makes the film; never shown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The shots, at least one.
    pub shots: Vec<Shot>,
    /// Who wrote its fields.
    #[serde(skip_serializing_if = "Origins::is_empty")]
    pub by: Origins,
}

/// One continuous view.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shot {
    /// Id, unique in the script.
    pub id: String,
    /// Length, with the parts shared with neighbours in transitions.
    pub length: Length,
    /// Framing in words: wide, close, over the shoulder.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub framing: String,
    /// What happens.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub action: String,
    /// File name of a still picture.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub picture: String,
    /// What the picture shows, for making one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub depicts: String,
    /// What a made picture must not show.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub negative: String,
    /// Decides every draw of a made picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Seed>,
    /// What makes the picture: the id of a model, or `stills`; empty means the default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Moving pictures instead of a still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoUse>,
    /// One colour instead of a picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
    /// How the picture fills the frame.
    pub fit: Fit,
    /// How the camera moves over the picture.
    #[serde(rename = "move")]
    pub camera: Move,
    /// How the film comes into this shot from the one before.
    pub transition: Transition,
    /// Time over which the shot comes from black.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fade_in: Option<Length>,
    /// Time over which the shot goes to black.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fade_out: Option<Length>,
    /// How it follows from another shot's picture.
    pub continuity: Continuity,
    /// Text over the picture.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub titles: Vec<Title>,
    /// Sounds of the place and in the picture.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sounds: Vec<ShotSound>,
    /// What is said, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Line>,
    /// A note for whoever makes the film; never shown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Who wrote its fields.
    #[serde(skip_serializing_if = "Origins::is_empty")]
    pub by: Origins,
}

/// A stretch of a file with moving pictures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VideoUse {
    /// File name.
    pub file: String,
    /// Where in the file it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Length>,
    /// Level of the file's own sound in dB; absent leaves it out.
    #[serde(rename = "sound", skip_serializing_if = "Option::is_none")]
    pub sound_gain_db: Option<f64>,
}

/// An sRGB colour, written `#rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour {
    /// Red, green, blue, 8 bits each.
    pub rgb: [u8; 3],
}

/// Text over the picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Title {
    /// What it is for.
    pub role: CardRole,
    /// The text; may hold line breaks.
    pub text: String,
    /// When it appears, from the shot's start; absent means at the start.
    #[serde(rename = "at", skip_serializing_if = "Option::is_none")]
    pub start: Option<Length>,
    /// How long it stays; absent means to the shot's end.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub length: Option<Length>,
    /// How long it takes to appear and to go; absent means a third of a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fade: Option<Length>,
}

/// What a shot's sound is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShotSoundKind {
    /// Sound of the place: runs over the whole shot, looped, and on over following shots that
    /// have the same.
    Ambience,
    /// A sound in the picture: once, from its start.
    Effect,
}

/// A sound of a shot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShotSound {
    /// What it is.
    pub kind: ShotSoundKind,
    /// File name, or the name of a sound we ship.
    pub file: String,
    /// When it starts, from the shot's start; effects only.
    #[serde(rename = "at", skip_serializing_if = "Option::is_none")]
    pub start: Option<Length>,
    /// Level change in dB.
    #[serde(rename = "gain", skip_serializing_if = "is_zero")]
    pub gain_db: f64,
}

/// Something said, in the picture or over it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Line {
    /// Name of a cast member; empty for the narrator.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub speaker: String,
    /// Marks after the name, such as `V.O.` or `CONT'D`; not part of the name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// The words.
    pub text: String,
    /// File name of the recorded voice.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub voice: String,
    /// When it starts, from the shot's start; absent lines follow each other.
    #[serde(rename = "at", skip_serializing_if = "Option::is_none")]
    pub start: Option<Length>,
    /// Level change of the voice in dB.
    #[serde(rename = "gain", skip_serializing_if = "is_zero")]
    pub gain_db: f64,
    /// Who wrote its fields.
    #[serde(skip_serializing_if = "Origins::is_empty")]
    pub by: Origins,
}

/// Music under a stretch of the film.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct MusicCue {
    /// File name, or the name of a bed we ship.
    pub file: String,
    /// Id of the first shot; empty means the film's start.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// Id of the last shot; empty means the film's end, credits included.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// Level change in dB.
    #[serde(rename = "gain", skip_serializing_if = "is_zero")]
    pub gain_db: f64,
    /// Time over which it comes in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fade_in: Option<Length>,
    /// Time over which it goes out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fade_out: Option<Length>,
}

/// Text after the last shot, on black.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Credits {
    /// How long all of it stays.
    pub length: Length,
    /// Lines in order; long credits are shown in pages.
    pub lines: Vec<String>,
}

fn is_zero(gain_db: &f64) -> bool {
    *gain_db == 0.0
}

impl fmt::Display for FrameSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width_px, self.height_px)
    }
}

impl FromStr for FrameSize {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let refused = || ValueError::new(text, "a size such as 1280x720, even sides of 16 to 8192");
        let (width, height) = text.split_once(['x', '×']).ok_or_else(refused)?;
        let side = |digits: &str| {
            let side_px = digits.trim().parse::<u32>().ok()?;
            ((16..=8192).contains(&side_px) && side_px % 2 == 0).then_some(side_px)
        };
        Ok(Self {
            width_px: side(width).ok_or_else(refused)?,
            height_px: side(height).ok_or_else(refused)?,
        })
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.rgb;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl FromStr for Colour {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "black" => return Ok(Self { rgb: [0; 3] }),
            "white" => return Ok(Self { rgb: [255; 3] }),
            _ => {}
        }
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
        let byte = |at: usize| {
            let pair = digits?.get(at..at + 2)?;
            let hex = pair.bytes().all(|b| b.is_ascii_hexdigit());
            hex.then(|| u8::from_str_radix(pair, 16).ok()).flatten()
        };
        match (byte(0), byte(2), byte(4)) {
            (Some(red), Some(green), Some(blue)) => Ok(Self {
                rgb: [red, green, blue],
            }),
            _ => Err(ValueError::new(
                text,
                "a colour such as #1a1a1a, black or white",
            )),
        }
    }
}

impl Script {
    /// The format its settings ask for; what they leave open is taken from `otherwise`.
    pub fn format(&self, otherwise: FilmFormat) -> FilmFormat {
        let size = self.film.size;
        FilmFormat {
            width_px: size.map_or(otherwise.width_px, |size| size.width_px),
            height_px: size.map_or(otherwise.height_px, |size| size.height_px),
            fps: self.film.fps.unwrap_or(otherwise.fps),
            sample_rate_hz: self.film.sample_rate_hz.unwrap_or(otherwise.sample_rate_hz),
        }
    }

    /// All shots in film order.
    pub fn shots(&self) -> impl Iterator<Item = &Shot> {
        self.scenes.iter().flat_map(|scene| &scene.shots)
    }

    /// All lines with their shots, in film order.
    pub fn lines(&self) -> impl Iterator<Item = (&Shot, &Line)> {
        self.shots()
            .flat_map(|shot| shot.lines.iter().map(move |line| (shot, line)))
    }
}

impl Shot {
    /// A shot with nothing but an id and a length: still camera, cut into, no picture.
    pub fn new(id: impl Into<String>, length: Length) -> Self {
        Self {
            id: id.into(),
            length,
            framing: String::new(),
            action: String::new(),
            picture: String::new(),
            depicts: String::new(),
            negative: String::new(),
            seed: None,
            model: String::new(),
            video: None,
            colour: None,
            fit: Fit::Cover,
            camera: Move::STILL,
            transition: Transition::Cut,
            fade_in: None,
            fade_out: None,
            continuity: Continuity::Cut,
            titles: Vec::new(),
            sounds: Vec::new(),
            lines: Vec::new(),
            note: String::new(),
            by: Origins::default(),
        }
    }
}
