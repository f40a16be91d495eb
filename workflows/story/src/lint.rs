//! What could be better in a script that can be made: said, never refused.

use std::collections::HashSet;
use std::fmt;

use engine_base::Rational;
use flow_timeline::{CardRole, FilmFormat};
use serde::Serialize;

use crate::check::place;
use crate::fault::nearest;
use crate::layout::{Laid, lay};
use crate::length::Length;
use crate::lines::ScriptLines;
use crate::moves::MoveKind;
use crate::plan::Assets;
use crate::sayings::ScriptText as Say;
use crate::script::{Script, Shot};
use crate::speech::{columns, cues, place_all, place_lines, shown};
use crate::text::{Coded, figure};
use crate::tree::Faults;

/// Fastest speech that is still followed, in words a second (180 a minute).
const WORDS_PER_SEC: f64 = 3.0;
/// Fastest subtitles that are still read, in columns a second.
const CUE_COLUMNS_PER_SEC: f64 = 20.0;
/// Fastest titles that are still read, in columns a second, after a second to notice them.
const TITLE_COLUMNS_PER_SEC: f64 = 15.0;

/// Something that could be better, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Line of the file, from 1; absent when the script did not come from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Which thing, such as `shot boats`; empty for the film.
    pub place: String,
    /// Which of its fields, such as `length` or `line 2`; empty for the whole thing.
    pub field: String,
    /// What it is about: one stable word or two, such as `speech-rate`.
    pub rule: &'static str,
    /// What is the matter, with figures.
    pub problem: String,
    /// What would mend it.
    pub fix: String,
    /// The problem as a code with values.
    pub problem_coded: Coded,
    /// What would mend it as a code with values.
    pub fix_coded: Coded,
    /// The same as a change that can be made at once, where one change does it.
    pub mend: Option<Mend>,
}

/// A change that mends what a warning is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mend {
    /// Take the thing out.
    Remove,
    /// Set the field to this text.
    Set(String),
    /// Set the shot's length.
    Length(Length),
    /// Show this colour.
    Colour(String),
    /// Add somebody of this name to the cast.
    AddCast(String),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        write!(f, "{} ({}); {}", self.problem, self.rule, self.fix)
    }
}

/// Look a script over as a film of `format`. The same script and assets give the same warnings,
/// in script order. `lines` may be empty.
pub fn lint(
    script: &Script,
    lines: &ScriptLines,
    format: &FilmFormat,
    assets: &Assets,
) -> Vec<Warning> {
    let mut linter = Linter {
        lines,
        format,
        assets,
        warnings: Vec::new(),
    };
    let mut faults = Faults::default();
    let laid = lay(script, format, &mut faults);
    linter.film(script, &laid);
    linter.cast(script);
    linter.files(script);
    for each in &laid {
        if let Some(shot) = each.shot {
            linter.shot(shot, each);
        }
    }
    if faults.is_empty() {
        linter.subtitles(&laid);
    }
    linter.warnings
}

struct Linter<'l> {
    lines: &'l ScriptLines,
    format: &'l FilmFormat,
    assets: &'l Assets,
    warnings: Vec<Warning>,
}

impl Linter<'_> {
    fn warn(&mut self, place: &str, field: &str, rule: &'static str, problem: &Say, fix: &Say) {
        self.warnings.push(Warning {
            line: self.lines.line_of(place, field),
            place: place.to_owned(),
            field: field.to_owned(),
            rule,
            problem: problem.to_string(),
            fix: fix.to_string(),
            problem_coded: problem.coded(),
            fix_coded: fix.coded(),
            mend: None,
        });
    }

    /// The last warning is mended by this.
    fn mend(&mut self, mend: Mend) {
        if let Some(last) = self.warnings.last_mut() {
            last.mend = Some(mend);
        }
    }

    fn secs(&self, frames: i64) -> f64 {
        frames as f64 / self.format.fps.as_f64()
    }

    fn film(&mut self, script: &Script, laid: &[Laid<'_>]) {
        let got = laid.last().map_or(0, Laid::end);
        if let Some(length) = script.film.length {
            let asked = length.frames(self.format.fps);
            if got != asked {
                let (got_secs, asked_secs) = (self.secs(got), self.secs(asked));
                let problem = Say::FilmLength {
                    got,
                    got_secs: figure(got_secs, 2),
                    asked,
                    asked_secs: figure(asked_secs, 2),
                };
                let frames = (got - asked).abs();
                let fix = if got > asked {
                    Say::ShortenShots { frames }
                } else {
                    Say::LengthenShots { frames }
                };
                self.warn("", "length", "film-length", &problem, &fix);
            }
        }
        if script.credits.is_none() && script.title.trim().is_empty() {
            let (problem, fix) = (Say::NoTitle {}, Say::GiveTitle {});
            self.warn("", "title", "no-title", &problem, &fix);
        }
        let titled = script.shots().flat_map(|shot| &shot.titles);
        if !titled
            .into_iter()
            .any(|title| title.role == CardRole::Title)
        {
            let (problem, fix) = (Say::NoTitleShown {}, Say::AddTitle {});
            self.warn("", "title", "no-title", &problem, &fix);
        }
    }

    fn cast(&mut self, script: &Script) {
        let cast: HashSet<&str> = script
            .cast
            .iter()
            .map(|member| member.name.as_str())
            .collect();
        let mut speaking = HashSet::new();
        let mut unknown = HashSet::new();
        for (shot, line) in script.lines() {
            let name = line.speaker.as_str();
            if name.is_empty() {
                continue;
            }
            speaking.insert(name);
            if !cast.contains(name) && unknown.insert(name) {
                let number = shot
                    .lines
                    .iter()
                    .position(|said| said.speaker == name)
                    .unwrap_or(0);
                let near = nearest(name, script.cast.iter().map(|member| member.name.as_str()));
                let name = name.to_owned();
                let fix = match near {
                    Some(near) => Say::WriteOrAddToCast {
                        near,
                        name: name.clone(),
                    },
                    None => Say::AddToCast { name: name.clone() },
                };
                let problem = Say::UnknownSpeaker { name: name.clone() };
                let field = format!("line {}", number + 1);
                self.warn(
                    &place("shot", &shot.id),
                    &field,
                    "unknown-speaker",
                    &problem,
                    &fix,
                );
                self.mend(Mend::AddCast(name));
            }
        }
        let acted: Vec<String> = script
            .shots()
            .map(|shot| shot.action.to_lowercase())
            .collect();
        for member in script
            .cast
            .iter()
            .filter(|member| !speaking.contains(member.name.as_str()))
        {
            let name = member.name.to_lowercase();
            if !acted.iter().any(|action| action.contains(&name)) {
                let problem = Say::UnusedCast {
                    name: member.name.clone(),
                };
                self.warn(
                    &place("cast", &member.name),
                    "name",
                    "unused-cast",
                    &problem,
                    &Say::UseOrDropCast {},
                );
                self.mend(Mend::Remove);
            }
        }
        let used: HashSet<&str> = script
            .scenes
            .iter()
            .map(|scene| scene.place.as_str())
            .collect();
        for each in script
            .places
            .iter()
            .filter(|each| !used.contains(each.id.as_str()))
        {
            let problem = Say::UnusedPlace {
                place: each.id.clone(),
            };
            self.warn(
                &place("place", &each.id),
                "id",
                "unused-place",
                &problem,
                &Say::UseOrDropPlace {},
            );
            self.mend(Mend::Remove);
        }
    }

    fn files(&mut self, script: &Script) {
        let Some(names) = &self.assets.names else {
            return;
        };
        let mut missing: Vec<(String, String, &str)> = Vec::new();
        for shot in script.shots() {
            let place = || place("shot", &shot.id);
            let video = shot.video.as_ref().map_or("", |video| &video.file);
            for (field, name) in [("picture", shot.picture.as_str()), ("video", video)] {
                missing.push((place(), field.to_owned(), name));
            }
            for (index, sound) in shot.sounds.iter().enumerate() {
                missing.push((place(), format!("sound {}", index + 1), &sound.file));
            }
            for (index, line) in shot.lines.iter().enumerate() {
                missing.push((place(), format!("line {}", index + 1), &line.voice));
            }
        }
        for (index, cue) in script.music.iter().enumerate() {
            missing.push((format!("music {}", index + 1), "file".to_owned(), &cue.file));
        }
        missing.retain(|(_, _, name)| !name.is_empty() && !names.contains(*name));
        for (place, field, name) in missing {
            let near = nearest(name, names.iter().map(String::as_str));
            let fix = near.map_or(Say::PutFile {}, |name| Say::DidYouMean { name });
            let name = name.to_owned();
            let problem = Say::MissingFile { name };
            self.warn(&place, &field, "missing-file", &problem, &fix);
        }
    }

    fn shot(&mut self, shot: &Shot, laid: &Laid<'_>) {
        let place = place("shot", &shot.id);
        let secs = self.secs(laid.frames);
        let shows = !shot.picture.is_empty() || shot.video.is_some() || shot.colour.is_some();
        if !shows && !self.assets.pictures_of_shots.contains_key(&shot.id) {
            let (problem, fix) = (Say::ShowsNothing {}, Say::NamePicture {});
            self.warn(&place, "", "missing-picture", &problem, &fix);
            self.mend(Mend::Colour("black".to_owned()));
        }
        if secs < 0.5 {
            let secs = figure(secs, 2);
            let (problem, fix) = (Say::ShortShot { secs }, Say::AtLeastHalf {});
            self.warn(&place, "length", "short-shot", &problem, &fix);
            self.mend(Mend::Length(tenths(0.5)));
        }
        self.speech(shot, laid, &place, secs);
        for (index, title) in shot.titles.iter().enumerate() {
            let field = format!("title {}", index + 1);
            let start = title.start.map_or(0, |start| start.frames(self.format.fps));
            let left = laid.frames - start;
            let wanted = title
                .length
                .map_or(left, |length| length.frames(self.format.fps));
            if wanted > left {
                let frames = wanted - left;
                let problem = Say::TitlePastShot { frames };
                let fix = Say::TitleEarlier { frames: left };
                self.warn(&place, &field, "title-past-shot", &problem, &fix);
            }
            let seen = self.secs(wanted.min(left).max(0));
            let needed = 1.0 + columns(&title.text) as f64 / TITLE_COLUMNS_PER_SEC;
            if seen < needed {
                let secs = figure(seen, 2);
                let problem = Say::TitleTooShort { secs };
                let secs = figure(needed, 1);
                let fix = Say::TitleLonger { secs };
                self.warn(&place, &field, "title-too-short", &problem, &fix);
            }
        }
        if let MoveKind::Roll { from, to, zoom, .. } = shot.camera.kind {
            // A frame turned by an angle needs a larger picture to stay filled.
            let angle = from.abs().max(to.abs()).min(90.0).to_radians();
            let aspect = f64::from(self.format.width_px) / f64::from(self.format.height_px);
            let needed = angle.cos() + aspect.max(1.0 / aspect) * angle.sin();
            if zoom + 1e-9 < needed {
                let problem = Say::RollCorners {
                    zoom: figure(zoom, 2),
                };
                let zoom = figure((needed * 100.0).ceil() / 100.0, 2);
                let fix = Say::ZoomTo { zoom };
                self.warn(&place, "move", "roll-corners", &problem, &fix);
            }
        }
    }

    fn speech(&mut self, shot: &Shot, laid: &Laid<'_>, place: &str, secs: f64) {
        let words: usize = shot
            .lines
            .iter()
            .map(|line| words(&shown(&line.text)))
            .sum();
        let needed = words as f64 / WORDS_PER_SEC;
        if needed > secs {
            let problem = Say::TooManyWords {
                words: words as i64,
                secs: figure(secs, 2),
            };
            let fix = Say::LengthenOrCut {
                secs: figure(needed, 1),
                words: (secs * WORDS_PER_SEC).floor() as i64,
            };
            self.warn(place, "line 1", "speech-rate", &problem, &fix);
            self.mend(Mend::Length(tenths(needed)));
        }
        for said in place_lines(0, laid, self.format, self.assets) {
            let over = said.first_frame + said.frames - laid.end();
            let voiced =
                said.spoken.is_some() || self.assets.sound_secs.contains_key(&said.line.voice);
            let field = format!("line {}", said.number);
            if voiced && over > 0 {
                let secs = figure(self.secs(over), 2);
                let (problem, fix) = (Say::VoicePastShot { secs }, Say::LengthenOrKeep {});
                self.warn(place, &field, "voice-past-shot", &problem, &fix);
            }
            if said.first_frame >= laid.end() {
                let (problem, fix) = (Say::LinePastShot {}, Say::StartEarlier {});
                self.warn(place, &field, "line-past-shot", &problem, &fix);
            }
        }
    }

    fn subtitles(&mut self, laid: &[Laid<'_>]) {
        let said = place_all(laid, self.format, self.assets);
        let film_frames = laid.last().map_or(0, Laid::end);
        for cue in cues(&said, self.format, film_frames).unwrap_or_default() {
            let secs = self.secs(cue.frames);
            let rate = columns(&cue.text) as f64 / secs;
            if rate <= CUE_COLUMNS_PER_SEC {
                continue;
            }
            let line = said
                .iter()
                .rev()
                .find(|line| line.first_frame <= cue.first_frame);
            let Some(line) = line else { continue };
            let text = cue.text.replace('\n', " ");
            let rate = figure(rate, 0);
            let problem = Say::SubtitleTooFast { text, rate };
            let wanted = columns(&cue.text) as f64 / CUE_COLUMNS_PER_SEC;
            let secs = figure(wanted, 1);
            let fix = Say::GiveTime { secs };
            let place = place("shot", laid[line.shot].id);
            let field = format!("line {}", line.number);
            self.warn(&place, &field, "subtitle-too-fast", &problem, &fix);
        }
    }
}

/// The next tenth of a second at or after `secs`.
fn tenths(secs: f64) -> Length {
    let tenths = (secs * 10.0).ceil().clamp(1.0, 1e6) as i64;
    Rational::new(tenths, 10).map_or(Length::secs(1), Length::Secs)
}

/// Words of a text; where words are not parted by spaces, two wide characters count as one.
fn words(text: &str) -> usize {
    text.split_whitespace()
        .map(|word| {
            let wide = columns(word).saturating_sub(word.chars().count());
            (wide / 2).max(1)
        })
        .sum()
}
