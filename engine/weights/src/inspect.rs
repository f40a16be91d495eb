//! What a checkpoint holds, for people.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Array, Checkpoint, CheckpointKind, Value, WeightFile, WeightsError, open};

/// Longest text shown whole, in characters.
const SHOWN_CHARS: usize = 200;

/// How much of a checkpoint is stored as one type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DtypeUse {
    /// Tensors of the type.
    pub tensors: u64,
    /// Their elements.
    pub parameters: u64,
    /// Their bytes in the file.
    pub bytes: u64,
}

/// What a checkpoint holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inspection {
    /// The file format.
    pub kind: CheckpointKind,
    /// What the file says it is, such as `llama`: GGUF's `general.architecture`, or
    /// `architectures` or `model_type` of a `config.json`.
    pub architecture: Option<String>,
    /// What the file calls itself.
    pub name: Option<String>,
    /// Number of tensors.
    pub tensors: u64,
    /// Elements of all tensors.
    pub parameters: u64,
    /// Bytes of all tensors.
    pub bytes: u64,
    /// The same by element type.
    pub dtypes: BTreeMap<String, DtypeUse>,
    /// Keys and values; long texts cut, arrays as their length and type.
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// Files that hold the tensors.
    pub files: Vec<WeightFile>,
    /// Names of the files beside them.
    pub side_files: Vec<String>,
    /// What was odd but harmless.
    pub notes: Vec<String>,
}

/// Open the weights at `path` and say what they hold. Reads headers only.
///
/// # Errors
/// Whatever [`open`] fails with.
pub fn inspect(path: &Path) -> Result<Inspection, WeightsError> {
    Ok(Inspection::of(&*open(path)?))
}

impl Inspection {
    /// What an open checkpoint holds.
    pub fn of(checkpoint: &dyn Checkpoint) -> Self {
        let metadata = checkpoint.metadata();
        let mut dtypes: BTreeMap<String, DtypeUse> = BTreeMap::new();
        let mut total = DtypeUse::default();
        for tensor in checkpoint
            .names()
            .filter_map(|name| checkpoint.tensor(name))
        {
            let of_type = dtypes.entry(tensor.dtype.name().to_owned()).or_default();
            for sum in [of_type, &mut total] {
                sum.tensors += 1;
                sum.parameters += tensor.elements() as u64;
                sum.bytes += tensor.bytes.len() as u64;
            }
        }
        let text = |key| metadata.text(key).ok().flatten().map(str::to_owned);
        let (architecture, name) = match checkpoint.kind() {
            CheckpointKind::Gguf => (text("general.architecture"), text("general.name")),
            CheckpointKind::SafeTensors => (config_architecture(checkpoint), None),
        };
        Self {
            kind: checkpoint.kind(),
            architecture,
            name,
            tensors: total.tensors,
            parameters: total.parameters,
            bytes: total.bytes,
            dtypes,
            metadata: metadata
                .iter()
                .map(|(key, value)| (key.to_owned(), shown(value)))
                .collect(),
            files: checkpoint.files().to_vec(),
            side_files: metadata
                .side_files()
                .map(|(name, _)| name.to_owned())
                .collect(),
            notes: checkpoint.notes().to_vec(),
        }
    }
}

fn config_architecture(checkpoint: &dyn Checkpoint) -> Option<String> {
    let bytes = checkpoint.metadata().read_side_file("config.json").ok()??;
    let config: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    let first = config["architectures"][0].as_str();
    let text = first
        .or(config["model_type"].as_str())
        .or(config["_class_name"].as_str())?;
    Some(text.to_owned())
}

fn shown(value: &Value) -> serde_json::Value {
    match value {
        Value::Bool(flag) => (*flag).into(),
        Value::Unsigned(number) => (*number).into(),
        Value::Signed(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Text(text) => cut(text).into(),
        Value::NotUtf8(bytes) => format!("{} bytes that are not UTF-8", bytes.len()).into(),
        Value::Array(array) => shown_array(array),
    }
}

fn shown_array(array: &Array) -> serde_json::Value {
    Value::Array(array.clone()).describe().into()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
