//! Sums of money.

use super::Accent;
use super::cursor::Cursor;
use super::number::Number;
use super::scan::At;

/// A currency: how it is written, one and many of it, one and many of its hundredth part.
struct Currency {
    written: &'static str,
    one: &'static str,
    many: &'static str,
    cent: &'static str,
    cents: &'static str,
}

const fn currency(
    written: &'static str,
    one: &'static str,
    many: &'static str,
    cent: &'static str,
    cents: &'static str,
) -> Currency {
    Currency {
        written,
        one,
        many,
        cent,
        cents,
    }
}

/// Longer signs stand before those that begin them.
const CURRENCIES: [Currency; 30] = [
    currency("US$", "U S dollar", "U S dollars", "cent", "cents"),
    currency(
        "CA$",
        "Canadian dollar",
        "Canadian dollars",
        "cent",
        "cents",
    ),
    currency(
        "NZ$",
        "New Zealand dollar",
        "New Zealand dollars",
        "cent",
        "cents",
    ),
    currency(
        "HK$",
        "Hong Kong dollar",
        "Hong Kong dollars",
        "cent",
        "cents",
    ),
    currency("C$", "Canadian dollar", "Canadian dollars", "cent", "cents"),
    currency(
        "A$",
        "Australian dollar",
        "Australian dollars",
        "cent",
        "cents",
    ),
    currency("R$", "real", "reais", "centavo", "centavos"),
    currency("$", "dollar", "dollars", "cent", "cents"),
    currency("£", "pound", "pounds", "penny", "pence"),
    currency("€", "euro", "euros", "cent", "cents"),
    currency("¥", "yen", "yen", "sen", "sen"),
    currency("₹", "rupee", "rupees", "paisa", "paise"),
    currency("Rs.", "rupee", "rupees", "paisa", "paise"),
    currency("Rs", "rupee", "rupees", "paisa", "paise"),
    currency("₩", "won", "won", "jeon", "jeon"),
    currency("₽", "ruble", "rubles", "kopeck", "kopecks"),
    currency("₺", "lira", "lira", "kurus", "kurus"),
    currency("₿", "bitcoin", "bitcoins", "bitcent", "bitcents"),
    currency("USD", "U S dollar", "U S dollars", "cent", "cents"),
    currency("EUR", "euro", "euros", "cent", "cents"),
    currency("GBP", "pound", "pounds", "penny", "pence"),
    currency("JPY", "yen", "yen", "sen", "sen"),
    currency("INR", "rupee", "rupees", "paisa", "paise"),
    currency("CHF", "Swiss franc", "Swiss francs", "centime", "centimes"),
    currency(
        "AUD",
        "Australian dollar",
        "Australian dollars",
        "cent",
        "cents",
    ),
    currency(
        "CAD",
        "Canadian dollar",
        "Canadian dollars",
        "cent",
        "cents",
    ),
    currency("CNY", "yuan", "yuan", "fen", "fen"),
    currency("SEK", "Swedish krona", "Swedish kronor", "ore", "ore"),
    currency("NOK", "Norwegian krone", "Norwegian kroner", "ore", "ore"),
    currency("DKK", "Danish krone", "Danish kroner", "ore", "ore"),
];

/// Letters and words that multiply a sum.
const MAGNITUDES: [(&str, &str); 18] = [
    ("thousand", "thousand"),
    ("million", "million"),
    ("billion", "billion"),
    ("trillion", "trillion"),
    ("hundred", "hundred"),
    ("mln", "million"),
    ("bln", "billion"),
    ("mn", "million"),
    ("bn", "billion"),
    ("tn", "trillion"),
    ("k", "thousand"),
    ("K", "thousand"),
    ("m", "million"),
    ("M", "million"),
    ("b", "billion"),
    ("B", "billion"),
    ("t", "trillion"),
    ("T", "trillion"),
];

/// The word that multiplies, if one follows; letters only right behind the number.
fn magnitude(cursor: &mut Cursor<'_>) -> Option<&'static str> {
    let mut ahead = *cursor;
    let apart = ahead.blanks();
    let (written, said) = ahead.eat_word(&MAGNITUDES, |row| row.0)?;
    if apart && written.len() < 3 && *written != "bn" {
        return None;
    }
    *cursor = ahead;
    Some(said)
}

fn sum(number: &Number, magnitude: Option<&str>, currency: &Currency, accent: Accent) -> String {
    if let Some(magnitude) = magnitude {
        return format!("{} {magnitude} {}", number.say(accent), currency.many);
    }
    let name = |one: bool| if one { currency.one } else { currency.many };
    if number.decimals.len() != 2 {
        return format!("{} {}", number.say(accent), name(number.is_one()));
    }
    let whole = Number {
        decimals: String::new(),
        ..number.clone()
    };
    let cents = Number {
        whole: number.decimals.trim_start_matches('0').to_owned(),
        decimals: String::new(),
    };
    let named_cents = || {
        let one = cents.is_one();
        let unit = if one { currency.cent } else { currency.cents };
        format!("{} {unit}", cents.say(accent))
    };
    let none = whole.whole.trim_start_matches('0').is_empty();
    match (none, cents.whole.is_empty()) {
        (true, false) => named_cents(),
        (_, true) => format!("{} {}", whole.say(accent), name(whole.is_one())),
        (false, false) => format!(
            "{} {} and {}",
            whole.say(accent),
            name(whole.is_one()),
            named_cents()
        ),
    }
}

/// "$3.50", "£1.2m", "€5bn", "Rs 200", "$5–10", "$100 million".
pub(super) fn money(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let sign = CURRENCIES.iter().find(|row| cursor.eat(row.written))?;
    let code = sign.written.chars().all(char::is_alphabetic);
    if cursor.blanks() && !code && sign.written.len() > 3 {
        return None;
    }
    let number = Number::read(&mut cursor)?;
    let many = magnitude(&mut cursor);
    let mut said = sum(&number, many, sign, at.accent);
    let mut ranged = cursor;
    if ranged.range_dash() {
        ranged.eat(sign.written);
        if let Some(to) = Number::read(&mut ranged) {
            let many_to = magnitude(&mut ranged);
            if ranged.at_word_end() {
                let first = match many {
                    Some(many) if Some(many) != many_to => {
                        format!("{} {many}", number.say(at.accent))
                    }
                    _ => number.say(at.accent),
                };
                said = format!("{first} to {}", sum(&to, many_to, sign, at.accent));
                cursor = ranged;
            }
        }
    }
    if !cursor.at_word_end() {
        return None;
    }
    said += &per(&mut cursor);
    // Before a noun the unit is one: "a five dollar bill".
    let mut noun = cursor;
    if matches!(at.last, "a" | "an" | "A" | "An")
        && noun.blanks()
        && noun.peek().is_some_and(char::is_lowercase)
        && let Some(stem) = said.strip_suffix(sign.many)
    {
        said = format!("{stem}{}", sign.one);
    }
    Some((cursor.taken(), said))
}

/// Reads "/month" and says "per month".
fn per(cursor: &mut Cursor<'_>) -> String {
    const SPANS: [(&str, &str); 16] = [
        ("second", "second"),
        ("minute", "minute"),
        ("hour", "hour"),
        ("hr", "hour"),
        ("h", "hour"),
        ("day", "day"),
        ("night", "night"),
        ("week", "week"),
        ("month", "month"),
        ("mo", "month"),
        ("year", "year"),
        ("yr", "year"),
        ("person", "person"),
        ("head", "head"),
        ("kg", "kilogram"),
        ("lb", "pound"),
    ];
    let mut ahead = *cursor;
    if ahead.eat("/")
        && let Some((_, said)) = ahead.eat_word(&SPANS, |row| row.0)
    {
        *cursor = ahead;
        return format!(" per {said}");
    }
    String::new()
}

/// "27 €", "50¢", "20 USD", "30p" in British English.
pub(super) fn money_behind(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let number = Number::read(&mut cursor)?;
    let pence = at.accent == Accent::Gb && number.is_whole();
    for (sign, one, many, known) in [("¢", "cent", "cents", true), ("p", "penny", "pence", pence)]
    {
        let mut ahead = cursor;
        if known && ahead.eat(sign) && ahead.at_word_end() {
            let unit = if number.is_one() { one } else { many };
            return Some((ahead.taken(), format!("{} {unit}", number.say(at.accent))));
        }
    }
    let many = magnitude(&mut cursor);
    cursor.blanks();
    let sign = CURRENCIES.iter().find(|row| {
        let mut ahead = cursor;
        !row.written.ends_with('.') && ahead.eat(row.written) && ahead.at_word_end()
    })?;
    cursor.eat(sign.written);
    Some((cursor.taken(), sum(&number, many, sign, at.accent)))
}

#[cfg(test)]
mod tests {
    use super::super::{Accent, scan::said};

    #[test]
    fn money_is_said() {
        let cases = [
            ("$49.95", "forty nine dollars and ninety five cents"),
            ("$1.25", "one dollar and twenty five cents"),
            ("$0.05", "five cents"),
            ("$1.01", "one dollar and one cent"),
            ("$1,200", "one thousand two hundred dollars"),
            ("$3.50.", "three dollars and fifty cents."),
            ("$3.5M", "three point five million dollars"),
            ("£1.2m", "one point two million pounds"),
            ("€5bn", "five billion euros"),
            ("a $100 million deal", "a one hundred million dollar deal"),
            ("£1", "one pound"),
            ("£2.01", "two pounds and one penny"),
            ("50¢", "fifty cents"),
            ("Rs 200", "two hundred rupees"),
            ("Rs. 1", "one rupee"),
            ("US$5", "five U S dollars"),
            ("27,50 €", "twenty seven, fifty euros"),
            ("20 USD", "twenty U S dollars"),
            ("$5–10", "five to ten dollars"),
            ("$5/month", "five dollars per month"),
            ("$10.00", "ten dollars"),
            ("-$5", "minus five dollars"),
            ("5 p", "five p"),
        ];
        for (text, words) in cases {
            assert_eq!(said(text, Accent::Us), words, "{text}");
        }
        assert_eq!(said("30p", Accent::Gb), "thirty pence");
    }
}
