//! Sounds of words that no lexicon has, by the character networks of hibari-tts.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use engine_base::CancelToken;
use engine_onnx::{OnnxData, OnnxRuntime, OnnxSession, OnnxTensor};
use serde::Deserialize;

use super::english::{UnknownWords, foreign_letters};
use super::error::SpeechError;
use super::files::read_json;
use super::network;
use super::vocabulary::Vocabulary;

/// Longest piece that a network is given, where its own file says less.
const LENGTH_LIMIT: usize = 64;

/// Longest word that is read at all; no word of a language is longer.
const WORD_LIMIT: usize = 400;

/// Letters of a text that an error shows.
pub(super) const SHOWN: usize = 40;

/// The alphabets of a network.
#[derive(Debug, Deserialize)]
struct Alphabets {
    #[serde(rename = "in")]
    letters: Vec<String>,
    #[serde(rename = "out")]
    sounds: Vec<String>,
    maxlen: usize,
}

/// Reads words letter by letter.
pub(super) struct LetterNetwork {
    session: OnnxSession,
    letters: HashMap<char, i64>,
    /// Sounds by their number, less one; empty for what voices do not know.
    sounds: Vec<String>,
    length: usize,
}

impl LetterNetwork {
    /// Open `NAME.onnx` and `NAME.json` of `folder`.
    pub(super) fn open(
        runtime: &OnnxRuntime,
        folder: &Path,
        name: &str,
        vocabulary: &Arc<Vocabulary>,
    ) -> Result<Self, SpeechError> {
        let path = folder.join(format!("{name}.json"));
        let alphabets: Alphabets = read_json("the alphabets of a letter network", &path)?;
        let bad = |reason: &str| SpeechError::BadFile {
            what: "the alphabets of a letter network",
            reason: reason.to_owned(),
            path: path.clone(),
        };
        if alphabets.maxlen == 0 {
            return Err(bad("expected a maxlen of at least 1, got 0"));
        }
        let mut letters = HashMap::new();
        for (at, letter) in (1..).zip(&alphabets.letters) {
            let mut chars = letter.chars();
            match (chars.next(), chars.next()) {
                (Some(letter), None) => drop(letters.insert(letter, at)),
                _ => return Err(bad("expected single letters")),
            }
        }
        // What voices do not know, or take for punctuation, is no sound of a word.
        let is_sound = |text: &String| {
            let spoken = |c: char| vocabulary.token(c).is_some() && !c.is_ascii_punctuation();
            text.chars().all(|c| spoken(c) && !c.is_whitespace())
        };
        let sounds = alphabets.sounds.into_iter();
        Ok(Self {
            session: network::load(runtime, &folder.join(format!("{name}.onnx")), 1, &[])?,
            letters,
            sounds: sounds
                .map(|text| if is_sound(&text) { text } else { String::new() })
                .collect(),
            length: alphabets.maxlen.min(LENGTH_LIMIT),
        })
    }

    /// Sounds of one piece: the likeliest symbol a step, repeats and blanks dropped.
    fn read(&self, letters: &[i64]) -> Result<String, SpeechError> {
        let input = OnnxTensor::i64(&[1, letters.len()], letters.to_vec())?;
        let cancel = CancelToken::new();
        let outputs = self
            .session
            .run(vec![("chars", input)], &["ids"], &cancel)?;
        let Some(OnnxData::I64(steps)) = outputs.into_iter().next().map(OnnxTensor::into_data)
        else {
            return Err(network::bad("letters", "no numbers", "numbers of sounds"));
        };
        let (mut text, mut before) = (String::new(), 0);
        for step in steps {
            if step != before && step > 0 {
                let sound = usize::try_from(step - 1)
                    .ok()
                    .and_then(|at| self.sounds.get(at));
                text.push_str(sound.map_or("", String::as_str));
            }
            before = step;
        }
        Ok(text)
    }
}

impl UnknownWords for LetterNetwork {
    fn phonemes(&self, word: &str) -> Result<String, SpeechError> {
        // It has seen letters of other scripts, and knows nothing of their languages.
        if foreign_letters(word) > 0.0 {
            return Err(SpeechError::Unspeakable {
                text: word.chars().take(SHOWN).collect(),
                reason: "expected letters of the Latin script".into(),
            });
        }
        let letters: Vec<i64> = word
            .chars()
            .filter_map(|letter| self.letters.get(&letter).copied())
            .take(WORD_LIMIT)
            .collect();
        let mut sounds = String::new();
        for piece in letters.chunks(self.length) {
            sounds.push_str(&self.read(piece)?);
        }
        // Stress alone is no sound.
        let heard = sounds
            .chars()
            .any(|sound| !matches!(sound, 'ˈ' | 'ˌ' | 'ː'));
        Ok(if heard { sounds } else { String::new() })
    }
}
