//! Tensors of one part of a checkpoint, by name.

use engine_nn::{LayerError, Linear};
use engine_tensor::TensorError;
use engine_tensor::ops::{Activation, Conv2d};
use engine_weights::{Checkpoint, WeightsError, first_non_finite};

use crate::LoadError;

/// The tensors whose names begin with a prefix, called by what follows it.
#[derive(Clone)]
pub(crate) struct Tensors<'a> {
    checkpoint: &'a dyn Checkpoint,
    prefix: String,
}

impl<'a> Tensors<'a> {
    pub(crate) fn new(checkpoint: &'a dyn Checkpoint, prefix: impl Into<String>) -> Self {
        Self {
            checkpoint,
            prefix: prefix.into(),
        }
    }

    /// Those below `name`.
    pub(crate) fn under(&self, name: impl std::fmt::Display) -> Self {
        Self {
            checkpoint: self.checkpoint,
            prefix: format!("{}{name}.", self.prefix),
        }
    }

    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Shape of a tensor.
    pub(crate) fn shape(&self, name: &str) -> Option<Vec<usize>> {
        let found = self.checkpoint.tensor(&self.full(name))?;
        Some(found.shape)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.checkpoint.tensor(&self.full(name)).is_some()
    }

    /// A tensor as finite f32.
    pub(crate) fn values(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        let name = self.full(name);
        let tensor = self.checkpoint.tensor_of_shape(&name, shape)?;
        if let Some(at) = first_non_finite(&tensor) {
            let row = at / tensor.row_elements().max(1);
            return Err(TensorError::NotFinite { name, row }.into());
        }
        let values = tensor.to_f32().map_err(|_no_floats| {
            let first = self.checkpoint.files().first();
            LayerError::Weights(WeightsError::UnsupportedType {
                name: name.clone(),
                got: tensor.dtype.to_string(),
                path: first.map(|file| file.path.clone()).unwrap_or_default(),
            })
        })?;
        Ok(values)
    }

    /// `NAME.weight: [outputs, inputs]`, without bias.
    pub(crate) fn linear(
        &self,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<Linear, LoadError> {
        let name = self.full(&format!("{name}.weight"));
        Ok(Linear::load(self.checkpoint, &name, outputs, inputs)?)
    }

    /// The same with `NAME.bias: [outputs]`.
    pub(crate) fn biased(
        &self,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<Linear, LoadError> {
        let bias = self.full(&format!("{name}.bias"));
        let linear = self.linear(name, outputs, inputs)?;
        Ok(linear.with_bias(self.checkpoint, &bias)?)
    }

    /// A convolution whose kernel is as large as its stride, over patches laid out as rows: with `NAME.bias`
    /// where there is one.
    pub(crate) fn flat(
        &self,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<Linear, LoadError> {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        let bias = match self.has(&bias) {
            true => Some(self.values(&bias, &[outputs])?),
            false => None,
        };
        let shape = self.shape(&weight).unwrap_or_else(|| vec![outputs, inputs]);
        let inner: usize = shape.iter().skip(1).product();
        if shape.first() != Some(&outputs) || inner != inputs {
            // Says what it is instead.
            self.values(&weight, &[outputs, inputs])?;
        }
        let values = self.values(&weight, &shape)?;
        let full = self.full(&weight);
        Ok(Linear::of_values(&full, &values, (outputs, inputs), bias)?)
    }

    /// The convolution `NAME.weight`, `NAME.bias` of `channels` to `outputs`. A kernel over time, as causal
    /// video autoencoders have it, is cut to its last tap: what it does to a first frame.
    pub(crate) fn conv(
        &self,
        name: &str,
        outputs: usize,
        channels: usize,
        side: usize,
    ) -> Result<Conv2d, LoadError> {
        self.conv_with(name, (outputs, channels), side, &Activation::None)
    }

    /// The same with what follows it.
    pub(crate) fn conv_with(
        &self,
        name: &str,
        (outputs, channels): (usize, usize),
        side: usize,
        end: &Activation,
    ) -> Result<Conv2d, LoadError> {
        let weight = format!("{name}.weight");
        let flat = [outputs, channels, side, side];
        let weights = match self.shape(&weight).as_deref() {
            Some(&[o, c, frames, h, w]) if [o, c, h, w] == flat && frames > 0 => {
                let all = self.values(&weight, &[o, c, frames, h, w])?;
                let taps = h * w;
                all.chunks_exact(frames * taps)
                    .flat_map(|kernel| &kernel[(frames - 1) * taps..])
                    .copied()
                    .collect()
            }
            Some(&[o, c]) if [o, c, 1, 1] == flat => self.values(&weight, &[o, c])?,
            _ => self.values(&weight, &flat)?,
        };
        let bias = format!("{name}.bias");
        let bias = if self.has(&bias) {
            self.values(&bias, &[outputs])?
        } else {
            vec![0.0; outputs]
        };
        Ok(Conv2d::new(&weights, &bias, (&[channels], side), end)?)
    }
}
