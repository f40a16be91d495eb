//! Roman numerals after names and in headings.

use super::number::{cardinal, ordinal};
use super::scan::At;

/// Words before a numeral that counts.
const COUNTED: &str = " chapter part volume book act scene section appendix article phase type class \
    stage level war figure table page season episode canto psalm sonata symphony no number vol bowl \
    apollo gemini rocky mark canon title grade category world series ";

/// Names of rulers and popes, after which a numeral is "the first", "the second".
const RULERS: &str = " Albert Alexander Alfonso Benedict Boniface Catherine Charles Christian Clement \
    Constantine Darius Edward Elizabeth Eric Ferdinand Francis Franz Frederick George Gregory Gustav Harald \
    Henry Innocent Ivan James John Joseph Juan Julius Leo Leopold Louis Ludwig Malcolm Mary Maximilian \
    Mehmed Mohammed Napoleon Nicholas Olaf Otto Paul Pedro Peter Philip Pius Ptolemy Ramesses Richard \
    Robert Rudolf Sigismund Sixtus Stephen Suleiman Thutmose Umberto Urban Victor Victoria Vittorio Wilhelm \
    William Xerxes Emmanuel ";

/// Words before a name that make it a ruler's.
const TITLES: &str =
    " king queen pope emperor empress tsar czar kaiser prince princess sultan shah pharaoh ";

fn listed(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split_ascii_whitespace().any(|listed| listed == word)
}

/// The value of a numeral written as it must be.
fn value(numeral: &str) -> Option<u64> {
    const PARTS: [(&str, u64); 13] = [
        ("M", 1000),
        ("CM", 900),
        ("D", 500),
        ("CD", 400),
        ("C", 100),
        ("XC", 90),
        ("L", 50),
        ("XL", 40),
        ("X", 10),
        ("IX", 9),
        ("V", 5),
        ("IV", 4),
        ("I", 1),
    ];
    let mut rest = numeral;
    let mut total = 0;
    for (letters, worth) in PARTS {
        let most = if letters.len() == 1 && !matches!(letters, "V" | "L" | "D") {
            3
        } else {
            1
        };
        for _ in 0..most {
            if let Some(left) = rest.strip_prefix(letters) {
                rest = left;
                total += worth;
            }
        }
    }
    (rest.is_empty() && total > 0).then_some(total)
}

/// "Henry VIII", "Chapter IV", "World War II", "Act I".
pub(super) fn roman(at: &At<'_>) -> Option<(usize, String)> {
    let end = at
        .rest
        .find(|next: char| !next.is_alphanumeric())
        .unwrap_or(at.rest.len());
    let numeral = at.rest.get(..end)?;
    let n = value(&numeral.to_uppercase())?;
    let capitals = numeral.chars().all(char::is_uppercase);
    let last = at.last.trim_end_matches('.');
    let counted = listed(COUNTED, &last.to_lowercase());
    let small = counted && numeral.chars().all(char::is_lowercase);
    if !(capitals || small) {
        return None;
    }
    if counted
        && n < 200
        && !(numeral == "i" || numeral == "I" && !last.starts_with(char::is_uppercase))
    {
        return Some((end, cardinal(n, at.accent)));
    }
    if !capitals || n >= 40 || !last.starts_with(char::is_uppercase) {
        return None;
    }
    let mut words = at.before.split_whitespace().rev();
    let title = words.nth(1).unwrap_or_default().to_lowercase();
    let ruler = listed(RULERS, last) || listed(TITLES, &title);
    match numeral {
        "I" => {
            let next = at.rest.get(end..)?.trim_start();
            let next = next.split(|c: char| !c.is_alphabetic()).next()?;
            const AFTER_PRONOUN: &str = " am have had will would can could do did think know want love \
                need told saw said was hope guess wish feel believe see never always just ";
            if !ruler || listed(AFTER_PRONOUN, next) && !listed(TITLES, &title) {
                return None;
            }
        }
        "V" | "X" if !ruler || last == "Malcolm" => return None,
        _ => {}
    }
    let shouted = last.chars().count() > 1 && last.chars().all(char::is_uppercase);
    if ruler {
        Some((end, format!("the {}", ordinal(n, at.accent))))
    } else if numeral.len() > 1 && !shouted {
        Some((end, cardinal(n, at.accent)))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Accent, scan::said};

    #[test]
    fn numerals_are_said() {
        let cases = [
            ("Henry VIII", "Henry the eighth"),
            ("Chapter IV", "Chapter four"),
            ("Act I", "Act one"),
            ("scene ii", "scene two"),
            ("World War II", "World War two"),
            ("Pope Zoticus XI", "Pope Zoticus the eleventh"),
            ("Charles I was tall", "Charles I was tall"),
            ("King Charles I was tall", "King Charles the first was tall"),
            ("Malcolm X", "Malcolm X"),
            ("I, Claudius", "I, Claudius"),
            ("Rocky IV", "Rocky four"),
            ("CHAPTER XIV", "chapter fourteen"),
            ("a MIX of", "a M I X of"),
            ("if I go", "if I go"),
        ];
        for (text, words) in cases {
            assert_eq!(said(text, Accent::Us), words, "{text}");
        }
    }
}
