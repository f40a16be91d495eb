//! Tags in a text, as HTML and SSML have them. One asks for a rest; the others are left out.

use super::clean::floor;

/// Longest tag that is taken for one.
const TAG_BYTES_MAX: usize = 400;

/// Longest comment that is taken for one.
const COMMENT_BYTES_MAX: usize = 4096;

/// Longest rest that a text can ask for at one place.
pub(super) const REST_MILLIS_MAX: u32 = 10_000;

/// Rests by the words of SSML's attribute `strength`; the middle one is that of a bare `<break/>`.
const STRENGTHS: [(&str, u32); 6] = [
    ("none", 0),
    ("x-weak", 100),
    ("weak", 200),
    ("medium", DEFAULT_MILLIS),
    ("strong", 800),
    ("x-strong", 1200),
];
const DEFAULT_MILLIS: u32 = 400;

/// A tag at the front of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    pub bytes: usize,
    /// Its name; empty for a comment.
    pub name: &'a str,
    pub meaning: Meaning,
}

/// What a tag asks of a voice.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A rest of so many milliseconds: `<break time="500ms"/>`.
    Rest(u32),
    /// Nothing, and nothing is lost without it: the other end of a rest.
    Nothing,
    /// Something that is not done here.
    Unknown,
}

/// The tag or comment at the front of `rest`. A `<` of mathematics is none: a tag has a name right
/// after `<`, and only attributes with values after the name.
pub(super) fn tag(rest: &str) -> Option<Tag<'_>> {
    let inner = rest.strip_prefix('<')?;
    let front = |bytes: usize| inner.get(..floor(inner, bytes)).unwrap_or_default();
    if inner.starts_with("!--") {
        return front(COMMENT_BYTES_MAX).find("-->").map(|end| Tag {
            bytes: end + 4,
            name: "",
            meaning: Meaning::Unknown,
        });
    }
    let (inside, _) = front(TAG_BYTES_MAX).split_once('>')?;
    let named = inside.trim_start_matches(['/', '?', '!']);
    let named = named.trim_end_matches(['/', '?']).trim_end();
    let name_end = named
        .find(|next: char| !(next.is_ascii_alphanumeric() || "-:_".contains(next)))
        .unwrap_or(named.len());
    let (name, attributes) = named.split_at(name_end);
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let attributes = read(attributes)?;
    let meaning = match name.to_ascii_lowercase().as_str() {
        "break" if inside.starts_with('/') => Meaning::Nothing,
        "break" => Meaning::Rest(rest_millis(&attributes)),
        _ => Meaning::Unknown,
    };
    Some(Tag {
        bytes: inside.len() + 2,
        name,
        meaning,
    })
}

/// Names and values of attributes; nothing where something else stands between.
fn read(mut attributes: &str) -> Option<Vec<(&str, &str)>> {
    let mut read = Vec::new();
    loop {
        attributes = attributes.trim_start();
        if attributes.is_empty() {
            return Some(read);
        }
        let (name, value) = attributes.split_once('=')?;
        let name = name.trim();
        if name.is_empty() || name.contains([' ', '"', '\'']) {
            return None;
        }
        let value = value.trim_start();
        let (value, rest) = match value.chars().next()? {
            quote @ ('"' | '\'') => value.get(1..)?.split_once(quote)?,
            _ => value.split_once(' ').unwrap_or((value, "")),
        };
        read.push((name, value));
        attributes = rest;
    }
}

fn rest_millis(attributes: &[(&str, &str)]) -> u32 {
    let value = |asked: &str| {
        let found = attributes
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(asked));
        found.map(|(_, value)| value.trim().to_ascii_lowercase())
    };
    let strength = || {
        let asked = value("strength")?;
        let row = STRENGTHS.iter().find(|row| row.0 == asked);
        row.map(|row| row.1)
    };
    value("time")
        .and_then(|time| millis(&time))
        .or_else(strength)
        .unwrap_or(DEFAULT_MILLIS)
}

/// `500ms` or `1.5s` as milliseconds, at most [`REST_MILLIS_MAX`].
fn millis(time: &str) -> Option<u32> {
    let (figure, unit) = match time.strip_suffix("ms") {
        Some(figure) => (figure, 1.0),
        None => (time.strip_suffix('s')?, 1000.0),
    };
    let value: f64 = figure.trim().parse().ok()?;
    let millis = (value * unit).round();
    (millis >= 0.0).then(|| millis.min(f64::from(REST_MILLIS_MAX)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_ask_for_rests_within_bounds() {
        let cases = [
            ("<break/>", 400),
            ("<break />", 400),
            ("<break>", 400),
            ("<BREAK TIME='1.5S'/>", 1500),
            ("<break time=\"500ms\"/>", 500),
            ("<break time=\"+250ms\"/>", 250),
            ("<break time=\" 2 s \"/>", 2000),
            ("<break time='0s'/>", 0),
            ("<break strength=\"none\"/>", 0),
            ("<break strength=\"x-strong\"/>", 1200),
            ("<break strength=strong time=3s/>", 3000),
            ("<break time=\"99999999999s\"/>", REST_MILLIS_MAX),
            ("<break time=\"inf s\"/>", REST_MILLIS_MAX),
            ("<break time=\"-3s\"/>", 400),
            ("<break time=\"NaNs\" strength=\"weak\"/>", 200),
            ("<break time=\"soon\" strength=\"never\"/>", 400),
        ];
        for (text, millis) in cases {
            let read = tag(text).unwrap_or_else(|| panic!("{text} is a tag"));
            assert_eq!(read.meaning, Meaning::Rest(millis), "{text}");
            assert_eq!(read.bytes, text.len(), "{text}");
        }
        let end = tag("</break>").map(|tag| tag.meaning);
        assert_eq!(end, Some(Meaning::Nothing));
    }

    #[test]
    fn tags_have_names_and_mathematics_has_none() {
        for (text, name, bytes) in [
            ("<prosody rate=\"slow\">a", "prosody", 21),
            ("</prosody>", "prosody", 10),
            ("<?xml version=\"1.0\"?>", "xml", 21),
            ("<!-- a > b -->c", "", 14),
        ] {
            let read = tag(text).unwrap_or_else(|| panic!("{text} is a tag"));
            assert_eq!((read.name, read.bytes), (name, bytes), "{text}");
            assert_eq!(read.meaning, Meaning::Unknown);
        }
        for text in [
            "<",
            "< b >",
            "<y and z>",
            "<3>",
            "<break",
            "<break time=",
            "<!-- no end",
            "<a b>",
            "<a =b>",
        ] {
            assert_eq!(tag(text), None, "{text}");
        }
    }
}
