//! Widget values: defaults, one form per value, and checks against ranges.

use std::borrow::Cow;

use engine_base::{ContentHash, Datum};

use crate::problem::ProblemKind;
use crate::spec::Widget;

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueFault {
    pub(crate) kind: ProblemKind,
    pub(crate) got: String,
    pub(crate) expected: String,
}

/// The nearest float to the largest seed is one above it.
const TWO_TO_64: f64 = u64::MAX as f64;

/// Largest float up to which every whole number is one of its own.
const EXACT_FLOAT_MAX: f64 = 9_007_199_254_740_992.0;

impl Widget {
    /// The value when unset; `None` for an asset, which has to be chosen.
    pub fn default_datum(&self) -> Option<Datum> {
        Some(match self {
            Self::Int { default, .. } => Datum::Int(*default),
            Self::Seed { default } => Datum::whole(*default),
            Self::Float { default, .. } => Datum::Float(*default),
            Self::Bool { default } => Datum::Bool(*default),
            Self::Text { default, .. } | Self::Choice { default, .. } => Datum::from(*default),
            Self::Asset { .. } => return None,
            Self::Data { default } => default.clone(),
        })
    }

    /// The value in the one form that enters a key and reaches the node: `1` is `1.0` where the
    /// widget is a float, `1.0` is `1` where it is a whole number. A value of another kind is left
    /// as it is.
    pub fn normalise<'d>(&self, datum: &'d Datum) -> Cow<'d, Datum> {
        match (self, datum) {
            (Self::Float { .. }, Datum::Int(_) | Datum::Uint(_)) => {
                datum.as_f64().map_or(Cow::Borrowed(datum), |value| {
                    Cow::Owned(Datum::Float(value))
                })
            }
            (Self::Int { .. } | Self::Seed { .. }, Datum::Float(value))
                if value.abs() <= EXACT_FLOAT_MAX =>
            {
                datum
                    .as_i64()
                    .map_or(Cow::Borrowed(datum), |value| Cow::Owned(Datum::Int(value)))
            }
            (_, Datum::Uint(value)) => Cow::Owned(Datum::whole(*value)),
            _ => Cow::Borrowed(datum),
        }
    }

    /// Whether `datum` may stand in it.
    pub(crate) fn check(&self, datum: &Datum) -> Result<(), ValueFault> {
        match self {
            Self::Int { min, max, .. } => check_int(datum, *min, *max),
            Self::Seed { .. } => check_seed(datum),
            Self::Float { min, max, .. } => check_float(datum, *min, *max),
            Self::Bool { .. } => match datum {
                Datum::Bool(_) => Ok(()),
                _ => Err(wrong_type(datum, "true or false")),
            },
            Self::Text { max_chars, .. } => {
                let text = text(datum, "text")?;
                let chars = text.chars().count();
                if chars <= *max_chars {
                    return Ok(());
                }
                Err(ValueFault {
                    kind: ProblemKind::TooLong,
                    got: format!("{chars} characters"),
                    expected: format!("at most {max_chars} characters"),
                })
            }
            Self::Choice { options, .. } => {
                let text = text(datum, "text")?;
                if options.contains(&text) {
                    return Ok(());
                }
                Err(ValueFault {
                    kind: ProblemKind::NotInList,
                    got: shown(datum),
                    expected: format!("one of {}", listed(options.iter().copied())),
                })
            }
            Self::Asset { .. } => {
                let hash = text(datum, "a content hash")?;
                hash.parse::<ContentHash>().map_or_else(
                    |_refused| {
                        Err(ValueFault {
                            kind: ProblemKind::BadAssetHash,
                            got: shown(datum),
                            expected: "a content hash of 64 lower-case hex digits".to_owned(),
                        })
                    },
                    |_hash| Ok(()),
                )
            }
            Self::Data { .. } => match datum.canonical() {
                Ok(_) => Ok(()),
                Err(error) => Err(ValueFault {
                    kind: ProblemKind::ValueWrongType,
                    got: error.to_string(),
                    expected: "plain data with a canonical form".to_owned(),
                }),
            },
        }
    }
}

fn text<'d>(datum: &'d Datum, expected: &str) -> Result<&'d str, ValueFault> {
    datum.as_str().ok_or_else(|| wrong_type(datum, expected))
}

fn wrong_type(datum: &Datum, expected: &str) -> ValueFault {
    ValueFault {
        kind: ProblemKind::ValueWrongType,
        got: shown(datum),
        expected: expected.to_owned(),
    }
}

fn outside(kind: ProblemKind, datum: &Datum, limit: impl std::fmt::Display) -> ValueFault {
    let side = if kind == ProblemKind::BelowMin {
        "at least"
    } else {
        "at most"
    };
    ValueFault {
        kind,
        got: shown(datum),
        expected: format!("{side} {limit}"),
    }
}

fn check_int(datum: &Datum, min: i64, max: i64) -> Result<(), ValueFault> {
    if let Datum::Uint(value) = datum
        && i64::try_from(*value).is_err()
    {
        return Err(outside(ProblemKind::AboveMax, datum, max));
    }
    let Some(value) = datum.as_i64() else {
        return Err(wrong_type(datum, "a whole number"));
    };
    if value < min {
        Err(outside(ProblemKind::BelowMin, datum, min))
    } else if value > max {
        Err(outside(ProblemKind::AboveMax, datum, max))
    } else {
        Ok(())
    }
}

fn check_seed(datum: &Datum) -> Result<(), ValueFault> {
    let wanted = "a whole number from 0 to 18446744073709551615";
    match datum {
        // A float this large has lost digits; JSON readers give one for 2^64 and above.
        Datum::Float(value) if *value >= TWO_TO_64 => {
            Err(outside(ProblemKind::AboveMax, datum, u64::MAX))
        }
        Datum::Float(value) if value.abs() > EXACT_FLOAT_MAX => Err(wrong_type(
            datum,
            "a whole number written with all its digits",
        )),
        Datum::Int(_) | Datum::Uint(_) | Datum::Float(_) => {
            if datum.as_u64().is_some() {
                Ok(())
            } else if datum.as_f64().is_some_and(|value| value < 0.0) {
                Err(outside(ProblemKind::BelowMin, datum, 0))
            } else {
                Err(wrong_type(datum, wanted))
            }
        }
        _ => Err(wrong_type(datum, wanted)),
    }
}

fn check_float(datum: &Datum, min: f64, max: f64) -> Result<(), ValueFault> {
    let value = match datum.as_f64() {
        Some(value) if value.is_finite() => value,
        _ => return Err(wrong_type(datum, "a number")),
    };
    if value < min {
        Err(outside(ProblemKind::BelowMin, datum, min))
    } else if value > max {
        Err(outside(ProblemKind::AboveMax, datum, max))
    } else {
        Ok(())
    }
}

/// A value for a message: its kind, and itself where it is short.
pub(crate) fn shown(datum: &Datum) -> String {
    match datum {
        Datum::Null => "nothing".to_owned(),
        Datum::Bool(value) => value.to_string(),
        Datum::Int(value) => value.to_string(),
        Datum::Uint(value) => value.to_string(),
        Datum::Float(value) => format!("{value:?}"),
        Datum::Text(text) => quoted(text),
        Datum::List(items) => format!("a list of {}", items.len()),
        Datum::Map(members) => format!("a map of {}", members.len()),
    }
}

/// Text in debug quotes, cut to 60 characters.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(60) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

/// Names in debug quotes, the first dozen of them.
pub(crate) fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = names.len().saturating_sub(12);
    let mut text = names.take(12).map(quoted).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
