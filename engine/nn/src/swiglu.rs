//! The gated feed-forward layer (Shazeer, arXiv 2002.05202).

use engine_tensor::TensorError;
use engine_tensor::ops::silu_mul;

use crate::{Linear, Runner};

/// `down(silu(gate(x)) * up(x))`.
#[derive(Debug)]
pub struct SwiGlu {
    /// `[inner, hidden]`.
    pub gate: Linear,
    /// `[inner, hidden]`.
    pub up: Linear,
    /// `[hidden, inner]`.
    pub down: Linear,
}

impl SwiGlu {
    /// `out = layer(x)`, both `[rows, hidden]`.
    ///
    /// # Errors
    /// `Shape` when lengths do not go together.
    pub fn run(&self, runner: &mut Runner, x: &[f32], out: &mut [f32]) -> Result<(), TensorError> {
        let rows = x.len() / self.gate.weights().cols();
        let inner = rows * self.gate.weights().rows();
        let (mut gate, mut up) = (vec![0.0; inner], vec![0.0; inner]);
        runner.linear(x, [(&self.gate, &mut gate), (&self.up, &mut up)])?;
        silu_mul(runner.cpu(), &mut gate, &up)?;
        runner.linear(&gate, [(&self.down, out)])
    }
}
