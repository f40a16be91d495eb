//! Keys and values of a checkpoint, and the files beside it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use engine_tensor::Bytes;

use crate::WeightsError;

/// Longest file beside the weights that is read whole.
const SIDE_FILE_CAP_BYTES: u64 = 256 << 20;

/// Files that are looked for beside safetensors.
pub(crate) const SIDE_FILES: &[&str] = &[
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "preprocessor_config.json",
];

/// A metadata value that is not what its reader needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// No such key.
    #[error("metadata key {key:?} is missing")]
    Missing {
        /// The key.
        key: String,
    },
    /// Another type.
    #[error("metadata key {key:?} is {got}, expected {expected}")]
    WrongKind {
        /// The key.
        key: String,
        /// What the file has.
        got: String,
        /// What the reader needs.
        expected: &'static str,
    },
    /// Text that is not UTF-8.
    #[error("metadata key {key:?} holds text that is not UTF-8, at index {index}")]
    NotUtf8 {
        /// The key.
        key: String,
        /// Place in the array; 0 for a single text.
        index: usize,
    },
}

impl MetadataError {
    /// The error of a key that must be there.
    pub fn missing(key: &str) -> Self {
        Self::Missing {
            key: key.to_owned(),
        }
    }
}

/// Element type of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the type of its name")]
pub enum ArrayKind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
    Bool,
    Text,
    Array,
}

impl ArrayKind {
    /// Bytes of an element; `None` where they vary.
    pub const fn element_bytes(self) -> Option<usize> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::Text | Self::Array => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bool => "bool",
            Self::Text => "text",
            Self::Array => "array",
        }
    }
}

/// An array left in the file until someone reads it.
#[derive(Debug, Clone)]
pub struct Array {
    kind: ArrayKind,
    len: usize,
    bytes: Bytes,
}

impl Array {
    /// `bytes` must have been walked: `len` elements of `kind`, nothing else.
    pub(crate) const fn walked(kind: ArrayKind, len: usize, bytes: Bytes) -> Self {
        Self { kind, len, bytes }
    }

    /// Type of its elements.
    pub const fn kind(&self) -> ArrayKind {
        self.kind
    }

    /// Number of elements.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of each text, in order; nothing for arrays of other types. Ends early when the
    /// file was cut since it was opened.
    pub fn text_bytes(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest: &[u8] = match self.kind {
            ArrayKind::Text => &self.bytes,
            _ => &[],
        };
        std::iter::from_fn(move || {
            let (len, after) = rest.split_first_chunk::<8>()?;
            let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
            let text = after.get(..len)?;
            rest = &after[len..];
            Some(text)
        })
    }

    fn numbers<const N: usize, T>(&self, of: impl Fn([u8; N]) -> T) -> Vec<T> {
        self.bytes
            .as_chunks::<N>()
            .0
            .iter()
            .map(|b| of(*b))
            .collect()
    }

    /// Whole numbers widened to i64; `None` for other types or a u64 over `i64::MAX`.
    pub fn integers(&self) -> Option<Vec<i64>> {
        Some(match self.kind {
            ArrayKind::U8 | ArrayKind::Bool => self.numbers(|b: [u8; 1]| i64::from(b[0])),
            ArrayKind::I8 => self.numbers(|b| i64::from(i8::from_le_bytes(b))),
            ArrayKind::U16 => self.numbers(|b| i64::from(u16::from_le_bytes(b))),
            ArrayKind::I16 => self.numbers(|b| i64::from(i16::from_le_bytes(b))),
            ArrayKind::U32 => self.numbers(|b| i64::from(u32::from_le_bytes(b))),
            ArrayKind::I32 => self.numbers(|b| i64::from(i32::from_le_bytes(b))),
            ArrayKind::I64 => self.numbers(i64::from_le_bytes),
            ArrayKind::U64 => self
                .numbers(|b| i64::try_from(u64::from_le_bytes(b)).ok())
                .into_iter()
                .collect::<Option<_>>()?,
            ArrayKind::F32 | ArrayKind::F64 | ArrayKind::Text | ArrayKind::Array => return None,
        })
    }

    /// Floats as f64; `None` for other types.
    pub fn floats(&self) -> Option<Vec<f64>> {
        match self.kind {
            ArrayKind::F32 => Some(self.numbers(|b| f64::from(f32::from_le_bytes(b)))),
            ArrayKind::F64 => Some(self.numbers(f64::from_le_bytes)),
            _ => None,
        }
    }
}

/// One metadata value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// An unsigned number of any width.
    Unsigned(u64),
    /// A signed number of any width.
    Signed(i64),
    /// A float of either width.
    Float(f64),
    /// Text.
    Text(Box<str>),
    /// Bytes that were meant as text but are not UTF-8.
    NotUtf8(Box<[u8]>),
    /// Many of one type.
    Array(Array),
}

impl Value {
    /// What it is, for messages.
    pub fn describe(&self) -> String {
        match self {
            Self::Bool(_) => "a bool".to_owned(),
            Self::Unsigned(_) | Self::Signed(_) => "a whole number".to_owned(),
            Self::Float(_) => "a float".to_owned(),
            Self::Text(_) => "text".to_owned(),
            Self::NotUtf8(_) => "text that is not UTF-8".to_owned(),
            Self::Array(array) => format!("an array of {} {}", array.len, array.kind.name()),
        }
    }
}

/// All keys and values of a checkpoint.
///
/// Typed getters give `Ok(None)` for a key that is not there and an error for a key of another
/// type; whole numbers convert between widths and signs where the value fits.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    values: BTreeMap<String, Value>,
    side_files: BTreeMap<&'static str, PathBuf>,
}

impl Metadata {
    /// Add a value; false when the key was there already.
    pub(crate) fn insert(&mut self, key: String, value: Value) -> bool {
        use std::collections::btree_map::Entry;
        match self.values.entry(key) {
            Entry::Vacant(place) => {
                place.insert(value);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// Note which of the known files lie in `folder`.
    pub(crate) fn find_side_files(&mut self, folder: &Path) {
        for name in SIDE_FILES {
            let path = folder.join(name);
            if path.is_file() {
                self.side_files.insert(name, path);
            }
        }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All keys and values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, MetadataError> {
        let Some(value) = self.values.get(key) else {
            return Ok(None);
        };
        if matches!(value, Value::NotUtf8(_)) && expected == "text" {
            return Err(MetadataError::NotUtf8 {
                key: key.to_owned(),
                index: 0,
            });
        }
        match convert(value) {
            Some(converted) => Ok(Some(converted)),
            None => Err(MetadataError::WrongKind {
                key: key.to_owned(),
                got: value.describe(),
                expected,
            }),
        }
    }

    /// A text.
    ///
    /// # Errors
    /// [`MetadataError::WrongKind`] or [`MetadataError::NotUtf8`].
    pub fn text(&self, key: &str) -> Result<Option<&str>, MetadataError> {
        self.typed(key, "text", |value| match value {
            Value::Text(text) => Some(&**text),
            _ => None,
        })
    }

    /// A whole number from 0.
    ///
    /// # Errors
    /// [`MetadataError::WrongKind`].
    pub fn unsigned(&self, key: &str) -> Result<Option<u64>, MetadataError> {
        self.typed(key, "a whole number from 0", |value| match value {
            Value::Unsigned(number) => Some(*number),
            Value::Signed(number) => u64::try_from(*number).ok(),
            _ => None,
        })
    }

    /// A whole number.
    ///
    /// # Errors
    /// [`MetadataError::WrongKind`].
    pub fn integer(&self, key: &str) -> Result<Option<i64>, MetadataError> {
        self.typed(key, "a whole number", |value| match value {
            Value::Unsigned(number) => i64::try_from(*number).ok(),
            Value::Signed(number) => Some(*number),
            _ => None,
        })
    }

    /// A number.
    ///
    /// # Errors
    /// [`MetadataError::WrongKind`].
    pub fn float(&self, key: &str) -> Result<Option<f64>, MetadataError> {
        self.typed(key, "a number", |value| match value {
            Value::Float(number) => Some(*number),
            Value::Unsigned(number) => Some(*number as f64),
            Value::Signed(number) => Some(*number as f64),
            _ => None,
        })
    }

    /// True or false.
    ///
    /// # Errors
    /// [`MetadataError::WrongKind`].
    pub fn bool(&self, key: &str) -> Result<Option<bool>, MetadataError> {
        self.typed(key, "a bool", |value| match value {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        })
    }

    /// An array, as it lies in the file.
    ///
    /// # Errors
    /// [`MetadataError::WrongKind`].
    pub fn array(&self, key: &str) -> Result<Option<&Array>, MetadataError> {
        self.typed(key, "an array", |value| match value {
            Value::Array(array) => Some(array),
            _ => None,
        })
    }

    /// A copy of an array of texts.
    ///
    /// # Errors
    /// [`MetadataError::WrongKind`] or [`MetadataError::NotUtf8`].
    pub fn texts(&self, key: &str) -> Result<Option<Vec<String>>, MetadataError> {
        let array = self.typed(key, "an array of texts", |value| match value {
            Value::Array(array) if array.kind == ArrayKind::Text => Some(array),
            _ => None,
        })?;
        let Some(array) = array else {
            return Ok(None);
        };
        let copied = array.text_bytes().enumerate().map(|(index, bytes)| {
            String::from_utf8(bytes.to_vec()).map_err(|_only_the_place_matters| {
                MetadataError::NotUtf8 {
                    key: key.to_owned(),
                    index,
                }
            })
        });
        copied.collect::<Result<_, _>>().map(Some)
    }

    /// A copy of an array of whole numbers.
    ///
    /// # Errors
    /// [`MetadataError::WrongKind`].
    pub fn integers(&self, key: &str) -> Result<Option<Vec<i64>>, MetadataError> {
        self.typed(key, "an array of whole numbers", |value| match value {
            Value::Array(array) => array.integers(),
            _ => None,
        })
    }

    /// A copy of an array of floats.
    ///
    /// # Errors
    /// [`MetadataError::WrongKind`].
    pub fn floats(&self, key: &str) -> Result<Option<Vec<f64>>, MetadataError> {
        self.typed(key, "an array of floats", |value| match value {
            Value::Array(array) => array.floats(),
            _ => None,
        })
    }

    /// Path of a file beside the weights, such as `"config.json"` or `"tokenizer.json"`; always
    /// `None` for GGUF.
    pub fn side_file(&self, name: &str) -> Option<&Path> {
        self.side_files.get(name).map(PathBuf::as_path)
    }

    /// Names and paths of all files found beside the weights.
    pub fn side_files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        self.side_files
            .iter()
            .map(|(name, path)| (*name, path.as_path()))
    }

    /// The whole of a file beside the weights, at most 256 MiB; `None` when it is not there.
    ///
    /// # Errors
    /// [`WeightsError::Io`] or [`WeightsError::OverCap`].
    pub fn read_side_file(&self, name: &str) -> Result<Option<Vec<u8>>, WeightsError> {
        self.side_file(name).map(read_bounded).transpose()
    }
}

/// The whole of a file of at most 256 MiB.
pub(crate) fn read_bounded(path: &Path) -> Result<Vec<u8>, WeightsError> {
    let file = File::open(path).map_err(|e| WeightsError::io("open a file", path, e))?;
    let mut bytes = Vec::new();
    file.take(SIDE_FILE_CAP_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| WeightsError::io("read a file", path, e))?;
    if bytes.len() as u64 > SIDE_FILE_CAP_BYTES {
        return Err(WeightsError::OverCap {
            what: "bytes of a file beside weights".to_owned(),
            got: bytes.len() as u64,
            max: SIDE_FILE_CAP_BYTES,
            path: path.to_owned(),
        });
    }
    Ok(bytes)
}
