//! The tensors of a checkpoint by name, checked once.

use std::ops::Range;
use std::path::Path;

use engine_tensor::{Bytes, DType};

use crate::checkpoint::bytes_of_shape;
use crate::{TensorRef, WeightsError};

/// Most dimensions of a tensor.
pub(crate) const DIMS_CAP: usize = 8;

/// Most tensors of a checkpoint.
pub(crate) const TENSORS_CAP: usize = 4 << 20;

/// Where one tensor lies.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Box<str>,
    /// Outermost first.
    pub(crate) shape: Box<[usize]>,
    pub(crate) range: Range<usize>,
    /// Which of the files.
    pub(crate) file: u32,
    pub(crate) dtype: DType,
}

/// Tensors sorted by name.
#[derive(Debug)]
pub(crate) struct Table(Vec<Entry>);

impl Table {
    /// Sort entries; no name may stand twice.
    pub(crate) fn new(mut entries: Vec<Entry>, path: &Path) -> Result<Self, WeightsError> {
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        if let Some([twice, _]) = entries
            .array_windows::<2>()
            .find(|[first, second]| first.name == second.name)
        {
            let what = format!("tensor {:?} stands twice", short(&twice.name));
            return Err(WeightsError::damaged(what, path));
        }
        Ok(Self(entries))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| &*entry.name)
    }

    /// The tensor called `name`, in one of `files`.
    pub(crate) fn tensor(&self, name: &str, files: &[Bytes]) -> Option<TensorRef> {
        let at = self.0.binary_search_by(|e| (*e.name).cmp(name)).ok()?;
        let entry = &self.0[at];
        // A tensor without elements may be said to lie anywhere.
        let range = if entry.range.is_empty() {
            0..0
        } else {
            entry.range.clone()
        };
        let bytes = files.get(entry.file as usize)?.slice(range)?;
        TensorRef::new(entry.dtype, entry.shape.to_vec(), bytes)
    }
}

/// Bytes of a tensor of this type and shape.
pub(crate) fn sized(
    name: &str,
    dtype: DType,
    shape: &[usize],
    path: &Path,
) -> Result<usize, WeightsError> {
    bytes_of_shape(dtype, shape).ok_or_else(|| {
        let what = format!(
            "tensor {:?} of type {dtype} has shape {shape:?}, which is too large or not of whole \
             blocks of {} in a row",
            short(name),
            dtype.block_elements()
        );
        WeightsError::damaged(what, path)
    })
}

/// Check that the tensors of one file lie in its data and apart from each other.
///
/// The data begin at `data_start` and the file has `len` bytes. Gives the bytes between tensors that
/// belong to none, and the end of the last.
pub(crate) fn check_places(
    entries: &[Entry],
    data_start: usize,
    len: usize,
    path: &Path,
) -> Result<(usize, usize), WeightsError> {
    let mut order: Vec<u32> = (0u32..).take(entries.len()).collect();
    order.retain(|&at| !entries[at as usize].range.is_empty());
    order.sort_unstable_by_key(|&at| entries[at as usize].range.start);
    let (mut holes, mut end) = (0, data_start);
    let mut before: Option<&Entry> = None;
    for entry in order.into_iter().map(|at| &entries[at as usize]) {
        if let Some(before) = before
            && entry.range.start < end
        {
            let what = format!(
                "tensors {:?} and {:?} overlap",
                short(&before.name),
                short(&entry.name)
            );
            return Err(WeightsError::damaged(what, path));
        }
        holes += entry.range.start - end;
        end = entry.range.end;
        before = Some(entry);
    }
    // Padding before data that is not there may be missing too.
    if let Some(last) = before
        && end > len
    {
        return Err(WeightsError::CutShort {
            what: format!("tensor {:?}", short(&last.name)),
            expected_bytes: end as u64,
            got_bytes: len as u64,
            path: path.to_owned(),
        });
    }
    Ok((holes, end))
}

/// The start of a text from a file, for a message.
pub(crate) fn short(text: &str) -> &str {
    match text.char_indices().nth(80) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
