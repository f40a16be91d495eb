//! Residual sums behind a gate, as diffusion transformers have them (Peebles and Xie, arXiv 2212.09748).

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::shared::SharedSlice;
use crate::simd::by_simd;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "gated_add",
    about: "x = x + gate * y, one gate for each column",
    cases,
};

/// `x = x + gate * y`, for each row of `x`, `y`: `[rows, cols]`; `gate: [cols]`.
///
/// # Errors
/// `Shape` when lengths do not go together.
pub fn gated_add(cpu: &Cpu, x: &mut [f32], gate: &[f32], y: &[f32]) -> Result<(), TensorError> {
    const OP: &str = "gated_add";
    const PART: usize = 8192;
    let cols = gate.len();
    expect(OP, "cols > 0", usize::from(cols > 0), 1)?;
    expect(OP, "length of x % cols", x.len() % cols, 0)?;
    expect(OP, "length of y", y.len(), x.len())?;
    let rows = x.len() / cols;
    let per_part = (PART / cols).max(1);
    let x = SharedSlice::new(x);
    cpu.threads().run(rows.div_ceil(per_part), &|part| {
        let rows = part * per_part..((part + 1) * per_part).min(rows);
        let range = rows.start * cols..rows.end * cols;
        // SAFETY: each task has its own rows.
        let x = unsafe { x.part(range.clone()) };
        fast(cpu.simd(), x, gate, &y[range]);
    });
    Ok(())
}

by_simd! {
    fn fast(x: &mut [f32], gate: &[f32], y: &[f32]) = loops body;
}

#[inline(always)]
fn body(x: &mut [f32], gate: &[f32], y: &[f32]) {
    let cols = gate.len();
    for (x, y) in x.chunks_exact_mut(cols).zip(y.chunks_exact(cols)) {
        for ((x, y), gate) in x.iter_mut().zip(y).zip(gate) {
            *x += gate * y;
        }
    }
}

fn cases() -> Vec<Case> {
    [(1, 16), (3, 64), (700, 33)]
        .into_iter()
        .map(|(rows, cols)| {
            let name = format!("{rows} x {cols}");
            Case::new(name, Bound::Relative(1e-6), move |cpu| {
                let x = numbers(1, rows * cols);
                let (gate, y) = (numbers(2, cols), numbers(3, rows * cols));
                let mut fast = x.clone();
                gated_add(cpu, &mut fast, &gate, &y)?;
                let reference = x.iter().zip(&y).enumerate().map(|(at, (x, y))| {
                    (f64::from(*x) + f64::from(gate[at % cols]) * f64::from(*y)) as f32
                });
                Ok(Outcome {
                    fast,
                    reference: reference.collect(),
                })
            })
        })
        .collect()
}
