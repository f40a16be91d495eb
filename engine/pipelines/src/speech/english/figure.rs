//! Fractions, ranges, powers, ordinals, versions, telephone numbers, and numbers by themselves.

use super::Accent;
use super::cursor::Cursor;
use super::number::{Number, cardinal, digit_by_digit, ordinal, plural};
use super::scan::{At, SPELL};

/// One sign that is a fraction, with its parts.
const FRACTIONS: [(char, u64, u64); 18] = [
    ('½', 1, 2),
    ('⅓', 1, 3),
    ('⅔', 2, 3),
    ('¼', 1, 4),
    ('¾', 3, 4),
    ('⅕', 1, 5),
    ('⅖', 2, 5),
    ('⅗', 3, 5),
    ('⅘', 4, 5),
    ('⅙', 1, 6),
    ('⅚', 5, 6),
    ('⅐', 1, 7),
    ('⅛', 1, 8),
    ('⅜', 3, 8),
    ('⅝', 5, 8),
    ('⅞', 7, 8),
    ('⅑', 1, 9),
    ('⅒', 1, 10),
];

/// Reads a fraction, of one sign or of two numbers with a slash.
fn parts(cursor: &mut Cursor<'_>) -> Option<(u64, u64)> {
    let mut ahead = *cursor;
    if let Some(row) = FRACTIONS.iter().find(|row| ahead.peek() == Some(row.0)) {
        ahead.rest = ahead.rest.get(row.0.len_utf8()..)?;
        *cursor = ahead;
        return Some((row.1, row.2));
    }
    let above = ahead.digits(1, 2)?;
    if !ahead.eat("/") {
        return None;
    }
    let below = ahead.digits(1, 3)?;
    let mut more = ahead;
    let another = more.eat("/") && more.digits(1, usize::MAX).is_some();
    if !ahead.at_word_end() || another {
        return None;
    }
    let (above, below): (u64, u64) = (above.parse().ok()?, below.parse().ok()?);
    if above == 0 || !(2..=100).contains(&below) || above >= below {
        return None;
    }
    *cursor = ahead;
    Some((above, below))
}

fn fraction_words(above: u64, below: u64, accent: Accent) -> String {
    let part = match below {
        2 => "half".to_owned(),
        4 => "quarter".to_owned(),
        _ => ordinal(below, accent),
    };
    match (above, below) {
        (1, _) => format!("one {part}"),
        (_, 2) => format!("{} halves", cardinal(above, accent)),
        _ => format!("{} {}", cardinal(above, accent), plural(&part)),
    }
}

/// "1/2", "3 1/4", "½", "2½ miles", "½ hour".
pub(super) fn fraction(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let mut whole = cursor;
    if let Some(digits) = whole.digits(1, 6) {
        let blank = whole.blanks();
        let sign = FRACTIONS.iter().any(|row| whole.peek() == Some(row.0));
        if (blank || sign)
            && let Some((above, below)) = parts(&mut whole)
        {
            let said = fraction_words(above, below, at.accent);
            let said = match said.strip_prefix("one ") {
                Some(part) => format!("a {part}"),
                None => said,
            };
            let number = cardinal(digits.parse().ok()?, at.accent);
            return Some((whole.taken(), format!("{number} and {said}")));
        }
    }
    let (above, below) = parts(&mut cursor)?;
    // Half of a measure has its article: "half an hour", "half a mile".
    const MEASURES: [(&str, &str); 13] = [
        ("hour", "an"),
        ("ounce", "an"),
        ("inch", "an"),
        ("mile", "a"),
        ("cup", "a"),
        ("day", "a"),
        ("pound", "a"),
        ("pint", "a"),
        ("dozen", "a"),
        ("million", "a"),
        ("minute", "a"),
        ("second", "a"),
        ("teaspoon", "a"),
    ];
    let mut ahead = cursor;
    let after_article = matches!(at.last, "a" | "an" | "the" | "A" | "The");
    if (above, below) == (1, 2)
        && ahead.blanks()
        && let Some((_, article)) = ahead.eat_word(&MEASURES, |row| row.0)
    {
        let said = if after_article {
            "half".to_owned()
        } else {
            format!("half {article}")
        };
        return Some((cursor.taken(), said));
    }
    Some((cursor.taken(), fraction_words(above, below, at.accent)))
}

/// "10^6", "10⁶", "5²".
pub(super) fn power(at: &At<'_>) -> Option<(usize, String)> {
    const RAISED: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹";
    let mut cursor = Cursor::new(at.rest);
    let base = Number::read(&mut cursor)?.say(at.accent);
    let (minus, digits) = if cursor.eat("^") {
        let minus = cursor.eat("-");
        (minus, cursor.digits(1, 4)?.to_owned())
    } else {
        let minus = cursor.eat("⁻");
        let raised = cursor.run(|next| RAISED.contains(next));
        let value = |sign| RAISED.chars().position(|raised| raised == sign);
        let digits = raised
            .chars()
            .filter_map(|sign| char::from_digit(u32::try_from(value(sign)?).ok()?, 10))
            .collect();
        (minus, digits)
    };
    let exponent: u64 = digits.parse().ok().filter(|n| *n < 10_000)?;
    let said = match (minus, exponent) {
        (false, 2) => format!("{base} squared"),
        (false, 3) => format!("{base} cubed"),
        (false, _) => format!("{base} to the {}", ordinal(exponent, at.accent)),
        (true, _) => format!("{base} to the minus {}", cardinal(exponent, at.accent)),
    };
    Some((cursor.taken(), said))
}

/// "1st", "22nd", "3rd", "100th".
pub(super) fn ordinal_number(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let number = Number::read(&mut cursor)?.value()?;
    let ending = cursor.letters();
    let known = ["st", "nd", "rd", "th", "ST", "ND", "RD", "TH"].contains(&ending);
    (known && cursor.at_word_end()).then(|| (cursor.taken(), ordinal(number, at.accent)))
}

/// "5–7", "pages 4-6", a score "3-2", "18–20".
pub(super) fn range(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let first = Number::read(&mut cursor)?;
    let blank = cursor.rest.starts_with([' ', '\u{a0}']);
    let dash = cursor
        .rest
        .trim_start_matches([' ', '\u{a0}'])
        .chars()
        .next()?;
    if !cursor.range_dash() || blank && dash == '-' {
        return None;
    }
    let second = Number::read(&mut cursor)?;
    let more = cursor.eat_any("-–/").is_some() && cursor.digits(1, usize::MAX).is_some();
    if !cursor.at_word_end() || more {
        return None;
    }
    let value = |number: &Number| number.whole.parse::<u64>().ok();
    let rises = value(&first) <= value(&second);
    let zero = second.whole == "0" && second.is_whole();
    let between = match (rises, zero) {
        (true, _) => " to",
        (false, true) => return Some((cursor.taken(), format!("{} nil", first.say(at.accent)))),
        (false, false) => " to",
    };
    let said = format!(
        "{}{between} {}",
        first.say(at.accent),
        second.say(at.accent)
    );
    Some((cursor.taken(), said))
}

/// "2.5.1", "v1.2": parts with "point" between; addresses of machines too.
pub(super) fn version(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let marked = cursor.eat_any("vV").is_some();
    let mut said = Vec::new();
    loop {
        let digits = cursor.digits(1, 6)?;
        said.push(
            Number {
                whole: digits.to_owned(),
                decimals: String::new(),
            }
            .say(at.accent),
        );
        let mut ahead = cursor;
        if !ahead.eat(".") || !ahead.peek().is_some_and(|next| next.is_ascii_digit()) {
            break;
        }
        cursor = ahead;
    }
    if !cursor.at_word_end() || said.len() < if marked { 1 } else { 3 } {
        return None;
    }
    let said = said.join(" point ");
    let version = if marked { "version " } else { "" };
    Some((cursor.taken(), format!("{version}{said}")))
}

/// "555-0199", "(212) 555-0199", "+44 20 7946 0958", "020 7946 0958": digit by digit, with a pause
/// after each group.
pub(super) fn phone(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let plus = cursor.eat("+");
    let mut groups: Vec<&str> = Vec::new();
    let mut signs = Vec::new();
    let bracket = cursor.eat("(");
    groups.push(cursor.digits(1, 5)?);
    if bracket && !cursor.eat(")") {
        return None;
    }
    loop {
        let mut ahead = cursor;
        let sign = ahead.eat_any("-. \u{a0}");
        if ahead.eat("(") {
            return None;
        }
        let after_bracket = bracket && groups.len() == 1;
        let Some(group) = ahead
            .digits(2, 5)
            .filter(|_| sign.is_some() || after_bracket)
        else {
            break;
        };
        groups.push(group);
        signs.push(sign.map_or(' ', |sign| if sign == '\u{a0}' { ' ' } else { sign }));
        cursor = ahead;
    }
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let total: usize = lengths.iter().sum();
    let dashes = signs.iter().all(|sign| *sign == '-');
    let zero_first = groups.first().is_some_and(|group| group.starts_with('0'));
    let telephone = match lengths.as_slice() {
        [3, 4] => dashes,
        [3, 3, 4] | [1, 3, 3, 4] => {
            bracket || plus || signs.iter().all(|s| *s != ' ') || total == 10
        }
        _ => (plus || zero_first && groups.len() > 1) && (8..=15).contains(&total),
    };
    if !telephone || !cursor.at_word_end() {
        return None;
    }
    let said: Vec<String> = groups
        .iter()
        .map(|group| digit_by_digit(group, "oh"))
        .collect();
    let plus = if plus { "plus " } else { "" };
    Some((cursor.taken(), format!("{plus}{}", said.join(", "))))
}

/// Numbers that are names: "Room 101", "Flight 249", "call 911", "24/7".
pub(super) fn name(at: &At<'_>) -> Option<(usize, String)> {
    const SAID: [(&str, &str); 4] = [
        ("24/7", "twenty four seven"),
        ("50/50", "fifty fifty"),
        ("9/11", "nine eleven"),
        ("7/7", "seven seven"),
    ];
    const CALLED: &str = " call calls called dial dialled dialed ring ";
    const NUMBERED: &str =
        " room flight route highway suite apartment boeing bus unit cell interstate ";
    let mut cursor = Cursor::new(at.rest);
    if let Some((_, said)) = cursor.eat_word(&SAID, |row| row.0)
        && !cursor.rest.starts_with('/')
    {
        return Some((cursor.taken(), (*said).to_owned()));
    }
    let digits = cursor.digits(3, 3)?;
    let last = at.last.to_lowercase();
    let listed = |list: &str| list.split_ascii_whitespace().any(|listed| listed == last);
    let mut joined = cursor;
    if joined.eat_any(",.:/-–").is_some() && joined.digits(1, usize::MAX).is_some() {
        return None;
    }
    if listed(CALLED) && cursor.at_word_end() {
        return Some((cursor.taken(), digit_by_digit(digits, "oh")));
    }
    let mut letter = cursor;
    let lettered = letter.eat_any("ABCDEFGH").filter(|_| letter.at_word_end());
    if !(listed(NUMBERED) && cursor.at_word_end()) && lettered.is_none() {
        return None;
    }
    let (first, rest) = digits.split_at(1);
    let first = digit_by_digit(first, "oh");
    let rest = match rest {
        "00" => "hundred".to_owned(),
        _ if rest.starts_with('0') => digit_by_digit(rest, "oh"),
        _ => cardinal(rest.parse().ok()?, at.accent),
    };
    let said = format!("{first} {rest}");
    Some(match lettered {
        Some(sign) => (letter.taken(), format!("{said} {SPELL}{sign}")),
        None => (cursor.taken(), said),
    })
}

/// Any other number, with letters behind it spelled: "4", "1,984", "3D", "747s".
pub(super) fn number(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let number = Number::read(&mut cursor)?;
    let mut said = number.say(at.accent);
    let mut behind = cursor;
    let letters = behind.letters();
    if letters == "s" {
        let seconds = !number.is_whole() || number.whole.len() < 3 && !number.whole.ends_with('0');
        if seconds {
            let unit = if number.is_one() { "second" } else { "seconds" };
            return Some((behind.taken(), format!("{said} {unit}")));
        }
        return Some((behind.taken(), plural(&said)));
    }
    let capitals = letters.chars().all(|letter| letter.is_ascii_uppercase());
    if !letters.is_empty() && behind.at_word_end() && (letters.len() == 1 || capitals) {
        said = format!("{said} {SPELL}{}", letters.to_uppercase());
        cursor = behind;
    }
    Some((cursor.taken(), said))
}

#[cfg(test)]
mod tests {
    use super::super::{Accent, scan::said};

    #[test]
    fn figures_are_said() {
        let cases = [
            ("1/2", "one half"),
            ("2/3 cup", "two thirds cup"),
            ("3 1/4", "three and a quarter"),
            ("2½ miles", "two and a half miles"),
            ("½ hour", "half an hour"),
            ("3/4", "three quarters"),
            ("10^6", "ten to the sixth"),
            ("10⁻³", "ten to the minus three"),
            ("5²", "five squared"),
            ("1st", "first"),
            ("the 22nd", "the twenty second"),
            ("5–7", "five to seven"),
            ("won 3-2", "won three to two"),
            ("won 3-0", "won three nil"),
            ("version 2.5.1", "version two point five point one"),
            ("v1.2", "version one point two"),
            ("Call 555-0199.", "Call five five five, oh one nine nine."),
            (
                "(212) 555-0199",
                "two one two, five five five, oh one nine nine",
            ),
            (
                "+44 20 7946 0958",
                "plus four four, two oh, seven nine four six, oh nine five eight",
            ),
            ("3D", "three D"),
            ("747s", "seven hundred forty sevens"),
            (
                "1,984 people",
                "one thousand nine hundred eighty four people",
            ),
            ("pi is 3.14.", "pi is three point one four."),
            ("Room 101", "Room one oh one"),
            ("call 911", "call nine one one"),
            ("221B Baker St.", "two twenty one B Baker Street."),
            ("open 24/7", "open twenty four seven"),
            ("007", "zero zero seven"),
            ("-40", "minus forty"),
            ("x = 3 + 4", "x equals three plus four"),
            (
                "1234567890123456789012",
                "one two three four five six seven eight nine zero one two three four five six seven eight nine zero one two",
            ),
        ];
        for (text, words) in cases {
            assert_eq!(said(text, Accent::Us), words, "{text}");
        }
    }
}
