//! Backslash escapes of the Markdown form.
//!
//! A backslash before ASCII punctuation is that character (as in Markdown); `\n`, `\t`, `\s` and
//! `\u[a0]` stand for a new line, a tab, a space and a character by number. Any other backslash
//! stands for itself.

use std::fmt::Write as _;

/// Text with its escapes resolved.
pub(crate) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(next) = rest.chars().next() else {
            out.push('\\');
            break;
        };
        let meant = match next {
            'n' => Some('\n'),
            't' => Some('\t'),
            's' => Some(' '),
            'u' => match by_number(rest) {
                Some((character, length)) => {
                    out.push(character);
                    rest = &rest[length..];
                    continue;
                }
                None => None,
            },
            mark if mark.is_ascii_punctuation() => Some(mark),
            _ => None,
        };
        match meant {
            Some(character) => {
                out.push(character);
                rest = &rest[next.len_utf8()..];
            }
            None => out.push('\\'),
        }
    }
    out.push_str(rest);
    out
}

/// The character of `u[..]` at the start of `text`, and the length of that.
fn by_number(text: &str) -> Option<(char, usize)> {
    let digits = text.strip_prefix("u[")?;
    let end = digits.bytes().take(7).position(|b| b == b']')?;
    let code = u32::from_str_radix(digits.get(..end)?, 16).ok()?;
    Some((char::from_u32(code)?, end + 3))
}

/// `text` such that [`unescape`] gives it back from one line, with `marks` escaped too.
pub(crate) fn escape(text: &str, marks: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    let inner = text.len() - text.trim_start_matches(' ').len()..text.trim_end_matches(' ').len();
    for (at, character) in text.char_indices() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            ' ' if !inner.contains(&at) => out.push_str("\\s"),
            ' ' => out.push(' '),
            other if other.is_control() || other.is_whitespace() => {
                // Writing to a string does not fail.
                let _written = write!(out, "\\u[{:x}]", u32::from(other));
            }
            mark if marks.contains(&mark) => {
                out.push('\\');
                out.push(mark);
            }
            other => out.push(other),
        }
    }
    out
}

/// Byte offset of the first `mark` in `text` that no backslash stands before.
pub(crate) fn find_plain(text: &str, mark: char) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if !escaped && character == mark {
            return Some(at);
        }
        escaped = !escaped && character == '\\';
    }
    None
}

/// Splits off a last `{name: value; name: value}`: what stands before it, and what is inside with
/// its byte offset.
pub(crate) fn split_attributes(text: &str) -> (&str, Option<(usize, &str)>) {
    let mut open = None;
    let mut close = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if !escaped {
            match character {
                '{' => (open, close) = (Some(at), None),
                '}' => close = Some(at),
                _ => {}
            }
        }
        escaped = !escaped && character == '\\';
    }
    match (open, close) {
        (Some(open), Some(close)) if close + 1 == text.len() && open < close => (
            text[..open].trim_end(),
            Some((open + 1, &text[open + 1..close])),
        ),
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_comes_back() {
        for text in [
            "",
            " ",
            "  a  ",
            "a\\b",
            "\\n",
            "line\nline\t",
            "\u{a0}x\u{2028}",
            "{a}: #1",
            "\\",
            "ends \\",
            "C:\\folder",
            "\\u[41]",
        ] {
            let written = escape(text, &[':', '{', '}']);
            assert_eq!(unescape(&written), text, "{written}");
            assert!(!written.contains('\n') && written.trim() == written);
        }
        assert_eq!(unescape("a \\- b \\x \\u[zz] \\"), "a - b \\x \\u[zz] \\");
    }

    #[test]
    fn attributes_are_the_last_braces() {
        assert_eq!(
            split_attributes("a {b} {at: 1 s}"),
            ("a {b}", Some((7, "at: 1 s")))
        );
        assert_eq!(split_attributes("a \\{b\\}"), ("a \\{b\\}", None));
        assert_eq!(split_attributes("a {b} c"), ("a {b} c", None));
        assert_eq!(split_attributes("}{"), ("}{", None));
        assert_eq!(find_plain("a\\:b:c", ':'), Some(4));
    }
}
