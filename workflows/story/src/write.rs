//! Writing a script in its Markdown and JSON forms.

use std::collections::HashSet;
use std::fmt::{Display, Write as _};

use flow_timeline::{CardRole, Fit};

use crate::continuity::Continuity;
use crate::escape::escape;
use crate::length::decimal;
use crate::moves::Move;
use crate::origin::{By, Origins};
use crate::script::{Line, Scene, Script, Shot, ShotSoundKind};
use crate::speaker::speaker;
use crate::transition::Transition;

/// The script as indented JSON.
pub fn to_json(script: &Script) -> String {
    let mut text = serde_json::to_string_pretty(script).unwrap_or_default();
    text.push('\n');
    text
}

/// The script as Markdown.
pub fn to_markdown(script: &Script) -> String {
    let names = script
        .cast
        .iter()
        .map(|member| member.name.clone())
        .collect();
    let mut out = Writer {
        text: String::new(),
        names,
    };
    out.script(script);
    out.text
}

struct Writer {
    text: String,
    names: HashSet<String>,
}

/// `{name: value; name: value}` with only what is given.
#[derive(Default)]
struct Attributes(Vec<String>);

impl Attributes {
    fn with(mut self, name: &str, value: Option<impl Display>) -> Self {
        if let Some(value) = value {
            self.0.push(format!("{name}: {value}"));
        }
        self
    }

    fn gain(self, name: &str, gain_db: f64) -> Self {
        self.with(name, (gain_db != 0.0).then(|| format!("{gain_db} dB")))
    }

    fn name(self, name: &str, text: &str) -> Self {
        self.with(
            name,
            (!text.is_empty()).then(|| escape(text, &['{', '}', ';'])),
        )
    }

    /// The text, then the attributes if there are any.
    fn after(&self, text: &str) -> String {
        let text = escape(text, &['{', '}']);
        if self.0.is_empty() {
            return text;
        }
        format!("{text} {{{}}}", self.0.join("; "))
    }
}

impl Writer {
    fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    fn blank(&mut self) {
        if !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn field(&mut self, start: &str, name: &str, text: &str) {
        if !text.is_empty() {
            self.line(&format!("{start}{name}: {}", escape(text, &[])));
        }
    }

    fn value(&mut self, start: &str, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.line(&format!("{start}{name}: {value}"));
        }
    }

    fn script(&mut self, script: &Script) {
        self.line("---");
        self.value("", "longtake", Some(script.version));
        self.field("", "title", &script.title);
        self.field("", "logline", &script.logline);
        self.field("", "language", &script.language);
        self.field("", "style", &script.style);
        self.value("", "size", script.film.size);
        self.value("", "fps", script.film.fps.map(decimal));
        self.value("", "sample rate", script.film.sample_rate_hz);
        self.value("", "length", script.film.length);
        self.value("", "by", origins(&script.by));
        self.line("---");
        if !script.cast.is_empty() {
            self.section("Cast");
        }
        for member in &script.cast {
            self.line(&format!("- {}", escape(&member.name, &[])));
            self.field("  - ", "look", &member.look);
            self.field("  - ", "voice", &member.voice);
            for file in &member.references {
                self.field("  - ", "reference", file);
            }
            self.value("  - ", "by", origins(&member.by));
        }
        if !script.places.is_empty() {
            self.section("Places");
        }
        for place in &script.places {
            self.line(&format!("- {}", escape(&place.id, &[])));
            self.field("  - ", "name", &place.name);
            self.field("  - ", "look", &place.look);
            for file in &place.references {
                self.field("  - ", "reference", file);
            }
            self.value("  - ", "by", origins(&place.by));
        }
        if !script.music.is_empty() {
            self.section("Music");
        }
        for cue in &script.music {
            let attributes = Attributes::default()
                .name("from", &cue.from)
                .name("to", &cue.to)
                .gain("gain", cue.gain_db)
                .with("fade in", cue.fade_in)
                .with("fade out", cue.fade_out);
            self.line(&format!("- {}", attributes.after(&cue.file)));
        }
        for scene in &script.scenes {
            self.scene(scene);
        }
        if let Some(credits) = &script.credits {
            self.section("Credits");
            self.value("- ", "length", Some(credits.length));
            for line in &credits.lines {
                self.line(&format!("- line: {}", escape(line, &[])));
            }
        }
    }

    fn section(&mut self, name: &str) {
        self.blank();
        self.line(&format!("# {name}"));
        self.blank();
    }

    fn scene(&mut self, scene: &Scene) {
        self.blank();
        let id = escape(&scene.id, &[':']);
        let heading = escape(&scene.heading, &[]);
        let joint = if heading.is_empty() { "" } else { ": " };
        self.line(&format!("## Scene {id}{joint}{heading}"));
        self.blank();
        self.field("- ", "place", &scene.place);
        self.field("- ", "time", &scene.time_of_day);
        self.field("- ", "note", &scene.note);
        self.value("- ", "by", origins(&scene.by));
        for shot in &scene.shots {
            self.shot(shot);
        }
    }

    fn shot(&mut self, shot: &Shot) {
        self.blank();
        self.line(&format!("### Shot {}", escape(&shot.id, &[])));
        self.blank();
        let as_paragraphs = paragraphs(&shot.action);
        for paragraph in as_paragraphs.iter().flatten() {
            self.line(paragraph);
            self.blank();
        }
        self.value("- ", "length", Some(shot.length));
        if as_paragraphs.is_none() {
            self.field("- ", "action", &shot.action);
        }
        self.field("- ", "framing", &shot.framing);
        self.field("- ", "picture", &shot.picture);
        self.field("- ", "depicts", &shot.depicts);
        self.field("- ", "negative", &shot.negative);
        self.value("- ", "seed", shot.seed);
        self.field("- ", "model", &shot.model);
        if let Some(video) = &shot.video {
            let sound = video.sound_gain_db.map(|gain_db| format!("{gain_db} dB"));
            let attributes = Attributes::default()
                .with("from", video.from)
                .with("sound", sound);
            self.line(&format!("- video: {}", attributes.after(&video.file)));
        }
        self.value("- ", "colour", shot.colour);
        self.value("- ", "fit", (shot.fit == Fit::Contain).then_some("contain"));
        let moves = shot.camera != Move::STILL;
        self.value("- ", "move", moves.then_some(shot.camera));
        let blends = shot.transition != Transition::Cut;
        self.value("- ", "transition", blends.then_some(shot.transition));
        self.value("- ", "fade in", shot.fade_in);
        self.value("- ", "fade out", shot.fade_out);
        let follows = shot.continuity != Continuity::Cut;
        self.value("- ", "continuity", follows.then_some(&shot.continuity));
        for title in &shot.titles {
            let name = match title.role {
                CardRole::Title => "title",
                CardRole::Subtitle => "subtitle",
                CardRole::LowerThird => "lower third",
                CardRole::Credits => "credits",
                CardRole::Caption => "caption",
            };
            let attributes = Attributes::default()
                .with("at", title.start)
                .with("for", title.length)
                .with("fade", title.fade);
            self.line(&format!("- {name}: {}", attributes.after(&title.text)));
        }
        for sound in &shot.sounds {
            let name = match sound.kind {
                ShotSoundKind::Ambience => "ambience",
                ShotSoundKind::Effect => "effect",
            };
            let attributes = Attributes::default()
                .with("at", sound.start)
                .gain("gain", sound.gain_db);
            self.line(&format!("- {name}: {}", attributes.after(&sound.file)));
        }
        self.field("- ", "note", &shot.note);
        self.value("- ", "by", origins(&shot.by));
        for line in &shot.lines {
            self.blank();
            self.speech(line);
        }
    }

    fn speech(&mut self, line: &Line) {
        let attributes = Attributes::default()
            .name("voice", &line.voice)
            .with("at", line.start)
            .gain("gain", line.gain_db)
            .with("by", origins(&line.by));
        let mut words = attributes.after(&line.text);
        if line.speaker.is_empty() {
            // Narration that begins like a speaker keeps its colon by a backslash.
            if speaker(&words, &self.names).is_some()
                && let Some(colon) = crate::escape::find_plain(&words, ':')
            {
                words.insert(colon, '\\');
            }
            self.line(&format!("> {words}"));
            return;
        }
        let name = escape(&line.speaker, &['@', ':', '(', ')']);
        let plain = speaker(&format!("{name}:"), &self.names).is_some();
        let mut start = if plain { name } else { format!("@{name}") };
        for mark in &line.extensions {
            // Writing to a string does not fail.
            let _written = write!(start, " ({})", escape(mark, &[':', '(', ')']));
        }
        self.line(&format!("> {start}: {words}"));
    }
}

/// `model action title, rule length move`: fields by who wrote them.
fn origins(by: &Origins) -> Option<String> {
    let groups = [By::Model, By::Rule, By::User]
        .into_iter()
        .filter_map(|who| {
            let fields = by.iter().filter(|(_, wrote)| *wrote == who);
            let names: Vec<String> = fields
                .map(|(field, _)| escape(field, &[',', ';', '{', '}']).replace(' ', "\\s"))
                .collect();
            (!names.is_empty()).then(|| format!("{who} {}", names.join(" ")))
        });
    let groups: Vec<String> = groups.collect();
    (!groups.is_empty()).then(|| groups.join(", "))
}

/// The action as paragraphs, if paragraphs can hold it exactly.
fn paragraphs(action: &str) -> Option<Vec<String>> {
    if action.is_empty() {
        return Some(Vec::new());
    }
    let lines = action.split('\n').map(|line| {
        if line.is_empty() {
            return None;
        }
        let written = escape(line, &[]);
        let special = written.starts_with(['#', '-', '*', '>', '<']);
        Some(if special {
            format!("\\{written}")
        } else {
            written
        })
    });
    lines.collect()
}
