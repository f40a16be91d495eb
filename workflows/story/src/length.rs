//! Lengths of time as a script gives them.

use std::fmt;
use std::str::FromStr;

use engine_base::Rational;

use crate::value::ValueError;

/// Longest length that a script may give, in seconds (a day).
pub const LENGTH_SECS_MAX: i64 = 86_400;
const FRAMES_MAX: i64 = LENGTH_SECS_MAX * 120;
const EXPECTED: &str =
    "a length such as 5 s, 2.5 s, 1001/240 s, 400 ms, 2 min or 120 frames, up to a day";

/// A length of time: seconds (exact), or whole frames of whatever film it becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Length {
    /// Seconds.
    Secs(Rational),
    /// Frames.
    Frames(i64),
}

impl Length {
    /// Whole seconds.
    pub const fn secs(secs: i64) -> Self {
        Self::Secs(Rational::whole(secs))
    }

    /// Nearest whole number of frames at `fps`. Each length is rounded by itself, so that a
    /// change to one shot never changes another's frames.
    pub fn frames(self, fps: Rational) -> i64 {
        match self {
            Self::Frames(frames) => frames,
            Self::Secs(secs) => {
                let num = i128::from(secs.num()) * i128::from(fps.num());
                let den = i128::from(secs.den()) * i128::from(fps.den());
                let frames = (2 * num + den).div_euclid(2 * den);
                i64::try_from(frames).unwrap_or(i64::MAX)
            }
        }
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        matches!(self, Self::Frames(0)) || self == Self::Secs(Rational::ZERO)
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frames(1) => f.write_str("1 frame"),
            Self::Frames(frames) => write!(f, "{frames} frames"),
            Self::Secs(secs) => write!(f, "{} s", decimal(*secs)),
        }
    }
}

/// The shortest exact way to write a fraction: `2.5` where decimals end, else `1001/240`.
pub(crate) fn decimal(value: Rational) -> String {
    const PLACES: u32 = 9;
    let scale = 10i128.pow(PLACES);
    let scaled = i128::from(value.num()) * scale;
    if value.den() == 1 || scaled % i128::from(value.den()) != 0 {
        return value.to_string();
    }
    let scaled = scaled / i128::from(value.den());
    let sign = if scaled < 0 { "-" } else { "" };
    let (whole, part) = (scaled.abs() / scale, scaled.abs() % scale);
    let digits = format!("{part:09}");
    format!("{sign}{whole}.{}", digits.trim_end_matches('0'))
}

fn fraction(text: &str) -> Option<Rational> {
    if text.len() > 40 || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    // 29.97 and its like mean n/1001 as rates only; one more digit makes a plain decimal of them.
    let padded = match text.split_once('.') {
        Some((_, digits)) if digits.len() < 9 => format!("{text}0"),
        _ => text.to_owned(),
    };
    padded.parse().ok()
}

impl FromStr for Length {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let trimmed = text.trim();
        let refused = || ValueError::new(trimmed, EXPECTED);
        let unit_at = trimmed
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '/')))
            .unwrap_or(trimmed.len());
        let (digits, unit) = trimmed.split_at(unit_at);
        let value = fraction(digits).ok_or_else(refused)?;
        let scaled = |num: i64, den: i64| {
            let factor = Rational::new(num, den).map_err(|_zero| refused())?;
            value.checked_mul(factor).map_err(|_large| refused())
        };
        let secs = match unit.trim() {
            "" | "s" | "sec" | "secs" | "second" | "seconds" => value,
            "ms" => scaled(1, 1000)?,
            "m" | "min" | "minute" | "minutes" => scaled(60, 1)?,
            "f" | "frame" | "frames" => {
                let whole = value.den() == 1 && (0..=FRAMES_MAX).contains(&value.num());
                return if whole {
                    Ok(Self::Frames(value.num()))
                } else {
                    Err(refused())
                };
            }
            other => return Err(refused().near(other, &["s", "ms", "min", "frames"])),
        };
        if secs > Rational::whole(LENGTH_SECS_MAX) || secs.den() > 1_000_000_000 {
            return Err(refused());
        }
        Ok(Self::Secs(secs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        let secs = |num, den| Ok(Length::Secs(Rational::new(num, den).unwrap()));
        for (text, expected) in [
            ("5 s", secs(5, 1)),
            ("5", secs(5, 1)),
            ("2.5s", secs(5, 2)),
            ("29.97 s", secs(2997, 100)),
            ("1001/240 s", secs(1001, 240)),
            ("400 ms", secs(2, 5)),
            ("1.5 min", secs(90, 1)),
            ("120 frames", Ok(Length::Frames(120))),
            ("1f", Ok(Length::Frames(1))),
        ] {
            assert_eq!(text.parse::<Length>(), expected, "{text}");
        }
        for wrong in [
            "",
            "s",
            "-1 s",
            "+1 s",
            "1/0 s",
            "86401 s",
            "1.5 frames",
            "1 sek",
            "nan",
            "1e3 s",
            "99999999999999999999 s",
            "1/9223372036854775807 s",
        ] {
            assert!(wrong.parse::<Length>().is_err(), "{wrong:?} was read");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (num, den) in [
            (5, 1),
            (5, 2),
            (1001, 240),
            (2997, 100),
            (1, 1_000_000_000),
            (1, 3),
        ] {
            let length = Length::Secs(Rational::new(num, den).unwrap());
            assert_eq!(length.to_string().parse(), Ok(length));
        }
        assert_eq!(
            Length::Secs(Rational::new(5, 2).unwrap()).to_string(),
            "2.5 s"
        );
    }

    #[test]
    fn frames_are_the_nearest_whole_ones() {
        let ntsc = Rational::new(30_000, 1001).unwrap();
        assert_eq!(Length::secs(10).frames(ntsc), 300);
        assert_eq!(Length::secs(1000).frames(ntsc), 29_970);
        assert_eq!(Length::Frames(7).frames(ntsc), 7);
        let extreme = Length::secs(LENGTH_SECS_MAX).frames(Rational::whole(i64::MAX));
        assert_eq!(extreme, i64::MAX);
    }
}
