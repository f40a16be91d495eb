//! Numbers as words: how many, which in order, digit by digit, and as a year.

use super::Accent;
use super::cursor::Cursor;

const ONES: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = [
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];
const POWERS: [&str; 7] = [
    "",
    "thousand",
    "million",
    "billion",
    "trillion",
    "quadrillion",
    "quintillion",
];

/// Numbers with more digits than this are read digit by digit: nobody follows the words.
const CARDINAL_DIGITS_MAX: usize = 16;

fn word(table: &'static [&'static str], at: u64) -> &'static str {
    usize::try_from(at)
        .ok()
        .and_then(|at| table.get(at).copied())
        .unwrap_or_default()
}

fn below_hundred(n: u64) -> String {
    match n {
        0..20 => word(&ONES, n).to_owned(),
        _ if n.is_multiple_of(10) => word(&TENS, n / 10).to_owned(),
        _ => format!("{} {}", word(&TENS, n / 10), word(&ONES, n % 10)),
    }
}

fn below_thousand(n: u64, accent: Accent) -> String {
    let (hundreds, rest) = (n / 100, n % 100);
    let and = if accent == Accent::Gb { "and " } else { "" };
    match (hundreds, rest) {
        (0, _) => below_hundred(rest),
        (_, 0) => format!("{} hundred", word(&ONES, hundreds)),
        _ => format!(
            "{} hundred {and}{}",
            word(&ONES, hundreds),
            below_hundred(rest)
        ),
    }
}

/// How many: "one thousand two hundred (and) five".
pub(super) fn cardinal(n: u64, accent: Accent) -> String {
    if n == 0 {
        return "zero".to_owned();
    }
    let mut groups = Vec::new();
    let mut left = n;
    for power in POWERS {
        let group = left % 1000;
        if group > 0 {
            let mut said = below_thousand(group, accent);
            if !power.is_empty() {
                said = format!("{said} {power}");
            } else if group < 100 && n > group && accent == Accent::Gb {
                said = format!("and {said}");
            }
            groups.push(said);
        }
        left /= 1000;
    }
    groups.reverse();
    groups.join(" ")
}

/// Which in order: "twenty first".
pub(super) fn ordinal(n: u64, accent: Accent) -> String {
    let said = cardinal(n, accent);
    let (front, last) = match said.rsplit_once(' ') {
        Some((front, last)) => (format!("{front} "), last),
        None => (String::new(), said.as_str()),
    };
    let last = match last {
        "one" => "first".to_owned(),
        "two" => "second".to_owned(),
        "three" => "third".to_owned(),
        "five" => "fifth".to_owned(),
        "eight" => "eighth".to_owned(),
        "nine" => "ninth".to_owned(),
        "twelve" => "twelfth".to_owned(),
        _ => match last.strip_suffix('y') {
            Some(stem) => format!("{stem}ieth"),
            None => format!("{last}th"),
        },
    };
    format!("{front}{last}")
}

/// The plural of the last word of a number: "twenties", "thirds".
pub(super) fn plural(said: &str) -> String {
    match said.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if said.ends_with('x') => format!("{said}es"),
        None => format!("{said}s"),
    }
}

/// Digit by digit.
pub(super) fn digit_by_digit(digits: &str, zero: &str) -> String {
    let said: Vec<&str> = digits
        .chars()
        .filter_map(|digit| digit.to_digit(10))
        .map(|digit| match digit {
            0 => zero,
            _ => word(&ONES, u64::from(digit)),
        })
        .collect();
    said.join(" ")
}

/// As a year: "nineteen eleven", "two thousand seven", "twenty twenty six".
pub(super) fn year(n: u64, accent: Accent) -> String {
    let (century, rest) = (n / 100, n % 100);
    if !(10..100).contains(&century) || century.is_multiple_of(10) && rest < 10 {
        return cardinal(n, accent);
    }
    match rest {
        0 => format!("{} hundred", below_hundred(century)),
        1..10 => format!("{} oh {}", below_hundred(century), word(&ONES, rest)),
        _ => format!("{} {}", below_hundred(century), below_hundred(rest)),
    }
}

/// A number as it is written, without sign.
#[derive(Clone)]
pub(super) struct Number {
    /// Digits before the point, groups joined; may be empty.
    pub whole: String,
    /// Digits after the point.
    pub decimals: String,
}

impl Number {
    /// Reads digits with `,` or blanks between groups of three, and decimals after a point.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Option<Self> {
        let mut ahead = *cursor;
        let mut whole = ahead.digits(0, usize::MAX)?.to_owned();
        if (1..=3).contains(&whole.len()) {
            Self::groups(&mut ahead, &mut whole);
        }
        let mut decimals = String::new();
        let mut point = ahead;
        if point.eat(".")
            && let Some(digits) = point.digits(1, usize::MAX)
        {
            let mut beyond = point;
            let more = beyond.eat(".") && beyond.digits(1, usize::MAX).is_some();
            if !more {
                digits.clone_into(&mut decimals);
                ahead = point;
            }
        }
        if whole.is_empty() && decimals.is_empty() {
            return None;
        }
        *cursor = ahead;
        Some(Self { whole, decimals })
    }

    /// Reads the groups of three after the first one.
    fn groups(cursor: &mut Cursor<'_>, whole: &mut String) {
        for (separator, least) in [(",", 1), ("\u{a0}", 1), (" ", 2), ("'", 2)] {
            let mut ahead = *cursor;
            let mut groups = Vec::new();
            loop {
                let mut next = ahead;
                if !next.eat(separator) {
                    break;
                }
                let Some(group) = next.digits(3, 3) else {
                    break;
                };
                groups.push(group);
                ahead = next;
            }
            if groups.len() >= least {
                whole.extend(groups);
                *cursor = ahead;
                return;
            }
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.decimals.is_empty()
    }

    /// The value where the number is whole and of a readable size.
    pub(super) fn value(&self) -> Option<u64> {
        let readable = self.is_whole() && self.whole.len() <= CARDINAL_DIGITS_MAX;
        readable.then(|| self.whole.parse().ok()).flatten()
    }

    pub(super) fn is_one(&self) -> bool {
        self.value() == Some(1)
    }

    /// The words: "three point one four", "one thousand".
    pub(super) fn say(&self, accent: Accent) -> String {
        let leading_zero = self.whole.len() > 1 && self.whole.starts_with('0');
        let whole = match self.whole.parse() {
            _ if self.whole.is_empty() => "zero".to_owned(),
            Ok(n) if self.whole.len() <= CARDINAL_DIGITS_MAX && !leading_zero => {
                cardinal(n, accent)
            }
            _ => digit_by_digit(&self.whole, "zero"),
        };
        if self.decimals.is_empty() {
            return whole;
        }
        let decimals = digit_by_digit(&self.decimals, "zero");
        if self.whole.is_empty() {
            return format!("point {decimals}");
        }
        format!("{whole} point {decimals}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_words() {
        let us = [
            (0, "zero"),
            (15, "fifteen"),
            (40, "forty"),
            (99, "ninety nine"),
            (105, "one hundred five"),
            (1_000, "one thousand"),
            (1_984, "one thousand nine hundred eighty four"),
            (1_000_001, "one million one"),
            (2_000_000_000, "two billion"),
            (1_000_000_000_000_000, "one quadrillion"),
        ];
        for (n, said) in us {
            assert_eq!(cardinal(n, Accent::Us), said);
        }
        let gb = [
            (105, "one hundred and five"),
            (1_005, "one thousand and five"),
            (12_345, "twelve thousand three hundred and forty five"),
            (1_000_100, "one million one hundred"),
        ];
        for (n, said) in gb {
            assert_eq!(cardinal(n, Accent::Gb), said);
        }
        assert!(cardinal(u64::MAX, Accent::Us).starts_with("eighteen quintillion"));
    }

    #[test]
    fn ordinals_and_years_are_words() {
        let ordinals = [
            (1, "first"),
            (2, "second"),
            (3, "third"),
            (5, "fifth"),
            (12, "twelfth"),
            (20, "twentieth"),
            (21, "twenty first"),
            (100, "one hundredth"),
            (1_000, "one thousandth"),
        ];
        for (n, said) in ordinals {
            assert_eq!(ordinal(n, Accent::Us), said);
        }
        let years = [
            (1066, "ten sixty six"),
            (1900, "nineteen hundred"),
            (1905, "nineteen oh five"),
            (1911, "nineteen eleven"),
            (2000, "two thousand"),
            (2007, "two thousand seven"),
            (2026, "twenty twenty six"),
            (44, "forty four"),
            (476, "four hundred seventy six"),
        ];
        for (n, said) in years {
            assert_eq!(year(n, Accent::Us), said);
        }
        assert_eq!(year(2007, Accent::Gb), "two thousand and seven");
    }

    #[test]
    fn written_numbers_are_read_to_their_end() {
        let cases = [
            ("1,984 people", "one thousand nine hundred eighty four", 5),
            ("3.14.", "three point one four", 4),
            (".5", "point five", 2),
            ("1 000 000!", "one million", 9),
            ("12,34", "twelve", 2),
            ("1.2.3", "one", 1),
            ("007", "zero zero seven", 3),
            ("10, 200", "ten", 2),
            ("0.05", "zero point zero five", 4),
        ];
        for (text, said, bytes) in cases {
            let mut cursor = Cursor::new(text);
            let number = Number::read(&mut cursor).expect(text);
            assert_eq!(number.say(Accent::Us), said, "{text}");
            assert_eq!(cursor.taken(), bytes, "{text}");
        }
        assert!(Number::read(&mut Cursor::new("x")).is_none());
    }
}
