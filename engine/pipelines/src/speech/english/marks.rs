//! What a writer says about one word: its sounds, `[read](/ɹˈɛd/)`, or the words to speak in its
//! place, `[1984](nineteen eighty-four)`.

use super::clean::floor;
use super::tag::{Meaning, tag};

/// Longest mark that is taken for one.
const MARK_BYTES_MAX: usize = 400;

/// Signs of the voices' alphabet that may stand in a mark's sounds.
pub(super) const ALPHABET: &str = ";:,.!?—…\"()“” \u{303}ʣʥʦʨᵝꭧAIOQSTWYᵊabcdefhijklmnopqrstuvwxyzɑɐɒæβɔɕçɖðʤəɚɛ\
    ɜɟɡɥɨɪʝɯɰŋɳɲɴøɸθœɹɾɻʁɽʂʃʈʧʊʋʌɣɤχʎʒʔˈˌːʰʲ↓→↗↘ᵻ";

/// What a mark asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Override<'a> {
    /// These sounds, in the voices' alphabet.
    Phonemes(String),
    /// These words.
    Words(&'a str),
}

/// A mark at the front of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mark<'a> {
    /// Length of the whole mark.
    pub bytes: usize,
    /// The text that is printed.
    pub printed: &'a str,
    pub wanted: Override<'a>,
}

/// Reads the mark at the front of `rest`, if there is one. A link to a page is none: its text is
/// spoken and its address is not.
pub(super) fn mark(rest: &str) -> Option<Mark<'_>> {
    let inner = rest.get(..floor(rest, MARK_BYTES_MAX))?.strip_prefix('[')?;
    let (printed, after) = inner.split_once(']')?;
    let (wanted, _) = after.strip_prefix('(')?.split_once(')')?;
    let bytes = printed.len() + wanted.len() + 4;
    if printed.trim().is_empty() || printed.contains(['[', '\n']) || wanted.contains('\n') {
        return None;
    }
    let sounds = wanted
        .strip_prefix('/')
        .and_then(|sounds| sounds.strip_suffix('/'));
    let wanted = match sounds {
        Some(sounds) => {
            let known: String = sounds
                .chars()
                .map(|sign| match sign {
                    'g' => 'ɡ',
                    '\'' => 'ˈ',
                    _ => sign,
                })
                .filter(|sign| ALPHABET.contains(*sign))
                .collect();
            let voiced = known.chars().any(char::is_alphabetic);
            if !voiced {
                return None;
            }
            Override::Phonemes(known.trim().to_owned())
        }
        None if wanted.trim().is_empty() || is_address(wanted) => Override::Words(printed),
        // Stress marks and number forms of misaki's own notation ask for nothing here.
        None if wanted.starts_with('#') || wanted.parse::<f32>().is_ok() => {
            Override::Words(printed)
        }
        None => Override::Words(wanted),
    };
    Some(Mark {
        bytes,
        printed,
        wanted,
    })
}

fn is_address(text: &str) -> bool {
    text.contains("://") || text.starts_with("mailto:") || text.starts_with(['/', '#', '.'])
}

/// The text as it is printed: marks replaced by what they stand on, and without the tags of rests.
/// For subtitles.
pub fn printed_text(text: &str) -> String {
    let mut printed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['[', '<']) {
        let (front, back) = rest.split_at(at);
        printed.push_str(front);
        let taken = match (mark(back), tag(back)) {
            (Some(mark), _) => {
                printed.push_str(mark.printed);
                mark.bytes
            }
            (None, Some(tag)) if tag.meaning != Meaning::Unknown => {
                let spaced = printed.is_empty() || printed.ends_with(' ');
                let after = back.get(tag.bytes..).unwrap_or_default();
                tag.bytes + usize::from(spaced && after.starts_with(' '))
            }
            (None, _) => {
                printed.push_str(back.get(..1).unwrap_or_default());
                1
            }
        };
        rest = back.get(taken..).unwrap_or_default();
    }
    printed.push_str(rest);
    printed
}

#[cfg(test)]
mod tests {
    use super::super::{Accent, scan::said};
    use super::*;

    #[test]
    fn marks_are_read() {
        let read = mark("[read](/ɹˈɛd/) it").expect("a mark");
        assert_eq!(read.wanted, Override::Phonemes("ɹˈɛd".into()));
        assert_eq!((read.bytes, read.printed), ("[read](/ɹˈɛd/)".len(), "read"));
        assert_eq!(
            mark("[a](/'gO/)").expect("a mark").wanted,
            Override::Phonemes("ˈɡO".into())
        );
        for none in [
            "[a]",
            "[a] (b)",
            "[](/a/)",
            "[a](/☃/)",
            "[a\nb](/a/)",
            "[[a]](/a/)",
        ] {
            assert_eq!(mark(none), None, "{none}");
        }
    }

    #[test]
    fn marks_are_spoken_and_not_printed() {
        let cases = [
            ("I [read](/ɹˈɛd/) it.", "I read it.", "I read it."),
            (
                "In [1984](nineteen eighty-four)!",
                "In nineteen eighty-four!",
                "In 1984!",
            ),
            (
                "the [page](https://example.org) here",
                "the page here",
                "the page here",
            ),
            ("a [b] c (d)", "a, b, c, d", "a [b] c (d)"),
            (
                "Wait <break time=\"1s\"/> here.",
                "Wait here.",
                "Wait here.",
            ),
            ("<break/> Wait.<break/>", "Wait.", "Wait."),
            (
                "if a <i>b</i> < c",
                "if a b less than c",
                "if a <i>b</i> < c",
            ),
        ];
        for (text, spoken, printed) in cases {
            assert_eq!(said(text, Accent::Us), spoken, "{text}");
            assert_eq!(printed_text(text), printed, "{text}");
        }
    }
}
