//! How a film comes from one shot into the next.

use std::fmt;
use std::str::FromStr;

use flow_timeline::Blend;

use crate::length::Length;
use crate::value::ValueError;

/// The way into a shot from the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transition {
    /// At once.
    #[default]
    Cut,
    /// Over a length in which both shots are seen; both are shortened by sharing it.
    Blend {
        /// How the two become one.
        blend: Blend,
        /// How long it takes.
        length: Length,
    },
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("cut"),
            Self::Blend { blend, length } => match blend {
                Blend::CrossFade => write!(f, "cross-fade {length}"),
                Blend::ThroughBlack => write!(f, "through-black {length}"),
            },
        }
    }
}

impl FromStr for Transition {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let refused = || ValueError::new(text, "cut, cross-fade 1 s or through-black 1 s");
        let trimmed = text.trim();
        let (word, rest) = trimmed
            .split_once(char::is_whitespace)
            .unwrap_or((trimmed, ""));
        let (blend, rest) = match (word, rest.trim_start()) {
            ("cut", "") => return Ok(Self::Cut),
            ("cross-fade", rest) => (Blend::CrossFade, rest),
            ("through-black", rest) => (Blend::ThroughBlack, rest),
            ("through", rest) if rest.starts_with("black ") => (Blend::ThroughBlack, &rest[6..]),
            _ => return Err(refused().near(word, &["cut", "cross-fade", "through-black"])),
        };
        let length: Length = rest.parse().map_err(|_length| refused())?;
        if length.is_zero() {
            return Err(ValueError::new(text, "a transition longer than 0, or cut"));
        }
        Ok(Self::Blend { blend, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transitions_are_read_and_written() {
        for text in ["cut", "cross-fade 1 s", "through-black 12 frames"] {
            assert_eq!(text.parse::<Transition>().unwrap().to_string(), text);
        }
        let spaced: Transition = "through black 0.5 s".parse().unwrap();
        assert_eq!(spaced.to_string(), "through-black 0.5 s");
        let slip = "cros-fade 1 s".parse::<Transition>().unwrap_err();
        assert_eq!(slip.suggestion.as_deref(), Some("cross-fade"));
        for wrong in ["", "cut 1 s", "cross-fade", "cross-fade 0 s", "through 1 s"] {
            assert!(wrong.parse::<Transition>().is_err(), "{wrong:?} was read");
        }
    }
}
