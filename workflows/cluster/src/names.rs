//! Names that travel as parts of message subjects: short, without dots, blanks or wildcards.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest name, in bytes.
const LONGEST_BYTES: usize = 64;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot take {got:?} for the name of a {kind}: expected 1 to 64 letters, digits, '-' or '_'"
)]
pub struct NameError {
    /// What was to be named.
    pub kind: &'static str,
    /// The text, cut to 80 characters.
    pub got: String,
}

fn checked(kind: &'static str, text: &str) -> Result<String, NameError> {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
    if (1..=LONGEST_BYTES).contains(&text.len()) && text.bytes().all(allowed) {
        Ok(text.to_owned())
    } else {
        let got = text.chars().take(80).collect();
        Err(NameError { kind, got })
    }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The name with this text.
            ///
            /// # Errors
            /// When it is empty, over 64 bytes, or has other characters than ASCII letters,
            /// digits, `-` and `_`.
            pub fn new(text: &str) -> Result<Self, NameError> {
                checked($kind, text).map(Self)
            }

            /// Its text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::new(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

name_type! {
    /// A process that executes jobs.
    WorkerId, "worker"
}

name_type! {
    /// Devices of equal speed, memory and bits of results, as `gb10` or `cpu-x86-64`.
    DeviceClass, "device class"
}

name_type! {
    /// One execution of a document; its jobs share a turn among other runs.
    RunId, "run"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_break_a_subject_are_refused() {
        for wrong in ["", "a.b", "a b", "a*", ">", "ä", "../x", &"a".repeat(65)] {
            let error = WorkerId::new(wrong).unwrap_err();
            assert!(error.to_string().contains("worker"), "{error}");
        }
        let name = WorkerId::new("spark-01_b").unwrap();
        assert_eq!(serde_json::to_string(&name).unwrap(), "\"spark-01_b\"");
        assert!(serde_json::from_str::<WorkerId>("\"a.b\"").is_err());
    }
}
