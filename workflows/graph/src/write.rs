//! Writing documents: equal documents give equal bytes.

use std::borrow::Cow;

use engine_base::Datum;

use crate::document::{DocNode, Document};

/// Why a document could not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// JSON has no NaN and no infinity.
    #[error("cannot write the document: expected finite numbers, got {got} in {at}")]
    NotFinite {
        /// The number.
        got: String,
        /// Where.
        at: String,
    },
    /// It could not be read back.
    #[error(
        "cannot write the document: expected nesting of at most {}, got deeper in {at}",
        Datum::MAX_DEPTH
    )]
    TooDeep {
        /// Where.
        at: String,
    },
    /// The writer itself failed.
    #[error("cannot write the document: {message}")]
    Json {
        /// What it said.
        message: String,
    },
}

impl Document {
    /// JSON with two spaces per level, names in a fixed order, and a newline at the end.
    /// [`Document::parse`] gives an equal document back, to the last digit of every number.
    ///
    /// # Errors
    /// [`WriteError`] for numbers that JSON cannot hold and for values nested too deep.
    pub fn to_json(&self) -> Result<String, WriteError> {
        let document = self.in_one_form()?;
        let mut text =
            serde_json::to_string_pretty(&document).map_err(|error| WriteError::Json {
                message: error.to_string(),
            })?;
        text.push('\n');
        Ok(text)
    }

    /// The document with every number in its one form (0 for -0, `Int` where it fits), so that
    /// documents that compare equal are written equal.
    fn in_one_form(&self) -> Result<Cow<'_, Self>, WriteError> {
        let mut plain = true;
        self.each_datum(|datum, at| {
            plain &= inspect(datum, 0, at)?;
            Ok(())
        })?;
        for (id, place) in &self.layout.nodes {
            for value in [place.x, place.y] {
                plain &= finite(value, &|| format!("the layout of node {id:?}"))?;
            }
        }
        if plain {
            return Ok(Cow::Borrowed(self));
        }
        let mut document = self.clone();
        let parts = document.subgraphs.values_mut();
        let nodes = parts.flat_map(|part| part.nodes.values_mut());
        for node in nodes.chain(document.nodes.values_mut()) {
            node.widgets.values_mut().for_each(settle);
        }
        document.layout.extra.values_mut().for_each(settle);
        for place in document.layout.nodes.values_mut() {
            place.x = settled(place.x);
            place.y = settled(place.y);
        }
        Ok(Cow::Owned(document))
    }

    fn each_datum(
        &self,
        mut see: impl FnMut(&Datum, &dyn Fn() -> String) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let mut widgets =
            |part: Option<&str>, id: &str, node: &DocNode| -> Result<(), WriteError> {
                for (name, datum) in &node.widgets {
                    see(datum, &|| match part {
                        None => format!("node {id:?} widget {name:?}"),
                        Some(part) => format!("subgraph {part:?} node {id:?} widget {name:?}"),
                    })?;
                }
                Ok(())
            };
        for (id, node) in &self.nodes {
            widgets(None, id, node)?;
        }
        for (name, part) in &self.subgraphs {
            for (id, node) in &part.nodes {
                widgets(Some(name), id, node)?;
            }
        }
        for (name, datum) in &self.layout.extra {
            see(datum, &|| format!("layout entry {name:?}"))?;
        }
        Ok(())
    }
}

const fn settled(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value }
}

fn settle(datum: &mut Datum) {
    match datum {
        Datum::Float(value) => *value = settled(*value),
        Datum::Uint(value) => *datum = Datum::whole(*value),
        Datum::List(items) => items.iter_mut().for_each(settle),
        Datum::Map(members) => members.values_mut().for_each(settle),
        Datum::Null | Datum::Bool(_) | Datum::Int(_) | Datum::Text(_) => {}
    }
}

/// Whether every number in it has its one form.
fn inspect(datum: &Datum, depth: usize, at: &dyn Fn() -> String) -> Result<bool, WriteError> {
    if depth > Datum::MAX_DEPTH {
        return Err(WriteError::TooDeep { at: at() });
    }
    let mut plain = true;
    match datum {
        Datum::Float(value) => return finite(*value, at),
        Datum::Uint(value) => return Ok(i64::try_from(*value).is_err()),
        Datum::List(items) => {
            for item in items {
                plain &= inspect(item, depth + 1, at)?;
            }
        }
        Datum::Map(members) => {
            for member in members.values() {
                plain &= inspect(member, depth + 1, at)?;
            }
        }
        Datum::Null | Datum::Bool(_) | Datum::Int(_) | Datum::Text(_) => {}
    }
    Ok(plain)
}

/// Whether it is written as itself, which -0 is not.
fn finite(value: f64, at: &dyn Fn() -> String) -> Result<bool, WriteError> {
    if value.is_finite() {
        return Ok(value.to_bits() != (-0.0f64).to_bits());
    }
    Err(WriteError::NotFinite {
        got: value.to_string(),
        at: at(),
    })
}
