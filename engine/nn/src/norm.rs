//! Norms.

use engine_tensor::ops::rms_norm;
use engine_tensor::{Cpu, TensorError};
use engine_weights::Checkpoint;

use crate::LayerError;
use crate::linear::load_vector;

/// Root mean square normalization with a weight: `[cols]`.
#[derive(Debug, Clone)]
pub struct RmsNorm {
    weight: Vec<f32>,
    epsilon: f32,
}

impl RmsNorm {
    /// The norm of tensor `name: [cols]`.
    ///
    /// # Errors
    /// [`LayerError`], with the tensor's name.
    pub fn load(
        checkpoint: &dyn Checkpoint,
        name: &str,
        cols: usize,
        epsilon: f32,
    ) -> Result<Self, LayerError> {
        Ok(Self {
            weight: load_vector(checkpoint, name, cols)?,
            epsilon,
        })
    }

    /// Its weight: `[cols]`.
    pub fn weight(&self) -> &[f32] {
        &self.weight
    }

    /// `out = norm(x)`, both `[rows, cols]`.
    ///
    /// # Errors
    /// `Shape` when lengths do not go together.
    pub fn run(&self, cpu: &Cpu, x: &[f32], out: &mut [f32]) -> Result<(), TensorError> {
        rms_norm(cpu, x, &self.weight, self.epsilon, out)
    }
}
