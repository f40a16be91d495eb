//! Texts for people that are also a code with values, so that a page can say them in another
//! language. [`texts!`](crate::texts) declares a list of them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A text as its code and its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coded {
    /// What is said: one of a list, such as `film_length`.
    pub code: String,
    /// What the text names, by name.
    pub values: BTreeMap<String, TextValue>,
}

/// A value in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TextValue {
    /// A figure.
    Number(serde_json::Number),
    /// A name, a path, words.
    Text(String),
}

/// A figure that is shown with so many decimals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Decimals.
    pub decimals: u8,
}

/// `value` as it is shown with so many decimals.
pub const fn figure(value: f64, decimals: u8) -> Figure {
    Figure { value, decimals }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.*}", usize::from(self.decimals), self.value)
    }
}

impl From<Figure> for TextValue {
    fn from(figure: Figure) -> Self {
        // Rounded as it is shown: a page in another language shows the same figure.
        let shown = figure.to_string();
        let number = shown
            .parse()
            .ok()
            .and_then(|value: f64| serde_json::Number::from_f64(value));
        number.map_or(Self::Text(shown), Self::Number)
    }
}

impl From<i64> for TextValue {
    fn from(value: i64) -> Self {
        Self::Number(value.into())
    }
}

impl From<String> for TextValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Declare the texts of one part of the program: an enum with a variant for each, its code and its
/// English words, in which `{name}` stands for the variant's value of that name.
///
/// The enum gets `ALL` (every code with its English words), `coded()` and `Display` (English). A
/// value that the words do not name, or name without there being one, does not compile.
#[macro_export]
macro_rules! texts {
    (
        $(#[$of:meta])*
        $vis:vis enum $name:ident {
            $($variant:ident { $($value:ident: $type:ty),* } = $code:literal, $english:literal;)*
        }
    ) => {
        $(#[$of])*
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, reason = "the words of each say what its values are")]
        $vis enum $name {
            $(#[doc = $english] $variant { $($value: $type),* },)*
        }

        impl $name {
            /// Every code with its English words.
            $vis const ALL: &'static [(&'static str, &'static str)] =
                &[$(($code, $english)),*];

            /// Its code and values.
            $vis fn coded(&self) -> $crate::Coded {
                match self {
                    $(Self::$variant { $($value),* } => $crate::Coded {
                        code: $code.to_owned(),
                        values: [
                            $((stringify!($value).to_owned(), $crate::TextValue::from($value.clone())),)*
                        ]
                        .into_iter()
                        .collect(),
                    },)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$variant { $($value),* } => write!(f, $english $(, $value = $value)*),)*
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    texts! {
        enum Sample {
            Plain {} = "plain", "it is done";
            Two { count: i64, name: String, secs: Figure }
                = "two", "{count} of {name:?} in {secs} s";
        }
    }

    #[test]
    fn a_text_is_english_words_and_a_code_with_values() {
        assert_eq!(Sample::Plain {}.to_string(), "it is done");
        assert!(Sample::Plain {}.coded().values.is_empty());
        let two = Sample::Two {
            count: 3,
            name: "lamp".to_owned(),
            secs: figure(2.504, 2),
        };
        assert_eq!(two.to_string(), "3 of \"lamp\" in 2.50 s");
        let told = serde_json::to_value(two.coded()).unwrap();
        let values = serde_json::json!({ "count": 3, "name": "lamp", "secs": 2.5 });
        assert_eq!(told, serde_json::json!({ "code": "two", "values": values }));
        let back: Coded = serde_json::from_value(told).unwrap();
        assert_eq!(back, two.coded());
        assert_eq!(Sample::ALL.len(), 2);
    }
}
