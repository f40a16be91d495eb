//! safetensors: one file, shards with an index, or a folder of either.
//!
//! Read by our own header reader: the `safetensors` crate refuses numbers in `__metadata__`, gaps
//! between tensors and headers over 100 MB, all of which exist.

mod header;
mod index;
mod write;

use std::path::{Path, PathBuf};

use engine_tensor::Bytes;

pub use self::header::HEADER_CAP_BYTES;
use self::header::Header;
use self::index::Index;
pub use self::write::{safetensors_bytes, write_safetensors};
use crate::checkpoint::{Checkpoint, CheckpointKind, WeightFile};
use crate::mapped::map;
use crate::sniff::{files_ending, listed};
use crate::table::{Table, short};
use crate::{Metadata, TensorRef, WeightsError};

/// Names looked for in a folder, in this order.
const WHOLE_FILES: &[&str] = &["model.safetensors", "diffusion_pytorch_model.safetensors"];
const INDEX_END: &str = ".safetensors.index.json";

/// An open safetensors checkpoint.
///
/// Metadata are `__metadata__` of the (first) file and the paths of configuration and tokenizer
/// files in its folder.
#[derive(Debug)]
pub struct SafeTensors {
    files: Vec<WeightFile>,
    bytes: Vec<Bytes>,
    table: Table,
    metadata: Metadata,
    notes: Vec<String>,
}

impl SafeTensors {
    /// Open a file, an index (`….safetensors.index.json`) with its shards, or a folder.
    ///
    /// In a folder `model.safetensors` comes first, then
    /// `diffusion_pytorch_model.safetensors`, then an index, then the only file there is.
    ///
    /// # Errors
    /// [`WeightsError`]: what the file is instead, or what is wrong with it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WeightsError> {
        let path = path.as_ref();
        let chosen = if path.is_dir() {
            choose(path)?
        } else {
            path.to_owned()
        };
        if chosen.extension().is_some_and(|end| end == "json") {
            return Self::open_index(&chosen);
        }
        Self::of_mapped(map(&chosen)?, &chosen)
    }

    /// Read a file from memory; `path` is only named in errors.
    ///
    /// # Errors
    /// As [`SafeTensors::open`].
    pub fn from_bytes(bytes: impl Into<Bytes>, path: &Path) -> Result<Self, WeightsError> {
        let bytes = bytes.into();
        let header = Header::read(&bytes, 0, path)?;
        Ok(Self {
            files: vec![WeightFile {
                path: path.to_owned(),
                len_bytes: bytes.len() as u64,
            }],
            bytes: vec![bytes],
            table: Table::new(header.entries, path)?,
            metadata: header.metadata,
            notes: header.notes,
        })
    }

    pub(crate) fn of_mapped(bytes: Bytes, path: &Path) -> Result<Self, WeightsError> {
        let mut opened = Self::from_bytes(bytes, path)?;
        if let Some(folder) = path.parent() {
            opened.metadata.find_side_files(folder);
        }
        Ok(opened)
    }

    fn open_index(path: &Path) -> Result<Self, WeightsError> {
        let index = Index::read(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut files = Vec::new();
        let mut all_bytes = Vec::new();
        let mut entries = Vec::new();
        let mut notes = Vec::new();
        let mut metadata: Option<Metadata> = None;
        for (file, shard) in (0u32..).zip(&index.files) {
            let shard_path = folder.join(shard);
            if !shard_path.is_file() {
                return Err(WeightsError::MissingFile {
                    name: shard.clone(),
                    path: path.to_owned(),
                });
            }
            let bytes = map(&shard_path)?;
            let header = Header::read(&bytes, file, &shard_path)?;
            notes.extend(
                header
                    .notes
                    .into_iter()
                    .map(|note| format!("{shard:?}: {note}")),
            );
            metadata.get_or_insert(header.metadata);
            for entry in header.entries {
                match index.file_of(&entry.name) {
                    Some(place) if place == file => entries.push(entry),
                    _ => notes.push(format!(
                        "tensor {:?} of {shard:?} is left out: the index does not name it there",
                        short(&entry.name)
                    )),
                }
            }
            files.push(WeightFile {
                path: shard_path,
                len_bytes: bytes.len() as u64,
            });
            all_bytes.push(bytes);
        }
        let table = Table::new(entries, path)?;
        if let Some((name, file)) = index.first_absent(&table) {
            return Err(WeightsError::MissingTensor {
                name: name.to_owned(),
                path: folder.join(&index.files[file as usize]),
            });
        }
        let mut metadata = metadata.unwrap_or_default();
        metadata.find_side_files(folder);
        Ok(Self {
            files,
            bytes: all_bytes,
            table,
            metadata,
            notes,
        })
    }
}

/// The file or index to open in a folder.
fn choose(folder: &Path) -> Result<PathBuf, WeightsError> {
    for name in WHOLE_FILES {
        let path = folder.join(name);
        if path.is_file() {
            return Ok(path);
        }
    }
    let refused = |what: &str, found: &[PathBuf]| WeightsError::Folder {
        what: format!("{what}{}", listed(found)),
        path: folder.to_owned(),
    };
    let mut indexes = files_ending(folder, INDEX_END)?;
    match indexes.len() {
        0 => {}
        1 => return Ok(indexes.remove(0)),
        _ => return Err(refused("several indexes, expected one: ", &indexes)),
    }
    let mut files = files_ending(folder, ".safetensors")?;
    match files.len() {
        0 => Err(refused("no safetensors or GGUF files in it", &files)),
        1 => Ok(files.remove(0)),
        _ => Err(refused("several safetensors files and no index: ", &files)),
    }
}

impl Checkpoint for SafeTensors {
    fn kind(&self) -> CheckpointKind {
        CheckpointKind::SafeTensors
    }

    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.table.names())
    }

    fn tensor(&self, name: &str) -> Option<TensorRef> {
        self.table.tensor(name, &self.bytes)
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn files(&self) -> &[WeightFile] {
        &self.files
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}
