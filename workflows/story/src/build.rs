//! From named values to a [`Script`]: the one place that knows every field, for both forms.

use std::collections::HashMap;
use std::str::FromStr;

use engine_base::Rational;
use flow_timeline::{CardRole, Fit};

use crate::check::{ENTRIES_MAX, PARTS_MAX, SHOTS_MAX};
use crate::fault::{Fault, excerpt, nearest};
use crate::length::Length;
use crate::lines::ScriptLines;
use crate::markdown::LISTED;
use crate::script::{
    CastMember, Credits, FilmSettings, Line, MusicCue, Place, SCRIPT_VERSION, Scene, Script, Shot,
    ShotSound, ShotSoundKind, Title, VideoUse,
};
use crate::tree::{At, Faults, Node, Value};
use crate::value::{ValueError, number};

const FILM: &[&str] = &[
    "longtake",
    "title",
    "logline",
    "language",
    "style",
    "size",
    "fps",
    "sample_rate",
    "length",
    "cast",
    "places",
    "music",
    "scenes",
    "credits",
];
const SHOT: &[&str] = &[
    "id",
    "length",
    "framing",
    "action",
    "picture",
    "depicts",
    "video",
    "colour",
    "fit",
    "move",
    "transition",
    "fade_in",
    "fade_out",
    "continuity",
    "titles",
    "sounds",
    "lines",
    "note",
];
/// Fields that the Markdown form writes in another way than `name: value`.
const NOT_WRITTEN: &[&str] = &[
    "cast",
    "places",
    "music",
    "scenes",
    "credits",
    "id",
    "titles",
    "sounds",
    "lines",
    "role",
    "kind",
    "file",
    "text",
    "speaker",
    "extensions",
    "name",
    "heading",
    "shots",
];
const ROLES: [(&str, CardRole); 5] = [
    ("title", CardRole::Title),
    ("subtitle", CardRole::Subtitle),
    ("lower-third", CardRole::LowerThird),
    ("credits", CardRole::Credits),
    ("caption", CardRole::Caption),
];

/// Which form a file has; decides only how fields are called in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Markdown,
    Json,
}

/// Field names for a message, as the form at hand writes them.
fn shown(known: &'static [&'static str], form: Form) -> Vec<String> {
    if form == Form::Json {
        return known.iter().map(|name| (*name).to_owned()).collect();
    }
    let listed = LISTED
        .iter()
        .map(|(field, ..)| *field)
        .filter(|_| known == SHOT);
    let plain = known
        .iter()
        .copied()
        .filter(|name| !NOT_WRITTEN.contains(name));
    plain
        .chain(listed)
        .map(|name| name.replace('_', " "))
        .collect()
}

pub(crate) struct Builder {
    pub(crate) faults: Faults,
    pub(crate) lines: ScriptLines,
    form: Form,
}

/// The fields of one thing.
struct Table<'n> {
    place: String,
    at: At,
    known: &'static [&'static str],
    nodes: Vec<Option<&'n Node>>,
}

impl<'n> Table<'n> {
    fn get(&self, name: &str) -> Option<&'n Node> {
        let index = self.known.iter().position(|known| *known == name)?;
        self.nodes[index].filter(|node| !matches!(node.value, Value::Null))
    }
}

impl Builder {
    pub(crate) fn new(form: Form) -> Self {
        Self {
            faults: Faults::default(),
            lines: ScriptLines::default(),
            form,
        }
    }

    fn fault(&mut self, at: At, place: &str, field: &str, make: impl FnOnce() -> Fault) {
        self.faults.push(at, || Fault {
            place: place.to_owned(),
            field: field.to_owned(),
            ..make()
        });
    }

    fn table<'n>(
        &mut self,
        node: &'n Node,
        place: String,
        known: &'static [&'static str],
    ) -> Table<'n> {
        self.lines.put(&place, "", node.at);
        let mut nodes = vec![None; known.len()];
        let Value::Map(entries) = &node.value else {
            self.fault(node.at, &place, "", || Fault {
                problem: "cannot read it".to_owned(),
                got: node.kind().to_owned(),
                expected: "a table of fields".to_owned(),
                ..Fault::default()
            });
            let at = node.at;
            return Table {
                place,
                at,
                known,
                nodes,
            };
        };
        for entry in entries {
            let Some(index) = known.iter().position(|name| *name == entry.name) else {
                let form = self.form;
                self.fault(entry.at, &place, &excerpt(&entry.name), || {
                    let shown = shown(known, form);
                    Fault {
                        problem: "unknown field".to_owned(),
                        expected: format!("one of {}", shown.join(", ")),
                        suggestion: nearest(&entry.name, shown.iter().map(String::as_str)),
                        ..Fault::default()
                    }
                });
                continue;
            };
            if nodes[index].is_some() {
                self.fault(entry.at, &place, &entry.name, || Fault {
                    problem: "the field is given twice".to_owned(),
                    expected: "it once".to_owned(),
                    ..Fault::default()
                });
                continue;
            }
            self.lines.put(&place, &entry.name, entry.node.at);
            nodes[index] = Some(&entry.node);
        }
        Table {
            place,
            at: node.at,
            known,
            nodes,
        }
    }

    fn mismatch(&mut self, table: &Table<'_>, name: &str, node: &Node, expected: &str) {
        self.fault(node.at, &table.place, name, || Fault {
            problem: "cannot read it".to_owned(),
            got: node.kind().to_owned(),
            expected: expected.to_owned(),
            ..Fault::default()
        });
    }

    fn missing(&mut self, table: &Table<'_>, name: &str, expected: &str) {
        self.fault(table.at, &table.place, name, || Fault {
            problem: "the field is missing".to_owned(),
            expected: expected.to_owned(),
            ..Fault::default()
        });
    }

    fn text(&mut self, table: &Table<'_>, name: &str) -> String {
        match table.get(name) {
            None => String::new(),
            Some(Node {
                value: Value::Text(text),
                ..
            }) => text.clone(),
            Some(node) => {
                self.mismatch(table, name, node, "text");
                String::new()
            }
        }
    }

    fn texts(&mut self, table: &Table<'_>, name: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for node in self.capped(table, name, ENTRIES_MAX) {
            match &node.value {
                Value::Text(text) => texts.push(text.clone()),
                _ => self.mismatch(table, name, node, "text"),
            }
        }
        texts
    }

    fn items<'n>(&mut self, table: &Table<'n>, name: &str) -> &'n [Node] {
        match table.get(name) {
            None => &[],
            Some(Node {
                value: Value::List(items),
                ..
            }) => items,
            Some(node) => {
                self.mismatch(table, name, node, "a list");
                &[]
            }
        }
    }

    /// At most `most` items; a longer list is a fault and read no further.
    fn capped<'n>(&mut self, table: &Table<'n>, name: &str, most: usize) -> &'n [Node] {
        let items = self.items(table, name);
        if items.len() <= most {
            return items;
        }
        self.fault(table.at, &table.place, name, || Fault {
            problem: "there are too many".to_owned(),
            got: format!("{} {name}", items.len()),
            expected: format!("at most {most}"),
            ..Fault::default()
        });
        &items[..most]
    }

    fn read<T>(
        &mut self,
        table: &Table<'_>,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, ValueError>,
    ) -> Option<T> {
        let node = table.get(name)?;
        let text = match &node.value {
            Value::Text(text) | Value::Number(text) => text.trim(),
            _ => {
                self.mismatch(table, name, node, "text or a number");
                return None;
            }
        };
        match read(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(node.at, &table.place, name, || Fault {
                    problem: "cannot read it".to_owned(),
                    got: error.got,
                    expected: error.expected,
                    suggestion: error.suggestion,
                    ..Fault::default()
                });
                None
            }
        }
    }

    fn parsed<T: FromStr<Err = ValueError>>(&mut self, table: &Table<'_>, name: &str) -> Option<T> {
        self.read(table, name, str::parse)
    }

    fn gain(&mut self, table: &Table<'_>, name: &str) -> Option<f64> {
        self.read(table, name, |text| {
            let digits = text.strip_suffix("dB").unwrap_or(text).trim_end();
            let expected = "a level such as -12 dB, from -96 to 24";
            number(digits, -96.0, 24.0, expected)
        })
    }

    fn word<T: Copy>(
        &mut self,
        table: &Table<'_>,
        name: &str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        self.read(table, name, |text| {
            let found = words.iter().find(|(word, _)| *word == text);
            found.map(|(_, value)| *value).ok_or_else(|| {
                let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                ValueError::new(text, format!("one of {}", names.join(", "))).near(text, &names)
            })
        })
    }

    /// Read a list of things named by `label`, such as `shot boats`; two of one name are a fault.
    fn unique(
        &mut self,
        seen: &mut HashMap<String, u32>,
        node: &Node,
        what: &str,
        label: &str,
    ) -> String {
        let name = match &node.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.name == label),
            _ => None,
        };
        let (at, name) = match name.map(|entry| &entry.node) {
            Some(Node {
                at,
                value: Value::Text(name),
            }) => (*at, name.as_str()),
            _ => (node.at, ""),
        };
        let place = format!("{what} {}", excerpt(name)).trim_end().to_owned();
        if name.is_empty() {
            self.fault(at, &place, label, || Fault {
                problem: "the field is missing".to_owned(),
                expected: format!("a name of its own for the {what}"),
                ..Fault::default()
            });
            return place;
        }
        if let Some(line) = seen.get(name).copied() {
            self.fault(at, &place, label, || Fault {
                problem: format!("the {what} is there twice, first in line {line}"),
                got: excerpt(name),
                expected: format!("a name of its own for each {what}"),
                ..Fault::default()
            });
        } else {
            seen.insert(name.to_owned(), at.line);
        }
        place
    }

    pub(crate) fn script(&mut self, node: &Node) -> Script {
        let table = self.table(node, String::new(), FILM);
        let version = self.read(&table, "longtake", |text| {
            let version = text.parse::<u32>().ok();
            version
                .filter(|version| (1..=SCRIPT_VERSION).contains(version))
                .ok_or_else(|| {
                    let newest = format!("a version from 1 to {SCRIPT_VERSION}");
                    ValueError::new(text, newest)
                })
        });
        if table.get("longtake").is_none() {
            self.missing(&table, "longtake", "the version of the script form, 1");
        }
        if table.get("title").is_none() {
            self.missing(&table, "title", "the film's title");
        }
        let mut seen = HashMap::new();
        let cast = self.capped(&table, "cast", ENTRIES_MAX).iter().map(|node| {
            let place = self.unique(&mut seen, node, "cast", "name");
            let table = self.table(node, place, &["name", "look", "voice"]);
            CastMember {
                name: self.text(&table, "name"),
                look: self.text(&table, "look"),
                voice: self.text(&table, "voice"),
            }
        });
        let cast = cast.collect();
        let mut seen = HashMap::new();
        let places = self
            .capped(&table, "places", ENTRIES_MAX)
            .iter()
            .map(|node| {
                let place = self.unique(&mut seen, node, "place", "id");
                let table = self.table(node, place, &["id", "name", "look"]);
                Place {
                    id: self.text(&table, "id"),
                    name: self.text(&table, "name"),
                    look: self.text(&table, "look"),
                }
            });
        let places = places.collect();
        let music = self.capped(&table, "music", ENTRIES_MAX).iter().enumerate();
        let music = music.map(|(index, node)| self.music(node, index)).collect();
        let scenes = self.scenes(&table);
        let credits = table.get("credits").map(|node| self.credits(node));
        Script {
            version: version.unwrap_or(SCRIPT_VERSION),
            title: self.text(&table, "title"),
            logline: self.text(&table, "logline"),
            language: self
                .read(&table, "language", language)
                .unwrap_or("en".to_owned()),
            style: self.text(&table, "style"),
            film: self.settings(&table),
            cast,
            places,
            music,
            scenes,
            credits,
        }
    }

    fn settings(&mut self, table: &Table<'_>) -> FilmSettings {
        FilmSettings {
            size: self.parsed(table, "size"),
            fps: self.read(table, "fps", |text| {
                let rate = text.parse::<Rational>().ok();
                rate.filter(|fps| *fps >= Rational::ONE && *fps <= Rational::whole(120))
                    .ok_or_else(|| {
                        let expected = "frames a second such as 24, 23.976 or 30000/1001, 1 to 120";
                        ValueError::new(text, expected)
                    })
            }),
            sample_rate_hz: self.word(
                table,
                "sample_rate",
                &[("44100", 44_100), ("48000", 48_000), ("96000", 96_000)],
            ),
            length: self.parsed(table, "length"),
        }
    }

    fn music(&mut self, node: &Node, index: usize) -> MusicCue {
        let known = &["file", "from", "to", "gain", "fade_in", "fade_out"];
        let table = self.table(node, format!("music {}", index + 1), known);
        MusicCue {
            file: self.text(&table, "file"),
            from: self.text(&table, "from"),
            to: self.text(&table, "to"),
            gain_db: self.gain(&table, "gain").unwrap_or(0.0),
            fade_in: self.parsed(&table, "fade_in"),
            fade_out: self.parsed(&table, "fade_out"),
        }
    }

    fn credits(&mut self, node: &Node) -> Credits {
        let table = self.table(node, "credits".to_owned(), &["length", "lines"]);
        if table.get("length").is_none() {
            self.missing(&table, "length", "how long the credits stay, such as 5 s");
        }
        Credits {
            length: self.parsed(&table, "length").unwrap_or(Length::secs(1)),
            lines: self.texts(&table, "lines"),
        }
    }

    fn scenes(&mut self, table: &Table<'_>) -> Vec<Scene> {
        let mut left = SHOTS_MAX;
        let (mut scenes_seen, mut shots_seen) = (HashMap::new(), HashMap::new());
        let mut scenes = Vec::new();
        for node in self.capped(table, "scenes", SHOTS_MAX) {
            let place = self.unique(&mut scenes_seen, node, "scene", "id");
            let known = &["id", "heading", "place", "time", "note", "shots"];
            let table = self.table(node, place, known);
            let mut shots = Vec::new();
            let nodes = self.items(&table, "shots");
            if nodes.len() > left {
                self.fault(table.at, &table.place, "shots", || Fault {
                    problem: "there are too many".to_owned(),
                    got: format!("{} shots in one scene", nodes.len()),
                    expected: format!("at most {SHOTS_MAX} in the film"),
                    ..Fault::default()
                });
            }
            let nodes = &nodes[..nodes.len().min(left)];
            left -= nodes.len();
            for node in nodes {
                let place = self.unique(&mut shots_seen, node, "shot", "id");
                shots.push(self.shot(node, place));
            }
            scenes.push(Scene {
                id: self.text(&table, "id"),
                heading: self.text(&table, "heading"),
                place: self.text(&table, "place"),
                time_of_day: self.text(&table, "time"),
                note: self.text(&table, "note"),
                shots,
            });
        }
        scenes
    }

    fn shot(&mut self, node: &Node, place: String) -> Shot {
        let table = self.table(node, place, SHOT);
        if table.get("length").is_none() {
            self.missing(&table, "length", "the shot's length, such as 5 s");
        }
        let video = table.get("video").map(|node| {
            let place = format!("{} video", table.place);
            let table = self.table(node, place, &["file", "from", "sound"]);
            VideoUse {
                file: self.text(&table, "file"),
                from: self.parsed(&table, "from"),
                sound_gain_db: self.gain(&table, "sound"),
            }
        });
        let titles = self.part(&table, "titles", "title", Self::title);
        let sounds = self.part(&table, "sounds", "sound", Self::sound);
        let lines = self.part(&table, "lines", "line", Self::line);
        let fit = [("cover", Fit::Cover), ("contain", Fit::Contain)];
        Shot {
            id: self.text(&table, "id"),
            length: self.parsed(&table, "length").unwrap_or(Length::secs(1)),
            framing: self.text(&table, "framing"),
            action: self.text(&table, "action"),
            picture: self.text(&table, "picture"),
            depicts: self.text(&table, "depicts"),
            video,
            colour: self.parsed(&table, "colour"),
            fit: self.word(&table, "fit", &fit).unwrap_or_default(),
            camera: self.parsed(&table, "move").unwrap_or_default(),
            transition: self.parsed(&table, "transition").unwrap_or_default(),
            fade_in: self.parsed(&table, "fade_in"),
            fade_out: self.parsed(&table, "fade_out"),
            continuity: self.parsed(&table, "continuity").unwrap_or_default(),
            titles,
            sounds,
            lines,
            note: self.text(&table, "note"),
        }
    }

    /// A shot's list of things, each at the shot's place under a numbered field.
    fn part<T>(
        &mut self,
        shot: &Table<'_>,
        list: &str,
        what: &str,
        read: fn(&mut Self, &Node, String) -> T,
    ) -> Vec<T> {
        let mut parts = Vec::new();
        for (index, node) in self.capped(shot, list, PARTS_MAX).iter().enumerate() {
            let field = format!("{what} {}", index + 1);
            self.lines.put(&shot.place, &field, node.at);
            parts.push(read(self, node, format!("{} {field}", shot.place)));
        }
        parts
    }

    fn title(&mut self, node: &Node, place: String) -> Title {
        let table = self.table(node, place, &["role", "text", "at", "for", "fade"]);
        if table.get("role").is_none() {
            self.missing(
                &table,
                "role",
                "title, subtitle, lower-third, credits or caption",
            );
        }
        Title {
            role: self.word(&table, "role", &ROLES).unwrap_or(CardRole::Title),
            text: self.text(&table, "text"),
            start: self.parsed(&table, "at"),
            length: self.parsed(&table, "for"),
            fade: self.parsed(&table, "fade"),
        }
    }

    fn sound(&mut self, node: &Node, place: String) -> ShotSound {
        let table = self.table(node, place, &["kind", "file", "at", "gain"]);
        let kinds = [
            ("ambience", ShotSoundKind::Ambience),
            ("effect", ShotSoundKind::Effect),
        ];
        if table.get("kind").is_none() {
            self.missing(&table, "kind", "ambience or effect");
        }
        ShotSound {
            kind: self
                .word(&table, "kind", &kinds)
                .unwrap_or(ShotSoundKind::Effect),
            file: self.text(&table, "file"),
            start: self.parsed(&table, "at"),
            gain_db: self.gain(&table, "gain").unwrap_or(0.0),
        }
    }

    fn line(&mut self, node: &Node, place: String) -> Line {
        let known = &["speaker", "extensions", "text", "voice", "at", "gain"];
        let table = self.table(node, place, known);
        Line {
            speaker: self.text(&table, "speaker"),
            extensions: self.texts(&table, "extensions"),
            text: self.text(&table, "text"),
            voice: self.text(&table, "voice"),
            start: self.parsed(&table, "at"),
            gain_db: self.gain(&table, "gain").unwrap_or(0.0),
        }
    }
}

/// A BCP-47 tag by its form: subtags of 1 to 8 letters or digits, the first of 2 to 8 letters.
pub(crate) fn language(text: &str) -> Result<String, ValueError> {
    let mut subtags = text.split('-');
    let first = subtags.next().unwrap_or("");
    let well = (2..=8).contains(&first.len())
        && first.bytes().all(|b| b.is_ascii_alphabetic())
        && text.len() <= 64
        && subtags.all(|tag| {
            (1..=8).contains(&tag.len()) && tag.bytes().all(|b| b.is_ascii_alphanumeric())
        });
    if well {
        Ok(text.to_owned())
    } else {
        Err(ValueError::new(
            text,
            "a language tag such as en, pt-BR or zh-Hant",
        ))
    }
}
