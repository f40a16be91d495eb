//! Layer normalization (Ba, Kiros and Hinton, arXiv 1607.06450).

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::math::sum;
use crate::simd::by_simd;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "layer_norm",
    about: "rows less their mean over their deviation, times a weight, plus a bias",
    cases,
};

/// `out = (x - mean) / sqrt(variance + epsilon) * weight + bias`, for each row.
///
/// `x`, `out`: `[rows, cols]`; `weight`, `bias`: `[cols]`. Bits do not depend on the number of rows.
///
/// # Errors
/// `Shape` when lengths do not go together.
pub fn layer_norm(
    cpu: &Cpu,
    x: &[f32],
    (weight, bias): (&[f32], &[f32]),
    epsilon: f32,
    out: &mut [f32],
) -> Result<(), TensorError> {
    const OP: &str = "layer_norm";
    expect(OP, "cols > 0", usize::from(!weight.is_empty()), 1)?;
    expect(OP, "length of bias", bias.len(), weight.len())?;
    expect(OP, "length of x % cols", x.len() % weight.len(), 0)?;
    expect(OP, "length of out", out.len(), x.len())?;
    fast(cpu.simd(), x, weight, bias, epsilon, out);
    Ok(())
}

by_simd! {
    fn fast(x: &[f32], weight: &[f32], bias: &[f32], epsilon: f32, out: &mut [f32]) = loops body;
}

#[inline(always)]
fn body(x: &[f32], weight: &[f32], bias: &[f32], epsilon: f32, out: &mut [f32]) {
    let cols = weight.len();
    for (x, out) in x.chunks_exact(cols).zip(out.chunks_exact_mut(cols)) {
        let mean = sum(x, |value| value) / cols as f32;
        let variance = sum(x, |value| (value - mean) * (value - mean)) / cols as f32;
        let scale = 1.0 / (variance + epsilon).sqrt();
        for (at, (out, x)) in out.iter_mut().zip(x).enumerate() {
            *out = (x - mean) * scale * weight[at] + bias[at];
        }
    }
}

fn cases() -> Vec<Case> {
    [(1, 16), (3, 64), (2, 577), (1, 5)]
        .into_iter()
        .map(|(rows, cols)| {
            let name = format!("{rows} x {cols}");
            Case::new(name, Bound::Relative(2e-6), move |cpu| {
                let x = numbers(1, rows * cols);
                let (weight, bias) = (numbers(2, cols), numbers(3, cols));
                let mut fast = vec![0.0; rows * cols];
                layer_norm(cpu, &x, (&weight, &bias), 1e-5, &mut fast)?;
                let mut reference = Vec::new();
                for row in x.chunks_exact(cols) {
                    let mean = row.iter().map(|x| f64::from(*x)).sum::<f64>() / cols as f64;
                    let squares = row.iter().map(|x| (f64::from(*x) - mean).powi(2));
                    let root = (squares.sum::<f64>() / cols as f64 + 1e-5).sqrt();
                    reference.extend(row.iter().enumerate().map(|(at, x)| {
                        let normal = (f64::from(*x) - mean) / root;
                        (normal * f64::from(weight[at]) + f64::from(bias[at])) as f32
                    }));
                }
                Ok(Outcome { fast, reference })
            })
        })
        .collect()
}
