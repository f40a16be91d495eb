//! From named values to a [`Script`]: the one place that knows every field, for both forms.

use std::collections::HashMap;

use engine_base::Rational;
use flow_timeline::{CardRole, Fit};

use crate::check::{ENTRIES_MAX, PARTS_MAX, SHOTS_MAX};
use crate::fault::Fault;
use crate::fields::{Builder, Table};
use crate::length::Length;
use crate::script::{
    CastMember, Credits, FilmSettings, Line, MusicCue, Place, SCRIPT_VERSION, Scene, Script, Shot,
    ShotSound, ShotSoundKind, Title, VideoUse,
};
use crate::tree::Node;
use crate::value::ValueError;

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
    "by",
];
const SHOT: &[&str] = &[
    "id",
    "length",
    "framing",
    "action",
    "picture",
    "depicts",
    "negative",
    "seed",
    "model",
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
    "by",
];
const ROLES: [(&str, CardRole); 5] = [
    ("title", CardRole::Title),
    ("subtitle", CardRole::Subtitle),
    ("lower-third", CardRole::LowerThird),
    ("credits", CardRole::Credits),
    ("caption", CardRole::Caption),
];

impl Builder {
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
            let known = &["name", "look", "voice", "references", "by"];
            let table = self.table(node, place, known);
            CastMember {
                name: self.text(&table, "name"),
                look: self.text(&table, "look"),
                voice: self.text(&table, "voice"),
                references: self.texts(&table, "references"),
                by: self.origins(&table),
            }
        });
        let cast = cast.collect();
        let mut seen = HashMap::new();
        let places = self
            .capped(&table, "places", ENTRIES_MAX)
            .iter()
            .map(|node| {
                let place = self.unique(&mut seen, node, "place", "id");
                let known = &["id", "name", "look", "references", "by"];
                let table = self.table(node, place, known);
                Place {
                    id: self.text(&table, "id"),
                    name: self.text(&table, "name"),
                    look: self.text(&table, "look"),
                    references: self.texts(&table, "references"),
                    by: self.origins(&table),
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
            by: self.origins(&table),
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
            let known = &["id", "heading", "place", "time", "note", "shots", "by"];
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
                by: self.origins(&table),
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
            negative: self.text(&table, "negative"),
            seed: self.parsed(&table, "seed"),
            model: self.text(&table, "model"),
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
            by: self.origins(&table),
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
        let known = &["speaker", "extensions", "text", "voice", "at", "gain", "by"];
        let table = self.table(node, place, known);
        Line {
            speaker: self.text(&table, "speaker"),
            extensions: self.texts(&table, "extensions"),
            text: self.text(&table, "text"),
            voice: self.text(&table, "voice"),
            start: self.parsed(&table, "at"),
            gain_db: self.gain(&table, "gain").unwrap_or(0.0),
            by: self.origins(&table),
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
