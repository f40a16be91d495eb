//! Filter kernels and the weight tables made from them.

/// A symmetric interpolation kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// Three lobes; copies exactly at whole offsets. For pictures that do not move.
    Lanczos3,
    /// Mitchell and Netravali, B = C = 1/3. Its sharpness hardly depends on the sub-pixel offset,
    /// so nothing breathes while the camera moves.
    Mitchell,
    /// Cubic, B = 0, C = 1/2; copies exactly at whole offsets.
    CatmullRom,
}

impl Kernel {
    pub(crate) const fn radius(self) -> f64 {
        match self {
            Self::Lanczos3 => 3.0,
            Self::Mitchell | Self::CatmullRom => 2.0,
        }
    }

    /// Weight at distance `x`.
    pub(crate) fn at(self, x: f64) -> f64 {
        match self {
            Self::Lanczos3 => {
                let x = x.abs();
                if x < 1e-9 {
                    1.0
                } else if x >= 3.0 {
                    0.0
                } else {
                    let p = std::f64::consts::PI * x;
                    3.0 * p.sin() * (p / 3.0).sin() / (p * p)
                }
            }
            Self::Mitchell => cubic(1.0 / 3.0, 1.0 / 3.0, x.abs()),
            Self::CatmullRom => cubic(0.0, 0.5, x.abs()),
        }
    }
}

fn cubic(b: f64, c: f64, x: f64) -> f64 {
    if x < 1.0 {
        ((12.0 - 9.0 * b - 6.0 * c) * x * x * x
            + (-18.0 + 12.0 * b + 6.0 * c) * x * x
            + (6.0 - 2.0 * b))
            / 6.0
    } else if x < 2.0 {
        ((-b - 6.0 * c) * x * x * x
            + (6.0 * b + 30.0 * c) * x * x
            + (-12.0 * b - 48.0 * c) * x
            + (8.0 * b + 24.0 * c))
            / 6.0
    } else {
        0.0
    }
}

/// Weights along one axis: output `i` is the sum of `taps` samples from `first[i]` on.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub taps: usize,
    pub first: Vec<u32>,
    /// `first.len() * taps`.
    pub weights: Vec<f32>,
}

impl Axis {
    /// Weights for `outputs` samples at source places `origin + (i + 0.5) * step` (0 at the edge of
    /// source sample 0) out of `inputs` samples. Where the source is finer than the output the
    /// kernel widens with `step`; past the ends the last sample is held.
    pub(crate) fn new(
        kernel: Kernel,
        outputs: usize,
        inputs: usize,
        origin: f64,
        step: f64,
    ) -> Self {
        let widen = step.max(1.0);
        let support = kernel.radius() * widen;
        let wanted = (2.0 * support).ceil() as usize;
        let taps = wanted.clamp(1, inputs.max(1));
        let last = inputs.max(1) as i64 - 1;
        let mut first = Vec::with_capacity(outputs);
        let mut weights = vec![0.0_f32; outputs * taps];
        let mut exact = vec![0.0_f64; taps];
        for (i, out) in weights.chunks_exact_mut(taps).enumerate() {
            let centre = origin + (i as f64 + 0.5) * step - 0.5;
            let from = (centre - support).floor() as i64 + 1;
            let start = from.clamp(0, last + 1 - taps as i64);
            exact.fill(0.0);
            let mut sum = 0.0;
            for j in from..from + wanted as i64 {
                let weight = kernel.at((j as f64 - centre) / widen);
                let slot = (j.clamp(0, last) - start).clamp(0, taps as i64 - 1);
                exact[slot as usize] += weight;
                sum += weight;
            }
            for (out, exact) in out.iter_mut().zip(&exact) {
                *out = (exact / sum) as f32;
            }
            first.push(start as u32);
        }
        Self {
            taps,
            first,
            weights,
        }
    }

    pub(crate) fn weights_of(&self, i: usize) -> &[f32] {
        &self.weights[i * self.taps..(i + 1) * self.taps]
    }

    /// First and one past the last source sample that any output needs.
    pub(crate) fn span(&self) -> (usize, usize) {
        let low = self.first.iter().min().copied().unwrap_or(0) as usize;
        let high = self.first.iter().max().copied().unwrap_or(0) as usize;
        (low, high + self.taps)
    }
}

/// How much of each output sample lies inside `0..inputs`, 0 to 1.
pub(crate) fn coverage(outputs: usize, inputs: f64, origin: f64, step: f64) -> Vec<f32> {
    (0..outputs)
        .map(|i| {
            let (low, high) = (origin + i as f64 * step, origin + (i + 1) as f64 * step);
            ((high.min(inputs) - low.max(0.0)).max(0.0) / step).min(1.0) as f32
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_to_one_and_stay_inside() {
        for kernel in [Kernel::Lanczos3, Kernel::Mitchell, Kernel::CatmullRom] {
            for (inputs, step, origin) in [
                (1, 3.7, -2.0),
                (5, 0.3, -1.0),
                (640, 2.5, 100.3),
                (3, 40.0, -9.0),
            ] {
                let axis = Axis::new(kernel, 50, inputs, origin, step);
                for i in 0..50 {
                    let sum: f32 = axis.weights_of(i).iter().sum();
                    assert!((sum - 1.0).abs() < 1e-5, "{kernel:?} {step}: {sum}");
                    assert!(axis.first[i] as usize + axis.taps <= inputs);
                }
            }
        }
        let copy = Axis::new(Kernel::Lanczos3, 10, 10, 0.0, 1.0);
        for i in 0..10 {
            let at = i - copy.first[i] as usize;
            assert!((copy.weights_of(i)[at] - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn coverage_is_the_part_inside() {
        assert_eq!(coverage(4, 2.5, -1.0, 1.0), [0.0, 1.0, 1.0, 0.5]);
    }
}
