//! The pass over a text that finds what each piece of it is and how it is spoken.

mod punctuation;

use std::ops::Range;

use super::abbreviation::{End, abbreviation, accented, initials};
use super::capitals::{Capitals, decide};
use super::clean::{Clean, REST, floor};
use super::marks::{Override, mark};
use super::script::is_latin;
use super::{Accent, Pause, address, clock, date, figure, money, roman, symbol, unit};

/// In front of a word in a reading: it is spelled.
pub(super) const SPELL: char = '\u{1}';

/// Text in front of a place that the readers of expressions see, and text after it. Bounds keep a
/// text of any length linear in time.
const BEFORE_BYTES: usize = 96;
const REST_BYTES: usize = 256;

/// Longest piece of letters that stays one word.
const WORD_CHARS_MAX: usize = 40;

/// Longest word of Greek letters that is a formula: "Δx".
const FORMULA_CHARS_MAX: usize = 3;

/// A line shorter than this ends with its line break; longer ones were wrapped.
const SHORT_LINE_CHARS: usize = 50;

/// A place in the text, as a reader of expressions sees it.
pub(super) struct At<'a> {
    pub rest: &'a str,
    pub before: &'a str,
    /// The word in front, without what follows it; empty at the start of a sentence.
    pub last: &'a str,
    pub accent: Accent,
}

/// Where a word's sounds come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// From the word.
    Word,
    /// From the names of its letters.
    Letters,
    /// From the writer.
    Given(String),
}

/// A spoken word.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub text: String,
    pub how: How,
    /// Bytes of the scanned text.
    pub at: Range<usize>,
    pub after: &'static str,
}

/// What comes next in the speech.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Word(Said),
    Break(Pause),
}

type Reader = fn(&At<'_>) -> Option<(usize, String)>;

/// Readers of what begins with a digit or a sign of a number, the more particular ones first.
const FIGURES: [Reader; 21] = [
    figure::phone,
    figure::name,
    address::page,
    address::mail,
    address::file,
    money::money,
    date::date,
    clock::length_of_time,
    clock::clock,
    clock::ratio,
    figure::version,
    figure::fraction,
    unit::height,
    money::money_behind,
    unit::measure,
    date::decade,
    figure::ordinal_number,
    figure::power,
    date::bare_year,
    figure::range,
    unit::attached,
];

/// Readers of what begins with a letter.
const NAMED: [Reader; 8] = [
    address::page,
    address::mail,
    address::file,
    money::money,
    date::date,
    figure::version,
    date::bare_year,
    roman::roman,
];

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    accent: Accent,
    pieces: Vec<Piece>,
    /// Bytes of the word in front; empty at the start of a sentence.
    last: Range<usize>,
    /// Where the line began.
    line: usize,
    /// Lengths of rests by their places.
    rests: &'a [(usize, u32)],
    /// Signs that have no sound, by their bytes.
    left_out: Vec<Range<usize>>,
}

/// Finds the words of a cleaned text, the breaks between its sentences, and signs that have neither
/// sound nor meaning for them, by their bytes.
pub(super) fn scan_clean(clean: &Clean, accent: Accent) -> (Vec<Piece>, Vec<Range<usize>>) {
    let mut scanner = Scanner {
        text: &clean.text,
        at: 0,
        accent,
        pieces: Vec::new(),
        last: 0..0,
        line: 0,
        rests: &clean.rests,
        left_out: Vec::new(),
    };
    scanner.all();
    (scanner.pieces, scanner.left_out)
}

/// The words and breaks of a part of a cleaned text, and whether anything of it has no sound.
fn scan(text: &str, accent: Accent) -> (Vec<Piece>, bool) {
    let mut scanner = Scanner {
        text,
        at: 0,
        accent,
        pieces: Vec::new(),
        last: 0..0,
        line: 0,
        rests: &[],
        left_out: Vec::new(),
    };
    scanner.all();
    (scanner.pieces, !scanner.left_out.is_empty())
}

impl<'a> Scanner<'a> {
    fn all(&mut self) {
        while let Some(next) = self.peek() {
            self.step(next);
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn window(&self) -> &'a str {
        let end = floor(self.text, self.at + REST_BYTES);
        self.text.get(self.at..end).unwrap_or_default()
    }

    fn before(&self) -> &'a str {
        let start = floor(self.text, self.at.saturating_sub(BEFORE_BYTES));
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn place(&self) -> At<'a> {
        At {
            rest: self.window(),
            before: self.before(),
            last: self.text.get(self.last.clone()).unwrap_or_default(),
            accent: self.accent,
        }
    }

    /// Reads what is at the place; always moves on.
    fn step(&mut self, next: char) {
        let start = self.at;
        if next.is_whitespace() {
            self.blanks();
        } else if next == REST {
            self.asked_rest();
        } else if next == '[' && self.marked() || self.expression(next) {
            // Read, and past it.
        } else if next.is_alphabetic() && symbol::sign(self.window(), self.before()).is_none() {
            self.word();
        } else {
            self.sign(next);
        }
        if self.at <= start {
            self.at = start + next.len_utf8();
        }
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        let end = rest
            .find(|next: char| !next.is_whitespace())
            .unwrap_or(rest.len());
        let breaks = rest.get(..end).unwrap_or_default().matches('\n').count();
        let line = self.text.get(self.line..self.at).unwrap_or_default();
        let short = line.chars().take(SHORT_LINE_CHARS).count() < SHORT_LINE_CHARS;
        self.at += end;
        if breaks == 0 {
            return;
        }
        self.line = self.at;
        let next = self.peek();
        let goes_on = next.is_some_and(char::is_lowercase) || line.trim_end().ends_with([',', ';']);
        if breaks > 1 {
            self.end(Pause::Paragraph);
        } else if short && !goes_on {
            self.end(Pause::Sentence);
        }
        // Signs of lists and headings.
        let rest = self.rest();
        let sign = rest.trim_start_matches(['#', '>', '•', '*', '-', '–']);
        if sign.len() < rest.len() && sign.starts_with([' ', '\u{a0}']) {
            self.at += rest.len() - sign.len();
        }
    }

    fn marked(&mut self) -> bool {
        let Some(mark) = mark(self.rest()) else {
            return false;
        };
        let at = self.at..self.at + mark.bytes;
        match mark.wanted {
            Override::Phonemes(sounds) => {
                let words: Vec<String> = scan(mark.printed, self.accent)
                    .0
                    .iter()
                    .filter_map(|piece| match piece {
                        Piece::Word(said) => Some(super::shown(said)),
                        Piece::Break(_) => None,
                    })
                    .collect();
                let shown = if words.is_empty() {
                    "…".to_owned()
                } else {
                    words.join(" ")
                };
                self.push(&shown, How::Given(sounds), &at);
            }
            Override::Words(words) => {
                let (pieces, left_out) = scan(words, self.accent);
                let spoken = pieces.iter().any(|piece| matches!(piece, Piece::Word(_)));
                if left_out || !spoken {
                    self.left_out.push(at.clone());
                }
                for piece in pieces {
                    if let Piece::Word(said) = piece {
                        let after = said.after;
                        self.push(&said.text, said.how, &at);
                        self.set_after(after);
                    }
                }
            }
        }
        self.at = at.end;
        self.last = at;
        true
    }

    fn expression(&mut self, next: char) -> bool {
        let before = self.before().chars().next_back();
        let joined = before.is_some_and(char::is_alphanumeric);
        let place = self.place();
        let digit_at = |at: usize| {
            place
                .rest
                .chars()
                .nth(at)
                .is_some_and(|next| next.is_ascii_digit())
        };
        let figure = next.is_ascii_digit()
            || "$£€¥₹₩₽₺₿½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒".contains(next)
            || "+('".contains(next) && digit_at(1)
            || next == '.' && digit_at(1) && !joined;
        if joined && next.is_ascii_digit() {
            return self.take(&[figure::number]);
        }
        if figure {
            return self.take(&FIGURES) || next != '(' && self.take(&[figure::number]);
        }
        if "#@".contains(next) && !joined {
            return self.take(&[address::tag]);
        }
        if next == '-'
            && !joined
            && (digit_at(1) || "$£€".contains(place.rest.chars().nth(1).unwrap_or(' ')))
        {
            let at = self.at..self.at + 1;
            self.push("minus", How::Word, &at);
            self.at = at.end;
            return true;
        }
        if !next.is_alphabetic() || joined {
            return false;
        }
        self.take(&NAMED) || self.take_short()
    }

    fn take(&mut self, readers: &[Reader]) -> bool {
        let place = self.place();
        let read = readers
            .iter()
            .find_map(|reader| reader(&place))
            .filter(|(bytes, _)| *bytes > 0);
        let Some((bytes, said)) = read else {
            return false;
        };
        self.take_said(bytes, &said);
        let taken = place.rest.get(..bytes).unwrap_or_default();
        if taken.ends_with(['m', 'M']) && self.rest().starts_with('.') {
            return true;
        }
        if taken.ends_with('.') {
            let half_of_day = taken.ends_with("m.") || taken.ends_with("M.");
            self.after_point(if half_of_day {
                End::Capital
            } else {
                End::Starter
            });
        }
        true
    }

    fn take_short(&mut self) -> bool {
        let place = self.place();
        let Some((bytes, said, end)) = abbreviation(&place).or_else(|| initials(&place)) else {
            return false;
        };
        self.take_said(bytes, &accented(&said, self.accent));
        if place
            .rest
            .get(..bytes)
            .is_some_and(|taken| taken.ends_with('.'))
        {
            self.after_point(end);
        }
        true
    }

    fn take_said(&mut self, bytes: usize, said: &str) {
        let at = self.at..self.at + bytes;
        for word in said.split_whitespace() {
            let (word, comma) = match word.strip_suffix(',') {
                Some(word) => (word, true),
                None => (word, false),
            };
            match word.strip_prefix(SPELL) {
                Some(letters) => self.push(letters, How::Letters, &at),
                None => self.push(word, How::Word, &at),
            }
            if comma {
                self.set_after(",");
            }
        }
        self.at = at.end;
        self.last = at;
    }

    fn push(&mut self, text: &str, how: How, at: &Range<usize>) {
        let text = text.trim();
        if !text.is_empty() {
            self.pieces.push(Piece::Word(Said {
                text: text.to_owned(),
                how,
                at: at.clone(),
                after: "",
            }));
        }
    }

    /// A word of letters, with apostrophes and hyphens inside.
    fn word(&mut self) {
        let rest = self.window();
        let mut end = 0;
        let mut count = 0;
        let mut letters = rest.char_indices().peekable();
        let mut before = ' ';
        while let Some((at, next)) = letters.next() {
            let joins = before.is_alphabetic()
                && (next == '\'' && letters.peek().is_some_and(|(_, next)| next.is_alphabetic())
                    || next == '-' && joins_words(rest, at));
            if !(next.is_alphabetic() || joins) || count == WORD_CHARS_MAX {
                break;
            }
            // Capitals inside begin another word: "iPhone", "YouTube".
            let hump = next.is_uppercase() && before.is_lowercase();
            if hump && count > 0 {
                break;
            }
            before = next;
            count += 1;
            end = at + next.len_utf8();
        }
        let mut word = rest.get(..end).unwrap_or_default();
        // The plural of letters: "TVs".
        if let Some(base) = word.strip_suffix('s')
            && is_capital_word(base)
        {
            word = base;
            end -= 1;
        }
        let at = self.at..self.at + end;
        self.at = at.end;
        if !word
            .chars()
            .all(|next| is_latin(next) || "'-".contains(next))
        {
            self.foreign(word, &at);
        } else if is_capital_word(word) {
            self.capitals(word, &at);
        } else if word.chars().count() == 1 {
            self.letter(word, &at);
        } else {
            self.push(word, How::Word, &at);
        }
        self.last = at;
    }

    /// A word with letters of another script: a few letters with names are a formula; others are
    /// left out, since an English voice would only mumble them.
    fn foreign(&mut self, word: &str, at: &Range<usize>) {
        let named = |letter: char| letter.is_ascii() || symbol::letter(letter).is_some();
        if word.chars().count() > FORMULA_CHARS_MAX || !word.chars().all(named) {
            self.left_out.push(at.clone());
            return;
        }
        for letter in word.chars() {
            match symbol::letter(letter) {
                Some(name) => self.push(name, How::Word, at),
                None => self.push(letter.encode_utf8(&mut [0; 4]), How::Letters, at),
            }
        }
    }

    fn capitals(&mut self, word: &str, at: &Range<usize>) {
        let (base, ending) = match word.strip_suffix("'s").or_else(|| word.strip_suffix("'S")) {
            Some(base) => (base, "'s"),
            None => (word, ""),
        };
        let plural = ending.is_empty() && self.rest().starts_with('s') && {
            let after = self.rest().get(1..).unwrap_or_default();
            !after.starts_with(char::is_alphanumeric)
        };
        let last = self.text.get(self.last.clone()).unwrap_or_default();
        let next = self.window().trim_start_matches([' ', ',', '\'', '-']);
        let next = next
            .split(|next: char| !next.is_alphabetic())
            .next()
            .unwrap_or_default();
        let shouted = |word: &str| is_capital_word(word) && word.chars().count() > 1;
        let among = shouted(last) || shouted(next);
        match decide(base, among) {
            Capitals::Spelled => {
                if plural {
                    self.at += 1;
                    self.push(&format!("{base}s"), How::Letters, &(at.start..at.end + 1));
                } else {
                    self.push(&format!("{base}{ending}"), How::Letters, at);
                }
            }
            Capitals::Said => self.push(word, How::Word, at),
            Capitals::Shouted => self.push(&word.to_lowercase(), How::Word, at),
        }
    }

    /// A letter by itself: a word ("a", "I", "O"), or its name.
    fn letter(&mut self, letter: &str, at: &Range<usize>) {
        let rest = self.rest();
        let article = letter == "a"
            || letter == "A" && self.last.is_empty() && rest.starts_with(' ')
            || letter == "A"
                && rest.starts_with(' ')
                && rest.get(1..).is_some_and(|rest| {
                    let word = rest.split(|next: char| !next.is_alphabetic()).next();
                    word.is_some_and(|word| is_capital_word(word) && word.len() > 2)
                });
        let word = article || letter == "I" || matches!(letter, "O" | "o");
        let latin = letter.is_ascii();
        if word || !latin {
            self.push(letter, How::Word, at);
        } else {
            self.push(letter, How::Letters, at);
        }
    }
}

/// Whether the hyphen joins words of small letters, that a lexicon may have together.
fn joins_words(text: &str, hyphen: usize) -> bool {
    let (front, back) = text.split_at(hyphen);
    let front = front.rsplit('-').next().unwrap_or_default();
    let back = back.get(1..).unwrap_or_default();
    let back = back
        .split(|next: char| !(next.is_alphanumeric() || next == '\''))
        .next()
        .unwrap_or_default();
    let plain = |word: &str| {
        word.len() > 1
            && word.len() < WORD_CHARS_MAX / 2
            && word.bytes().all(|letter| letter.is_ascii_alphabetic())
            && word
                .bytes()
                .skip(1)
                .all(|letter| letter.is_ascii_lowercase())
    };
    plain(front) && plain(back)
}

/// Whether a word is of capitals only, and of more than one; the ending of a possessive aside.
fn is_capital_word(word: &str) -> bool {
    let base = word.strip_suffix("'s").unwrap_or(word);
    base.chars().count() > 1
        && base
            .chars()
            .all(|letter| letter.is_uppercase() && letter.is_ascii() || letter == '\'')
}

#[cfg(test)]
pub(super) fn said(text: &str, accent: Accent) -> String {
    super::spoken_text(text, accent)
}
