//! What of a text no voice says, for people.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use super::Accent;
use super::clean::Clean;
use super::scan::scan_clean;
use super::tag::tag;

/// Different parts that are kept; a note shows fewer.
const KEPT_MAX: usize = 100;

/// Parts that a note names.
const SHOWN_MAX: usize = 8;

/// Letters of a part that a note shows.
const SHOWN_CHARS: usize = 24;

const JOINER: char = '\u{200d}';

/// Parts of texts that have no sound, each once, in their order: signs without a name such as
/// emoji, words in other scripts, tags other than `<break/>`, control characters. Marks of writing (quotes, brackets, bullets,
/// `*emphasis*`) are not among them: nobody reads those out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    parts: Vec<String>,
    known: HashSet<String>,
}

impl LeftOut {
    /// Those of one text.
    pub fn of(text: &str) -> Self {
        let mut left_out = Self::default();
        left_out.add(text);
        left_out
    }

    /// Add those of another text.
    pub fn add(&mut self, text: &str) {
        let clean = Clean::new(text);
        // The accent decides how things are said, never whether.
        let (_, unsaid) = scan_clean(&clean, Accent::Us);
        let mut parts: Vec<Range<usize>> = unsaid.iter().map(|at| clean.source(at)).collect();
        parts.extend(clean.left_out);
        parts.sort_unstable_by_key(|part| (part.start, part.end));
        let mut parts = parts.into_iter().peekable();
        while let Some(part) = parts.next() {
            let mut end = whole(text, part.end);
            while let Some(next) = parts.next_if(|next| one_sign(text, part.start..end, next)) {
                end = whole(text, next.end.max(end));
            }
            self.keep(text.get(part.start..end).unwrap_or_default());
        }
    }

    fn keep(&mut self, part: &str) {
        let name = match tag(part) {
            Some(tag) if !tag.name.is_empty() => format!("<{}>", tag.name.to_ascii_lowercase()),
            _ => part.to_owned(),
        };
        if !name.is_empty() && self.parts.len() < KEPT_MAX && self.known.insert(name.clone()) {
            self.parts.push(name);
        }
    }

    /// The parts; of a text with more than a hundred different ones the first hundred.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Whether everything has a sound.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

/// The end of a sign with what belongs to it: a form, a frame, the letters of a flag's tag.
fn whole(text: &str, end: usize) -> usize {
    let after = text.get(end..).unwrap_or_default();
    let rest = after.trim_start_matches(|next| {
        matches!(next, '\u{fe00}'..='\u{fe0f}' | '\u{20d0}'..='\u{20ff}' | '\u{e0020}'..='\u{e007f}')
    });
    end + after.len() - rest.len()
}

/// Whether `next` belongs to the sign before it: joined, a colour of skin, the other half of a flag.
fn one_sign(text: &str, before: Range<usize>, next: &Range<usize>) -> bool {
    let between = text.get(before.end..next.start);
    let first = |range: Range<usize>| text.get(range).and_then(|part| part.chars().next());
    let (Some(between), Some(sign)) = (between, first(next.start..text.len())) else {
        return false;
    };
    let is_flag = |sign: char| matches!(sign, '\u{1f1e6}'..='\u{1f1ff}');
    match between {
        "" => {
            let halves = text
                .get(before.clone())
                .map_or(0, |sign| sign.chars().count());
            matches!(sign, '\u{1f3fb}'..='\u{1f3ff}')
                || is_flag(sign) && halves == 1 && first(before).is_some_and(is_flag)
        }
        _ => between.chars().all(|next| next == JOINER),
    }
}

impl fmt::Display for LeftOut {
    /// `"🎉", "<prosody>"`, the first few.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts.iter().take(SHOWN_MAX).enumerate() {
            let mut shown = String::new();
            for letter in part.chars().take(SHOWN_CHARS) {
                if letter.is_control() || letter == '"' {
                    shown.extend(letter.escape_default());
                } else {
                    shown.push(letter);
                }
            }
            let comma = if at > 0 { ", " } else { "" };
            let more = if part.chars().nth(SHOWN_CHARS).is_some() {
                "…"
            } else {
                ""
            };
            write!(out, "{comma}\"{shown}{more}\"")?;
        }
        match self.parts.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(out, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_sound_is_named_once_and_whole() {
        let cases: &[(&str, &str)] = &[
            ("We won 🎉 🎉🎉!", "\"🎉\""),
            (
                "👩‍🚀 up, 👍🏽 and 🇫🇷🇩🇪 and ❤️.",
                "\"👩‍🚀\", \"👍🏽\", \"🇫🇷\", \"🇩🇪\", \"❤️\"",
            ),
            ("a\u{1b}[31m b\u{0}", "\"\\u{1b}\", \"\\u{0}\""),
            (
                "<speak>Hi <prosody rate='slow'>you</prosody></speak>",
                "\"<speak>\", \"<prosody>\"",
            ),
            (
                "a <!-- a long note to oneself -->b",
                "\"<!-- a long note to ones…\"",
            ),
            ("a << b", "\"<\""),
            ("[x](🎉) y", "\"[x](🎉)\""),
            ("\u{fffd} \u{e000}", "\"\u{fffd}\", \"\u{e000}\""),
            // Said, or marks of writing.
            (
                "# *Very* “good” (it is) — ‘now’… • one · two ~~three~~ | `x`",
                "",
            ),
            ("> quoted\n>> twice", ""),
            ("a < b, c > d, x<y, I <3 it, 2<3", ""),
            ("wait <break time=\"2s\"/> here </break>", ""),
            ("$5 & 10% @ 3 °C = 7 × 2 → π ± ½ © 2026 ™ №1", ""),
            ("He said Привет in 東京, Δx", "\"Привет\", \"東京\""),
            ("zero\u{200b}width\u{ad} and\u{feff} marks", ""),
            ("", ""),
        ];
        for (text, names) in cases {
            assert_eq!(LeftOut::of(text).to_string(), *names, "{text:?}");
        }
    }

    #[test]
    fn a_note_of_many_is_short_and_keeps_no_more_than_a_hundred() {
        let many: String = (0x1f300..0x1f400).filter_map(char::from_u32).collect();
        let left_out = LeftOut::of(&many);
        assert_eq!(left_out.parts().len(), KEPT_MAX);
        let note = left_out.to_string();
        assert!(note.ends_with(" and 92 more") && note.len() < 100, "{note}");
        let mut both = LeftOut::of("a 🎉");
        both.add("b 🎉 ☃");
        assert_eq!(both.parts(), ["🎉", "☃"]);
    }
}
