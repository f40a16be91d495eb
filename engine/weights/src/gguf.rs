//! GGUF version 2 and 3, little endian, one file or several parts.

mod cursor;
mod header;

use std::path::{Path, PathBuf};

use engine_tensor::Bytes;

use self::header::Part;
use crate::checkpoint::{Checkpoint, CheckpointKind, WeightFile};
use crate::mapped::map;
use crate::table::Table;
use crate::{Metadata, TensorRef, WeightsError};

/// Key of the number of parts.
const SPLIT_COUNT: &str = "split.count";
/// Key of a part's place, from 0.
const SPLIT_NO: &str = "split.no";
/// Key of the number of tensors in all parts.
const SPLIT_TENSORS: &str = "split.tensors.count";

/// An open GGUF checkpoint.
#[derive(Debug)]
pub struct Gguf {
    version: u32,
    files: Vec<WeightFile>,
    bytes: Vec<Bytes>,
    table: Table,
    metadata: Metadata,
    notes: Vec<String>,
}

impl Gguf {
    /// Open a file; of a checkpoint in several parts, any of them opens all.
    ///
    /// # Errors
    /// [`WeightsError`]: what the file is instead, or what is wrong with it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WeightsError> {
        let path = path.as_ref();
        Self::of_mapped(map(path)?, path)
    }

    /// Read a checkpoint from memory; `path` is only named in errors. Other parts are not looked
    /// for.
    ///
    /// # Errors
    /// As [`Gguf::open`].
    pub fn from_bytes(bytes: impl Into<Bytes>, path: &Path) -> Result<Self, WeightsError> {
        let bytes = bytes.into();
        let part = Part::read(&bytes, 0, path)?;
        Self::join(vec![(part, bytes, path.to_owned())])
    }

    pub(crate) fn of_mapped(bytes: Bytes, path: &Path) -> Result<Self, WeightsError> {
        let first = Part::read(&bytes, 0, path)?;
        let count = first.metadata.unsigned(SPLIT_COUNT)?.unwrap_or(1);
        if count <= 1 {
            return Self::join(vec![(first, bytes, path.to_owned())]);
        }
        let named = part_of(path)
            .filter(|part| u64::from(part.count) == count)
            .ok_or_else(|| {
                let what = format!(
                    "this is one of {count} parts, but its name does not end in \
                     \"-00001-of-{count:05}.gguf\""
                );
                WeightsError::damaged(what, path)
            })?;
        let mut parts = Vec::new();
        for (file, no) in (0u32..).zip(1..=named.count) {
            let part_path = named.path(no);
            if !part_path.is_file() {
                return Err(WeightsError::MissingFile {
                    name: part_path
                        .file_name()
                        .unwrap_or_default()
                        .display()
                        .to_string(),
                    path: path.to_owned(),
                });
            }
            let bytes = map(&part_path)?;
            let part = Part::read(&bytes, file, &part_path)?;
            let place = part.metadata.unsigned(SPLIT_NO)?;
            if place != Some(u64::from(file)) {
                let what = format!("part {no} says its place is {place:?}, expected {file}");
                return Err(WeightsError::damaged(what, &part_path));
            }
            parts.push((part, bytes, part_path));
        }
        let tensors: usize = parts.iter().map(|(part, _, _)| part.entries.len()).sum();
        if let Some(expected) = first.metadata.unsigned(SPLIT_TENSORS)?
            && expected != tensors as u64
        {
            let what = format!("the parts hold {tensors} tensors, expected {expected}");
            return Err(WeightsError::damaged(what, path));
        }
        Self::join(parts)
    }

    /// One checkpoint of its parts: metadata are the first part's.
    fn join(parts: Vec<(Part, Bytes, PathBuf)>) -> Result<Self, WeightsError> {
        let mut files = Vec::new();
        let mut all_bytes = Vec::new();
        let mut entries = Vec::new();
        let mut notes = Vec::new();
        let mut first: Option<(u32, Metadata)> = None;
        for (part, bytes, path) in parts {
            entries.extend(part.entries);
            notes.extend(part.notes);
            first.get_or_insert((part.version, part.metadata));
            files.push(WeightFile {
                path,
                len_bytes: bytes.len() as u64,
            });
            all_bytes.push(bytes);
        }
        let path = files
            .first()
            .map(|file| file.path.clone())
            .unwrap_or_default();
        let (version, metadata) = first.unwrap_or_default();
        Ok(Self {
            version,
            files,
            bytes: all_bytes,
            table: Table::new(entries, &path)?,
            metadata,
            notes,
        })
    }

    /// Version of the format: 2 or 3.
    pub const fn version(&self) -> u32 {
        self.version
    }
}

impl Checkpoint for Gguf {
    fn kind(&self) -> CheckpointKind {
        CheckpointKind::Gguf
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

/// The name of one of several parts: `STEM-00001-of-00003.gguf`.
pub(crate) struct PartName {
    stem: PathBuf,
    pub(crate) count: u32,
}

impl PartName {
    fn path(&self, no: u32) -> PathBuf {
        let mut name = self.stem.clone().into_os_string();
        name.push(format!("-{no:05}-of-{:05}.gguf", self.count));
        name.into()
    }
}

/// What a file's name says about the parts it belongs to.
pub(crate) fn part_of(path: &Path) -> Option<PartName> {
    let name = path.file_name()?.to_str()?.strip_suffix(".gguf")?;
    let (rest, count) = name.rsplit_once("-of-")?;
    let (stem, no) = rest.rsplit_once('-')?;
    let five = |digits: &str| digits.len() == 5 && digits.bytes().all(|b| b.is_ascii_digit());
    if !five(no) || !five(count) {
        return None;
    }
    Some(PartName {
        stem: path.with_file_name(stem),
        count: count.parse().ok()?,
    })
}
