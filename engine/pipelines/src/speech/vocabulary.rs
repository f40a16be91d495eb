//! Sounds as the tokens of a network, and sentences in pieces that a network can take.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use super::english::Word;
use super::error::SpeechError;
use super::files::read_json;
use super::network::{SILENT_TOKEN, TOKENS_LIMIT};

/// Marks at which a long sentence is cut, if there are any.
const CLAUSE_MARKS: &[char] = &[',', ';', ':', '—', '…'];

/// A piece is not cut at a mark within this first part of it: a few words alone sound odd.
const SHORTEST_PIECE: usize = TOKENS_LIMIT / 4;

/// Tokens by symbol; the same for all voices here.
#[derive(Debug)]
pub(super) struct Vocabulary(HashMap<char, i64>);

/// Words in a form that a network speaks at once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The tokens, silent ones at both ends.
    pub(super) tokens: Vec<i64>,
    /// Which word of the sentence, and its tokens; of a word that was cut, a part.
    pub(super) words: Vec<(usize, Range<usize>)>,
    /// Whether it ends with a mark at which a speaker stops.
    pub(super) ends_clause: bool,
}

/// Symbols of one word, or of a part of a word too long for one piece.
struct Unit {
    word: usize,
    sounds: Vec<i64>,
    after: Vec<i64>,
    ends_clause: bool,
}

impl Vocabulary {
    /// Read `vocab.json`: an object of single symbols and their numbers.
    pub(super) fn open(path: &Path) -> Result<Self, SpeechError> {
        let table: BTreeMap<String, i64> = read_json("the alphabet of the voices", path)?;
        let mut tokens = HashMap::with_capacity(table.len());
        for (symbol, token) in table {
            let mut chars = symbol.chars();
            match (chars.next(), chars.next()) {
                (Some(symbol), None) if token > 0 => drop(tokens.insert(symbol, token)),
                _ => {
                    return Err(SpeechError::BadFile {
                        what: "the alphabet of the voices",
                        reason: format!(
                            "expected single symbols with numbers above 0, got {symbol:?}: {token}"
                        ),
                        path: path.to_owned(),
                    });
                }
            }
        }
        Ok(Self(tokens))
    }

    pub(super) fn token(&self, symbol: char) -> Option<i64> {
        self.0.get(&symbol).copied()
    }

    /// Tokens of a text; what voices have no symbol for is left out.
    fn tokens(&self, text: &str) -> Vec<i64> {
        text.chars()
            .filter_map(|symbol| self.token(symbol))
            .collect()
    }

    /// A sentence as pieces of at most [`TOKENS_LIMIT`] tokens, cut after a comma or the like where
    /// one is, else between words, and within a word only when one alone is too long.
    pub(super) fn pieces(&self, words: &[Word]) -> Vec<Piece> {
        let mut left = self.units(words);
        let mut pieces = Vec::new();
        while !left.is_empty() {
            let rest = left.split_off(self.cut(&left));
            pieces.push(self.piece(&left));
            left = rest;
        }
        pieces
    }

    fn units(&self, words: &[Word]) -> Vec<Unit> {
        let room = TOKENS_LIMIT - 2;
        let mut units = Vec::with_capacity(words.len());
        for (word, spoken) in words.iter().enumerate() {
            let sounds = self.tokens(&spoken.phonemes);
            let mut after = self.tokens(&spoken.after);
            after.truncate(room / 2);
            let mut parts: Vec<Vec<i64>> = sounds
                .chunks(room - room / 2)
                .map(<[i64]>::to_vec)
                .collect();
            if parts.is_empty() {
                // Nothing but a mark: it still makes a rest.
                parts.push(Vec::new());
            }
            let last = parts.len() - 1;
            for (at, sounds) in parts.into_iter().enumerate() {
                let is_last = at == last;
                units.push(Unit {
                    word,
                    sounds,
                    after: if is_last {
                        std::mem::take(&mut after)
                    } else {
                        Vec::new()
                    },
                    ends_clause: is_last && spoken.after.contains(CLAUSE_MARKS),
                });
            }
        }
        units
    }

    /// How many of `units` go into the next piece.
    fn cut(&self, units: &[Unit]) -> usize {
        let (mut length, mut fitting, mut clause) = (2, 0, 0);
        for (at, unit) in units.iter().enumerate() {
            let blank = usize::from(at > 0);
            length += blank + unit.sounds.len() + unit.after.len();
            if length > TOKENS_LIMIT {
                break;
            }
            fitting = at + 1;
            if unit.ends_clause && length >= SHORTEST_PIECE {
                clause = at + 1;
            }
        }
        let fitting = fitting.max(1);
        if fitting == units.len() || clause == 0 {
            fitting
        } else {
            clause
        }
    }

    fn piece(&self, units: &[Unit]) -> Piece {
        let mut tokens = vec![SILENT_TOKEN];
        let mut words = Vec::with_capacity(units.len());
        for (at, unit) in units.iter().enumerate() {
            if at > 0
                && let Some(blank) = self.token(' ')
            {
                tokens.push(blank);
            }
            let begin = tokens.len();
            tokens.extend(&unit.sounds);
            words.push((unit.word, begin..tokens.len()));
            tokens.extend(&unit.after);
        }
        tokens.push(SILENT_TOKEN);
        Piece {
            tokens,
            words,
            ends_clause: units.last().is_some_and(|unit| unit.ends_clause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        Vocabulary([('a', 1), ('b', 2), (' ', 3), (',', 4), ('.', 5)].into())
    }

    fn word(phonemes: &str, after: &str) -> Word {
        Word {
            source: 0..1,
            spoken: phonemes.to_owned(),
            phonemes: phonemes.to_owned(),
            after: after.to_owned(),
        }
    }

    #[test]
    fn a_sentence_is_its_words_with_blanks_and_marks() {
        let pieces = vocabulary().pieces(&[word("ab", ","), word("xb", "."), word("", "")]);
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0].tokens, [0, 1, 2, 4, 3, 2, 5, 3, 0]);
        assert_eq!(pieces[0].words, [(0, 1..3), (1, 5..6), (2, 8..8)]);
        assert!(vocabulary().pieces(&[]).is_empty());
    }

    #[test]
    fn a_long_sentence_is_cut_at_a_comma_and_no_word_is_lost() {
        let mut words: Vec<Word> = (0..300).map(|_| word("aba", "")).collect();
        words[80].after = ",".into();
        words[3].after = ",".into();
        let pieces = vocabulary().pieces(&words);
        assert!(
            pieces
                .iter()
                .all(|piece| piece.tokens.len() <= TOKENS_LIMIT)
        );
        assert!(pieces[0].ends_clause);
        assert_eq!(pieces[0].words.last().map(|(word, _)| *word), Some(80));
        let spoken: Vec<usize> = pieces
            .iter()
            .flat_map(|piece| piece.words.iter().map(|(word, _)| *word))
            .collect();
        assert_eq!(spoken, (0..300).collect::<Vec<_>>());
    }

    #[test]
    fn a_word_without_end_is_cut() {
        let long = "ab".repeat(5000);
        let pieces = vocabulary().pieces(&[word(&long, "."), word("a", &".".repeat(900))]);
        assert!(
            pieces
                .iter()
                .all(|piece| piece.tokens.len() <= TOKENS_LIMIT)
        );
        let sounds: usize = pieces
            .iter()
            .flat_map(|piece| &piece.words)
            .filter(|(word, _)| *word == 0)
            .map(|(_, tokens)| tokens.len())
            .sum();
        assert_eq!(sounds, 10_000);
    }
}
