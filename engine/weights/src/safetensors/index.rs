//! The index of a sharded checkpoint: which file holds which tensor.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

use crate::WeightsError;
use crate::metadata::read_bounded;
use crate::table::{TENSORS_CAP, Table, short};

/// Most files of a checkpoint.
const FILES_CAP: usize = 10_000;

#[derive(Deserialize)]
struct IndexFile {
    weight_map: WeightMap,
}

/// Names with the number of their file, and the files in order of appearance.
struct WeightMap {
    tensors: Vec<(Box<str>, u32)>,
    files: Vec<String>,
}

/// A checked index.
pub(super) struct Index {
    /// Paths inside the folder, sorted.
    pub(super) files: Vec<String>,
    /// Sorted by name.
    tensors: Vec<(Box<str>, u32)>,
}

impl Index {
    pub(super) fn read(path: &Path) -> Result<Self, WeightsError> {
        let text = read_bounded(path)?;
        let parsed: IndexFile = serde_json::from_slice(&text).map_err(|error| {
            let why = error.to_string();
            let what = format!("cannot read a safetensors index: {}", short(&why));
            WeightsError::damaged(what, path)
        })?;
        let WeightMap { mut tensors, files } = parsed.weight_map;
        if let Some(outside) = files.iter().find(|name| !stays_inside(name)) {
            return Err(WeightsError::OutsideFolder {
                name: short(outside).to_owned(),
                path: path.to_owned(),
            });
        }
        let mut order: Vec<u32> = (0u32..).take(files.len()).collect();
        order.sort_unstable_by_key(|&at| &files[at as usize]);
        let mut place = vec![0; files.len()];
        for (sorted, &at) in (0u32..).zip(&order) {
            place[at as usize] = sorted;
        }
        for (_, file) in &mut tensors {
            *file = place[*file as usize];
        }
        tensors.sort_unstable();
        if let Some([(twice, _), _]) = tensors.array_windows::<2>().find(|[a, b]| a.0 == b.0) {
            let what = format!("tensor {:?} stands twice in the index", short(twice));
            return Err(WeightsError::damaged(what, path));
        }
        let mut files = files;
        files.sort_unstable();
        Ok(Self { files, tensors })
    }

    /// Number of the file that should hold `name`.
    pub(super) fn file_of(&self, name: &str) -> Option<u32> {
        let at = self
            .tensors
            .binary_search_by(|(n, _)| (**n).cmp(name))
            .ok()?;
        Some(self.tensors[at].1)
    }

    /// The first tensor of the index that was not found, and its file.
    pub(super) fn first_absent(&self, found: &Table) -> Option<(&str, u32)> {
        let mut names = found.names().peekable();
        self.tensors.iter().find_map(|(name, file)| {
            if names.next_if_eq(&&**name).is_some() {
                return None;
            }
            Some((&**name, *file))
        })
    }
}

/// Whether a file name of an index names a place in the index's folder, on every system.
fn stays_inside(name: &str) -> bool {
    let plain = Path::new(name)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    plain && !name.is_empty() && !name.contains(['\\', ':', '\0'])
}

impl<'de> Deserialize<'de> for WeightMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = WeightMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensor names to file names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WeightMap, A::Error> {
                let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
                let mut read = WeightMap {
                    tensors: Vec::new(),
                    files: Vec::new(),
                };
                while let Some((tensor, file)) = map.next_entry::<Box<str>, String>()? {
                    let number = match numbers.get(&file) {
                        Some(number) => *number,
                        None => {
                            let number = read.files.len() as u32;
                            read.files.push(file.clone());
                            numbers.insert(file, number);
                            number
                        }
                    };
                    if read.files.len() > FILES_CAP || read.tensors.len() >= TENSORS_CAP {
                        return Err(A::Error::custom("too many files or tensors"));
                    }
                    read.tensors.push((tensor, number));
                }
                Ok(read)
            }
        }

        deserializer.deserialize_map(Names)
    }
}
