//! Marks between words: what they mean for the speech, and where sentences end.

use super::super::abbreviation::{End, STARTERS};
use super::super::symbol;
use super::super::tag::REST_MILLIS_MAX;
use super::{Pause, Piece, Scanner};

/// Marks that nobody reads out: quotes, brackets, lists, emphasis, headings.
const SILENT: &str = "\"'*_`#~-–()[]{}¡¿‹›「」『』《》〈〉【】";

/// Length of an arrow drawn of dashes: `->`, `=>`, `-->`.
fn arrow(rest: &str) -> Option<usize> {
    let head = rest.trim_start_matches(['-', '=', '–']);
    let shaft = rest.len() - head.len();
    (shaft > 0 && head.starts_with('>')).then_some(shaft + 1)
}

/// Whether nothing but marks of a quoted line stands in front.
fn begins_line(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\u{a0}', '>']);
    before.is_empty() || before.ends_with('\n')
}

impl Scanner<'_> {
    /// What the point of a short word means for the sentence.
    pub(super) fn after_point(&mut self, end: End) {
        let rest = self.window().trim_start_matches(['"', '\'', ')', ']']);
        let next = rest.trim_start();
        if next.is_empty() || rest.trim_start_matches([' ', '\u{a0}']).starts_with("\n\n") {
            self.set_after(".");
            return;
        }
        let word = next
            .split(|next: char| !(next.is_alphanumeric() || next == '\''))
            .next()
            .unwrap_or_default();
        let first = next.trim_start_matches(['"', '\'', '(']).chars().next();
        let capital = first.is_some_and(char::is_uppercase);
        let ends = match end {
            End::Never => false,
            End::Starter => STARTERS
                .split_ascii_whitespace()
                .any(|starter| starter == word),
            End::Capital => capital,
        };
        if ends && rest.starts_with(char::is_whitespace) {
            self.set_after(".");
            self.end(Pause::Sentence);
        }
    }

    /// A rest that the text asks for. It takes the place of the one that a sentence's end brings.
    pub(super) fn asked_rest(&mut self) {
        let found = self.rests.binary_search_by_key(&self.at, |rest| rest.0);
        let Some((_, millis)) = found.ok().and_then(|found| self.rests.get(found)) else {
            return;
        };
        self.last = self.at..self.at;
        match self.pieces.last_mut() {
            Some(Piece::Break(Pause::Millis(before))) => {
                *before = before.saturating_add(*millis).min(REST_MILLIS_MAX);
            }
            Some(Piece::Break(before)) => *before = Pause::Millis(*millis),
            _ => self.pieces.push(Piece::Break(Pause::Millis(*millis))),
        }
    }

    pub(super) fn sign(&mut self, next: char) {
        let before = self.before();
        let rest = self.window();
        let start = self.at;
        self.at += next.len_utf8();
        let after = self.window();
        let blank_before = before.is_empty() || before.ends_with(char::is_whitespace);
        let blank_after = after.is_empty() || after.starts_with(char::is_whitespace);
        if let Some(bytes) = arrow(rest) {
            self.at = start;
            return self.take_said(bytes, "to");
        }
        match next {
            '.' | '!' | '?' | '…' | '‽' => self.stop(start),
            ',' => self.set_after(","),
            ';' => self.set_after(";"),
            ':' => self.set_after(":"),
            '—' => self.set_after("—"),
            '-' | '–' if blank_before && blank_after => self.set_after("—"),
            '-' if after.starts_with('-') => {
                self.at += after.len() - after.trim_start_matches('-').len();
                self.set_after("—");
            }
            '(' | '[' | '{' => self.set_after(","),
            ')' | ']' | '}' if !after.trim_start().is_empty() => self.set_after(","),
            '|' | '•' | '·' | '‣' | '▪' | '◦' => self.set_after(","),
            '>' if begins_line(before) => {}
            _ => match symbol::sign(rest, before) {
                Some((bytes, name)) => {
                    self.at = start;
                    self.take_said(bytes, name);
                }
                None if SILENT.contains(next) => {}
                None => self.left_out.push(start..self.at),
            },
        }
    }

    /// Points, exclamation marks, question marks, and what they end.
    fn stop(&mut self, start: usize) {
        let rest = self.text.get(start..).unwrap_or_default();
        let end = rest
            .find(|next: char| !".!?…‽".contains(next))
            .unwrap_or(rest.len());
        let run = rest.get(..end).unwrap_or_default();
        self.at = start + end;
        let after = self.window();
        let mark = if run.contains(['?', '‽']) {
            "?"
        } else if run.contains('!') {
            "!"
        } else if run.len() > 1 {
            "…"
        } else {
            "."
        };
        self.set_after(mark);
        let closed = after.trim_start_matches(['"', '\'', ')', ']', '}', '*', '_']);
        self.at += after.len() - closed.len();
        let next = closed.trim_start();
        let first = next
            .trim_start_matches(|next: char| !next.is_alphanumeric() && next != '\n')
            .chars()
            .next();
        let goes_on = match first {
            Some(first) if first.is_lowercase() => true,
            Some(first) => next.len() == closed.len() && !first.is_uppercase(),
            None => false,
        };
        if !goes_on || next.is_empty() {
            self.end(Pause::Sentence);
        }
    }

    /// Sets what follows the last word; a stronger mark takes the place of a weaker one.
    pub(super) fn set_after(&mut self, mark: &'static str) {
        let strength = |mark: &str| match mark {
            "" => 0,
            "," => 1,
            ";" | ":" | "—" => 2,
            "." => 3,
            _ => 4,
        };
        if let Some(Piece::Word(said)) = self.pieces.last_mut()
            && strength(mark) > strength(said.after)
        {
            said.after = mark;
        }
    }

    pub(super) fn end(&mut self, pause: Pause) {
        self.last = self.at..self.at;
        match self.pieces.last_mut() {
            None => {}
            Some(Piece::Break(before)) => *before = (*before).max(pause),
            Some(Piece::Word(_)) => self.pieces.push(Piece::Break(pause)),
        }
    }
}
