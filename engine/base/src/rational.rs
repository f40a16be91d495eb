//! Exact fractions for time and rates. Seconds as floats are for screens only.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a fraction could not be made or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RationalError {
    /// A zero denominator.
    #[error("cannot make the fraction {num}/0: expected a denominator other than 0")]
    ZeroDenominator {
        /// The numerator given.
        num: i64,
    },
    /// The reduced result is outside 64 bits.
    #[error("the fraction {what} does not fit 64 bits")]
    Overflow {
        /// What was computed.
        what: String,
    },
    /// Not a number.
    #[error("cannot read {got:?} as a fraction: expected forms like 24, 23.976, 30000/1001 or 1.5")]
    NotANumber {
        /// The text.
        got: String,
    },
}

/// A reduced fraction with a denominator above zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rational {
    num: i64,
    den: i64,
}

impl Rational {
    /// 0.
    pub const ZERO: Self = Self { num: 0, den: 1 };
    /// 1.
    pub const ONE: Self = Self { num: 1, den: 1 };

    /// `num / den`, reduced.
    ///
    /// # Errors
    /// [`RationalError::ZeroDenominator`]; [`RationalError::Overflow`] only at `i64::MIN`.
    pub fn new(num: i64, den: i64) -> Result<Self, RationalError> {
        if den == 0 {
            return Err(RationalError::ZeroDenominator { num });
        }
        Self::reduced(i128::from(num), i128::from(den), || format!("{num}/{den}"))
    }

    /// A whole number.
    pub const fn whole(num: i64) -> Self {
        Self { num, den: 1 }
    }

    fn reduced(num: i128, den: i128, what: impl Fn() -> String) -> Result<Self, RationalError> {
        let sign = if den < 0 { -1 } else { 1 };
        let divisor = gcd(num.unsigned_abs(), den.unsigned_abs()).max(1) as i128;
        let (num, den) = (sign * num / divisor, sign * den / divisor);
        match (i64::try_from(num), i64::try_from(den)) {
            (Ok(num), Ok(den)) => Ok(Self { num, den }),
            _ => Err(RationalError::Overflow { what: what() }),
        }
    }

    /// Numerator.
    pub const fn num(self) -> i64 {
        self.num
    }

    /// Denominator, above zero.
    pub const fn den(self) -> i64 {
        self.den
    }

    /// For screens and for filters whose result is measured, not for counting frames.
    pub fn as_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }

    /// Largest whole number not above it.
    pub fn floor(self) -> i64 {
        self.num.div_euclid(self.den)
    }

    /// Smallest whole number not below it.
    pub fn ceil(self) -> i64 {
        -Self {
            num: -self.num,
            den: self.den,
        }
        .floor()
    }

    /// Nearest whole number; halves go up.
    pub fn round(self) -> i64 {
        let (num, den) = (i128::from(self.num), i128::from(self.den));
        (2 * num + den).div_euclid(2 * den) as i64
    }

    /// Sum.
    ///
    /// # Errors
    /// [`RationalError::Overflow`].
    pub fn checked_add(self, other: Self) -> Result<Self, RationalError> {
        let (a, b, c, d) = self.wide(other);
        Self::reduced(a * d + c * b, b * d, || format!("{self} + {other}"))
    }

    /// Difference.
    ///
    /// # Errors
    /// [`RationalError::Overflow`].
    pub fn checked_sub(self, other: Self) -> Result<Self, RationalError> {
        let (a, b, c, d) = self.wide(other);
        Self::reduced(a * d - c * b, b * d, || format!("{self} - {other}"))
    }

    /// Product.
    ///
    /// # Errors
    /// [`RationalError::Overflow`].
    pub fn checked_mul(self, other: Self) -> Result<Self, RationalError> {
        let (a, b, c, d) = self.wide(other);
        Self::reduced(a * c, b * d, || format!("{self} * {other}"))
    }

    /// Quotient.
    ///
    /// # Errors
    /// [`RationalError::ZeroDenominator`] when `other` is 0, [`RationalError::Overflow`].
    pub fn checked_div(self, other: Self) -> Result<Self, RationalError> {
        if other.num == 0 {
            return Err(RationalError::ZeroDenominator { num: self.num });
        }
        let (a, b, c, d) = self.wide(other);
        Self::reduced(a * d, b * c, || format!("({self}) / ({other})"))
    }

    fn wide(self, other: Self) -> (i128, i128, i128, i128) {
        (
            self.num.into(),
            self.den.into(),
            other.num.into(),
            other.den.into(),
        )
    }

    /// Time of frame `index` at this rate (frames per second), in seconds.
    ///
    /// # Errors
    /// [`RationalError`] for a rate of 0 or an index outside the range.
    pub fn time_of_frame(self, index: i64) -> Result<Self, RationalError> {
        Self::whole(index).checked_div(self)
    }

    /// First audio sample of frame `index`: floor(index * sample_rate / rate), never accumulated.
    ///
    /// # Errors
    /// [`RationalError`] for a rate of 0 or a result outside the range.
    pub fn sample_of_frame(self, index: i64, sample_rate_hz: u32) -> Result<i64, RationalError> {
        Ok(Self::whole(index)
            .checked_mul(Self::whole(sample_rate_hz.into()))?
            .checked_div(self)?
            .floor())
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl PartialOrd for Rational {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rational {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b, c, d) = self.wide(*other);
        (a * d).cmp(&(c * b))
    }
}

impl From<i64> for Rational {
    fn from(num: i64) -> Self {
        Self::whole(num)
    }
}

impl fmt::Display for Rational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.den == 1 {
            write!(f, "{}", self.num)
        } else {
            write!(f, "{}/{}", self.num, self.den)
        }
    }
}

impl fmt::Debug for Rational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Rational {
    type Err = RationalError;

    fn from_str(text: &str) -> Result<Self, RationalError> {
        let refused = || RationalError::NotANumber {
            got: text.chars().take(40).collect(),
        };
        let trimmed = text.trim();
        if let Some((num, den)) = trimmed.split_once('/') {
            let num = num.trim().parse().map_err(|_not_digits| refused())?;
            let den = den.trim().parse().map_err(|_not_digits| refused())?;
            return Self::new(num, den);
        }
        // The three broadcast rates are written in decimals but mean n/1001.
        match trimmed {
            "23.976" | "23.98" => return Self::new(24_000, 1001),
            "29.97" => return Self::new(30_000, 1001),
            "59.94" => return Self::new(60_000, 1001),
            _ => {}
        }
        let (whole, fraction) = trimmed.split_once('.').unwrap_or((trimmed, ""));
        if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
            return Err(refused());
        }
        let digits: i64 = format!("{whole}{fraction}")
            .parse()
            .map_err(|_not_digits| refused())?;
        Self::new(digits, 10i64.pow(fraction.len() as u32))
    }
}

impl Serialize for Rational {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rational {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl serde::de::Visitor<'_> for Either {
            type Value = Rational;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a fraction such as \"30000/1001\"")
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Rational, E> {
                Ok(Rational::whole(value))
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Rational, E> {
                i64::try_from(value).map(Rational::whole).map_err(E::custom)
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Rational, E> {
                format!("{value}").parse().map_err(E::custom)
            }

            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Rational, E> {
                value.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_rates_as_people_write_them() {
        for (text, num, den) in [
            ("24", 24, 1),
            ("23.976", 24_000, 1001),
            ("30000/1001", 30_000, 1001),
            ("1.5", 3, 2),
        ] {
            assert_eq!(text.parse(), Rational::new(num, den), "{text}");
        }
        for wrong in [
            "",
            "x",
            "1/0",
            "1/2/3",
            ".",
            "1.1234567891",
            "9223372036854775808",
        ] {
            assert!(wrong.parse::<Rational>().is_err(), "{wrong:?} was read");
        }
    }

    #[test]
    fn rounding_holds_below_zero() {
        let half = Rational::new(-3, 2).unwrap();
        assert_eq!((half.floor(), half.ceil(), half.round()), (-2, -1, -1));
    }

    #[test]
    fn samples_never_drift_over_thirty_minutes() {
        let rate: Rational = "29.97".parse().unwrap();
        let frames = 30 * 60 * 30;
        // 54,000 frames at 30000/1001 are 1801.8 s exactly.
        assert_eq!(rate.sample_of_frame(frames, 48_000), Ok(86_486_400));
    }

    #[test]
    fn overflow_is_an_error() {
        let large = Rational::whole(i64::MAX);
        assert!(large.checked_mul(large).is_err());
        assert!(Rational::new(1, 0).is_err());
    }
}
