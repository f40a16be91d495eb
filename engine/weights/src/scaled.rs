//! Weights in 8 bits (whole numbers, or floats of 8 bits) with scales beside them, read as floats.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use engine_tensor::DType;

use crate::{Checkpoint, CheckpointKind, Metadata, TensorRef, WeightFile, WeightsError};

/// Side of the squares that one scale belongs to, where there are fewer than rows and columns.
const SQUARE: usize = 128;

/// Tensors that say only that weights are scaled, or belong to activations.
const LEFT_OUT: &[&str] = &["scaled_fp8", ".scale_input", ".input_scale", ".comfy_quant"];

/// A checkpoint whose tensors `NAME.weight` of 8 bits come with scales: `NAME.weight.scale` (our own files),
/// `NAME.weight_scale`, `NAME.scale_weight` or `NAME.weight_scale_inv`; one for all, one for each row, or one
/// for each square of 128 x 128. They are read as f32, `value = number * scale`. Floats of 8 bits may stand
/// without scales. All other tensors are as they are.
pub struct ScaledRows {
    inner: Box<dyn Checkpoint>,
    names: Vec<String>,
}

impl fmt::Debug for ScaledRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScaledRows({:?})", self.inner)
    }
}

fn is_small(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::F8_E4M3)
}

/// Where the scales of `name` are looked for.
fn scale_names(name: &str) -> [String; 4] {
    let stem = name.strip_suffix(".weight").unwrap_or(name);
    [
        format!("{name}.scale"),
        format!("{name}_scale"),
        format!("{stem}.scale_weight"),
        format!("{name}_scale_inv"),
    ]
}

/// Which scale a value belongs to.
#[derive(Debug, Clone, Copy)]
enum Sharing {
    All,
    Rows,
    Squares { across: usize },
}

fn sharing(weights: &[usize], scales: &[usize]) -> Option<Sharing> {
    let rows = weights.first().copied().unwrap_or(1);
    let cols = weights.iter().skip(1).product::<usize>();
    let count: usize = scales.iter().product();
    if count == 1 {
        return Some(Sharing::All);
    }
    if count == rows && scales.first() == Some(&rows) {
        return Some(Sharing::Rows);
    }
    let across = cols.div_ceil(SQUARE);
    (scales == [rows.div_ceil(SQUARE), across]).then_some(Sharing::Squares { across })
}

impl ScaledRows {
    /// Of `inner`.
    ///
    /// # Errors
    /// `MissingTensor` for whole numbers without scales, `WrongShape` for scales that are neither one, nor
    /// one a row, nor one a square.
    pub fn new(inner: Box<dyn Checkpoint>) -> Result<Self, WeightsError> {
        let path = || {
            let first = inner.files().first();
            first.map(|file| file.path.clone()).unwrap_or_default()
        };
        let mut scales = HashSet::new();
        for name in inner.names() {
            let Some(tensor) = inner.tensor(name).filter(|tensor| is_small(tensor.dtype)) else {
                continue;
            };
            let found = scale_names(name)
                .into_iter()
                .find_map(|name| Some((inner.tensor(&name)?, name)));
            match found {
                Some((found, scale)) if sharing(&tensor.shape, &found.shape).is_none() => {
                    return Err(WeightsError::WrongShape {
                        name: scale,
                        got: found.shape,
                        expected: vec![tensor.shape.first().copied().unwrap_or(1)],
                        path: path(),
                    });
                }
                Some((_, scale)) => {
                    scales.insert(scale);
                }
                None if tensor.dtype == DType::F8_E4M3 => {}
                None => {
                    let [name, ..] = scale_names(name);
                    return Err(WeightsError::MissingTensor { name, path: path() });
                }
            }
        }
        let kept = |name: &&str| {
            !scales.contains(*name) && !LEFT_OUT.iter().any(|end| name.ends_with(end))
        };
        let names = inner.names().filter(kept).map(str::to_owned).collect();
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

    /// Numbers of 8 bits are turned into floats at every call.
    fn tensor(&self, name: &str) -> Option<TensorRef> {
        let tensor = self.inner.tensor(name)?;
        if !is_small(tensor.dtype) {
            return Some(tensor);
        }
        let scale = scale_names(name)
            .iter()
            .find_map(|name| self.inner.tensor(name));
        let (scales, how) = match &scale {
            Some(scale) => (scale.to_f32().ok()?, sharing(&tensor.shape, &scale.shape)?),
            None => (vec![1.0], Sharing::All),
        };
        let rows = tensor.shape.first().copied().unwrap_or(1);
        let cols = (tensor.bytes.len() / rows.max(1)).max(1);
        let numbers: Vec<f32> = match tensor.dtype {
            DType::I8 => tensor
                .bytes
                .iter()
                .map(|b| f32::from(b.cast_signed()))
                .collect(),
            _ => tensor.to_f32().ok()?,
        };
        let mut bytes = Vec::with_capacity(4 * numbers.len());
        for (row, numbers) in numbers.chunks(cols).enumerate() {
            for (col, number) in numbers.iter().enumerate() {
                let at = match how {
                    Sharing::All => 0,
                    Sharing::Rows => row,
                    Sharing::Squares { across } => row / SQUARE * across + col / SQUARE,
                };
                let value = number * scales.get(at)?;
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
