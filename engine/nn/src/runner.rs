//! Where layers run, and how they fail.

use engine_tensor::ops::{Input, Product, matmul};
use engine_tensor::{Cpu, QuantRows, TensorError};
use engine_weights::WeightsError;

use crate::Linear;

/// Why a layer could not be made or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// A tensor is missing, or has another shape.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A tensor that no op reads, that holds no numbers, or a call that does not fit.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// Inputs of products with packed weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activations {
    /// Rounded to 8 bits in blocks of 32: quick.
    #[default]
    Rounded,
    /// As they are, with weights decoded row by row: slow, for checks.
    Exact,
}

/// Runs layers on a processor, with the memory that is reused between them.
#[derive(Debug)]
pub struct Runner {
    cpu: Cpu,
    activations: Activations,
    quant: QuantRows,
}

impl Runner {
    /// On `cpu`.
    pub fn new(cpu: Cpu, activations: Activations) -> Self {
        Self {
            cpu,
            activations,
            quant: QuantRows::new(),
        }
    }

    /// The processor.
    pub fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// Runs all `layers` on `input: [rows, cols]` in one go; each fills its `[rows, outputs]`.
    ///
    /// # Errors
    /// `Shape` when lengths do not go together.
    pub fn linear<const N: usize>(
        &mut self,
        input: &[f32],
        layers: [(&Linear, &mut [f32]); N],
    ) -> Result<(), TensorError> {
        let packed = layers.iter().find(|(layer, _)| layer.weights().is_packed());
        let quant = match (packed, self.activations) {
            (Some((layer, _)), Activations::Rounded) => {
                self.quant.fill(&self.cpu, input, layer.weights().cols())?;
                Some(&self.quant)
            }
            _ => None,
        };
        let input = Input {
            values: input,
            quant,
        };
        let mut products = layers.map(|(layer, out)| Product {
            weights: layer.weights(),
            bias: layer.bias(),
            out,
        });
        matmul(&self.cpu, input, &mut products)
    }
}
