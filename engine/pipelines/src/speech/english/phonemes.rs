//! Words to sounds: misaki's lexicon and rules, our own for words of several sounds, and what is
//! done about words that neither has.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use misaki_rs::fallback::{Fallback, FallbackError};
use misaki_rs::lexicon::PhonemeEntry;
use misaki_rs::{G2P, Language, Lexicon};

use super::super::SpeechError;
use super::heteronym::{Choice, Tagged, choose};
use super::marks::ALPHABET;
use super::scan::{How, Said};
use super::{Accent, UnknownWords, is_latin, number, spelled};

/// Words that are spoken here and that the lexicon lacks.
const OWN: [(&str, &str); 2] = [("Miz", "mˈɪz"), ("Messers", "mˈɛsəɹz")];

/// Sounds for the words of one accent.
pub(super) struct Sounds {
    g2p: G2P,
    accent: Accent,
    unknown: Arc<Unknown>,
}

/// What says the words that the lexicon lacks.
struct Unknown {
    words: Option<Box<dyn UnknownWords>>,
    /// Names of letters and digits.
    names: OnceLock<HashMap<char, String>>,
}

/// The same for misaki, which owns what it asks.
struct Shared(Arc<Unknown>);

impl Fallback for Shared {
    fn phonemize(&self, word: &str) -> Result<String, FallbackError> {
        // Looked up part by part afterwards, where the lexicon is at hand.
        if word.contains('-') {
            return Ok(String::new());
        }
        self.0.say(word).map_err(|error| FallbackError::Espeak {
            word: word.to_owned(),
            error: match error {
                SpeechError::Unspeakable { reason, .. } => reason,
                other => other.to_string(),
            },
        })
    }
}

impl Unknown {
    /// A word that no lexicon has: by those who know such words, else letter by letter.
    fn say(&self, word: &str) -> Result<String, SpeechError> {
        let lower = word.to_lowercase();
        let (base, ending) = match lower.strip_suffix("'s") {
            Some(base) => (word.get(..base.len()).unwrap_or(word), true),
            None => (word, false),
        };
        let known = match &self.words {
            Some(words) => in_alphabet(&words.phonemes(base)?),
            None => String::new(),
        };
        let said = if has_sound(&known) {
            known
        } else {
            self.spell(base)
        };
        if !has_sound(&said) {
            let reason = "no lexicon has it and its letters have no English names; \
                expected English, or its sounds as [word](/sounds/)";
            return Err(SpeechError::Unspeakable {
                text: word.to_owned(),
                reason: reason.to_owned(),
            });
        }
        Ok(if ending { plural(&said) } else { said })
    }

    /// The names of the letters, the last one stressed.
    fn spell(&self, letters: &str) -> String {
        let Some(names) = self.names.get() else {
            return String::new();
        };
        let mut said = String::new();
        for letter in letters.chars().flat_map(|letter| fold(letter).chars()) {
            if let Some(name) = names.get(&letter.to_ascii_uppercase()) {
                said.push_str(&name.replace('ˈ', "ˌ"));
            }
        }
        match said.rfind('ˌ') {
            Some(last) => {
                said.replace_range(last..last + 'ˌ'.len_utf8(), "ˈ");
                said
            }
            None => said,
        }
    }
}

/// The ending of a plural or possessive after its sound.
fn plural(said: &str) -> String {
    let ending = match said.chars().next_back() {
        Some('p' | 't' | 'k' | 'f' | 'θ') => "s",
        Some('s' | 'z' | 'ʃ' | 'ʒ' | 'ʧ' | 'ʤ') => "ᵻz",
        _ => "z",
    };
    format!("{said}{ending}")
}

fn in_alphabet(said: &str) -> String {
    said.chars()
        .filter(|sign| ALPHABET.contains(*sign))
        .collect()
}

fn has_sound(said: &str) -> bool {
    said.chars().any(char::is_alphabetic)
}

/// A Latin letter without its accents.
fn fold(letter: char) -> &'static str {
    const FOLDED: [(&str, &str); 33] = [
        ("àáâãäåāăąǎ", "a"),
        ("ÀÁÂÃÄÅĀĂĄǍ", "A"),
        ("çćĉċč", "c"),
        ("ÇĆĈĊČ", "C"),
        ("ďđ", "d"),
        ("ĎĐ", "D"),
        ("èéêëēĕėęěế", "e"),
        ("ÈÉÊËĒĔĖĘĚ", "E"),
        ("əɛ", "e"),
        ("\u{212b}", "A"),
        ("ĝğġģ", "g"),
        ("ĜĞĠĢ", "G"),
        ("ĥħ", "h"),
        ("ìíîïĩīĭįı", "i"),
        ("ÌÍÎÏĨĪĬĮİ", "I"),
        ("ĺļľŀł", "l"),
        ("ĹĻĽĿŁ", "L"),
        ("ñńņňŉ", "n"),
        ("ÑŃŅŇ", "N"),
        ("òóôõöøōŏő", "o"),
        ("ÒÓÔÕÖØŌŎŐ", "O"),
        ("ŕŗř", "r"),
        ("śŝşšș", "s"),
        ("ŚŜŞŠȘ", "S"),
        ("ţťŧț", "t"),
        ("ùúûüũūŭůűų", "u"),
        ("ÙÚÛÜŨŪŬŮŰŲ", "U"),
        ("ýÿŷ", "y"),
        ("źżž", "z"),
        ("ŹŻŽ", "Z"),
        ("æǽ", "ae"),
        ("œ", "oe"),
        ("ß", "ss"),
    ];
    const ASCII: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'-";
    if let Some(at) = ASCII.find(letter) {
        return ASCII.get(at..=at).unwrap_or_default();
    }
    let row = FOLDED.iter().find(|row| row.0.contains(letter));
    row.map_or("", |row| row.1)
}

impl Sounds {
    pub(super) fn new(accent: Accent, words: Option<Box<dyn UnknownWords>>) -> Self {
        let language = match accent {
            Accent::Us => Language::EnglishUS,
            Accent::Gb => Language::EnglishGB,
        };
        let unknown = Arc::new(Unknown {
            words,
            names: OnceLock::new(),
        });
        let mut g2p = G2P::with_fallback(language, Some(Box::new(Shared(Arc::clone(&unknown)))));
        g2p.unk = String::new();
        let lexicon = &g2p.lexicon;
        unknown.names.get_or_init(|| names(lexicon));
        Self {
            g2p,
            accent,
            unknown,
        }
    }

    /// The sounds of the words of one sentence, in their order; none is empty.
    ///
    /// # Errors
    /// [`SpeechError::Unspeakable`] for a word of another script that nobody knows, and what the
    /// unknown words' teller gives.
    pub(super) fn of(&self, words: &[Said]) -> Result<Vec<String>, SpeechError> {
        let mut sounds = Vec::with_capacity(words.len());
        let mut line = String::new();
        let mut places: Vec<Range<usize>> = Vec::with_capacity(words.len());
        for said in words {
            let given = self.given(said)?;
            let written = match &given {
                // Single letters, so that the line stays one word here for the lexicon.
                Some(_) => said
                    .text
                    .chars()
                    .filter(char::is_ascii_alphabetic)
                    .collect(),
                None => self.written(&said.text),
            };
            let written = if written.is_empty() {
                "x".to_owned()
            } else {
                written
            };
            if !line.is_empty() {
                line.push(' ');
            }
            places.push(line.len()..line.len() + written.len());
            line.push_str(&written);
            line.push_str(said.after);
            sounds.push(given);
        }
        let (_, tokens) = self.g2p.g2p(&line).map_err(|error| {
            let text = words.iter().map(|said| said.text.as_str());
            let text: Vec<&str> = text.collect();
            SpeechError::Unspeakable {
                text: text.join(" "),
                reason: error.to_string(),
            }
        })?;
        let mut found: Vec<(String, String)> = vec![Default::default(); words.len()];
        let mut at = 0;
        for token in &tokens {
            let word = places.partition_point(|place| place.end <= at);
            let inside = places.get(word).is_some_and(|place| place.contains(&at));
            if inside && let Some(found) = found.get_mut(word) {
                if found.1.is_empty() {
                    found.1.clone_from(&token.tag);
                }
                found
                    .0
                    .push_str(token.phonemes.as_deref().unwrap_or_default());
            }
            at += token.text.len() + token.whitespace.len();
        }
        let tagged: Vec<Tagged<'_>> = words
            .iter()
            .zip(&found)
            .map(|(said, (_, tag))| Tagged {
                lower: said.text.to_lowercase(),
                text: &said.text,
                tag: tag.clone(),
                after: said.after,
            })
            .collect();
        let mut all = Vec::with_capacity(words.len());
        for (at, (said, given)) in words.iter().zip(sounds).enumerate() {
            let found = found.get(at).map_or("", |found| found.0.as_str());
            all.push(match given {
                Some(given) => given,
                None => self.chosen(said, &tagged, at, found)?,
            });
        }
        Ok(all)
    }

    /// Whether a word can be said, without the sounds of those that any lexicon or alphabet has.
    ///
    /// # Errors
    /// As [`Sounds::of`].
    pub(super) fn check(&self, said: &Said) -> Result<(), SpeechError> {
        match &said.how {
            How::Word if said.text.is_ascii() => Ok(()),
            How::Given(_) => Ok(()),
            _ => self.given(said).map(drop),
        }
    }

    /// Sounds that need no lexicon: the writer's, letters, other scripts.
    fn given(&self, said: &Said) -> Result<Option<String>, SpeechError> {
        match &said.how {
            How::Given(sounds) => Ok(Some(sounds.clone())),
            How::Letters => {
                let (letters, ending) = spelled(&said.text);
                let spelled = self.unknown.spell(letters);
                if !has_sound(&spelled) {
                    return self.unknown.say(&said.text).map(Some);
                }
                Ok(Some(if ending.is_empty() {
                    spelled
                } else {
                    plural(&spelled)
                }))
            }
            How::Word => {
                let own = OWN.iter().find(|own| own.0 == said.text);
                if let Some((_, sounds)) = own {
                    return Ok(Some((*sounds).to_owned()));
                }
                let latin = said
                    .text
                    .chars()
                    .all(|letter| is_latin(letter) || "'-".contains(letter));
                if latin && !self.written(&said.text).is_empty() {
                    return Ok(None);
                }
                self.unknown.say(&said.text).map(Some)
            }
        }
    }

    /// A word in the letters that the lexicon and the tagger know.
    fn written(&self, word: &str) -> String {
        let lexicon = &self.g2p.lexicon;
        if word.is_ascii() || lexicon.golds.contains_key(word) || lexicon.silvers.contains_key(word)
        {
            return word.to_owned();
        }
        word.chars()
            .flat_map(|letter| fold(letter).chars())
            .collect()
    }

    fn chosen(
        &self,
        said: &Said,
        tagged: &[Tagged<'_>],
        at: usize,
        found: &str,
    ) -> Result<String, SpeechError> {
        let sounds = match choose(tagged, at, self.accent) {
            Some(Choice::Sounds(sounds)) => Some(sounds.to_owned()),
            Some(Choice::As(tag)) => {
                let lower = said.text.to_lowercase();
                let word = self.g2p.lexicon.get_word(&lower, tag, None, None);
                word.map(|(sounds, _)| sounds)
            }
            None => None,
        };
        let sounds = sounds.unwrap_or_else(|| found.to_owned());
        // The lexicon's two signs that the voices' alphabet has as letters.
        let sounds = sounds.replace('ɾ', "T").replace('ʔ', "t");
        let sounds = in_alphabet(&sounds).trim().to_owned();
        if has_sound(&sounds) {
            return Ok(sounds);
        }
        let written = self.written(&said.text);
        let mut parts = String::new();
        for part in written.split('-').filter(|part| !part.is_empty()) {
            match self.g2p.lexicon.get_word(part, "NN", None, None) {
                Some((known, _)) => parts.push_str(&in_alphabet(&known.replace('ɾ', "T"))),
                None => parts.push_str(&self.unknown.say(part)?),
            }
        }
        if has_sound(&parts) {
            return Ok(parts);
        }
        self.unknown.say(&written)
    }
}

/// What letters and digits are called.
fn names(lexicon: &Lexicon) -> HashMap<char, String> {
    let mut names = HashMap::new();
    for letter in 'A'..='Z' {
        if let Some(PhonemeEntry::Simple(name)) = lexicon.golds.get(&letter.to_string()) {
            names.insert(letter, name.clone());
        }
    }
    for digit in '0'..='9' {
        let word = number::digit_by_digit(&digit.to_string(), "zero");
        if let Some((name, _)) = lexicon.get_word(&word, "CD", None, None) {
            names.insert(digit, name);
        }
    }
    names
}
