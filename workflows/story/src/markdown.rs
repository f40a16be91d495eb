//! Reading the Markdown form, line by line, into named values.
//!
//! ```text
//! ---
//! longtake: 1
//! title: The Glass
//! size: 1280x720
//! ---
//!
//! # Cast
//!
//! - MARA
//!   - voice: low, unhurried
//!
//! ## Scene harbour: The harbour, before light
//!
//! ### Shot boats
//!
//! The river holds still.
//!
//! - length: 5 s
//! - picture: boats.jpg
//! - move: push 1 -> 1.15 at 40% 60%
//! - title: The Glass {at: 1 s; for: 3 s}
//!
//! > MARA (V.O.): The glass is falling.
//!
//! > Nobody answered. {by: model text}
//! ```
//!
//! Who wrote what stands in a field `by` of the film, of a cast member, place, scene, shot or line:
//! `- by: model action, rule length move`.

mod items;

use std::collections::HashSet;

use crate::check::SHOTS_MAX;
use crate::escape::{find_plain, unescape};
use crate::fault::{Fault, excerpt, nearest};
use crate::speaker::speaker;
use crate::tree::{At, Faults, Node, Value};

/// Fields of a shot that add to a list: the field, the list, the name of the text in it and the
/// kind it stands for.
pub(crate) const LISTED: [(&str, &str, &str, &str); 7] = [
    ("title", "titles", "text", "title"),
    ("subtitle", "titles", "text", "subtitle"),
    ("lower_third", "titles", "text", "lower-third"),
    ("credits", "titles", "text", "credits"),
    ("caption", "titles", "text", "caption"),
    ("ambience", "sounds", "file", "ambience"),
    ("effect", "sounds", "file", "effect"),
];
const SECTIONS: [&str; 4] = ["Cast", "Places", "Music", "Credits"];

/// Most lines of one shot that are read; far more than may be in it.
const SHOT_LINES_MAX: usize = 10_000;

/// Where the lines being read belong.
#[derive(Clone, Copy, PartialEq)]
enum Context {
    Nothing,
    Cast,
    Places,
    Music,
    Credits,
    Scene,
    Shot,
    /// Shots past the most there may be are counted, not read.
    Skipped,
}

/// A block quote, understood once the whole cast is known.
struct Quote {
    /// Scene and shot in the order read.
    scene: usize,
    shot: usize,
    /// Lines of the block with the places of their first characters.
    lines: Vec<(At, String)>,
}

/// Read a whole file; faults of form go into `faults`, what can be understood comes back.
pub(crate) fn read(text: &str, faults: &mut Faults) -> Node {
    let mut reader = Reader {
        faults,
        root: Node::map(At { line: 1, column: 1 }),
        scenes: Vec::new(),
        cast: Vec::new(),
        places: Vec::new(),
        credits: None,
        context: Context::Nothing,
        paragraph: None,
        quote: Vec::new(),
        quotes: Vec::new(),
        paragraphs: Vec::new(),
        shots_seen: 0,
        shot_lines: 0,
    };
    reader.file(text);
    reader.finish()
}

struct Reader<'f> {
    faults: &'f mut Faults,
    root: Node,
    scenes: Vec<(Node, Vec<Node>)>,
    cast: Vec<Node>,
    places: Vec<Node>,
    credits: Option<Node>,
    context: Context,
    /// The paragraph being read.
    paragraph: Option<(At, String)>,
    /// The block quote being read.
    quote: Vec<(At, String)>,
    quotes: Vec<Quote>,
    /// Finished paragraphs of the scene or shot being read.
    paragraphs: Vec<(At, String)>,
    shots_seen: usize,
    /// Lines read of the shot being read.
    shot_lines: usize,
}

/// Lines without their ends; `\n`, `\r\n` and a lone `\r` all end one.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n')
        .flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

fn column_of(line: &str, part: &str) -> u32 {
    // `part` is always a slice of `line`.
    let offset = (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    let before = line.get(..offset).unwrap_or("");
    u32::try_from(before.chars().count()).map_or(u32::MAX, |count| count.saturating_add(1))
}

impl Reader<'_> {
    fn file(&mut self, text: &str) {
        let mut front = None;
        for (index, line) in lines(text).enumerate() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let trimmed = line.trim();
            let at = At {
                line: number,
                column: column_of(line, trimmed),
            };
            match front {
                None if trimmed.is_empty() => {}
                None if trimmed == "---" => front = Some(true),
                None => {
                    self.refuse(
                        at,
                        "the settings are missing",
                        trimmed,
                        "'---' and the settings",
                    );
                    front = Some(false);
                    self.line(line, trimmed, at);
                }
                Some(true) if trimmed == "---" => front = Some(false),
                Some(true) if trimmed.is_empty() => {}
                Some(true) if trimmed.starts_with('#') => {
                    self.refuse(at, "the settings do not end", trimmed, "'---' after them");
                    front = Some(false);
                    self.line(line, trimmed, at);
                }
                Some(true) => {
                    if let Some((name, value)) = self.field(trimmed, at) {
                        let node = items::value_node(&name, value.0, value.1);
                        self.root.put(&name, at, node);
                    }
                }
                Some(false) => self.line(line, trimmed, at),
            }
        }
        if front.is_none() {
            let at = At { line: 1, column: 1 };
            self.refuse(at, "the file is empty", "", "a script beginning with '---'");
        }
        self.close();
        self.close_entity();
        if self.shots_seen > SHOTS_MAX {
            let (got, most) = (
                format!("{} shots", self.shots_seen),
                format!("at most {SHOTS_MAX}"),
            );
            self.refuse(At::default(), "there are too many", &got, &most);
        }
    }

    fn refuse(&mut self, at: At, problem: &str, got: &str, expected: &str) {
        self.refuse_near(at, problem, got, expected, None);
    }

    fn refuse_near(
        &mut self,
        at: At,
        problem: &str,
        got: &str,
        expected: &str,
        near: Option<(&str, &[&str])>,
    ) {
        self.faults.push(at, || Fault {
            problem: problem.to_owned(),
            got: excerpt(got),
            expected: expected.to_owned(),
            suggestion: near.and_then(|(word, names)| nearest(word, names.iter().copied())),
            ..Fault::default()
        });
    }

    /// `name: value` as (normalised name, (place of value, value)).
    fn field<'l>(&mut self, text: &'l str, at: At) -> Option<(String, (At, &'l str))> {
        let Some(colon) = find_plain(text, ':') else {
            self.refuse(
                at,
                "cannot read the field",
                text,
                "a name, a colon and a value",
            );
            return None;
        };
        let value = text[colon + 1..].trim();
        let mut value_at = at;
        value_at.column += column_of(text, value) - 1;
        // Names are compared in lower case and with one kind of space.
        let name = text[..colon].trim().to_lowercase().replace([' ', '-'], "_");
        Some((name, (value_at, value)))
    }

    fn line(&mut self, line: &str, trimmed: &str, at: At) {
        if trimmed.is_empty() {
            self.close();
            return;
        }
        let heading = trimmed.starts_with('#');
        if self.context == Context::Skipped && !heading {
            return;
        }
        self.shot_lines += 1;
        if self.context == Context::Shot && self.shot_lines > SHOT_LINES_MAX && !heading {
            self.close();
            self.close_entity();
            let got = format!("more than {SHOT_LINES_MAX} lines");
            let expected = "fewer; the rest of the shot has not been read";
            self.refuse(at, "the shot is too long", &got, expected);
            self.context = Context::Skipped;
            return;
        }
        if let Some(rest) = trimmed.strip_prefix('>') {
            self.close_paragraph();
            let words = rest.trim();
            if words.is_empty() {
                self.close();
                return;
            }
            let mut words_at = at;
            words_at.column += column_of(trimmed, words) - 1;
            self.quote.push((words_at, words.to_owned()));
            return;
        }
        let bullet = trimmed.strip_prefix("- ").or(trimmed.strip_prefix("* "));
        if heading {
            self.close();
            self.heading(trimmed, at);
        } else if trimmed.starts_with("<!--") {
            self.close();
            self.refuse(
                at,
                "comments are not kept",
                trimmed,
                "'- note: ...' in a scene or shot",
            );
        } else if let Some(item) = bullet {
            self.close();
            let item = item.trim();
            let mut item_at = at;
            item_at.column += column_of(trimmed, item) - 1;
            // The width of a tab is anybody's guess; any indent makes an item of an item.
            let nested = line.starts_with([' ', '\t']) && column_of(line, trimmed) > 2;
            self.item(item, item_at, nested);
        } else if trimmed == "---" || trimmed == "***" {
            self.close();
        } else {
            self.close_quote();
            match &mut self.paragraph {
                Some((_, words)) => {
                    words.push(' ');
                    words.push_str(trimmed);
                }
                None => self.paragraph = Some((at, trimmed.to_owned())),
            }
        }
    }

    fn close_paragraph(&mut self) {
        if let Some((at, words)) = self.paragraph.take() {
            if matches!(self.context, Context::Scene | Context::Shot) {
                self.paragraphs.push((at, unescape(&words)));
            } else {
                let expected = "text only under a scene or a shot";
                self.refuse(at, "text belongs to nothing", &words, expected);
            }
        }
    }

    fn close_quote(&mut self) {
        if self.quote.is_empty() {
            return;
        }
        let lines = std::mem::take(&mut self.quote);
        let shots = self.scenes.last().map_or(0, |(_, shots)| shots.len());
        if self.context == Context::Shot {
            self.quotes.push(Quote {
                scene: self.scenes.len().saturating_sub(1),
                shot: shots.saturating_sub(1),
                lines,
            });
        } else {
            let (at, words) = &lines[0];
            self.refuse(
                *at,
                "speech belongs to no shot",
                words,
                "'>' only under a shot",
            );
        }
    }

    fn close(&mut self) {
        self.close_paragraph();
        self.close_quote();
    }

    /// Hand finished paragraphs to the scene or shot they stand in.
    fn close_entity(&mut self) {
        let paragraphs = std::mem::take(&mut self.paragraphs);
        let Some((at, _)) = paragraphs.first() else {
            return;
        };
        let at = *at;
        let words: Vec<String> = paragraphs.into_iter().map(|(_, words)| words).collect();
        let node = Node::text(at, words.join("\n"));
        let name = if self.context == Context::Shot {
            "action"
        } else {
            "note"
        };
        if let Some(entity) = self.entity() {
            entity.put(name, at, node);
        }
    }

    fn entity(&mut self) -> Option<&mut Node> {
        let (scene, shots) = self.scenes.last_mut()?;
        match self.context {
            Context::Scene => Some(scene),
            Context::Shot => shots.last_mut(),
            _ => None,
        }
    }

    fn heading(&mut self, text: &str, at: At) {
        self.close_entity();
        self.shot_lines = 0;
        let level = text.bytes().take_while(|b| *b == b'#').count();
        let words = text[level..].trim();
        let mut words_at = at;
        words_at.column += column_of(text, words) - 1;
        let (word, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let rest = rest.trim();
        let mut rest_at = words_at;
        if !rest.is_empty() {
            rest_at.column += column_of(words, rest) - 1;
        }
        match (level, word.to_lowercase().as_str()) {
            (1, "cast") if rest.is_empty() => self.context = Context::Cast,
            (1, "places") if rest.is_empty() => self.context = Context::Places,
            (1, "music") if rest.is_empty() => self.context = Context::Music,
            (1, "credits") if rest.is_empty() => {
                self.context = Context::Credits;
                if self.credits.is_some() {
                    self.refuse(at, "the credits are given twice", text, "one '# Credits'");
                }
                self.credits = Some(Node::map(at));
            }
            (2, "scene") => {
                let mut scene = Node::map(at);
                let colon = find_plain(rest, ':').unwrap_or(rest.len());
                let id = unescape(rest[..colon].trim_end());
                scene.put("id", rest_at, Node::text(rest_at, id));
                let heading = rest[colon..].trim_start_matches(':').trim();
                if !heading.is_empty() {
                    scene.put("heading", rest_at, Node::text(rest_at, unescape(heading)));
                }
                self.scenes.push((scene, Vec::new()));
                self.context = Context::Scene;
            }
            (3, "shot") if self.shots_seen >= SHOTS_MAX => {
                self.shots_seen += 1;
                self.context = Context::Skipped;
            }
            (3, "shot") => {
                self.shots_seen += 1;
                let mut shot = Node::map(at);
                shot.put("id", rest_at, Node::text(rest_at, unescape(rest)));
                match self.scenes.last_mut() {
                    Some((_, shots)) => {
                        shots.push(shot);
                        self.context = Context::Shot;
                    }
                    None => {
                        let expected = "'## Scene ID: HEADING' before the first shot";
                        self.refuse(at, "the shot belongs to no scene", text, expected);
                        self.context = Context::Nothing;
                    }
                }
            }
            (1, _) => {
                let expected = "'# Cast', '# Places', '# Music' or '# Credits'";
                let near = Some((word, SECTIONS.as_slice()));
                self.refuse_near(at, "unknown section", text, expected, near);
                self.context = Context::Nothing;
            }
            (2 | 3, _) => {
                let expected = "'## Scene ID: HEADING' or '### Shot ID'";
                let near = Some((word, ["Scene", "Shot"].as_slice()));
                self.refuse_near(at, "unknown heading", text, expected, near);
                self.context = Context::Nothing;
            }
            _ => {
                let expected = "headings of one to three '#'";
                self.refuse(at, "unknown heading", text, expected);
                self.context = Context::Nothing;
            }
        }
    }

    fn finish(mut self) -> Node {
        let names: HashSet<String> = self.cast.iter().filter_map(cast_name).collect();
        for quote in std::mem::take(&mut self.quotes) {
            for line in self.speech(&quote.lines, &names) {
                if let Some((_, shots)) = self.scenes.get_mut(quote.scene)
                    && let Some(shot) = shots.get_mut(quote.shot)
                {
                    shot.push("lines", line);
                }
            }
        }
        for (list, nodes) in [("cast", self.cast), ("places", self.places)] {
            for node in nodes {
                self.root.push(list, node);
            }
        }
        for (mut scene, shots) in self.scenes {
            for shot in shots {
                scene.push("shots", shot);
            }
            self.root.push("scenes", scene);
        }
        if let Some(credits) = self.credits {
            let at = credits.at;
            self.root.put("credits", at, credits);
        }
        self.root
    }

    /// The lines said in one block quote.
    fn speech(&mut self, lines: &[(At, String)], names: &HashSet<String>) -> Vec<Node> {
        let mut said: Vec<(At, String)> = Vec::new();
        for (at, words) in lines {
            match said.last_mut() {
                Some((_, before)) if speaker(words, names).is_none() => {
                    before.push(' ');
                    before.push_str(words);
                }
                _ => said.push((*at, words.clone())),
            }
        }
        let mut nodes = Vec::new();
        for (at, words) in &said {
            let Some(spoken) = speaker(words, names) else {
                nodes.push(self.with_attributes(words, *at, "text"));
                continue;
            };
            let text = words[spoken.text..].trim();
            let mut text_at = *at;
            text_at.column += column_of(words, text) - 1;
            let mut node = self.with_attributes(text, text_at, "text");
            node.at = *at;
            node.put("speaker", *at, Node::text(*at, spoken.name));
            for extension in spoken.extensions {
                node.push("extensions", Node::text(*at, extension));
            }
            nodes.push(node);
        }
        nodes
    }
}

fn cast_name(node: &Node) -> Option<String> {
    let Value::Map(entries) = &node.value else {
        return None;
    };
    match &entries.first()?.node.value {
        Value::Text(name) => Some(name.clone()),
        _ => None,
    }
}
