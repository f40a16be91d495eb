//! English: a written text to spoken words, and those to the sounds that voices are trained on.
//!
//! A text is cleaned (control characters, tags), scanned once for expressions (each kind has a
//! file here with a table of what it reads), cut into sentences, and each sentence's words are
//! looked up in misaki's lexicon by part of speech. Words it lacks go to [`UnknownWords`]; without
//! one, or where it knows nothing, they are spelled. Nothing is dropped in silence.
//!
//! `<break/>`, `<break time="500ms"/>` and `<break strength="weak"/>` make a rest of up to 10 seconds.
//! Other tags, signs without a name and words in other scripts are left out, and [`LeftOut`] says which.
//!
//! A writer overrules a word in the text: `[read](/ɹˈɛd/)` gives its sounds (the alphabet of
//! Kokoro's voices), `[1984](nineteen eighty-four)` the words to speak. [`printed_text`] is the
//! text without them, for subtitles.

mod abbreviation;
mod address;
mod capitals;
mod clean;
mod clock;
mod cursor;
mod date;
mod figure;
mod heteronym;
mod left_out;
mod marks;
mod money;
mod number;
mod phonemes;
mod roman;
mod scan;
mod script;
mod sentence;
mod symbol;
mod tag;
mod unit;

pub use left_out::LeftOut;
pub use marks::printed_text;
pub use script::{foreign_letters, foreign_script};

use std::ops::Range;

use clean::Clean;
use phonemes::Sounds;
use scan::{How, Piece, Said, scan_clean};
use script::is_latin;
use sentence::Spoken;

use super::SpeechError;

/// Whose English.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accent {
    /// American.
    Us,
    /// British.
    Gb,
}

/// The rest after a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pause {
    /// None: a long sentence was cut between two words.
    None,
    /// That of a comma: a long sentence was cut at one.
    Clause,
    /// That of a full stop.
    Sentence,
    /// That between paragraphs.
    Paragraph,
    /// So many milliseconds, at whatever rate: the text asks for them with `<break/>`.
    Millis(u32),
}

/// A sentence, or a part of a long one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Bytes of the text, from its first word to its last.
    pub source: Range<usize>,
    /// The words; never none.
    pub words: Vec<Word>,
    /// The rest after it.
    pub pause: Pause,
    /// Silence in front of it, where the text begins with a rest.
    pub lead_millis: u32,
}

/// A spoken word. Several share their source where one written thing is spoken in several words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Bytes of the text.
    pub source: Range<usize>,
    /// As it is spoken; letters of a spelled word stand apart.
    pub spoken: String,
    /// In the alphabet of Kokoro's voices (the 114 signs of its vocabulary), never empty.
    pub phonemes: String,
    /// What follows, as that alphabet has it: `,` `;` `:` `—` `.` `…` `!` `?` or nothing.
    pub after: String,
}

/// Says words that the lexicon lacks.
pub trait UnknownWords: Send + Sync {
    /// The sounds of a word in the alphabet of Kokoro's voices; empty where it cannot tell, and
    /// the word is then spelled. The word is of letters, with no blank; accents of Latin letters
    /// are taken off, other scripts come as they are.
    ///
    /// # Errors
    /// [`SpeechError::Unspeakable`] for a word that must not be guessed at; others of its own.
    fn phonemes(&self, word: &str) -> Result<String, SpeechError>;
}

/// English of one accent: its lexicon, and who says what that lacks.
pub struct English {
    sounds: Sounds,
    accent: Accent,
}

impl English {
    /// Reads the lexicon, which takes half a second; texts are quick afterwards.
    pub fn new(accent: Accent, unknown: Option<Box<dyn UnknownWords>>) -> Self {
        Self {
            sounds: Sounds::new(accent, unknown),
            accent,
        }
    }

    /// The accent.
    pub fn accent(&self) -> Accent {
        self.accent
    }

    /// The sentences of a text with the sounds of their words. A text without words has none.
    /// Time grows with the length of the text, and so does memory.
    ///
    /// # Errors
    /// [`SpeechError::Unspeakable`] for a word of another script that the unknown words' teller
    /// does not know; whatever else that gives.
    pub fn sentences(&self, text: &str) -> Result<Vec<Sentence>, SpeechError> {
        let plan = self.plan(text)?;
        let sentences = plan.sentences.iter();
        sentences.map(|planned| self.sounded(planned)).collect()
    }

    /// The sentences of a text without their sounds, which take a hundred times as long to find.
    ///
    /// # Errors
    /// As [`English::sentences`].
    pub(super) fn plan(&self, text: &str) -> Result<Plan, SpeechError> {
        let clean = Clean::new(text);
        let sentences = sentence::sentences(scan_clean(&clean, self.accent).0);
        let words = sentences.iter().flat_map(|sentence| &sentence.words);
        for said in words {
            self.sounds.check(said)?;
        }
        let planned = sentences.into_iter().map(|spoken| Planned {
            source: clean.source(&spoken.at),
            sources: spoken.words.iter().map(|s| clean.source(&s.at)).collect(),
            spoken,
        });
        Ok(Plan {
            sentences: planned.collect(),
        })
    }

    /// A planned sentence with its sounds.
    ///
    /// # Errors
    /// As [`English::sentences`].
    pub(super) fn sounded(&self, planned: &Planned) -> Result<Sentence, SpeechError> {
        let sounds = self.sounds.of(&planned.spoken.words)?;
        let words = planned.spoken.words.iter().zip(&planned.sources);
        let words = words.zip(sounds).map(|((said, source), phonemes)| Word {
            source: source.clone(),
            spoken: shown(said),
            phonemes,
            after: said.after.to_owned(),
        });
        Ok(Sentence {
            source: planned.source.clone(),
            words: words.collect(),
            pause: planned.spoken.pause,
            lead_millis: planned.spoken.lead_millis,
        })
    }
}

/// The sentences of a text, whose sounds are found when they are wanted.
pub(super) struct Plan {
    pub(super) sentences: Vec<Planned>,
}

/// A sentence whose sounds are not known yet.
pub(super) struct Planned {
    source: Range<usize>,
    sources: Vec<Range<usize>>,
    spoken: Spoken,
}

impl Planned {
    /// Its words with the marks behind them, for people.
    pub(super) fn line(&self) -> String {
        let words = self.spoken.words.iter();
        let words: Vec<String> = words.map(|said| shown(said) + said.after).collect();
        words.join(" ")
    }

    /// The rest behind it.
    pub(super) fn pause(&self) -> Pause {
        self.spoken.pause
    }
}

/// The line that shows what will be spoken: the words of a text, with the marks between them.
/// Spelled words stand as letters apart.
pub fn spoken_text(text: &str, accent: Accent) -> String {
    let clean = Clean::new(text);
    let mut line = String::with_capacity(text.len());
    for piece in scan_clean(&clean, accent).0 {
        if let Piece::Word(said) = piece {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&shown(&said));
            line.push_str(said.after);
        }
    }
    line
}

/// The letters of a spelled word, and the ending of a plural or possessive behind them.
fn spelled(text: &str) -> (&str, &str) {
    if let Some(letters) = text.strip_suffix("'s") {
        return (letters, "'s");
    }
    match text.strip_suffix('s') {
        Some(letters) if letters.chars().count() > 1 => (letters, "s"),
        _ => (text, ""),
    }
}

/// A word as it is shown: letters apart where it is spelled.
fn shown(said: &Said) -> String {
    if said.how != How::Letters {
        return said.text.clone();
    }
    let (letters, ending) = spelled(&said.text);
    let mut shown = String::with_capacity(said.text.len() * 2);
    for letter in letters.chars() {
        if !shown.is_empty() {
            shown.push(' ');
        }
        match letter.to_digit(10) {
            Some(digit) => shown.push_str(&number::cardinal(u64::from(digit), Accent::Us)),
            None => shown.push(letter),
        }
    }
    shown + ending
}
