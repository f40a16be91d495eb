//! What decides the draws of a made picture.

use std::fmt;
use std::str::FromStr;

use crate::value::ValueError;

/// Largest seed: the largest whole number that every program reads from JSON as it is.
pub const SEED_MAX: u64 = (1 << 53) - 1;

/// A shot's seed, written `42`, or `42 locked` when making the picture again must not change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seed {
    /// The number, at most [`SEED_MAX`].
    pub value: u64,
    /// Whether each new picture is made from this seed; otherwise each draws its own.
    pub locked: bool,
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.locked { " locked" } else { "" };
        write!(f, "{}{mark}", self.value)
    }
}

impl FromStr for Seed {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let refused = || {
            let expected = format!("a seed such as 42 or 42 locked, from 0 to {SEED_MAX}");
            ValueError::new(text, expected)
        };
        let mut words = text.split_whitespace();
        let digits = words.next().ok_or_else(refused)?;
        let locked = match (words.next(), words.next()) {
            (None, _) => false,
            (Some("locked"), None) => true,
            _ => return Err(refused()),
        };
        let whole = digits.len() <= 16 && digits.bytes().all(|b| b.is_ascii_digit());
        let value = digits.parse().ok().filter(|value| *value <= SEED_MAX);
        match value {
            Some(value) if whole => Ok(Self { value, locked }),
            _ => Err(refused()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_read_as_they_are_written() {
        for text in ["0", "42", "42 locked", "9007199254740991 locked"] {
            assert_eq!(text.parse::<Seed>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "-1",
            "1.5",
            "+3",
            "42 open",
            "42 locked now",
            "9007199254740992",
        ] {
            let error = wrong.parse::<Seed>().unwrap_err();
            assert!(error.expected.contains("42 locked"), "{wrong}: {error}");
        }
    }
}
