//! Days, months, decades and years.

use super::Accent;
use super::cursor::Cursor;
use super::number::{cardinal, ordinal, plural, year};
use super::scan::{At, SPELL};

/// Written in full or cut short, and spoken.
const MONTHS: [(&str, &str, u64); 24] = [
    ("January", "January", 1),
    ("February", "February", 2),
    ("March", "March", 3),
    ("April", "April", 4),
    ("May", "May", 5),
    ("June", "June", 6),
    ("July", "July", 7),
    ("August", "August", 8),
    ("September", "September", 9),
    ("October", "October", 10),
    ("November", "November", 11),
    ("December", "December", 12),
    ("Jan", "January", 1),
    ("Feb", "February", 2),
    ("Mar", "March", 3),
    ("Apr", "April", 4),
    ("Jun", "June", 6),
    ("Jul", "July", 7),
    ("Aug", "August", 8),
    ("Sept", "September", 9),
    ("Sep", "September", 9),
    ("Oct", "October", 10),
    ("Nov", "November", 11),
    ("Dec", "December", 12),
];

/// Words before a number that make it a year.
const BEFORE_YEARS: [&str; 16] = [
    "in", "since", "by", "until", "till", "from", "of", "before", "after", "during", "around",
    "circa", "about", "year", "summer", "winter",
];

fn month(cursor: &mut Cursor<'_>) -> Option<(&'static str, u64)> {
    let mut ahead = *cursor;
    let (written, said, number) = ahead.eat_word(&MONTHS, |row| row.0)?;
    if written != said {
        ahead.eat(".");
    }
    *cursor = ahead;
    Some((said, *number))
}

fn month_name(number: u64) -> Option<&'static str> {
    MONTHS.iter().find(|row| row.2 == number).map(|row| row.1)
}

/// A day of a month, with or without the ending of an ordinal.
fn day(cursor: &mut Cursor<'_>) -> Option<u64> {
    let mut ahead = *cursor;
    let day: u64 = ahead.digits(1, 2)?.parse().ok()?;
    for ending in ["st", "nd", "rd", "th"] {
        if ahead.eat(ending) {
            break;
        }
    }
    if !(1..=31).contains(&day) || !ahead.at_word_end() || decimal_follows(ahead) {
        return None;
    }
    *cursor = ahead;
    Some(day)
}

/// Whether a digit follows after a sign that joins it to what was read.
fn decimal_follows(cursor: Cursor<'_>) -> bool {
    let mut ahead = cursor;
    ahead.eat_any(".,:/").is_some() && ahead.digits(1, usize::MAX).is_some()
}

/// A year after a date, as words.
fn year_after(cursor: &mut Cursor<'_>, accent: Accent) -> Option<String> {
    let mut ahead = *cursor;
    ahead.eat(",");
    if !ahead.blanks() {
        return None;
    }
    let digits = ahead.digits(4, 4)?;
    if !ahead.at_word_end() || decimal_follows(ahead) {
        return None;
    }
    *cursor = ahead;
    Some(year(digits.parse().ok()?, accent))
}

/// "March 12th, 1911", "Jan. 3", "12 March 1911", "March 1911", "2026-11-30", "3/4/2025".
/// Days of numbers only are month first in American and day first in British English, unless only
/// the other way round is a date; with the year first the month follows it.
pub(super) fn date(at: &At<'_>) -> Option<(usize, String)> {
    month_first(at)
        .or_else(|| day_first(at))
        .or_else(|| numbers_only(at))
}

fn month_first(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let (name, _) = month(&mut cursor)?;
    if !cursor.blanks() {
        return None;
    }
    let mut dated = cursor;
    if let Some(number) = day(&mut dated) {
        let the = if at.accent == Accent::Gb { "the " } else { "" };
        let mut said = format!("{name} {the}{}", ordinal(number, at.accent));
        let mut ranged = dated;
        if ranged.range_dash()
            && let Some(to) = day(&mut ranged)
        {
            said = format!("{said} to {the}{}", ordinal(to, at.accent));
            dated = ranged;
        }
        if let Some(year) = year_after(&mut dated, at.accent) {
            said = format!("{said}, {year}");
        }
        return Some((dated.taken(), said));
    }
    let digits = cursor.digits(4, 4)?;
    let readable = cursor.at_word_end() && !decimal_follows(cursor);
    let said = format!("{name} {}", year(digits.parse().ok()?, at.accent));
    readable.then_some((cursor.taken(), said))
}

fn day_first(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let first = day(&mut cursor)?;
    let mut until = None;
    let mut ranged = cursor;
    if ranged.range_dash()
        && let Some(to) = day(&mut ranged)
    {
        until = Some(to);
        cursor = ranged;
    }
    if !cursor.blanks() {
        return None;
    }
    if cursor.eat("of") && !cursor.blanks() {
        return None;
    }
    let (name, _) = month(&mut cursor)?;
    let the = if at.last.eq_ignore_ascii_case("the") {
        ""
    } else {
        "the "
    };
    let mut said = format!("{the}{}", ordinal(first, at.accent));
    if let Some(to) = until {
        said = format!("{said} to the {}", ordinal(to, at.accent));
    }
    said = format!("{said} of {name}");
    if let Some(year) = year_after(&mut cursor, at.accent) {
        said = format!("{said}, {year}");
    }
    Some((cursor.taken(), said))
}

fn numbers_only(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let first = cursor.digits(1, 4)?;
    let sign = cursor.eat_any("-/.")?;
    let second = cursor.digits(1, 2)?;
    if cursor.eat_any("-/.") != Some(sign) {
        return None;
    }
    let third = cursor.digits(1, 4)?;
    if !cursor.at_word_end() || decimal_follows(cursor) {
        return None;
    }
    let value = |digits: &str| digits.parse::<u64>().ok();
    let (years, month, day) = match (first.len(), third.len()) {
        (4, 1 | 2) => (first, value(second)?, value(third)?),
        (1 | 2, 4) | (1 | 2, 2) if third.len() == 4 || sign == '/' => {
            let (one, two) = (value(first)?, value(second)?);
            let month_first = sign != '.' && at.accent == Accent::Us;
            let swapped = if month_first { one > 12 } else { two > 12 };
            if month_first != swapped {
                (third, one, two)
            } else {
                (third, two, one)
            }
        }
        _ => return None,
    };
    if !(1..=31).contains(&day) {
        return None;
    }
    let name = month_name(month)?;
    let years = match years.len() {
        2 => format!("20{years}"),
        _ => years.to_owned(),
    };
    let year = year(value(&years)?, at.accent);
    let day = ordinal(day, at.accent);
    let said = match at.accent {
        Accent::Us => format!("{name} {day}, {year}"),
        Accent::Gb => format!("the {day} of {name}, {year}"),
    };
    Some((cursor.taken(), said))
}

/// "1920s", "the '90s", "1900s", "2010s".
pub(super) fn decade(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    cursor.eat("'");
    let digits = cursor.digits(2, 4)?;
    cursor.eat("'");
    if !cursor.eat("s") || !cursor.at_word_end() || digits.len() == 3 || !digits.ends_with('0') {
        return None;
    }
    let n: u64 = digits.parse().ok()?;
    let said = if digits.len() == 2 {
        cardinal(n, at.accent)
    } else {
        year(n, at.accent)
    };
    Some((cursor.taken(), plural(&said)))
}

/// Eras that follow a year.
const ERAS: [(&str, &str); 8] = [
    ("BCE", "BCE"),
    ("B.C.E.", "BCE"),
    ("BC", "BC"),
    ("B.C.", "BC"),
    ("CE", "CE"),
    ("C.E.", "CE"),
    ("AD", "AD"),
    ("A.D.", "AD"),
];

/// "in 1984", "44 BC", "AD 79", "1914-18", "the class of '84".
pub(super) fn bare_year(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    if let Some((_, era)) = cursor.eat_word(&[("AD", "AD"), ("A.D.", "AD")], |row| row.0)
        && cursor.blanks()
        && let Some(digits) = cursor.digits(1, 4)
        && cursor.at_word_end()
    {
        let year = year(digits.parse().ok()?, at.accent);
        return Some((cursor.taken(), format!("{SPELL}{era} {year}")));
    }
    let mut cursor = Cursor::new(at.rest);
    if cursor.eat("'") {
        let digits = cursor.digits(2, 2)?;
        let n: u64 = digits.parse().ok()?;
        let said = match n {
            0 => return None,
            1..10 => format!("oh {}", cardinal(n, at.accent)),
            _ => cardinal(n, at.accent),
        };
        return cursor.at_word_end().then_some((cursor.taken(), said));
    }
    let digits = cursor.digits(1, 4)?;
    let n: u64 = digits.parse().ok()?;
    let mut dated = cursor;
    dated.blanks();
    if let Some((_, era)) = dated.eat_word(&ERAS, |row| row.0) {
        return Some((
            dated.taken(),
            format!("{} {SPELL}{era}", year(n, at.accent)),
        ));
    }
    if !cursor.at_word_end() || decimal_follows(cursor) || !(1100..2100).contains(&n) {
        return None;
    }
    let said = year(n, at.accent);
    let mut ranged = cursor;
    if ranged.range_dash()
        && let Some(end) = ranged.digits(2, 4)
        && ranged.at_word_end()
        && end.len() != 3
        && !decimal_follows(ranged)
    {
        let to: u64 = end.parse().ok()?;
        let to = match end.len() {
            2 if to > n % 100 => to + n / 100 * 100,
            2 => return None,
            _ => to,
        };
        if to > n && to < 2100 {
            let to = match end.len() {
                2 if to % 100 >= 10 => cardinal(to % 100, at.accent),
                _ => year(to, at.accent),
            };
            return Some((ranged.taken(), format!("{said} to {to}")));
        }
    }
    if counts_something(cursor) && !BEFORE_YEARS.contains(&at.last.to_lowercase().as_str()) {
        return None;
    }
    Some((cursor.taken(), said))
}

/// Whether a plural follows, so that the number before it counts rather than dates.
fn counts_something(cursor: Cursor<'_>) -> bool {
    const NOT_COUNTED: [&str; 12] = [
        "was", "is", "as", "has", "his", "its", "this", "us", "thus", "does", "always", "perhaps",
    ];
    const COUNTED: [&str; 6] = ["people", "men", "women", "children", "feet", "sheep"];
    let mut ahead = cursor;
    if !ahead.blanks() {
        return false;
    }
    let word = ahead.letters();
    COUNTED.contains(&word)
        || word.len() > 2
            && word.ends_with('s')
            && word.starts_with(char::is_lowercase)
            && !word.ends_with("ss")
            && !NOT_COUNTED.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::super::{Accent, scan::said};

    #[test]
    fn dates_are_said() {
        let us = [
            ("March 12th, 1911", "March twelfth, nineteen eleven"),
            ("Jan. 3rd, 2026", "January third, twenty twenty six"),
            ("12 March 1911", "the twelfth of March, nineteen eleven"),
            ("the 12th of March", "the twelfth of March"),
            ("May 5–7", "May fifth to seventh"),
            ("March 1911", "March nineteen eleven"),
            ("2026-11-30", "November thirtieth, twenty twenty six"),
            ("3/4/2025", "March fourth, twenty twenty five"),
            ("25/4/2025", "April twenty fifth, twenty twenty five"),
            ("24.12.2024", "December twenty fourth, twenty twenty four"),
            ("You may 5", "You may five"),
        ];
        for (text, words) in us {
            assert_eq!(said(text, Accent::Us), words, "{text}");
        }
        let gb = [
            ("3/4/2025", "the third of April, twenty twenty five"),
            ("March 12", "March the twelfth"),
            ("the 3rd of May", "the third of May"),
        ];
        for (text, words) in gb {
            assert_eq!(said(text, Accent::Gb), words, "{text}");
        }
    }

    #[test]
    fn years_are_said() {
        let cases = [
            ("in 1911", "in nineteen eleven"),
            ("in 2007", "in two thousand seven"),
            ("2007 cars", "two thousand seven cars"),
            ("in 1900 ships", "in nineteen hundred ships"),
            ("the 1900s", "the nineteen hundreds"),
            ("the '90s", "the nineties"),
            ("the 1920s", "the nineteen twenties"),
            ("the 80s", "the eighties"),
            ("44 BC", "forty four B C"),
            ("AD 79", "A D seventy nine"),
            ("476 A.D.", "four hundred seventy six A D."),
            ("1914-18", "nineteen fourteen to eighteen"),
            ("1939–1945", "nineteen thirty nine to nineteen forty five"),
            ("class of '84", "class of eighty four"),
        ];
        for (text, words) in cases {
            assert_eq!(said(text, Accent::Us), words, "{text}");
        }
    }
}
