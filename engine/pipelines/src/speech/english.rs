//! English: words to sounds. Every word goes through the letter network here.

use std::ops::Range;

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
    /// None.
    None,
    /// That of a comma.
    Clause,
    /// That of a full stop.
    Sentence,
    /// That between paragraphs.
    Paragraph,
}

/// A sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Its bytes in the text.
    pub source: Range<usize>,
    /// Its words.
    pub words: Vec<Word>,
    /// The rest after it.
    pub pause: Pause,
}

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Its bytes in the text.
    pub source: Range<usize>,
    /// What is said.
    pub spoken: String,
    /// Its sounds.
    pub phonemes: String,
    /// The mark after it.
    pub after: String,
}

/// Sounds of words that the lexicon lacks.
pub trait UnknownWords: Send + Sync {
    /// Sounds of `word`.
    ///
    /// # Errors
    /// A word that cannot be said.
    fn phonemes(&self, word: &str) -> Result<String, SpeechError>;
}

/// The front end.
pub struct English {
    unknown: Option<Box<dyn UnknownWords>>,
}

impl English {
    /// A front end.
    pub fn new(_accent: Accent, unknown: Option<Box<dyn UnknownWords>>) -> Self {
        Self { unknown }
    }

    /// Sentences of a text.
    ///
    /// # Errors
    /// A word that cannot be said.
    pub fn sentences(&self, text: &str) -> Result<Vec<Sentence>, SpeechError> {
        let mut sentences = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        for part in text.split_whitespace() {
            let begin = part.as_ptr() as usize - text.as_ptr() as usize;
            let spoken = part.trim_matches(|c: char| !c.is_alphanumeric());
            let after: String = part
                .chars()
                .rev()
                .take_while(|c| ",.;:!?".contains(*c))
                .collect();
            let phonemes = match &self.unknown {
                Some(unknown) if !spoken.is_empty() => unknown.phonemes(spoken)?,
                _ => continue,
            };
            words.push(Word {
                source: begin..begin + part.len(),
                spoken: spoken.into(),
                phonemes,
                after: after.clone(),
            });
            if after.contains(['.', '!', '?']) {
                let source = words.first().map_or(0, |w| w.source.start)..begin + part.len();
                let words = std::mem::take(&mut words);
                sentences.push(Sentence {
                    source,
                    words,
                    pause: Pause::Sentence,
                });
            }
        }
        if let (Some(first), Some(last)) = (words.first(), words.last()) {
            let source = first.source.start..last.source.end;
            sentences.push(Sentence {
                source,
                words,
                pause: Pause::Sentence,
            });
        }
        Ok(sentences)
    }
}
