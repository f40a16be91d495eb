//! Who wrote each field of a script.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::value::ValueError;

/// Who wrote a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A language model.
    Model,
    /// A rule of the producer.
    Rule,
    /// A person.
    User,
}

impl By {
    /// Its name as written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Rule => "rule",
            Self::User => "user",
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for By {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        [Self::Model, Self::Rule, Self::User]
            .into_iter()
            .find(|by| by.as_str() == text)
            .ok_or_else(|| ValueError::new(text, "model, rule or user"))
    }
}

/// Who wrote the fields of one thing, by field name. A field that is not named was written by a
/// person, or by whoever wrote before this was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Origins {
    fields: BTreeMap<String, By>,
}

impl Origins {
    /// Who wrote `field`, where that is recorded.
    pub fn get(&self, field: &str) -> Option<By> {
        self.fields.get(field).copied()
    }

    /// Record who wrote `field`.
    pub fn set(&mut self, field: &str, by: By) {
        self.fields.insert(field.to_owned(), by);
    }

    /// The same with these fields recorded.
    #[must_use]
    pub fn with(mut self, by: By, fields: &[&str]) -> Self {
        for field in fields {
            self.set(field, by);
        }
        self
    }

    /// Fields and who wrote them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, By)> {
        self.fields.iter().map(|(field, by)| (field.as_str(), *by))
    }

    /// Whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
}
