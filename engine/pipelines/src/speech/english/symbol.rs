//! Signs that are said, and letters of other scripts that have names.

/// Signs with a name wherever they stand.
const SIGNS: [(&str, &str); 68] = [
    ("&", "and"),
    ("+", "plus"),
    ("=", "equals"),
    ("@", "at"),
    ("§§", "sections"),
    ("§", "section"),
    ("¶", "paragraph"),
    ("%", "percent"),
    ("°", "degrees"),
    ("№", "number"),
    ("×", "times"),
    ("÷", "divided by"),
    ("±", "plus or minus"),
    ("≈", "about"),
    ("≠", "is not"),
    ("≤", "at most"),
    ("≥", "at least"),
    ("√", "the square root of"),
    ("∞", "infinity"),
    ("$", "dollar"),
    ("£", "pound"),
    ("€", "euro"),
    ("¥", "yen"),
    ("¢", "cents"),
    ("½", "one half"),
    ("¼", "one quarter"),
    ("¾", "three quarters"),
    ("²", "squared"),
    ("³", "cubed"),
    ("\\", "backslash"),
    ("©", "copyright"),
    ("→", "to"),
    ("⇒", "to"),
    ("↑", "up"),
    ("↓", "down"),
    ("✓", "check"),
    ("←", "left"),
    ("↔", "and"),
    ("♯", "sharp"),
    ("♭", "flat"),
    ("∑", "the sum of"),
    ("α", "alpha"),
    ("β", "beta"),
    ("γ", "gamma"),
    ("δ", "delta"),
    ("ε", "epsilon"),
    ("ζ", "zeta"),
    ("η", "eta"),
    ("θ", "theta"),
    ("ι", "iota"),
    ("κ", "kappa"),
    ("λ", "lambda"),
    ("μ", "mu"),
    ("µ", "mu"),
    ("ν", "nu"),
    ("ξ", "xi"),
    ("π", "pi"),
    ("ρ", "rho"),
    ("σ", "sigma"),
    ("τ", "tau"),
    ("υ", "upsilon"),
    ("φ", "phi"),
    ("χ", "chi"),
    ("ψ", "psi"),
    ("ω", "omega"),
    ("Δ", "delta"),
    ("Σ", "sigma"),
    ("Ω", "omega"),
];

/// A sign that has a name here: its bytes and its name. `before` is the text in front of it.
pub(super) fn sign(rest: &str, before: &str) -> Option<(usize, &'static str)> {
    let next = rest.chars().next()?;
    let after = rest.get(next.len_utf8()..).unwrap_or_default();
    let digit_after = after.starts_with(|next: char| next.is_ascii_digit());
    let spaced = before.ends_with(' ') && after.starts_with(' ');
    let letter_before = before.ends_with(char::is_alphabetic);
    let letter_after = after.starts_with(char::is_alphabetic);
    let digit_before = before.ends_with(|next: char| next.is_ascii_digit());
    match next {
        '#' if digit_after => return Some((1, "number")),
        '#' if letter_before => return Some((1, "sharp")),
        '~' if digit_after => return Some((1, "about")),
        '*' if spaced && before.trim_end().ends_with(|n: char| n.is_ascii_digit()) => {
            return Some((1, "times"));
        }
        '*' if digit_before && digit_after => return Some((1, "times")),
        '<' | '>' => return compared(rest, before),
        '/' if letter_before && letter_after => {
            let word = before.rsplit(|n: char| !n.is_alphabetic()).next()?;
            let or = matches!(word, "he" | "his" | "him" | "He" | "s" | "either");
            let nothing = matches!(word, "and" | "And");
            return Some((
                1,
                if nothing {
                    ""
                } else if or {
                    "or"
                } else {
                    "slash"
                },
            ));
        }
        '/' if digit_before || digit_after => return Some((1, "slash")),
        _ if next.is_alphabetic() && (letter_after || letter_before) => return None,
        _ => {}
    }
    let row = SIGNS.iter().find(|row| rest.starts_with(row.0))?;
    Some((row.0.len(), row.1))
}

/// The name of a letter of another script that has one here.
pub(super) fn letter(letter: char) -> Option<&'static str> {
    let row = SIGNS.iter().find(|row| row.0.starts_with(letter))?;
    letter.is_alphabetic().then_some(row.1)
}

/// Signs that compare what is on both sides. Two in a row are no comparison.
fn compared(rest: &str, before: &str) -> Option<(usize, &'static str)> {
    let same = rest.chars().next()?;
    let after = rest.get(1..).unwrap_or_default();
    let name = match (same, after.starts_with('=')) {
        ('<', true) => return Some((2, "at most")),
        ('<', false) => "less than",
        (_, true) => return Some((2, "at least")),
        (_, false) => "greater than",
    };
    let lonely = after.trim().is_empty() || same == '>' && before.trim().is_empty();
    let doubled = after.starts_with(same) || before.ends_with(same);
    (!lonely && !doubled).then_some((1, name))
}

#[cfg(test)]
mod tests {
    use super::super::{Accent, scan::said};

    #[test]
    fn signs_are_said_or_dropped() {
        let cases = [
            ("salt & pepper", "salt and pepper"),
            ("#5 of 10", "number five of ten"),
            ("C# and C++", "C sharp and C plus plus"),
            ("§ 3", "section three"),
            ("~5 years", "about five years"),
            ("3 * 4", "three times four"),
            ("*very* **bold**", "very bold"),
            ("_slowly_", "slowly"),
            ("2 < 3", "two less than three"),
            ("a < b", "a less than b"),
            ("x<y and z>w", "x less than y and z greater than w"),
            ("if <break is open", "if less than break is open"),
            (
                "I <3 you, 4>=3",
                "I less than three you, four at least three",
            ),
            ("Rome -> Paris => home", "Rome to Paris to home"),
            ("> a quoted line", "a quoted line"),
            ("© 2026 by us", "copyright twenty twenty six by us"),
            ("tea • milk · sugar", "tea, milk, sugar"),
            ("and/or", "and or"),
            ("his/her", "his or her"),
            ("w/o help", "without help"),
            ("the area is πr", "the area is pi r"),
            ("Hawaiʻi and Māori", "Hawaiʻi and Māori"),
            ("Δx of λ", "delta x of lambda"),
            ("she said Καλημέρα and 北京 to us", "she said and to us"),
            ("π is 3.14", "pi is three point one four"),
            ("a 😀 smile", "a smile"),
            ("±5", "plus or minus five"),
            ("wait -- no", "wait— no"),
            ("wait - no", "wait— no"),
            ("a well-known T-shirt", "a well-known T shirt"),
            ("London–Paris train", "London Paris train"),
            ("So... yes", "So… yes"),
            (
                "the lamp (the big one) broke",
                "the lamp, the big one, broke",
            ),
            ("\"Stop!\" he cried.", "Stop! he cried."),
        ];
        for (text, words) in cases {
            assert_eq!(said(text, Accent::Us), words, "{text}");
        }
    }
}
