//! What diffusion transformers share: timestep embeddings, rotary positions along several axes, and
//! modulated norms (Peebles and Xie, "Scalable diffusion models with transformers", arXiv 2212.09748).

use engine_tensor::ops::{RopeRows, layer_norm, rms_norm};
use engine_tensor::{Cpu, TensorError};

/// How a timestep becomes a vector of sines and cosines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimestepWaves {
    /// Elements of the vector.
    pub dims: usize,
    /// What the timestep is multiplied by first.
    pub factor: f32,
    /// Whether cosines come first.
    pub cosines_first: bool,
    /// Taken off the count of frequencies that their logarithms are divided by (0 or 1).
    pub frequency_shift: f32,
}

impl TimestepWaves {
    /// Cosines first, of timesteps of 0..1 times 1000.
    pub const fn of_unit(dims: usize) -> Self {
        Self {
            dims,
            factor: 1000.0,
            cosines_first: true,
            frequency_shift: 0.0,
        }
    }

    /// `[dims]` for `timestep`: wavelengths from 2 pi to 2 pi * 10,000. Rounded to f32 where the reference
    /// rounds, since arguments up to 1000 keep few digits.
    pub fn of(&self, timestep: f32) -> Vec<f32> {
        const PERIOD: f64 = 10_000.0;
        let half = self.dims / 2;
        let scaled = self.factor * timestep;
        let argument = |at: usize| {
            let exponent = -(PERIOD.ln() as f32) * at as f32 / (half as f32 - self.frequency_shift);
            let frequency = f64::from(exponent).exp() as f32;
            f64::from(scaled * frequency)
        };
        let cosines = (0..half).map(|at| argument(at).cos() as f32);
        let sines = (0..half).map(|at| argument(at).sin() as f32);
        let mut waves: Vec<f32> = if self.cosines_first {
            cosines.chain(sines).collect()
        } else {
            sines.chain(cosines).collect()
        };
        waves.resize(self.dims, 0.0);
        waves
    }
}

/// Rotary positions along several axes: each axis turns its own part of a head.
#[derive(Debug, Clone, PartialEq)]
pub struct AxesRope {
    axes: Vec<Vec<f64>>,
    dims: usize,
}

impl AxesRope {
    /// `axes`: turned elements of each axis, all even.
    ///
    /// # Errors
    /// `Shape` for an odd number.
    pub fn new(axes: &[usize], base: f64) -> Result<Self, TensorError> {
        if let Some(odd) = axes.iter().find(|dims| **dims % 2 != 0) {
            return Err(TensorError::Shape {
                op: "rope",
                what: "dims of an axis % 2",
                got: odd % 2,
                expected: 0,
            });
        }
        let frequencies = |dims: &usize| -> Vec<f64> {
            (0..dims / 2)
                .map(|pair| base.powf(-2.0 * pair as f64 / *dims as f64))
                .collect()
        };
        Ok(Self {
            axes: axes.iter().map(frequencies).collect(),
            dims: axes.iter().sum(),
        })
    }

    /// Turned elements of a head.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Angles of rows at `positions`, one coordinate for each axis; missing coordinates are 0.
    pub fn rows<const N: usize>(&self, positions: &[[f64; N]]) -> RopeRows {
        let mut angles = Vec::with_capacity(positions.len() * self.dims / 2);
        for position in positions {
            for (axis, frequencies) in self.axes.iter().enumerate() {
                let at = position.get(axis).copied().unwrap_or(0.0);
                angles.extend(frequencies.iter().map(|frequency| at * frequency));
            }
        }
        RopeRows::of_angles(self.dims, &angles)
    }
}

/// `out = (x - mean) / deviation * (1 + scale) + shift`, for each row of `x`, `out`: `[rows, cols]`;
/// `scale`, `shift`: `[cols]`.
///
/// # Errors
/// `Shape` when lengths do not go together.
pub fn modulated_layer_norm(
    cpu: &Cpu,
    x: &[f32],
    (scale, shift): (&[f32], Option<&[f32]>),
    epsilon: f32,
    out: &mut [f32],
) -> Result<(), TensorError> {
    let weight: Vec<f32> = scale.iter().map(|scale| 1.0 + scale).collect();
    let zeros = vec![0.0; scale.len()];
    layer_norm(cpu, x, (&weight, shift.unwrap_or(&zeros)), epsilon, out)
}

/// Root mean square normalization in place: `x: [rows, cols]`, `weight: [cols]`.
///
/// # Errors
/// `Shape` when lengths do not go together.
pub fn rms_norm_in_place(
    cpu: &Cpu,
    x: &mut [f32],
    weight: &[f32],
    epsilon: f32,
) -> Result<(), TensorError> {
    let before = x.to_vec();
    rms_norm(cpu, &before, weight, epsilon, x)
}
