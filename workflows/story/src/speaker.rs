//! Who speaks, by the start of a line: `MARA (V.O.): ...`.

use std::collections::HashSet;

use crate::check::EXTENSIONS_MAX;
use crate::escape::{find_plain, unescape};

/// Longest start of a line that is looked at for a speaker.
const SPEAKER_BYTES_MAX: usize = 2000;

/// The speaker before the colon of a line.
pub(crate) struct Spoken {
    pub(crate) name: String,
    pub(crate) extensions: Vec<String>,
    /// Byte offset of what is said.
    pub(crate) text: usize,
}

/// Who speaks, if the line begins with a speaker: a name after `@`, a name of the cast, or a name
/// in capitals, then marks in brackets, then a colon.
pub(crate) fn speaker(words: &str, names: &HashSet<String>) -> Option<Spoken> {
    let colon = find_plain(words, ':').filter(|colon| *colon <= SPEAKER_BYTES_MAX)?;
    let mut left = words[..colon].trim_end();
    let mut extensions = Vec::new();
    while extensions.len() < EXTENSIONS_MAX
        && let Some(open) = last_bracket(left)
    {
        extensions.push(unescape(left[open + 1..left.len() - 1].trim()));
        left = left[..open].trim_end();
    }
    extensions.reverse();
    let (forced, name) = match left.strip_prefix('@') {
        Some(name) => (true, unescape(name.trim_start())),
        None => (false, unescape(left)),
    };
    let capitals = name.chars().any(char::is_uppercase) && !name.chars().any(char::is_lowercase);
    let known = forced || capitals || names.contains(&name);
    let short = name.chars().take(65).count() <= 64;
    (known && short && !name.is_empty()).then_some(Spoken {
        name,
        extensions,
        text: colon + 1,
    })
}

/// Where the bracket opens with which `text` ends, when it ends with one.
fn last_bracket(text: &str) -> Option<usize> {
    let mut open = None;
    let mut close = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if !escaped {
            match character {
                '(' => (open, close) = (Some(at), None),
                ')' => close = Some(at),
                _ => {}
            }
        }
        escaped = !escaped && character == '\\';
    }
    match (open, close) {
        (Some(open), Some(close)) if close + 1 == text.len() && open < close => Some(open),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Option<(String, Vec<String>)> {
        let names = ["tom".to_owned()].into();
        speaker(words, &names).map(|spoken| (spoken.name, spoken.extensions))
    }

    #[test]
    fn marks_are_kept_and_are_no_part_of_the_name() {
        let both = read("JACK (O.S.) (CONT'D): Wait.").unwrap();
        assert_eq!(
            both,
            (
                "JACK".to_owned(),
                vec!["O.S.".to_owned(), "CONT'D".to_owned()]
            )
        );
        let phone = read("MOM (ON PHONE): Hello?").unwrap();
        assert_eq!(phone.0, "MOM");
    }

    #[test]
    fn names_in_every_script_are_found() {
        for name in ["THE NURSE #2", "R2D2", "SPECIALIST O'HARA", "ÉLODIE", "tom"] {
            assert_eq!(read(&format!("{name}: Hello.")).unwrap().0, name);
        }
        for name in ["McCLANE", "മീര"] {
            assert_eq!(read(&format!("@{name}: Hello.")).unwrap().0, name);
            assert_eq!(read(&format!("{name}: Hello.")), None);
        }
        // No letter, no name; and a colon inside a sentence makes no speaker.
        for words in ["23: a number", "The year: it was cold.", "Hello.", "A\\: b"] {
            assert_eq!(read(words), None, "{words}");
        }
    }
}
