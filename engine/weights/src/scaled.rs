//! Weights in 8-bit whole numbers with a scale for each row, read as floats.

use std::fmt;
use std::path::Path;

use engine_tensor::DType;

use crate::{Checkpoint, CheckpointKind, Metadata, TensorRef, WeightFile, WeightsError};

/// What the name of a tensor's scales ends with.
const SCALE: &str = ".scale";

/// A checkpoint whose tensors `NAME` of 8-bit whole numbers come with `NAME.scale`, one for each row: they
/// are read as f32, `value = number * scale`. All other tensors are as they are.
pub struct ScaledRows {
    inner: Box<dyn Checkpoint>,
    names: Vec<String>,
}

impl fmt::Debug for ScaledRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScaledRows({:?})", self.inner)
    }
}

impl ScaledRows {
    /// Of `inner`.
    ///
    /// # Errors
    /// `MissingTensor` for whole numbers without scales, `WrongShape` for scales that are not one a row.
    pub fn new(inner: Box<dyn Checkpoint>) -> Result<Self, WeightsError> {
        let path = || {
            let first = inner.files().first();
            first.map(|file| file.path.clone()).unwrap_or_default()
        };
        let mut names = Vec::new();
        for name in inner.names() {
            let of = name.strip_suffix(SCALE).and_then(|of| inner.tensor(of));
            if of.is_some_and(|of| of.dtype == DType::I8) {
                continue;
            }
            names.push(name.to_owned());
            let Some(tensor) = inner.tensor(name) else {
                continue;
            };
            if tensor.dtype == DType::I8 {
                let scales = format!("{name}{SCALE}");
                let found = inner.tensor(&scales);
                let found = found.ok_or_else(|| WeightsError::MissingTensor {
                    name: scales.clone(),
                    path: path(),
                })?;
                let rows = tensor.shape.first().copied().unwrap_or(1);
                if found.shape != [rows] {
                    return Err(WeightsError::WrongShape {
                        name: scales,
                        got: found.shape,
                        expected: vec![rows],
                        path: path(),
                    });
                }
            }
        }
        Ok(Self { inner, names })
    }

    /// The checkpoint at `path`, so read.
    ///
    /// # Errors
    /// As [`open`](crate::open) and [`ScaledRows::new`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WeightsError> {
        Self::new(crate::open(path)?)
    }
}

impl Checkpoint for ScaledRows {
    fn kind(&self) -> CheckpointKind {
        self.inner.kind()
    }

    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.names.iter().map(String::as_str))
    }

    /// Whole numbers are turned into floats at every call.
    fn tensor(&self, name: &str) -> Option<TensorRef> {
        let tensor = self.inner.tensor(name)?;
        if tensor.dtype != DType::I8 {
            return Some(tensor);
        }
        let scales = self
            .inner
            .tensor(&format!("{name}{SCALE}"))?
            .to_f32()
            .ok()?;
        let row = tensor.bytes.len() / scales.len().max(1);
        let mut bytes = Vec::with_capacity(4 * tensor.bytes.len());
        for (codes, scale) in tensor.bytes.chunks(row.max(1)).zip(&scales) {
            for code in codes {
                let value = f32::from(code.cast_signed()) * scale;
                bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
        TensorRef::new(DType::F32, tensor.shape, bytes.into())
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
