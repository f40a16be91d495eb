//! A checkpoint under other names: what one program calls a tensor, or keeps in one piece with others.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Checkpoint, CheckpointKind, Metadata, TensorRef, WeightFile};

/// Where a tensor is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TensorSource {
    /// All of the tensor of this name.
    Whole(String),
    /// Part `part` of `of` equal parts of its rows, such as the keys of a fused layer.
    Rows {
        /// The name of the whole.
        name: String,
        /// Which part.
        part: usize,
        /// Of how many.
        of: usize,
    },
    /// All of it with the two halves of its rows exchanged.
    SwappedHalves(String),
    /// A matrix whose rows and columns are exchanged.
    Turned(String),
}

/// A checkpoint whose tensors go by other names.
pub struct Renamed {
    inner: Box<dyn Checkpoint>,
    names: BTreeMap<String, TensorSource>,
}

impl fmt::Debug for Renamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Renamed({:?})", self.inner)
    }
}

impl Renamed {
    /// `inner` with each of its names as `rename` says; those it gives nothing for are left out.
    pub fn new(
        inner: Box<dyn Checkpoint>,
        rename: impl Fn(&str) -> Vec<(String, TensorSource)>,
    ) -> Self {
        let names = inner.names().flat_map(rename).collect();
        Self { inner, names }
    }

    /// `inner` without `prefix`, and without all that does not begin with it.
    pub fn below(inner: Box<dyn Checkpoint>, prefix: &str) -> Self {
        Self::new(inner, |name| {
            let bare = name.strip_prefix(prefix);
            let found = bare.map(|bare| (bare.to_owned(), TensorSource::Whole(name.to_owned())));
            found.into_iter().collect()
        })
    }
}

impl Checkpoint for Renamed {
    fn kind(&self) -> CheckpointKind {
        self.inner.kind()
    }

    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.names.keys().map(String::as_str))
    }

    fn tensor(&self, name: &str) -> Option<TensorRef> {
        match self.names.get(name)? {
            TensorSource::Whole(name) => self.inner.tensor(name),
            TensorSource::Rows { name, part, of } => {
                let whole = self.inner.tensor(name)?;
                let rows = whole.shape.first()?.checked_div(*of)?;
                if rows * of != *whole.shape.first()? {
                    return None;
                }
                let len = whole.bytes.len() / of;
                let bytes = whole.bytes.slice(part * len..(part + 1) * len)?;
                let mut shape = whole.shape;
                *shape.first_mut()? = rows;
                TensorRef::new(whole.dtype, shape, bytes)
            }
            TensorSource::SwappedHalves(name) => {
                let whole = self.inner.tensor(name)?;
                if !whole.shape.first()?.is_multiple_of(2) {
                    return None;
                }
                let (first, second) = whole.bytes.split_at(whole.bytes.len() / 2);
                let bytes = [second, first].concat();
                TensorRef::new(whole.dtype, whole.shape, bytes.into())
            }
            TensorSource::Turned(name) => {
                let whole = self.inner.tensor(name)?;
                let [rows, cols] = whole.shape[..] else {
                    return None;
                };
                if whole.dtype.block_elements() != 1 {
                    return None;
                }
                let size = whole.dtype.block_bytes();
                let mut bytes = Vec::with_capacity(whole.bytes.len());
                for at in 0..rows * cols {
                    let from = (at % rows * cols + at / rows) * size;
                    bytes.extend_from_slice(&whole.bytes[from..from + size]);
                }
                TensorRef::new(whole.dtype, vec![cols, rows], bytes.into())
            }
        }
    }

    fn metadata(&self) -> &Metadata {
        self.inner.metadata()
    }

    fn files(&self) -> &[WeightFile] {
        self.inner.files()
    }

    fn notes(&self) -> &[String] {
        self.inner.notes()
    }
}
