//! English: a written text to spoken words, and those to the sounds that voices are trained on.
//!
//! A text is cleaned (control characters, tags), scanned once for expressions (each kind has a
//! file here with a table of what it reads), cut into sentences, and each sentence's words are
//! looked up in misaki's lexicon by part of speech. Words it lacks go to [`UnknownWords`]; without
//! one, or where it knows nothing, they are spelled. Nothing is dropped in silence.
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
mod marks;
mod money;
mod number;
mod phonemes;
mod roman;
mod scan;
mod sentence;
mod symbol;
mod unit;

pub use marks::printed_text;

use std::ops::Range;

use clean::Clean;
use phonemes::Sounds;
use scan::{How, Piece, Said, scan};

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
        let clean = Clean::new(text);
        let mut sentences = Vec::new();
        for spoken in sentence::sentences(scan(&clean.text, self.accent)) {
            let sounds = self.sounds.of(&spoken.words)?;
            let words = spoken.words.iter().zip(sounds);
            sentences.push(Sentence {
                source: clean.source(&spoken.at),
                words: words
                    .map(|(said, phonemes)| Word {
                        source: clean.source(&said.at),
                        spoken: shown(said),
                        phonemes,
                        after: said.after.to_owned(),
                    })
                    .collect(),
                pause: spoken.pause,
            });
        }
        Ok(sentences)
    }
}

/// The line that shows what will be spoken: the words of a text, with the marks between them.
/// Spelled words stand as letters apart.
pub fn spoken_text(text: &str, accent: Accent) -> String {
    let clean = Clean::new(text);
    let mut line = String::with_capacity(text.len());
    for piece in scan(&clean.text, accent) {
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

/// The share of a text's letters that are not Latin: 0 for English, 1 for Greek, Russian, Chinese.
/// A text without letters has none.
pub fn foreign_letters(text: &str) -> f64 {
    let (mut letters, mut foreign) = (0_u32, 0_u32);
    for letter in text.chars().filter(|letter| letter.is_alphabetic()) {
        letters = letters.saturating_add(1);
        foreign = foreign.saturating_add(u32::from(!is_latin(letter)));
    }
    f64::from(foreign) / f64::from(letters.max(1))
}

/// Whether a letter is of the Latin script (or full-width Latin, which is read as such).
fn is_latin(letter: char) -> bool {
    matches!(letter,
        'A'..='Z' | 'a'..='z' | 'ª' | 'º' | 'À'..='\u{24f}' | '\u{1e00}'..='\u{1eff}'
        | '\u{fb00}'..='\u{fb06}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}')
}
