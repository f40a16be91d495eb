//! What every kind of checkpoint offers.

use std::fmt;
use std::path::PathBuf;

use engine_tensor::{Bytes, DType};
use serde::{Deserialize, Serialize};

use crate::quant::{QuantError, dequantize};
use crate::{Metadata, WeightsError};

/// The file format of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CheckpointKind {
    /// GGUF, one file or several parts.
    Gguf,
    /// safetensors, one file or shards with an index.
    SafeTensors,
}

impl fmt::Display for CheckpointKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gguf => "gguf",
            Self::SafeTensors => "safetensors",
        })
    }
}

/// A file whose bytes hold tensors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightFile {
    /// Where it lies; empty for bytes that came from memory.
    pub path: PathBuf,
    /// Its length.
    pub len_bytes: u64,
}

/// One tensor of a checkpoint.
///
/// `bytes` has no alignment promise: a safetensors header may end anywhere.
#[derive(Debug, Clone)]
pub struct TensorRef {
    /// How its elements are stored, little endian.
    pub dtype: DType,
    /// Row-major, outermost dimension first; empty for a scalar.
    pub shape: Vec<usize>,
    /// Exactly `dtype.bytes_of(elements)` bytes.
    pub bytes: Bytes,
}

impl TensorRef {
    /// A tensor whose rows are whole blocks and whose bytes are as many as they say; `None`
    /// otherwise.
    pub fn new(dtype: DType, shape: Vec<usize>, bytes: Bytes) -> Option<Self> {
        (bytes_of_shape(dtype, &shape)? == bytes.len()).then_some(Self {
            dtype,
            shape,
            bytes,
        })
    }

    /// Number of elements: of a shape as [`TensorRef::new`] takes it, never more than a file has
    /// bytes for.
    pub fn elements(&self) -> usize {
        checked_product(&self.shape).unwrap_or(usize::MAX)
    }

    /// Length of the innermost dimension; 1 for a scalar.
    pub fn row_elements(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// All values as f32, row-major: 4 bytes for each element, so not for whole models.
    ///
    /// # Errors
    /// The dtype holds no floats (see [`dequantize`]).
    pub fn to_f32(&self) -> Result<Vec<f32>, QuantError> {
        let mut out = vec![0.0; self.elements()];
        dequantize(self.dtype, &self.bytes, &mut out)?;
        Ok(out)
    }
}

/// Bytes of a tensor; `None` when the product overflows or rows are not whole blocks.
pub(crate) fn bytes_of_shape(dtype: DType, shape: &[usize]) -> Option<usize> {
    let row = shape.last().copied().unwrap_or(1);
    let elements = checked_product(shape)?;
    dtype.bytes_of(row)?;
    dtype.bytes_of(elements)
}

/// Product of the dimensions, also where one is 0 and the others alone would overflow.
pub(crate) fn checked_product(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape
        .iter()
        .try_fold(1usize, |product, &dim| product.checked_mul(dim))
}

/// Named tensors with metadata.
pub trait Checkpoint: fmt::Debug + Send + Sync {
    /// The file format.
    fn kind(&self) -> CheckpointKind;

    /// Names of all tensors, sorted by bytes.
    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_>;

    /// The tensor called `name`. Cheap: nothing is read or copied.
    fn tensor(&self, name: &str) -> Option<TensorRef>;

    /// Keys and values of the file, and the files beside it.
    fn metadata(&self) -> &Metadata;

    /// The files that hold the tensors, in order.
    fn files(&self) -> &[WeightFile];

    /// What was odd but harmless, for a log: one sentence each.
    fn notes(&self) -> &[String];

    /// The tensor called `name`, which must have this shape.
    ///
    /// # Errors
    /// [`WeightsError::MissingTensor`] or [`WeightsError::WrongShape`].
    fn tensor_of_shape(&self, name: &str, shape: &[usize]) -> Result<TensorRef, WeightsError> {
        let path = || {
            self.files()
                .first()
                .map(|f| f.path.clone())
                .unwrap_or_default()
        };
        let found = self
            .tensor(name)
            .ok_or_else(|| WeightsError::MissingTensor {
                name: name.to_owned(),
                path: path(),
            })?;
        if found.shape != shape {
            return Err(WeightsError::WrongShape {
                name: name.to_owned(),
                got: found.shape,
                expected: shape.to_vec(),
                path: path(),
            });
        }
        Ok(found)
    }
}
