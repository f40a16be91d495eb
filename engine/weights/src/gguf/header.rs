//! The header of one GGUF file: keys, values, and where tensors lie.

use std::path::Path;

use engine_tensor::{Bytes, DType};

use super::cursor::Cursor;
use crate::error::WeightsError;
use crate::metadata::{Array, ArrayKind, Metadata, Value};
use crate::sniff::not_weights;
use crate::table::{DIMS_CAP, Entry, TENSORS_CAP, check_places, short, sized};

/// Most keys of a file.
const KEYS_CAP: usize = 65_536;
/// Longest key; the format's own limit.
const KEY_CAP_BYTES: usize = 65_535;
/// Longest name of a tensor.
const NAME_CAP_BYTES: usize = 4_096;
/// Most bytes of all single texts together (arrays of texts stay in the file).
const TEXT_CAP_BYTES: usize = 64 << 20;
/// Deepest array in arrays.
const ARRAY_DEPTH_CAP: u32 = 4;
/// Alignment of a file that does not say.
const DEFAULT_ALIGNMENT: u64 = 32;
/// Largest alignment that is believed.
const ALIGNMENT_CAP: u64 = 1 << 20;

/// Smallest key with value: length, no text, type, one byte.
const KEY_MIN_BYTES: usize = 13;
/// Smallest tensor entry: length of the name, dimensions, type, offset.
const ENTRY_MIN_BYTES: usize = 24;

/// One file of a checkpoint.
pub(super) struct Part {
    pub(super) version: u32,
    pub(super) metadata: Metadata,
    pub(super) entries: Vec<Entry>,
    pub(super) notes: Vec<String>,
}

impl Part {
    /// Read and check the header of file number `file`.
    pub(super) fn read(bytes: &Bytes, file: u32, path: &Path) -> Result<Self, WeightsError> {
        let mut cursor = Cursor::new(bytes, path);
        if !bytes.starts_with(b"GGUF") {
            return Err(not_weights(bytes, path));
        }
        cursor.take(4, "the magic bytes")?;
        let version = checked_version(&mut cursor)?;
        // The number of tensors stands before the number of keys, the tensors after the keys.
        let tensors = cursor.u64("the number of tensors")?;
        let tensors = cursor.check_count(tensors, "tensors", ENTRY_MIN_BYTES, TENSORS_CAP)?;
        let keys = cursor.count("metadata keys", KEY_MIN_BYTES, KEYS_CAP)?;
        let metadata = read_metadata(&mut cursor, keys, bytes)?;
        let alignment = alignment(&metadata, &cursor)?;
        cursor.check_count(tensors as u64, "tensors", ENTRY_MIN_BYTES, TENSORS_CAP)?;
        let mut entries = Vec::with_capacity(tensors);
        for _ in 0..tensors {
            entries.push(read_entry(&mut cursor, file, alignment)?);
        }
        let data_start = (cursor.at() as u64).next_multiple_of(alignment) as usize;
        for entry in &mut entries {
            let end = entry.range.end.checked_add(data_start).ok_or_else(|| {
                let what = format!("tensor {:?} lies too far out", short(&entry.name));
                WeightsError::damaged(what, path)
            })?;
            entry.range = entry.range.start + data_start..end;
        }
        let (_padding, end) = check_places(&entries, data_start, bytes.len(), path)?;
        let mut notes = Vec::new();
        let trailing = bytes.len().saturating_sub(end) as u64;
        if trailing >= alignment {
            notes.push(format!(
                "{trailing} bytes after the last tensor belong to none"
            ));
        }
        Ok(Self {
            version,
            metadata,
            entries,
            notes,
        })
    }
}

fn checked_version(cursor: &mut Cursor<'_>) -> Result<u32, WeightsError> {
    let version = cursor.u32("the version")?;
    if matches!(version, 2 | 3) {
        return Ok(version);
    }
    let swapped = version.swap_bytes();
    let got = if (1..=0xffff).contains(&swapped) && version > 0xffff {
        format!("version {swapped}, big endian")
    } else {
        format!("version {version}")
    };
    Err(WeightsError::Version {
        got,
        path: cursor.path().to_owned(),
    })
}

fn read_metadata(
    cursor: &mut Cursor<'_>,
    keys: usize,
    bytes: &Bytes,
) -> Result<Metadata, WeightsError> {
    let mut metadata = Metadata::default();
    let mut text_left = TEXT_CAP_BYTES;
    for _ in 0..keys {
        let key = cursor.text("a metadata key", KEY_CAP_BYTES)?.to_vec();
        let key = String::from_utf8(key)
            .map_err(|_no_more_to_say| cursor.damaged("a metadata key is not UTF-8"))?;
        let kind = cursor.u32("the type of a metadata value")?;
        let value = read_value(cursor, kind, &key, bytes, &mut text_left)?;
        if !metadata.insert(key.clone(), value) {
            let what = format!("metadata key {:?} stands twice", short(&key));
            return Err(cursor.damaged(what));
        }
    }
    Ok(metadata)
}

fn read_value(
    cursor: &mut Cursor<'_>,
    kind: u32,
    key: &str,
    bytes: &Bytes,
    text_left: &mut usize,
) -> Result<Value, WeightsError> {
    let what = "a metadata value";
    Ok(match array_kind(kind) {
        Some(ArrayKind::U8) => Value::Unsigned(cursor.u8(what)?.into()),
        Some(ArrayKind::I8) => Value::Signed(cursor.u8(what)?.cast_signed().into()),
        Some(ArrayKind::U16) => Value::Unsigned(cursor.u16(what)?.into()),
        Some(ArrayKind::I16) => Value::Signed(cursor.u16(what)?.cast_signed().into()),
        Some(ArrayKind::U32) => Value::Unsigned(cursor.u32(what)?.into()),
        Some(ArrayKind::I32) => Value::Signed(cursor.u32(what)?.cast_signed().into()),
        Some(ArrayKind::U64) => Value::Unsigned(cursor.u64(what)?),
        Some(ArrayKind::I64) => Value::Signed(cursor.u64(what)?.cast_signed()),
        Some(ArrayKind::F32) => Value::Float(f32::from_bits(cursor.u32(what)?).into()),
        Some(ArrayKind::F64) => Value::Float(f64::from_bits(cursor.u64(what)?)),
        Some(ArrayKind::Bool) => match cursor.u8(what)? {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            other => {
                let what = format!("metadata key {:?} is bool {other}", short(key));
                return Err(cursor.damaged(what));
            }
        },
        Some(ArrayKind::Text) => {
            let text = cursor.text(what, *text_left)?.to_vec();
            *text_left -= text.len();
            match String::from_utf8(text) {
                Ok(text) => Value::Text(text.into()),
                Err(error) => Value::NotUtf8(error.into_bytes().into()),
            }
        }
        Some(ArrayKind::Array) => {
            let (kind, len) = array_head(cursor, key)?;
            let start = cursor.at();
            walk(cursor, kind, len, key, 1)?;
            let walked = bytes.slice(start..cursor.at());
            let walked = walked.ok_or_else(|| cursor.damaged("an array lies outside"))?;
            Value::Array(Array::walked(kind, len, walked))
        }
        None => {
            let what = format!("metadata key {:?} has unknown type {kind}", short(key));
            return Err(cursor.damaged(what));
        }
    })
}

const fn array_kind(id: u32) -> Option<ArrayKind> {
    Some(match id {
        0 => ArrayKind::U8,
        1 => ArrayKind::I8,
        2 => ArrayKind::U16,
        3 => ArrayKind::I16,
        4 => ArrayKind::U32,
        5 => ArrayKind::I32,
        6 => ArrayKind::F32,
        7 => ArrayKind::Bool,
        8 => ArrayKind::Text,
        9 => ArrayKind::Array,
        10 => ArrayKind::U64,
        11 => ArrayKind::I64,
        12 => ArrayKind::F64,
        _ => return None,
    })
}

fn array_head(cursor: &mut Cursor<'_>, key: &str) -> Result<(ArrayKind, usize), WeightsError> {
    let id = cursor.u32("the type of an array")?;
    let kind = array_kind(id).ok_or_else(|| {
        let what = format!("array {:?} has unknown element type {id}", short(key));
        cursor.damaged(what)
    })?;
    let min_bytes = match kind {
        ArrayKind::Text => 8,
        ArrayKind::Array => 12,
        _ => kind.element_bytes().unwrap_or(1),
    };
    let what = format!("elements of array {:?}", short(key));
    let len = cursor.count(&what, min_bytes, u32::MAX as usize)?;
    Ok((kind, len))
}

/// Step over the elements of an array; each takes bytes, so time is bounded by the file.
fn walk(
    cursor: &mut Cursor<'_>,
    kind: ArrayKind,
    len: usize,
    key: &str,
    depth: u32,
) -> Result<(), WeightsError> {
    if depth > ARRAY_DEPTH_CAP {
        let what = format!("arrays within array {:?}", short(key));
        return Err(cursor.over_cap(what, depth.into(), ARRAY_DEPTH_CAP.into()));
    }
    if let Some(element_bytes) = kind.element_bytes() {
        cursor.take(
            (len as u64).saturating_mul(element_bytes as u64),
            "an array",
        )?;
        return Ok(());
    }
    for _ in 0..len {
        if kind == ArrayKind::Text {
            cursor.text("a text of an array", usize::MAX)?;
        } else {
            let (kind, len) = array_head(cursor, key)?;
            walk(cursor, kind, len, key, depth + 1)?;
        }
    }
    Ok(())
}

fn alignment(metadata: &Metadata, cursor: &Cursor<'_>) -> Result<u64, WeightsError> {
    let alignment = metadata
        .unsigned("general.alignment")?
        .unwrap_or(DEFAULT_ALIGNMENT);
    if !alignment.is_power_of_two() || alignment > ALIGNMENT_CAP {
        let what = format!(
            "general.alignment is {alignment}, expected a power of two up to {ALIGNMENT_CAP}"
        );
        return Err(cursor.damaged(what));
    }
    Ok(alignment)
}

/// One tensor, its range counted from the start of the data.
fn read_entry(cursor: &mut Cursor<'_>, file: u32, alignment: u64) -> Result<Entry, WeightsError> {
    let name = cursor
        .text("the name of a tensor", NAME_CAP_BYTES)?
        .to_vec();
    let name = String::from_utf8(name)
        .map_err(|_no_more_to_say| cursor.damaged("the name of a tensor is not UTF-8"))?;
    let dims = cursor.u32("the dimensions of a tensor")?;
    if dims as usize > DIMS_CAP {
        let what = format!("dimensions of tensor {:?}", short(&name));
        return Err(cursor.over_cap(what, dims.into(), DIMS_CAP as u64));
    }
    let mut shape = Vec::with_capacity(dims as usize);
    for _ in 0..dims {
        let dim = cursor.u64("the shape of a tensor")?;
        shape.push(usize::try_from(dim).unwrap_or(usize::MAX));
    }
    shape.reverse();
    let type_id = cursor.u32("the type of a tensor")?;
    let dtype = dtype(type_id).map_err(|got| WeightsError::UnsupportedType {
        name: short(&name).to_owned(),
        got,
        path: cursor.path().to_owned(),
    })?;
    let offset = cursor.u64("the offset of a tensor")?;
    if !offset.is_multiple_of(alignment) {
        let what = format!(
            "tensor {:?} starts at {offset}, expected a multiple of {alignment}",
            short(&name)
        );
        return Err(cursor.damaged(what));
    }
    let len = sized(&name, dtype, &shape, cursor.path())?;
    let start = usize::try_from(offset).ok();
    let range = start.and_then(|start| Some(start..start.checked_add(len)?));
    let range = range.ok_or_else(|| {
        let what = format!("tensor {:?} lies too far out", short(&name));
        cursor.damaged(what)
    })?;
    Ok(Entry {
        name: name.into(),
        shape: shape.into(),
        range,
        file,
        dtype,
    })
}

/// The type with this number in files; the name of one we do not read otherwise.
fn dtype(id: u32) -> Result<DType, String> {
    Ok(match id {
        0 => DType::F32,
        1 => DType::F16,
        2 => DType::Q4_0,
        3 => DType::Q4_1,
        6 => DType::Q5_0,
        7 => DType::Q5_1,
        8 => DType::Q8_0,
        10 => DType::Q2_K,
        11 => DType::Q3_K,
        12 => DType::Q4_K,
        13 => DType::Q5_K,
        14 => DType::Q6_K,
        20 => DType::IQ4_NL,
        24 => DType::I8,
        25 => DType::I16,
        26 => DType::I32,
        27 => DType::I64,
        28 => DType::F64,
        30 => DType::BF16,
        other => {
            let known = UNREAD_TYPES.iter().find(|(id, _)| *id == other);
            return Err(match known {
                Some((_, name)) => (*name).to_owned(),
                None => format!("number {other}"),
            });
        }
    })
}

/// Types that exist but are not read.
const UNREAD_TYPES: &[(u32, &str)] = &[
    (4, "Q4_2"),
    (5, "Q4_3"),
    (9, "Q8_1"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
];
