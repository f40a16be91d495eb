//! safetensors files from tensors in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use engine_tensor::DType;
use serde_json::{Map, Value, json};

use crate::{TensorRef, WeightsError};

fn name_of(dtype: DType) -> Option<&'static str> {
    match dtype {
        DType::F32 => Some("F32"),
        DType::F16 => Some("F16"),
        DType::BF16 => Some("BF16"),
        DType::F8_E4M3 => Some("F8_E4M3"),
        DType::I8 => Some("I8"),
        _ => None,
    }
}

/// `tensors` as a safetensors file, with texts about them.
///
/// # Errors
/// [`WeightsError::UnsupportedType`] for tensors other than f32, f16, bf16 and those of 8 bits; `path` is only named there.
pub fn safetensors_bytes(
    tensors: &BTreeMap<String, TensorRef>,
    about: &[(&str, &str)],
    path: &Path,
) -> Result<Vec<u8>, WeightsError> {
    let mut header = Map::new();
    let about: Map<String, Value> = about
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    header.insert("__metadata__".to_owned(), Value::Object(about));
    let mut end = 0;
    for (name, tensor) in tensors {
        let dtype = name_of(tensor.dtype).ok_or_else(|| WeightsError::UnsupportedType {
            name: name.clone(),
            got: tensor.dtype.to_string(),
            path: path.to_owned(),
        })?;
        let start = end;
        end += tensor.bytes.len();
        let entry = json!({"dtype": dtype, "shape": tensor.shape, "data_offsets": [start, end]});
        header.insert(name.clone(), entry);
    }
    let mut text = Value::Object(header).to_string();
    let padding = text.len().next_multiple_of(8) - text.len();
    text.push_str(&" ".repeat(padding));
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    for tensor in tensors.values() {
        bytes.extend_from_slice(&tensor.bytes);
    }
    Ok(bytes)
}

/// Write `tensors` as a safetensors file, with texts about them. The file appears whole or not at all.
///
/// # Errors
/// [`WeightsError::Io`]; as [`safetensors_bytes`].
pub fn write_safetensors(
    path: &Path,
    tensors: &BTreeMap<String, TensorRef>,
    about: &[(&str, &str)],
) -> Result<(), WeightsError> {
    let bytes = safetensors_bytes(tensors, about, path)?;
    // Several processes may convert the same network; each has a name of its own for it.
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut out = File::create(&part)?;
        out.write_all(&bytes)?;
        out.sync_all()?;
        std::fs::rename(&part, path)
    };
    write().map_err(|source| {
        // What was begun is of no use; if it cannot be removed either, the first error says more.
        drop(std::fs::remove_file(&part));
        WeightsError::io("write weights", path, source)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checkpoint as _, SafeTensors};

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.safetensors");
        let tensor =
            |dtype, shape, bytes: Vec<u8>| TensorRef::new(dtype, shape, bytes.into()).unwrap();
        let tensors = BTreeMap::from([
            (
                "b".to_owned(),
                tensor(DType::F16, vec![3], vec![1, 2, 3, 4, 5, 6]),
            ),
            (
                "a".to_owned(),
                tensor(DType::F32, vec![1, 1], vec![0, 0, 128, 63]),
            ),
        ]);
        write_safetensors(&path, &tensors, &[("format", "pt")]).unwrap();
        let read = SafeTensors::open(&path).unwrap();
        assert_eq!(read.names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(read.tensor("a").unwrap().to_f32().unwrap(), [1.0]);
        let b = read.tensor("b").unwrap();
        assert_eq!((b.shape, &*b.bytes), (vec![3], &[1u8, 2, 3, 4, 5, 6][..]));
        assert!(read.notes().is_empty(), "{:?}", read.notes());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let nowhere = folder.path().join("no/w.safetensors");
        assert!(write_safetensors(&nowhere, &tensors, &[]).is_err());
    }
}
