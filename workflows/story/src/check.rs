//! What must hold in a script whatever form it came in: ids, references, limits.

use std::collections::HashMap;

use crate::continuity::cycles;
use crate::fault::{Fault, excerpt, nearest};
use crate::length::Length;
use crate::lines::ScriptLines;
use crate::script::{Script, Shot, ShotSoundKind};
use crate::transition::Transition;
use crate::tree::{At, Faults};

/// Most shots of one script; eleven hours at four seconds each.
pub const SHOTS_MAX: usize = 10_000;
/// Most lines, titles and sounds of one shot, each.
pub const PARTS_MAX: usize = 200;
/// Most cast members, places, music cues and lines of credits, each.
pub const ENTRIES_MAX: usize = 2_000;
/// Most marks after a speaker's name.
pub(crate) const EXTENSIONS_MAX: usize = 8;
/// Longest names and ids, in characters.
const NAME_CHARS_MAX: usize = 64;
/// Most reference pictures of one cast member or place.
const REFERENCES_MAX: usize = 16;
/// Longest file name with its folders, in characters.
const FILE_CHARS_MAX: usize = 512;
/// Longest title, heading and spoken line, in characters.
const LINE_CHARS_MAX: usize = 2_000;
/// Longest description, in characters.
const TEXT_CHARS_MAX: usize = 20_000;

/// Place of a named thing as faults and [`ScriptLines`] call it.
pub(crate) fn place(what: &str, name: &str) -> String {
    format!("{what} {}", excerpt(name)).trim_end().to_owned()
}

/// Whether two things of one kind share a name; scripts that were read have been asked already.
pub(crate) fn duplicates(script: &Script, faults: &mut Faults) {
    let shots = script.shots().map(|shot| ("shot", shot.id.as_str()));
    let scenes = script
        .scenes
        .iter()
        .map(|scene| ("scene", scene.id.as_str()));
    let cast = script
        .cast
        .iter()
        .map(|member| ("cast", member.name.as_str()));
    let places = script
        .places
        .iter()
        .map(|place| ("place", place.id.as_str()));
    let mut seen = HashMap::new();
    for (what, name) in shots.chain(scenes).chain(cast).chain(places) {
        if seen.insert((what, name), ()).is_some() {
            faults.push(At::default(), || Fault {
                place: place(what, name),
                problem: format!("the {what} is there twice"),
                got: excerpt(name),
                expected: format!("a name of its own for each {what}"),
                ..Fault::default()
            });
        }
    }
}

/// Everything else that must hold; `lines` gives faults their lines where there are any.
pub(crate) fn check(script: &Script, lines: &ScriptLines, faults: &mut Faults) {
    let mut check = Check { lines, faults };
    check.film(script);
    let shots: Vec<&Shot> = script.shots().collect();
    check.count("", "scenes", shots.len(), SHOTS_MAX, "shots");
    for (index, shot) in shots.iter().take(SHOTS_MAX).enumerate() {
        check.shot(shot, index == 0);
    }
    check.references(script, &shots);
}

struct Check<'c> {
    lines: &'c ScriptLines,
    faults: &'c mut Faults,
}

impl Check<'_> {
    fn fault(&mut self, place: &str, field: &str, make: impl FnOnce() -> Fault) {
        let at = self.lines.at(place, field).unwrap_or_default();
        self.faults.push(at, || Fault {
            place: place.to_owned(),
            field: field.to_owned(),
            ..make()
        });
    }

    fn refuse(&mut self, place: &str, field: &str, problem: &str, got: &str, expected: &str) {
        self.fault(place, field, || Fault {
            problem: problem.to_owned(),
            got: excerpt(got),
            expected: expected.to_owned(),
            ..Fault::default()
        });
    }

    fn count(&mut self, place: &str, field: &str, got: usize, most: usize, what: &str) {
        if got > most {
            let got = format!("{got} {what}");
            self.refuse(
                place,
                field,
                "there are too many",
                &got,
                &format!("at most {most}"),
            );
        }
    }

    fn text(&mut self, place: &str, field: &str, text: &str, most: usize) {
        // Bytes are at least characters, so most texts need no count.
        if text.len() > most {
            let got = text.chars().count();
            if got > most {
                let got = format!("{got} characters");
                self.refuse(
                    place,
                    field,
                    "the text is too long",
                    &got,
                    &format!("at most {most}"),
                );
            }
        }
        let bad = text
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        if let Some(bad) = bad {
            let got = format!("U+{:04X}", u32::from(bad));
            self.refuse(
                place,
                field,
                "the text holds a control character",
                &got,
                "plain text",
            );
        }
    }

    fn words(&mut self, place: &str, field: &str, text: &str, most: usize) {
        self.text(place, field, text, most);
        if text.trim().is_empty() {
            self.refuse(place, field, "there are no words", "", "some text");
        }
    }

    fn id(&mut self, place: &str, id: &str) {
        let well = id
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
        let chars = id.chars().take(NAME_CHARS_MAX + 1).count();
        // An empty one has been refused where the thing was read.
        if !well || chars > NAME_CHARS_MAX {
            let expected = "up to 64 letters, digits, '-', '_' and '.'";
            self.refuse(place, "id", "cannot use the id", id, expected);
        }
    }

    fn name(&mut self, place: &str, field: &str, name: &str) {
        self.text(place, field, name, NAME_CHARS_MAX);
        if name.trim() != name || name.contains(['\n', '\t']) {
            let expected = "a name without spaces around it or line breaks in it";
            self.refuse(place, field, "cannot use the name", name, expected);
        }
    }

    /// A file name has to stay inside the folder it is looked for in.
    fn file(&mut self, place: &str, field: &str, name: &str) {
        self.words(place, field, name, FILE_CHARS_MAX);
        let leaves = name.split(['/', '\\']).any(|part| part == "..");
        let rooted = name.starts_with(['/', '\\']) || name.as_bytes().get(1) == Some(&b':');
        if leaves || rooted || name.contains('\n') {
            let expected = "a file name inside the folder, without '..' or a root";
            self.refuse(place, field, "cannot use the file name", name, expected);
        }
    }

    fn longer_than_zero(&mut self, place: &str, field: &str, length: Length) {
        if length.is_zero() || matches!(length, Length::Frames(..=0)) {
            let expected = "a length above 0, such as 5 s";
            self.refuse(
                place,
                field,
                "it has no length",
                &length.to_string(),
                expected,
            );
        }
    }

    fn gain(&mut self, place: &str, field: &str, gain_db: f64) {
        if !(-96.0..=24.0).contains(&gain_db) {
            let expected = "a level from -96 to 24 dB";
            self.refuse(
                place,
                field,
                "cannot use the level",
                &gain_db.to_string(),
                expected,
            );
        }
    }

    fn references_of(&mut self, place: &str, files: &[String]) {
        self.count(place, "references", files.len(), REFERENCES_MAX, "pictures");
        for file in files.iter().take(REFERENCES_MAX) {
            self.file(place, "references", file);
        }
    }

    fn film(&mut self, script: &Script) {
        self.words("", "title", &script.title, LINE_CHARS_MAX);
        self.text("", "logline", &script.logline, TEXT_CHARS_MAX);
        self.text("", "style", &script.style, TEXT_CHARS_MAX);
        if let Some(length) = script.film.length {
            self.longer_than_zero("", "length", length);
        }
        if crate::build::language(&script.language).is_err() {
            let expected = "a tag such as en or pt-BR";
            self.refuse(
                "",
                "language",
                "cannot use the language",
                &script.language,
                expected,
            );
        }
        self.count("", "cast", script.cast.len(), ENTRIES_MAX, "cast members");
        for member in script.cast.iter().take(ENTRIES_MAX) {
            let place = place("cast", &member.name);
            self.name(&place, "name", &member.name);
            self.text(&place, "look", &member.look, TEXT_CHARS_MAX);
            self.text(&place, "voice", &member.voice, TEXT_CHARS_MAX);
            self.references_of(&place, &member.references);
        }
        self.count("", "places", script.places.len(), ENTRIES_MAX, "places");
        for each in script.places.iter().take(ENTRIES_MAX) {
            let place = place("place", &each.id);
            self.id(&place, &each.id);
            self.text(&place, "name", &each.name, LINE_CHARS_MAX);
            self.text(&place, "look", &each.look, TEXT_CHARS_MAX);
            self.references_of(&place, &each.references);
        }
        self.count("", "music", script.music.len(), ENTRIES_MAX, "music cues");
        for (index, cue) in script.music.iter().take(ENTRIES_MAX).enumerate() {
            let place = format!("music {}", index + 1);
            self.file(&place, "file", &cue.file);
            self.gain(&place, "gain", cue.gain_db);
        }
        if let Some(credits) = &script.credits {
            self.longer_than_zero("credits", "length", credits.length);
            self.count(
                "credits",
                "lines",
                credits.lines.len(),
                ENTRIES_MAX,
                "lines",
            );
            for line in credits.lines.iter().take(ENTRIES_MAX) {
                self.text("credits", "lines", line, LINE_CHARS_MAX);
            }
            if credits.lines.iter().all(|line| line.trim().is_empty()) {
                self.refuse(
                    "credits",
                    "lines",
                    "there are no words",
                    "",
                    "'- line: ...' items",
                );
            }
        }
        if script.scenes.is_empty() {
            self.refuse(
                "",
                "scenes",
                "the film is empty",
                "",
                "at least one scene with a shot",
            );
        }
        for scene in &script.scenes {
            let place = place("scene", &scene.id);
            self.id(&place, &scene.id);
            self.text(&place, "heading", &scene.heading, LINE_CHARS_MAX);
            self.text(&place, "time", &scene.time_of_day, LINE_CHARS_MAX);
            self.text(&place, "note", &scene.note, TEXT_CHARS_MAX);
            if scene.shots.is_empty() {
                self.refuse(
                    &place,
                    "shots",
                    "the scene is empty",
                    "",
                    "at least one shot",
                );
            }
        }
    }

    fn shot(&mut self, shot: &Shot, first: bool) {
        let place = place("shot", &shot.id);
        let place = place.as_str();
        self.id(place, &shot.id);
        if shot.id == "credits" {
            self.refuse(
                place,
                "id",
                "cannot use the id",
                "credits",
                "one not kept for the end",
            );
        }
        self.longer_than_zero(place, "length", shot.length);
        for (field, text) in [
            ("framing", &shot.framing),
            ("action", &shot.action),
            ("depicts", &shot.depicts),
            ("negative", &shot.negative),
            ("note", &shot.note),
        ] {
            self.text(place, field, text, TEXT_CHARS_MAX);
        }
        self.name(place, "model", &shot.model);
        if !shot.picture.is_empty() {
            self.file(place, "picture", &shot.picture);
        }
        if let Some(video) = &shot.video {
            self.file(place, "video", &video.file);
            self.gain(place, "video", video.sound_gain_db.unwrap_or(0.0));
        }
        let shown = [
            ("picture", !shot.picture.is_empty()),
            ("video", shot.video.is_some()),
            ("colour", shot.colour.is_some()),
        ];
        let shown: Vec<&str> = shown
            .iter()
            .filter(|(_, is)| *is)
            .map(|(name, _)| *name)
            .collect();
        if let [_, second, ..] = shown.as_slice() {
            let (got, expected) = (shown.join(" and "), "a picture, a video or a colour");
            self.refuse(place, second, "the shot shows two things", &got, expected);
        }
        let comes = !matches!(shot.transition, Transition::Cut);
        if comes && first {
            let expected = "a cut; 'fade in' brings it from black";
            let got = shot.transition.to_string();
            self.refuse(
                place,
                "transition",
                "nothing is before the first shot",
                &got,
                expected,
            );
        }
        if comes && shot.fade_in.is_some() {
            let expected = "a transition or a fade, not both";
            self.refuse(place, "fade_in", "the shot comes in twice", "", expected);
        }
        self.count(place, "titles", shot.titles.len(), PARTS_MAX, "titles");
        for (index, title) in shot.titles.iter().take(PARTS_MAX).enumerate() {
            let field = format!("title {}", index + 1);
            self.words(place, &field, &title.text, LINE_CHARS_MAX);
            if let Some(length) = title.length {
                self.longer_than_zero(place, &field, length);
            }
        }
        self.count(place, "sounds", shot.sounds.len(), PARTS_MAX, "sounds");
        for (index, sound) in shot.sounds.iter().take(PARTS_MAX).enumerate() {
            let field = format!("sound {}", index + 1);
            self.file(place, &field, &sound.file);
            self.gain(place, &field, sound.gain_db);
            if sound.kind == ShotSoundKind::Ambience && sound.start.is_some() {
                let expected = "no 'at': an ambience lasts as long as its shot";
                self.refuse(place, &field, "the ambience has a start", "", expected);
            }
        }
        self.count(place, "lines", shot.lines.len(), PARTS_MAX, "lines");
        for (index, line) in shot.lines.iter().take(PARTS_MAX).enumerate() {
            let field = format!("line {}", index + 1);
            self.words(place, &field, &line.text, LINE_CHARS_MAX);
            self.name(place, &field, &line.speaker);
            self.count(
                place,
                &field,
                line.extensions.len(),
                EXTENSIONS_MAX,
                "marks",
            );
            for mark in &line.extensions {
                self.name(place, &field, mark);
                if mark.is_empty() || line.speaker.is_empty() {
                    let expected = "words in brackets after a speaker's name";
                    self.refuse(place, &field, "cannot use the mark", mark, expected);
                }
            }
            if !line.voice.is_empty() {
                self.file(place, &field, &line.voice);
            }
            self.gain(place, &field, line.gain_db);
        }
    }

    fn references(&mut self, script: &Script, shots: &[&Shot]) {
        let places: HashMap<&str, ()> = script
            .places
            .iter()
            .map(|place| (place.id.as_str(), ()))
            .collect();
        for scene in script.scenes.iter().filter(|scene| !scene.place.is_empty()) {
            if !places.contains_key(scene.place.as_str()) {
                let names = script.places.iter().map(|place| place.id.as_str());
                self.unknown(
                    &place("scene", &scene.id),
                    "place",
                    "place",
                    &scene.place,
                    names,
                );
            }
        }
        let mut index_of = HashMap::new();
        for (index, shot) in shots.iter().enumerate() {
            index_of.entry(shot.id.as_str()).or_insert(index);
        }
        let ids = || shots.iter().map(|shot| shot.id.as_str());
        let mut follows = Vec::with_capacity(shots.len());
        for shot in shots {
            let source = shot.continuity.source();
            let index = source.and_then(|id| index_of.get(id).copied());
            if let (Some(id), None) = (source, index) {
                self.unknown(&place("shot", &shot.id), "continuity", "shot", id, ids());
            }
            follows.push(index);
        }
        for circle in cycles(&follows) {
            let names: Vec<&str> = circle
                .iter()
                .map(|index| shots[*index].id.as_str())
                .collect();
            // A circle of thousands is told by its beginning.
            let mut path: Vec<&str> = names.iter().copied().take(12).collect();
            if path.len() < names.len() {
                path.push("…");
            }
            path.push(names[0]);
            let path = path.join(" -> ");
            self.fault(&place("shot", names[0]), "continuity", || Fault {
                problem: "the shots follow each other in a circle".to_owned(),
                got: path,
                expected: "one of them to be a cut".to_owned(),
                ..Fault::default()
            });
        }
        for (index, cue) in script.music.iter().enumerate() {
            let place = format!("music {}", index + 1);
            let mut ends = [0, shots.len()];
            for (end, (field, id)) in [("from", &cue.from), ("to", &cue.to)]
                .into_iter()
                .enumerate()
            {
                match index_of.get(id.as_str()) {
                    Some(index) => ends[end] = *index,
                    None if id.is_empty() => {}
                    None => self.unknown(&place, field, "shot", id, ids()),
                }
            }
            if ends[0] > ends[1] {
                let got = format!("{} to {}", cue.from, cue.to);
                let expected = "a first shot before the last one";
                self.refuse(
                    &place,
                    "to",
                    "the music ends before it begins",
                    &got,
                    expected,
                );
            }
        }
    }

    fn unknown<'n>(
        &mut self,
        place: &str,
        field: &str,
        what: &str,
        id: &str,
        names: impl Iterator<Item = &'n str>,
    ) {
        self.fault(place, field, || Fault {
            problem: format!("there is no such {what}"),
            got: excerpt(id),
            expected: format!("the id of a {what} in the script"),
            suggestion: nearest(id, names),
            ..Fault::default()
        });
    }
}
