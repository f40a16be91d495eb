//! Reading documents: limits, format, names that stand twice, and errors that say where.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use engine_base::Datum;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use crate::document::{DocNode, Document, Link, Position, Subgraph};
use crate::widget::quoted;

/// How large a document may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest file, in bytes.
    pub bytes: usize,
    /// Deepest nesting of lists and maps; at most [`Limits::MAX_DEPTH`] counts.
    pub depth: usize,
    /// Most nodes, in all subgraphs together; at most [`Limits::MAX_NODES`] counts.
    pub nodes: usize,
}

impl Limits {
    /// The reader goes no deeper, whatever is asked.
    pub const MAX_DEPTH: usize = 120;
    /// The reader takes no more nodes, whatever is asked.
    pub const MAX_NODES: usize = 1_000_000;
    /// Longest name of a node, input, output or subgraph, in bytes: names are repeated in ids of
    /// expanded graphs and in messages.
    pub const NAME_BYTES: usize = 4096;
}

impl Default for Limits {
    /// 64 MiB, 100 deep, 250,000 nodes.
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            depth: 100,
            nodes: 250_000,
        }
    }
}

/// Why a document could not be read. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Longer than [`Limits::bytes`].
    #[error("cannot read the document: expected at most {max_bytes} bytes, got {got_bytes}")]
    TooLarge {
        /// Its length.
        got_bytes: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// Not UTF-8.
    #[error("cannot read the document: expected UTF-8, got a wrong byte at byte {at_byte}")]
    NotUtf8 {
        /// Offset of the first wrong byte.
        at_byte: usize,
    },
    /// Nested deeper than [`Limits::depth`].
    #[error(
        "cannot read the document: expected nesting of at most {max}, got deeper at byte {at_byte}"
    )]
    TooDeep {
        /// Offset of the bracket that goes too deep.
        at_byte: usize,
        /// The limit.
        max: usize,
    },
    /// More nodes than [`Limits::nodes`].
    #[error("cannot read the document: expected at most {max} nodes, got {got}")]
    TooManyNodes {
        /// How many it has.
        got: usize,
        /// The limit.
        max: usize,
    },
    /// Written in a format that this version does not know.
    #[error("cannot read the document: expected format {expected}, got format {got}{}",
        if *got > u64::from(*expected) { " of a newer version" } else { "" })]
    Format {
        /// The format it states.
        got: u64,
        /// The format this version reads.
        expected: u32,
    },
    /// Not a document: bad JSON, an unknown field, a name that stands twice, a wrong kind.
    #[error("cannot read the document: {message} (line {line}, column {column})")]
    Content {
        /// What is wrong, with the node, input or other name it lies under.
        message: String,
        /// Line, from 1; 0 when not known.
        line: usize,
        /// Column in bytes, from 1; 0 when not known.
        column: usize,
    },
}

impl Document {
    /// Read a document from JSON bytes or text.
    ///
    /// # Errors
    /// [`ReadError`]: the text says what is wrong and where. A file of a newer format is refused as
    /// such, whatever else it holds.
    pub fn parse(bytes: impl AsRef<[u8]>, limits: &Limits) -> Result<Self, ReadError> {
        let bytes = bytes.as_ref();
        if bytes.len() > limits.bytes {
            return Err(ReadError::TooLarge {
                got_bytes: bytes.len(),
                max_bytes: limits.bytes,
            });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| ReadError::NotUtf8 {
            at_byte: error.valid_up_to(),
        })?;
        // Some editors put a byte order mark before UTF-8.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let max = limits.depth.min(Limits::MAX_DEPTH);
        if let Some(at) = too_deep(text.as_bytes(), max) {
            let at_byte = at + bytes.len() - text.len();
            return Err(ReadError::TooDeep { at_byte, max });
        }
        let document: Self = match serde_json::from_str(text) {
            Ok(document) => document,
            Err(error) => return Err(format_fault(text).unwrap_or_else(|| content(&error))),
        };
        if document.longtake != Self::FORMAT {
            return Err(ReadError::Format {
                got: document.longtake.into(),
                expected: Self::FORMAT,
            });
        }
        let got = document.node_count();
        if got > limits.nodes {
            let max = limits.nodes;
            return Err(ReadError::TooManyNodes { got, max });
        }
        Ok(document)
    }

    /// How many nodes it has, those of subgraphs counted once each.
    pub fn node_count(&self) -> usize {
        let inner: usize = self.subgraphs.values().map(|part| part.nodes.len()).sum();
        self.nodes.len() + inner
    }
}

fn content(error: &serde_json::Error) -> ReadError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let at = format!(" at line {line} column {column}");
    ReadError::Content {
        message: text.strip_suffix(&at).unwrap_or(&text).to_owned(),
        line,
        column,
    }
}

/// Whether text that could not be read states another format: then that is the reason to give.
fn format_fault(text: &str) -> Option<ReadError> {
    #[derive(serde::Deserialize)]
    struct Probe {
        longtake: u64,
    }
    let got = serde_json::from_str::<Probe>(text).ok()?.longtake;
    (got != u64::from(Document::FORMAT)).then_some(ReadError::Format {
        got,
        expected: Document::FORMAT,
    })
}

/// Offset of the first bracket outside text that goes deeper than `max`.
fn too_deep(bytes: &[u8], max: usize) -> Option<usize> {
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        if in_text {
            if escaped {
                escaped = false;
            } else if *byte == b'\\' {
                escaped = true;
            } else if *byte == b'"' {
                in_text = false;
            }
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > max {
                    return Some(at);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Reads a map and refuses a name that stands twice, where serde would keep the last value.
struct Unique<V> {
    what: &'static str,
    max: usize,
    value: PhantomData<V>,
}

impl<'de, V: Deserialize<'de>> Visitor<'de> for Unique<V> {
    type Value = BTreeMap<String, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a map with a member for each {}", self.what)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let what = self.what;
        let mut members = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if name.len() > Limits::NAME_BYTES {
                let (max, name) = (Limits::NAME_BYTES, quoted(&name));
                let message = format!("{what} {name}: expected a name of at most {max} bytes");
                return Err(A::Error::custom(message));
            }
            if members.contains_key(&name) {
                let message = format!("{what} {name:?}: the name stands twice");
                return Err(A::Error::custom(message));
            }
            if members.len() == self.max {
                let message = format!("expected at most {} members, got more", self.max);
                return Err(A::Error::custom(message));
            }
            let value = map
                .next_value()
                .map_err(|error| A::Error::custom(format!("{what} {name:?}: {error}")))?;
            members.insert(name, value);
        }
        Ok(members)
    }
}

macro_rules! unique_maps {
    ($($name:ident: $what:literal => $value:ty),* $(,)?) => {$(
        pub(crate) fn $name<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<BTreeMap<String, $value>, D::Error> {
            deserializer.deserialize_map(Unique {
                what: $what,
                max: Limits::MAX_NODES,
                value: PhantomData,
            })
        }
    )*};
}

unique_maps! {
    nodes: "node" => DocNode,
    subgraphs: "subgraph" => Subgraph,
    widgets: "widget" => Datum,
    links: "link" => Link,
    boundary_inputs: "subgraph input" => Vec<Link>,
    boundary_outputs: "subgraph output" => Link,
    positions: "layout of node" => Position,
    extra: "layout entry" => Datum,
}
