//! Words cut short, and initials.

use super::Accent;
use super::scan::{At, SPELL};

/// When the point of a short word also ends the sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Never: a name or a number follows.
    Never,
    /// When a word follows with which sentences begin.
    Starter,
    /// When any word in capitals follows.
    Capital,
}

/// Words with which sentences begin more often than names.
pub(super) const STARTERS: &str = " The A An He She It They We I You This That These Those There Then When \
    But And So In On At As If For From With After Before His Her Its Their Our My Your What Who Why How \
    Where Not No Yes Now Here One Some All Every Each Even Still Only Once While Until By To Of ";

/// What must follow a short word for it to be one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// A digit.
    Digit,
    /// The point after it.
    Point,
    /// The point, and a name.
    Name,
}

use Needs::{Digit, Name, Nothing, Point};

/// Written without its point, spoken, what must follow, whether it can end a sentence.
const SHORT: [(&str, &str, Needs, End); 96] = [
    ("WWI", "World War One", Nothing, End::Starter),
    ("WWII", "World War Two", Nothing, End::Starter),
    ("tsp", "teaspoons", Nothing, End::Starter),
    ("tbsp", "tablespoons", Nothing, End::Starter),
    ("Mr", "Mister", Nothing, End::Never),
    ("Mrs", "Missus", Nothing, End::Never),
    ("Ms", "Miz", Nothing, End::Never),
    ("Messrs", "Messers", Nothing, End::Never),
    ("Prof", "Professor", Point, End::Never),
    ("Rev", "Reverend", Point, End::Never),
    ("Hon", "Honorable", Name, End::Never),
    ("Fr", "Father", Name, End::Never),
    ("Sr", "Senior", Point, End::Starter),
    ("Jr", "Junior", Nothing, End::Starter),
    ("Capt", "Captain", Point, End::Never),
    ("Cpt", "Captain", Point, End::Never),
    ("Cmdr", "Commander", Point, End::Never),
    ("Col", "Colonel", Name, End::Never),
    ("Gen", "General", Name, End::Never),
    ("Lt", "Lieutenant", Point, End::Never),
    ("Maj", "Major", Name, End::Never),
    ("Sgt", "Sergeant", Point, End::Never),
    ("Pvt", "Private", Point, End::Never),
    ("Adm", "Admiral", Name, End::Never),
    ("Gov", "Governor", Name, End::Never),
    ("Sen", "Senator", Name, End::Never),
    ("Rep", "Representative", Name, End::Never),
    ("Pres", "President", Name, End::Never),
    ("Supt", "Superintendent", Point, End::Never),
    ("Mt", "Mount", Nothing, End::Never),
    ("Ft", "Fort", Name, End::Never),
    ("Ave", "Avenue", Point, End::Starter),
    ("Blvd", "Boulevard", Nothing, End::Starter),
    ("Rd", "Road", Nothing, End::Starter),
    ("Ln", "Lane", Point, End::Starter),
    ("Hwy", "Highway", Nothing, End::Starter),
    ("Pkwy", "Parkway", Nothing, End::Starter),
    ("Sq", "Square", Point, End::Starter),
    ("Apt", "Apartment", Point, End::Never),
    ("Inc", "Incorporated", Nothing, End::Starter),
    ("Ltd", "Limited", Nothing, End::Starter),
    ("Corp", "Corporation", Nothing, End::Starter),
    ("Co", "Company", Point, End::Starter),
    ("Bros", "Brothers", Nothing, End::Starter),
    ("Dept", "Department", Nothing, End::Starter),
    ("dept", "department", Nothing, End::Starter),
    ("Univ", "University", Point, End::Starter),
    ("Assn", "Association", Nothing, End::Starter),
    ("etc", "et cetera", Nothing, End::Capital),
    ("vs", "versus", Nothing, End::Never),
    ("v", "versus", Name, End::Never),
    ("approx", "approximately", Nothing, End::Never),
    ("est", "established", Digit, End::Never),
    ("ca", "circa", Digit, End::Never),
    ("c", "circa", Digit, End::Never),
    ("cf", "compare", Point, End::Never),
    ("viz", "namely", Point, End::Never),
    ("al", "al", Point, End::Starter),
    ("No", "number", Digit, End::Never),
    ("no", "number", Digit, End::Never),
    ("Nos", "numbers", Digit, End::Never),
    ("nos", "numbers", Digit, End::Never),
    ("Nr", "number", Digit, End::Never),
    ("p", "page", Digit, End::Never),
    ("pp", "pages", Digit, End::Never),
    ("pg", "page", Digit, End::Never),
    ("vol", "volume", Digit, End::Never),
    ("Vol", "Volume", Digit, End::Never),
    ("vols", "volumes", Nothing, End::Starter),
    ("ch", "chapter", Digit, End::Never),
    ("Ch", "Chapter", Digit, End::Never),
    ("fig", "figure", Digit, End::Never),
    ("Fig", "Figure", Digit, End::Never),
    ("figs", "figures", Digit, End::Never),
    ("sec", "section", Digit, End::Never),
    ("Sec", "Section", Digit, End::Never),
    ("eq", "equation", Digit, End::Never),
    ("ed", "edition", Point, End::Starter),
    ("ext", "extension", Digit, End::Never),
    ("Ext", "exterior", Point, End::Never),
    ("EXT", "exterior", Point, End::Never),
    ("INT", "interior", Point, End::Never),
    ("tel", "telephone", Point, End::Never),
    ("Tel", "Telephone", Point, End::Never),
    ("min", "minimum", Point, End::Starter),
    ("max", "maximum", Point, End::Starter),
    ("misc", "miscellaneous", Nothing, End::Starter),
    ("govt", "government", Nothing, End::Starter),
    ("Mon", "Monday", Point, End::Starter),
    ("Tue", "Tuesday", Point, End::Starter),
    ("Tues", "Tuesday", Point, End::Starter),
    ("Wed", "Wednesday", Point, End::Starter),
    ("Thu", "Thursday", Point, End::Starter),
    ("Thurs", "Thursday", Point, End::Starter),
    ("Fri", "Friday", Point, End::Starter),
    ("Sat", "Saturday", Point, End::Starter),
];

/// Written with points inside.
const POINTED: [(&str, &str, End); 16] = [
    ("e.g.", "for example", End::Never),
    ("E.g.", "For example", End::Never),
    ("e.g", "for example", End::Never),
    ("i.e.", "that is", End::Never),
    ("I.e.", "That is", End::Never),
    ("i.e", "that is", End::Never),
    ("a.m.", "\u{1}AM", End::Capital),
    ("p.m.", "\u{1}PM", End::Capital),
    ("a.k.a.", "\u{1}AKA", End::Never),
    ("Ph.D.", "\u{1}PHD", End::Starter),
    ("Ph.D", "\u{1}PHD", End::Starter),
    ("M.Sc.", "\u{1}MSC", End::Starter),
    ("B.Sc.", "\u{1}BSC", End::Starter),
    ("n.b.", "note", End::Never),
    ("N.B.", "Note", End::Never),
    ("w/o", "without", End::Never),
];

fn first_word(text: &str) -> &str {
    let text = text.trim_start_matches([' ', '\u{a0}']);
    text.split(|next: char| !(next.is_alphanumeric() || next == '\''))
        .next()
        .unwrap_or_default()
}

fn starts_upper(word: &str) -> bool {
    word.starts_with(char::is_uppercase)
}

/// A short word, its words, and when its point ends the sentence.
pub(super) fn abbreviation(at: &At<'_>) -> Option<(usize, String, End)> {
    for (written, said, end) in POINTED {
        if let Some(rest) = at.rest.strip_prefix(written)
            && !rest.starts_with(char::is_alphanumeric)
        {
            return Some((written.len(), said.to_owned(), end));
        }
    }
    if at.rest.starts_with("w/ ") {
        return Some((2, "with".to_owned(), End::Never));
    }
    let end = at
        .rest
        .find(|next: char| !next.is_alphanumeric())
        .unwrap_or(at.rest.len());
    let (word, rest) = at.rest.split_at(end);
    let pointed = rest.starts_with('.');
    let after = rest.strip_prefix('.').unwrap_or(rest);
    let bytes = end + usize::from(pointed);
    if let Some(found) = by_place(at, word, pointed, after, bytes) {
        return Some(found);
    }
    let row = SHORT.iter().find(|row| row.0 == word)?;
    let digit = after
        .trim_start_matches([' ', '\u{a0}'])
        .starts_with(|next: char| next.is_ascii_digit());
    let fits = match row.2 {
        Nothing => pointed || !"No no".contains(word),
        Digit => digit && (pointed || matches!(word, "pp" | "Nr" | "Fig")),
        Point => pointed,
        Name => pointed && starts_upper(first_word(after)),
    };
    // "sat.", "co." and so on are also ends of sentences with whole words.
    let whole_word = matches!(word, "ed" | "al" | "min" | "max" | "Sat" | "Mon" | "Wed");
    let ends = after.trim().is_empty() || starts_upper(first_word(after));
    if !fits || whole_word && ends && row.2 == Point && row.3 == End::Starter && word != "al" {
        return None;
    }
    Some((bytes, row.1.to_owned(), row.3))
}

/// Short words that are one thing before a name and another after one.
fn by_place(
    at: &At<'_>,
    word: &str,
    pointed: bool,
    after: &str,
    bytes: usize,
) -> Option<(usize, String, End)> {
    let (before_name, behind_name) = match word {
        "Dr" => ("Doctor", "Drive"),
        "St" => ("Saint", "Street"),
        _ => return None,
    };
    let next = first_word(after);
    let name_follows = starts_upper(next) && after.starts_with([' ', '\u{a0}']);
    let name_before = starts_upper(at.last) && at.before.ends_with([' ', '\u{a0}']);
    let numbered = at
        .before
        .split_whitespace()
        .rev()
        .take(3)
        .any(|word| word.starts_with(|next: char| next.is_ascii_digit()));
    let starter = STARTERS.split_ascii_whitespace().any(|word| word == next);
    let behind = name_before && (!name_follows || numbered || starter);
    if behind {
        return Some((bytes, behind_name.to_owned(), End::Starter));
    }
    (pointed || name_follows).then(|| (bytes, before_name.to_owned(), End::Never))
}

/// "J. R. R. Tolkien", "U.S.", "U.K.": letters with points.
pub(super) fn initials(at: &At<'_>) -> Option<(usize, String, End)> {
    let mut letters = String::new();
    let mut bytes = 0;
    let mut rest = at.rest;
    while let Some(letter) = rest.chars().next().filter(|next| next.is_alphabetic())
        && let Some(after) = rest
            .get(letter.len_utf8()..)
            .and_then(|rest| rest.strip_prefix('.'))
    {
        letters.extend(letter.to_uppercase());
        bytes += letter.len_utf8() + 1;
        rest = after;
    }
    let dotted = letters.chars().count();
    // What is joined without a point ends a word otherwise: "U.S.A", "end.It".
    let joined = rest.chars().next().filter(|next| next.is_alphanumeric());
    match (dotted, joined) {
        (0, _) => None,
        (1, Some(_)) => None,
        (1, None) => {
            let first = at.rest.chars().next()?;
            let next = first_word(rest);
            let starter = STARTERS.split_ascii_whitespace().any(|word| word == next);
            let name_before = at.last.is_empty() || starts_upper(at.last);
            let spaced = rest.starts_with([' ', '\u{a0}']);
            let initial = first.is_uppercase()
                && spaced
                && starts_upper(next)
                && name_before
                && (!starter
                    || next.len() == 1 && rest.trim_start().starts_with(&format!("{next}.")));
            initial.then(|| (bytes, format!("{SPELL}{letters}"), End::Never))
        }
        (_, joined) => {
            if let Some(letter) = joined {
                let after = rest.get(letter.len_utf8()..)?;
                if after.starts_with(char::is_alphanumeric) {
                    return None;
                }
                letters.extend(letter.to_uppercase());
                bytes += letter.len_utf8();
            }
            Some((bytes, format!("{SPELL}{letters}"), End::Starter))
        }
    }
}

/// The words of a short form differ between the accents only here.
pub(super) fn accented(said: &str, accent: Accent) -> String {
    match (said, accent) {
        ("Honorable", Accent::Gb) => "Honourable".to_owned(),
        _ => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Accent, scan::said};

    #[test]
    fn short_words_are_said_whole() {
        let cases = [
            (
                "Dr. Smith lives on Elm Dr.",
                "Doctor Smith lives on Elm Drive.",
            ),
            ("St. James St. is long", "Saint James Street is long"),
            ("12 Main St. Springfield", "twelve Main Street Springfield"),
            ("Mr. and Mrs. Bell", "Mister and Missus Bell"),
            ("No. 7", "number seven"),
            ("No. He left.", "No. He left."),
            ("pp. 4–6", "pages four to six"),
            ("cats, dogs, etc.", "cats, dogs, et cetera."),
            ("e.g. this", "for example this"),
            ("Batman vs. Superman", "Batman versus Superman"),
            ("approx. 5", "approximately five"),
            ("J. R. R. Tolkien", "J R R Tolkien"),
            ("the U.S. Army", "the U S Army"),
            ("№ 3 & Co.", "number three and Company."),
            ("Plan B. Then we left.", "Plan B. Then we left."),
            ("He sat. Then", "He sat. Then"),
            ("Tolkien, J. R. R.", "Tolkien, J R R."),
            ("INT. KITCHEN", "interior kitchen"),
        ];
        for (text, words) in cases {
            assert_eq!(said(text, Accent::Us), words, "{text}");
        }
    }
}
