//! A text as it will be scanned: no control characters, no tags, one form of each sign, and where
//! every character came from.

use std::ops::Range;

use super::tag::{Meaning, tag};

/// Stands in a scanned text where a rest was asked for.
pub(super) const REST: char = '\u{2}';

/// The text that is scanned.
pub(super) struct Clean {
    pub text: String,
    /// For every character: its byte in `text`, and its bytes in the source from and to.
    from: Vec<(u32, u32, u32)>,
    /// Lengths of the rests that are asked for, by the bytes of their [`REST`] in `text`.
    pub rests: Vec<(usize, u32)>,
    /// Tags and control characters, by their bytes in the source.
    pub left_out: Vec<Range<usize>>,
}

fn small(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The largest character boundary that is not after `at`.
pub(super) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Characters written as names, as in HTML.
const ENTITIES: [(&str, char); 8] = [
    ("&amp;", '&'),
    ("&lt;", '<'),
    ("&gt;", '>'),
    ("&quot;", '"'),
    ("&apos;", '\''),
    ("&#39;", '\''),
    ("&nbsp;", ' '),
    ("\r\n", '\n'),
];

impl Clean {
    pub(super) fn new(source: &str) -> Self {
        let mut clean = Self {
            text: String::with_capacity(source.len()),
            from: Vec::with_capacity(source.len()),
            rests: Vec::new(),
            left_out: Vec::new(),
        };
        let mut at = 0;
        while let Some(rest) = source.get(at..)
            && let Some(first) = rest.chars().next()
        {
            if let Some(tag) = tag(rest) {
                clean.push_tag(&tag.meaning, at, at + tag.bytes);
                at += tag.bytes;
                continue;
            }
            let named = ENTITIES.iter().find(|(name, _)| rest.starts_with(name));
            let (letter, bytes) = named.map_or((first, first.len_utf8()), |(name, letter)| {
                (*letter, name.len())
            });
            clean.push_plain(letter, at, at + bytes);
            at += bytes;
        }
        clean
    }

    fn push(&mut self, letters: &str, start: usize, end: usize) {
        for letter in letters.chars() {
            self.from
                .push((small(self.text.len()), small(start), small(end)));
            self.text.push(letter);
        }
    }

    fn push_tag(&mut self, meaning: &Meaning, start: usize, end: usize) {
        match meaning {
            Meaning::Rest(millis) => {
                self.rests.push((self.text.len() + 1, *millis));
                let rest = [' ', REST, ' '];
                self.push(&String::from_iter(rest), start, end);
            }
            Meaning::Nothing => self.push(" ", start, end),
            Meaning::Unknown => {
                self.left_out.push(start..end);
                self.push(" ", start, end);
            }
        }
    }

    /// Pushes what is spoken of a character: nothing, itself, or its plain form.
    fn push_plain(&mut self, letter: char, start: usize, end: usize) {
        let plain = match letter {
            '\n' | '\r' | '\u{85}' | '\u{b}' | '\u{c}' | '\u{2028}' => "\n",
            '\u{2029}' => "\n\n",
            '\t' | '\u{1680}' | '\u{2000}'..='\u{2006}' | '\u{2008}' | '\u{205f}' | '\u{3000}' => {
                " "
            }
            '\u{a0}' | '\u{2007}' | '\u{2009}' | '\u{200a}' | '\u{202f}' => "\u{a0}",
            // Soft hyphen, joiners, marks of direction, forms and frames of signs, combining marks.
            '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{300}'..='\u{36f}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{e0000}'..='\u{e01ef}' => "",
            '‘' | '’' | '‛' | 'ʼ' | '′' | '`' | '´' => "'",
            '“' | '”' | '„' | '‟' | '«' | '»' | '″' => "\"",
            '‐' | '‑' | '−' | '﹣' => "-",
            '‒' => "–",
            '―' => "—",
            '⁄' | '∕' => "/",
            '。' => ".",
            '、' => ",",
            'ﬁ' => "fi",
            'ﬂ' => "fl",
            'ﬀ' => "ff",
            '™' | '®' => "",
            'Ⅰ'..='Ⅻ' | 'ⅰ'..='ⅻ' => roman(letter),
            '①'..='⑨' => circled(letter),
            '!'..='~' => return self.push(letter.encode_utf8(&mut [0; 4]), start, end),
            _ if letter.is_control() => {
                self.left_out.push(start..end);
                ""
            }
            _ => {
                let ascii = digit(letter).or_else(|| full_width(letter));
                let letter = ascii.unwrap_or(letter);
                return self.push(letter.encode_utf8(&mut [0; 4]), start, end);
            }
        };
        self.push(plain, start, end);
    }

    /// The source's bytes of a range of `text`.
    pub(super) fn source(&self, range: &Range<usize>) -> Range<usize> {
        let first = self
            .from
            .partition_point(|from| from.0 < small(range.start));
        let after = self.from.partition_point(|from| from.0 < small(range.end));
        let start = self.from.get(first).map_or(0, |from| from.1 as usize);
        let last = after.checked_sub(1).and_then(|last| self.from.get(last));
        let end = last.map_or(start, |from| from.2 as usize);
        start..end.max(start)
    }
}

/// Digits of other scripts that count as ours do.
fn digit(letter: char) -> Option<char> {
    const ZEROS: [u32; 7] = [0x660, 0x6f0, 0x966, 0x9e6, 0xe50, 0xff10, 0x1d7ce];
    let code = u32::from(letter);
    let value = ZEROS
        .iter()
        .find_map(|zero| code.checked_sub(*zero).filter(|value| *value < 10))?;
    char::from_digit(value, 10)
}

/// The letters of a numeral that is one character.
fn roman(letter: char) -> &'static str {
    const NUMERALS: [&str; 12] = [
        "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII",
    ];
    let code = u32::from(letter);
    let at = if code < 0x2170 {
        code - 0x2160
    } else {
        code - 0x2170
    };
    NUMERALS.get(at as usize).copied().unwrap_or_default()
}

/// The digit in a circle.
fn circled(letter: char) -> &'static str {
    let at = (u32::from(letter) - 0x2460) as usize;
    "123456789".get(at..=at).unwrap_or_default()
}

/// The ASCII form of a full-width character.
fn full_width(letter: char) -> Option<char> {
    let code = u32::from(letter);
    (0xff01..=0xff5e)
        .contains(&code)
        .then(|| char::from_u32(code - 0xfee0))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_spoken_stays_and_knows_its_place() {
        let cases = [
            ("a\u{200b}b\u{0}c\u{7}", "abc"),
            ("one<break time=\"1s\"/>two", "one \u{2} two"),
            ("<speak version='1.0'>Hi <b>you</b></speak>", " Hi  you  "),
            ("a <!-- note --> b", "a   b"),
            ("x<y and z>w", "x<y and z>w"),
            ("2 < 3 > 1", "2 < 3 > 1"),
            ("Tom &amp; I’ve “it”", "Tom & I've \"it\""),
            ("１２ ٣ Ｈ", "12 3 H"),
            ("a\r\nb\rc\u{2029}d", "a\nb\nc\n\nd"),
            ("e\u{301}", "e"),
            ("<", "<"),
            ("<a", "<a"),
        ];
        for (source, text) in cases {
            let clean = Clean::new(source);
            assert_eq!(clean.text, text, "{source:?}");
            let whole = clean.source(&(0..clean.text.len()));
            assert!(source.get(whole).is_some(), "{source:?}");
        }
        let clean = Clean::new("a <break time='250ms'/><break/>b");
        assert_eq!(clean.rests, [(3, 250), (6, 400)]);
        let clean = Clean::new("\u{7}a<b>c</b>");
        assert_eq!(clean.left_out, [0..1, 2..5, 6..10]);
        let clean = Clean::new("a\u{200b}b <i>cd</i>.");
        let at = clean.text.find("cd").expect("the word");
        assert_eq!(clean.source(&(at..at + 2)), 10 - 1..11);
    }
}
