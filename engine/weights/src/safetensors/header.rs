//! The header of one safetensors file.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use engine_tensor::{Bytes, DType};
use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use crate::CheckpointKind;
use crate::error::WeightsError;
use crate::metadata::{Metadata, Value};
use crate::sniff::{kind_of, not_weights};
use crate::table::{DIMS_CAP, Entry, TENSORS_CAP, check_places, short, sized};

/// Longest header that is read, 256 MiB. The format's usual limit of 100 MB is too low for
/// checkpoints with more than a million tensors.
pub const HEADER_CAP_BYTES: u64 = 256 << 20;

/// Most keys in `__metadata__`.
const KEYS_CAP: usize = 65_536;
/// Bytes before the header: its length.
const PREFIX_BYTES: usize = 8;
/// Key of the text metadata.
const METADATA: &str = "__metadata__";

/// What the header of one file says.
pub(super) struct Header {
    pub(super) metadata: Metadata,
    pub(super) entries: Vec<Entry>,
    pub(super) notes: Vec<String>,
}

impl Header {
    /// Read and check the header of file number `file`.
    pub(super) fn read(bytes: &Bytes, file: u32, path: &Path) -> Result<Self, WeightsError> {
        let prefix = match bytes.first_chunk::<PREFIX_BYTES>() {
            Some(prefix) if kind_of(bytes) == Some(CheckpointKind::SafeTensors) => *prefix,
            _ => return Err(not_weights(bytes, path)),
        };
        let header_bytes = u64::from_le_bytes(prefix);
        if header_bytes > HEADER_CAP_BYTES {
            return Err(WeightsError::OverCap {
                what: "bytes of a safetensors header".to_owned(),
                got: header_bytes,
                max: HEADER_CAP_BYTES,
                path: path.to_owned(),
            });
        }
        let data_start = PREFIX_BYTES + header_bytes as usize;
        let text = bytes
            .get(PREFIX_BYTES..data_start)
            .ok_or_else(|| WeightsError::CutShort {
                what: "the header".to_owned(),
                expected_bytes: data_start as u64,
                got_bytes: bytes.len() as u64,
                path: path.to_owned(),
            })?;
        let mut read = HeaderRead {
            file,
            path,
            metadata: Metadata::default(),
            entries: Vec::new(),
            notes: Vec::new(),
            refused: None,
        };
        // Names are borrowed from the text while it is read: from a copy, as the file may change.
        let text = text.to_vec();
        let mut json = serde_json::Deserializer::from_slice(&text);
        let parsed = (&mut read).deserialize(&mut json).and_then(|()| json.end());
        if let Some(refused) = read.refused.take() {
            return Err(refused);
        }
        parsed.map_err(|error| {
            let why = error.to_string();
            let what = format!("cannot read the safetensors header: {}", short(&why));
            WeightsError::damaged(what, path)
        })?;
        let HeaderRead {
            metadata,
            mut entries,
            mut notes,
            ..
        } = read;
        for entry in &mut entries {
            let moved = |at: usize| at.checked_add(data_start);
            let (Some(start), Some(end)) = (moved(entry.range.start), moved(entry.range.end))
            else {
                let what = format!("tensor {:?} lies too far out", short(&entry.name));
                return Err(WeightsError::damaged(what, path));
            };
            entry.range = start..end;
        }
        let (holes, end) = check_places(&entries, data_start, bytes.len(), path)?;
        if holes > 0 {
            notes.push(format!("{holes} bytes between tensors belong to none"));
        }
        let trailing = bytes.len().saturating_sub(end);
        if trailing > 0 {
            notes.push(format!(
                "{trailing} bytes after the last tensor belong to none"
            ));
        }
        Ok(Self {
            metadata,
            entries,
            notes,
        })
    }
}

/// The header while it is read. Tensors go straight into their final form, so that memory stays
/// a small multiple of the header whatever it holds.
struct HeaderRead<'p> {
    file: u32,
    path: &'p Path,
    metadata: Metadata,
    entries: Vec<Entry>,
    notes: Vec<String>,
    /// An error of ours, kept whole while the JSON reader is stopped with another.
    refused: Option<WeightsError>,
}

#[derive(Deserialize)]
struct TensorInfo<'a> {
    #[serde(borrow)]
    dtype: Cow<'a, str>,
    shape: Dims,
    data_offsets: (u64, u64),
}

impl HeaderRead<'_> {
    fn add(&mut self, name: Box<str>, info: &TensorInfo<'_>) -> Result<(), WeightsError> {
        let path = self.path;
        if self.entries.len() >= TENSORS_CAP {
            return Err(WeightsError::OverCap {
                what: "tensors".to_owned(),
                got: self.entries.len() as u64 + 1,
                max: TENSORS_CAP as u64,
                path: path.to_owned(),
            });
        }
        let dtype = dtype(&info.dtype).ok_or_else(|| WeightsError::UnsupportedType {
            name: short(&name).to_owned(),
            got: short(&info.dtype).to_owned(),
            path: path.to_owned(),
        })?;
        let shape = info.shape.as_slice();
        let (start, end) = info.data_offsets;
        let expected = sized(&name, dtype, shape, path)?;
        if end.checked_sub(start) != Some(expected as u64) {
            let what = format!(
                "tensor {:?} of type {dtype} and shape {shape:?} lies at bytes {start}..{end}, \
                 expected {expected} bytes",
                short(&name)
            );
            return Err(WeightsError::damaged(what, path));
        }
        let (Ok(start), Ok(end)) = (usize::try_from(start), usize::try_from(end)) else {
            let what = format!("tensor {:?} lies too far out", short(&name));
            return Err(WeightsError::damaged(what, path));
        };
        self.entries.push(Entry {
            name,
            shape: shape.into(),
            range: start..end,
            file: self.file,
            dtype,
        });
        Ok(())
    }
}

fn dtype(name: &str) -> Option<DType> {
    Some(match name {
        "F32" => DType::F32,
        "F16" => DType::F16,
        "BF16" => DType::BF16,
        "F8_E4M3" => DType::F8_E4M3,
        "F64" => DType::F64,
        "I8" => DType::I8,
        "I16" => DType::I16,
        "I32" => DType::I32,
        "I64" => DType::I64,
        "U8" => DType::U8,
        "BOOL" => DType::Bool,
        _ => return None,
    })
}

impl<'de> DeserializeSeed<'de> for &mut HeaderRead<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut HeaderRead<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensor names to tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut has_metadata = false;
        while let Some(name) = map.next_key::<Box<str>>()? {
            if &*name == METADATA {
                if has_metadata {
                    return Err(A::Error::custom("\"__metadata__\" stands twice"));
                }
                has_metadata = true;
                map.next_value_seed(MetadataRead(self))?;
                continue;
            }
            let info: TensorInfo<'de> = map.next_value()?;
            if let Err(refused) = self.add(name, &info) {
                self.refused = Some(refused);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

/// Reads `__metadata__`. Texts are kept; single numbers and flags are kept as their text with a
/// note; lists and objects are dropped with a note.
struct MetadataRead<'r, 'p>(&'r mut HeaderRead<'p>);

impl<'de> DeserializeSeed<'de> for MetadataRead<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MetadataRead<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts in \"__metadata__\"")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut left = KEYS_CAP;
        while let Some((key, value)) = map.next_entry::<String, MetadataValue>()? {
            if left == 0 {
                return Err(A::Error::custom("too many keys in \"__metadata__\""));
            }
            left -= 1;
            let note = |what| format!("metadata key {:?} {what}", short(&key));
            let text = match value {
                MetadataValue::Text(text) => text,
                MetadataValue::Other(text) => {
                    self.0
                        .notes
                        .push(note("is not text in the file; kept as its text"));
                    text.into()
                }
                MetadataValue::Nested => {
                    self.0
                        .notes
                        .push(note("is not text but a list or an object; left out"));
                    continue;
                }
            };
            let twice = format!("metadata key {:?} stands twice", short(&key));
            if !self.0.metadata.insert(key, Value::Text(text)) {
                return Err(A::Error::custom(twice));
            }
        }
        Ok(())
    }
}

enum MetadataValue {
    Text(Box<str>),
    Other(String),
    Nested,
}

impl<'de> Deserialize<'de> for MetadataValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = MetadataValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E>(self, text: &str) -> Result<MetadataValue, E> {
                Ok(MetadataValue::Text(text.into()))
            }

            fn visit_bool<E>(self, flag: bool) -> Result<MetadataValue, E> {
                Ok(MetadataValue::Other(flag.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<MetadataValue, E> {
                Ok(MetadataValue::Other(number.to_string()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<MetadataValue, E> {
                Ok(MetadataValue::Other(number.to_string()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<MetadataValue, E> {
                Ok(MetadataValue::Other(number.to_string()))
            }

            fn visit_unit<E>(self) -> Result<MetadataValue, E> {
                Ok(MetadataValue::Other("null".to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<MetadataValue, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(MetadataValue::Nested)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MetadataValue, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(MetadataValue::Nested)
            }
        }

        deserializer.deserialize_any(Any)
    }
}

/// A shape of few dimensions, read without allocating.
struct Dims {
    dims: [usize; DIMS_CAP],
    len: usize,
}

impl Dims {
    fn as_slice(&self) -> &[usize] {
        &self.dims[..self.len]
    }
}

impl<'de> Deserialize<'de> for Dims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Few;

        impl<'de> Visitor<'de> for Few {
            type Value = Dims;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a shape of at most {DIMS_CAP} dimensions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Dims, A::Error> {
                let mut read = Dims {
                    dims: [0; DIMS_CAP],
                    len: 0,
                };
                while let Some(dim) = seq.next_element::<usize>()? {
                    let place = read.dims.get_mut(read.len).ok_or_else(|| {
                        A::Error::custom(format_args!("shape has over {DIMS_CAP} dimensions"))
                    })?;
                    *place = dim;
                    read.len += 1;
                }
                Ok(read)
            }
        }

        deserializer.deserialize_seq(Few)
    }
}
