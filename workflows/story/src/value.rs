//! What the readers of single values share.

use serde::{Serialize, Serializer};

/// Why a value could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {got:?}: expected {expected}")]
pub struct ValueError {
    /// What stands there, shortened.
    pub got: String,
    /// What may stand there.
    pub expected: String,
    /// The nearest right thing.
    pub suggestion: Option<String>,
}

impl ValueError {
    pub(crate) fn new(got: &str, expected: impl Into<String>) -> Self {
        Self {
            got: crate::fault::excerpt(got),
            expected: expected.into(),
            suggestion: None,
        }
    }

    pub(crate) fn near(mut self, word: &str, candidates: &[&str]) -> Self {
        self.suggestion = crate::fault::nearest(word, candidates.iter().copied());
        self
    }
}

/// A finite number within limits; `expected` says the form for the message.
pub(crate) fn number(text: &str, low: f64, high: f64, expected: &str) -> Result<f64, ValueError> {
    // f64's own reader also takes "inf", "nan" and "1e5"; a script has digits only.
    let digits = text.len() <= 32
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || b"+-.".contains(&b));
    match text.parse::<f64>() {
        Ok(value) if digits && (low..=high).contains(&value) => Ok(value),
        _ => Err(ValueError::new(text, expected)),
    }
}

pub(crate) fn as_text<T: std::fmt::Display, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Serialize a type by its written form.
macro_rules! serialize_as_text {
    ($($name:ty),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                as_text(self, serializer)
            }
        }
    )*};
}

serialize_as_text!(
    crate::length::Length,
    crate::moves::Move,
    crate::transition::Transition,
    crate::continuity::Continuity,
    crate::seed::Seed,
    crate::script::FrameSize,
    crate::script::Colour
);
