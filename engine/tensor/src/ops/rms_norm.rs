//! Root mean square normalization (Zhang and Sennrich, arXiv 1910.07467).

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::math::sum;
use crate::simd::by_simd;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "rms_norm",
    about: "rows divided by their root mean square, times a weight",
    cases,
};

/// `out = x / sqrt(mean(x^2) + epsilon) * weight`, for each row.
///
/// `x`, `out`: `[rows, cols]`; `weight: [cols]`. Bits do not depend on the number of rows.
///
/// # Errors
/// `Shape` when lengths do not go together.
pub fn rms_norm(
    cpu: &Cpu,
    x: &[f32],
    weight: &[f32],
    epsilon: f32,
    out: &mut [f32],
) -> Result<(), TensorError> {
    const OP: &str = "rms_norm";
    expect(OP, "cols > 0", usize::from(!weight.is_empty()), 1)?;
    expect(OP, "length of x % cols", x.len() % weight.len(), 0)?;
    expect(OP, "length of out", out.len(), x.len())?;
    fast(cpu.simd(), x, weight, epsilon, out);
    Ok(())
}

by_simd! {
    fn fast(x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) = loops body;
}

#[inline(always)]
fn body(x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    let cols = weight.len();
    for (x, out) in x.chunks_exact(cols).zip(out.chunks_exact_mut(cols)) {
        let squares = sum(x, |value| value * value);
        let scale = 1.0 / (squares / cols as f32 + epsilon).sqrt();
        for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
            *out = x * scale * weight;
        }
    }
}

fn cases() -> Vec<Case> {
    [(1, 16), (3, 64), (2, 577), (1, 5)]
        .into_iter()
        .map(|(rows, cols)| {
            let name = format!("{rows} x {cols}");
            Case::new(name, Bound::Relative(1e-6), move |cpu| {
                let x = numbers(1, rows * cols);
                let weight = numbers(2, cols);
                let mut fast = vec![0.0; rows * cols];
                rms_norm(cpu, &x, &weight, 1e-5, &mut fast)?;
                let mut reference = Vec::new();
                for row in x.chunks_exact(cols) {
                    let squares: f64 = row.iter().map(|x| f64::from(*x).powi(2)).sum();
                    let root = (squares / cols as f64 + 1e-5).sqrt();
                    let pairs = row.iter().zip(&weight);
                    reference.extend(pairs.map(|(x, w)| (f64::from(x * w) / root) as f32));
                }
                Ok(Outcome { fast, reference })
            })
        })
        .collect()
}
