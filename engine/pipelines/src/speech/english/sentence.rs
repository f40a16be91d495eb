//! Sentences of a text, each with its words and the rest after it.

use std::ops::Range;

use super::Pause;
use super::scan::{Piece, Said};

/// Words after which a sentence is cut at the next mark, and at which it is cut in any case: the
/// tagger and the voices see no more at a time.
const CUT_AT_MARK_WORDS: usize = 32;
const CUT_WORDS: usize = 48;

/// A sentence before its sounds are known. `at` is in bytes of the scanned text.
pub(super) struct Spoken {
    pub at: Range<usize>,
    pub words: Vec<Said>,
    pub pause: Pause,
    pub lead_millis: u32,
}

/// The sentences of scanned pieces.
pub(super) fn sentences(pieces: Vec<Piece>) -> Vec<Spoken> {
    let mut sentences = Vec::new();
    let mut words: Vec<Said> = Vec::new();
    let mut lead_millis = 0;
    let mut close = |words: &mut Vec<Said>, pause: Pause, sentences: &mut Vec<Spoken>| {
        let words = std::mem::take(words);
        if let (Some(first), Some(last)) = (words.first(), words.last()) {
            sentences.push(Spoken {
                at: first.at.start..last.at.end.max(first.at.end),
                words,
                pause,
                lead_millis: std::mem::take(&mut lead_millis),
            });
        } else if let Some(before) = sentences.last_mut() {
            // It was cut right here for its length.
            before.pause = before.pause.max(pause);
        } else if let Pause::Millis(millis) = pause {
            lead_millis = millis;
        }
    };
    for piece in pieces {
        match piece {
            Piece::Break(pause) => close(&mut words, pause, &mut sentences),
            Piece::Word(said) => {
                let marked = !said.after.is_empty();
                words.push(said);
                if marked && words.len() >= CUT_AT_MARK_WORDS {
                    close(&mut words, Pause::Clause, &mut sentences);
                } else if words.len() >= CUT_WORDS {
                    close(&mut words, Pause::None, &mut sentences);
                }
            }
        }
    }
    if !words.is_empty() {
        close(&mut words, Pause::Sentence, &mut sentences);
    }
    sentences
}
