//! The stages in order: logline and title, cast and places, scenes, shots, lines; then the rules.

use engine_base::CancelToken;

use super::draw::Draw;
use super::error::ProduceError;
use super::judge::Use;
use super::outline::Outline;
use super::plain_forms::{ACTS, act, is_plural};
use super::premise::{Premise, Writing};
use super::prompts::{
    ACTION, LOGLINE, LOOK, PERSON_VERBS, SCENE, Start, Step, THING_VERBS, TITLE, language_name,
    plural_verb, sentence_pattern,
};
use super::words::things::{ABSTRACT, ANIMALS, holds};
use super::writer::{Asked, Writer};
use super::{ProduceEvent, ProduceOptions, Produced, fallback, finish, forms};
use crate::llm::{Llm, LlmKind};
use crate::origin::{By, Origins};
use crate::script::{FilmSettings, SCRIPT_VERSION, Scene, Script, Shot};

/// Verbs offered for one action; few, so that neighbours differ.
const VERBS_OFFERED: usize = 14;
/// What the acts of a story are about.
const BEATS: [&str; ACTS] = [
    "The story begins",
    "Somebody wants something",
    "Something goes wrong",
    "Everything turns",
    "The story ends",
];
const TIMES: [(&str, &str); 6] = [
    ("dawn", "at dawn"),
    ("morning", "in the morning"),
    ("noon", "at noon"),
    ("afternoon", "in the afternoon"),
    ("dusk", "at dusk"),
    ("night", "at night"),
];

/// Whom or what a shot shows.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    /// As a sentence begins with it.
    pub(super) text: String,
    /// Place in the cast, when it is somebody.
    pub(super) member: Option<usize>,
}

pub(super) struct Stages<'w> {
    pub(super) outline: Outline,
    pub(super) writer: Writer<'w>,
    pub(super) premise: &'w Premise,
    pub(super) options: &'w ProduceOptions,
    pub(super) notes: Vec<String>,
    /// Whom or what the shots show, in film order.
    pub(super) subjects: Vec<Subject>,
    /// Who of the premise's people is in the cast.
    pub(super) acting: Vec<String>,
}

impl<'w> Stages<'w> {
    pub(super) fn new(
        premise: &'w Premise,
        options: &'w ProduceOptions,
        llm: &'w mut dyn Llm,
        watch: &'w mut dyn FnMut(&ProduceEvent<'_>),
        cancel: &'w CancelToken,
    ) -> Result<Self, ProduceError> {
        let outline = Outline::new(options.length, &options.format)?;
        let shots: usize = outline.shots.iter().sum();
        let of = 2 + 2 * outline.cast + 2 * outline.places + outline.shots.len() + shots * 2;
        Ok(Self {
            writer: Writer::new(premise, options, llm, watch, cancel, of),
            outline,
            premise,
            options,
            notes: premise.notes.clone(),
            subjects: Vec::new(),
            acting: Vec::new(),
        })
    }

    pub(super) fn run(mut self) -> Result<Produced, ProduceError> {
        self.tell_language();
        let mut script = self.film()?;
        self.cast(&mut script)?;
        self.places(&mut script)?;
        self.scenes(&mut script)?;
        self.shots(&mut script)?;
        self.lines(&mut script)?;
        finish::finish(self, script)
    }

    /// Draws for `place`: other ones for another premise and for another seed.
    pub(super) fn draw(&self, place: &str) -> Draw {
        Draw::new(
            self.options.seed,
            &format!("{place}\n{}", self.premise.text),
        )
    }

    pub(super) fn english(&self) -> bool {
        self.premise.language == "en"
    }

    pub(super) fn story(&self) -> String {
        format!("Story: {}", self.premise.text)
    }

    /// Say that the model is left out, where it is.
    fn tell_language(&mut self) {
        if !self.writer.is_silent() {
            return;
        }
        let (model, known) = self.writer.about();
        let known: Vec<&str> = known.iter().map(|tag| language_name(tag)).collect();
        let language = language_name(&self.premise.language);
        self.notes.push(format!(
            "the premise is in {language} and the language model {model} is made for {}: the film \
             is in {language}, with pictures described by rule and the premise itself as narration; \
             name a model that writes {language} for more",
            known.join(", ")
        ));
    }

    /// A short text that is no sentence.
    pub(super) fn label(
        &mut self,
        step: &Step,
        question: String,
        (pattern, words): (Option<String>, (usize, usize)),
        place: &str,
        taken: &[String],
        rule: impl FnOnce(&mut Draw) -> String,
    ) -> Result<(String, By), ProduceError> {
        let asked = Asked {
            step,
            question,
            pattern,
            chars_max: 60,
            used_for: if step.field == LOOK.field {
                Use::Look
            } else {
                Use::Label
            },
            subject: "",
            words,
            place: place.to_owned(),
            complaints: Vec::new(),
            taken,
        };
        self.writer.write(&asked, rule)
    }

    fn film(&mut self) -> Result<Script, ProduceError> {
        self.writer.stage("logline and title");
        let premise = self.premise;
        let words = if premise.writing.is_unspaced() {
            (8, 60)
        } else {
            (7, 22)
        };
        let asked = Asked {
            step: &LOGLINE,
            question: self.story(),
            pattern: Some(sentence_pattern(premise, &Start::Any, words, false)),
            chars_max: 160,
            used_for: Use::Speech,
            subject: "",
            words,
            place: "logline".to_owned(),
            complaints: Vec::new(),
            taken: &[],
        };
        let (logline, logline_by) = if self.writer.is_weak() || self.writer.is_silent() {
            // Nobody tells it better than who thought of it.
            (fallback::logline(premise), By::User)
        } else {
            self.writer.write(&asked, |_| fallback::logline(premise))?
        };
        let letters = premise.writing.letters();
        let pattern = match (premise.writing, self.english()) {
            (Writing::Latin, true) => {
                "[A-Z][a-z]{1,10}( (of |in |and |the |at |for |to )?[A-Z][a-z]{1,11}){1,3}"
                    .to_owned()
            }
            (writing, _) if writing.is_unspaced() => format!("[{letters}]{{3,10}}"),
            (Writing::Latin, false) => {
                format!("[A-ZÀ-Þ][{letters}]{{1,12}}( [A-ZÀ-Þa-z][{letters}]{{0,12}}){{1,3}}")
            }
            _ => format!("[{letters}]{{2,12}}( [{letters}]{{2,12}}){{1,3}}"),
        };
        let words = if premise.writing.is_unspaced() {
            (2, 12)
        } else {
            (2, 6)
        };
        let story = self.story();
        let form = self
            .writer
            .is_weak()
            .then(|| self.title_form(&mut self.draw("title")))
            .flatten();
        let pattern = form.as_deref().map_or(pattern, forms::pattern);
        let taken: Vec<String> = TITLE
            .examples
            .iter()
            .map(|(_, title)| (*title).to_owned())
            .collect();
        let (title, title_by) = self.label(
            &TITLE,
            story,
            (Some(pattern), words),
            "title",
            &taken,
            |_| fallback::title(premise),
        )?;
        Ok(Script {
            version: SCRIPT_VERSION,
            title,
            logline,
            language: premise.language.clone(),
            style: String::new(),
            film: FilmSettings {
                size: Some(crate::script::FrameSize {
                    width_px: self.options.format.width_px,
                    height_px: self.options.format.height_px,
                }),
                fps: Some(self.options.format.fps),
                sample_rate_hz: None,
                length: Some(self.options.length),
            },
            cast: Vec::new(),
            places: Vec::new(),
            music: Vec::new(),
            scenes: Vec::new(),
            credits: None,
            by: Origins::default()
                .with(title_by, &["title"])
                .with(logline_by, &["logline"])
                .with(By::Rule, &["language"]),
        })
    }

    fn scenes(&mut self, script: &mut Script) -> Result<(), ProduceError> {
        self.writer.stage("scenes");
        let premise = self.premise;
        let count = self.outline.shots.len();
        let mut draw = self.draw("scenes");
        let mut time = draw.below(TIMES.len());
        for scene in 0..count {
            let place = script.places[scene % script.places.len()].clone();
            let (time_word, time_phrase) = TIMES[time];
            time = (time + 1 + draw.below(2)) % TIMES.len();
            let member = &script.cast[scene % script.cast.len()].name;
            let beat = BEATS[act(scene, count)];
            let question = format!(
                "{}\nPlace: {}\n{beat}\nTell: {member}",
                self.story(),
                place.name
            );
            let words = if premise.writing.is_unspaced() {
                (6, 40)
            } else {
                (6, 16)
            };
            let start = Start::Subject(member, &[]);
            let form = self
                .writer
                .is_weak()
                .then(|| self.scene_form(script, scene, member))
                .flatten();
            let pattern = form.as_deref().map_or_else(
                || sentence_pattern(premise, &start, words, false),
                forms::pattern,
            );
            let asked = Asked {
                step: &SCENE,
                question,
                pattern: Some(pattern),
                chars_max: 110,
                used_for: Use::Speech,
                subject: member,
                words,
                place: format!("scene {scene}"),
                complaints: Vec::new(),
                taken: &[],
            };
            let (note, note_by) = self.writer.write(&asked, |draw| match &form {
                Some(form) => forms::sample(form, draw),
                None => fallback::action(premise, member, false, 90 + scene),
            })?;
            let heading = if self.english() {
                format!("{} {time_phrase}", capital(&place.name))
            } else {
                place.name.clone()
            };
            script.scenes.push(Scene {
                id: format!("scene-{}", scene + 1),
                heading,
                place: place.id,
                time_of_day: time_word.to_owned(),
                note,
                shots: Vec::new(),
                by: Origins::default()
                    .with(note_by, &["note"])
                    .with(By::Rule, &["id", "heading", "place", "time"]),
            });
        }
        Ok(())
    }

    /// Things of the premise that can be seen, as subjects.
    fn things(&self) -> Vec<String> {
        let shown = self.premise.nouns.iter().filter(|noun| {
            let person = self.premise.people.iter().any(|person| {
                let role = person.split(' ').next_back();
                person.split(' ').any(|word| word == *noun) || noun.strip_suffix('s') == role
            });
            !person && !is_abstract(noun)
        });
        let animals = self.premise.people.iter().filter(|person| {
            holds(ANIMALS, person) && !self.acting.iter().any(|role| role == *person)
        });
        shown
            .chain(animals)
            .take(6)
            .map(|noun| {
                if self.english() {
                    format!("The {noun}")
                } else {
                    noun.clone()
                }
            })
            .collect()
    }

    fn subject(&self, script: &Script, scene: usize, shot: usize, draw: &mut Draw) -> Subject {
        let things = self.things();
        let thing = !things.is_empty()
            && match shot {
                0 => scene.is_multiple_of(2) || draw.below(2) == 0,
                1 => false,
                _ => draw.below(2) == 0,
            };
        if thing {
            let at = (scene + shot + draw.below(2)) % things.len();
            return Subject {
                text: things[at].clone(),
                member: None,
            };
        }
        let member = (scene + shot / 2) % script.cast.len();
        Subject {
            text: script.cast[member].name.clone(),
            member: Some(member),
        }
    }

    fn shots(&mut self, script: &mut Script) -> Result<(), ProduceError> {
        self.writer.stage("shots");
        let counts = self.outline.shots.clone();
        let mut number = 0;
        for (scene, count) in counts.into_iter().enumerate() {
            for shot in 0..count {
                let mut draw = self.draw(&format!("shot {scene} {shot}"));
                let subject = self.subject(script, scene, shot, &mut draw);
                let (action, by) = self.action(script, scene, &subject, number, &mut draw)?;
                let mut made = Shot::new(
                    format!("{}{}", scene + 1, letter(shot)),
                    crate::length::Length::secs(1),
                );
                made.action = action;
                made.by.set("action", by);
                script.scenes[scene].shots.push(made);
                self.subjects.push(subject);
                number += 1;
            }
        }
        Ok(())
    }

    fn action(
        &mut self,
        script: &Script,
        scene: usize,
        subject: &Subject,
        number: usize,
        draw: &mut Draw,
    ) -> Result<(String, By), ProduceError> {
        let premise = self.premise;
        let at = &script.scenes[scene];
        let place = script.places.iter().find(|place| place.id == at.place);
        let place = place.map_or("", |place| place.name.as_str());
        let phrase = TIMES
            .iter()
            .find(|(time, _)| *time == at.time_of_day)
            .map_or("", |(_, phrase)| phrase);
        let mut question = format!("{}\nPlace: {place} {phrase}", self.story());
        if self.writer.kind() == LlmKind::Remote {
            // A strong model holds a scene together; a weak one would only repeat it.
            question.push_str(&format!("\nScene: {}", at.note));
            if let Some(last) = at.shots.last() {
                question.push_str(&format!("\nBefore: {}", last.action));
            }
        }
        question.push_str(&format!("\nShow: {}", subject.text));
        let words = match (premise.writing.is_unspaced(), self.writer.is_weak()) {
            (true, _) => (6, 36),
            (false, false) => (6, 15),
            (false, true) => (4, 18),
        };
        let thing = subject.member.is_none();
        let pool = if thing { THING_VERBS } else { PERSON_VERBS };
        let plural = thing && is_plural(&subject.text);
        let offered = draw.some(pool, VERBS_OFFERED);
        let offered: Vec<String> = offered
            .into_iter()
            .map(|verb| {
                if plural {
                    plural_verb(verb)
                } else {
                    verb.to_owned()
                }
            })
            .collect();
        let offered: Vec<&str> = offered.iter().map(String::as_str).collect();
        let verbs = if self.english() {
            offered.as_slice()
        } else {
            &[]
        };
        let form = self
            .writer
            .is_weak()
            .then(|| self.action_form(script, scene, (&subject.text, !thing), number, draw))
            .flatten();
        let pattern = form.as_deref().map_or_else(
            || sentence_pattern(premise, &Start::Subject(&subject.text, verbs), words, false),
            forms::pattern,
        );
        let asked = Asked {
            step: &ACTION,
            question,
            pattern: Some(pattern),
            chars_max: 100,
            used_for: Use::Action,
            subject: &subject.text,
            words,
            place: format!("action {number}"),
            complaints: Vec::new(),
            taken: &[],
        };
        self.writer.write(&asked, |draw| match &form {
            Some(form) => forms::sample(form, draw),
            None => fallback::action(premise, &subject.text, thing, number),
        })
    }
}

/// Whether a noun names what no picture shows.
pub(super) fn is_abstract(noun: &str) -> bool {
    holds(ABSTRACT, noun)
}

fn letter(shot: usize) -> char {
    char::from(b'a' + (shot % 26) as u8)
}

pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
