//! The gate of a SwiGLU layer (Shazeer, arXiv 2002.05202).

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::math::exp;
use crate::simd::by_simd;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "silu_mul",
    about: "gate = gate / (1 + e^-gate) * up",
    cases,
};

/// `gate = gate / (1 + e^-gate) * up`, both of one length.
///
/// # Errors
/// `Shape` when lengths differ.
pub fn silu_mul(cpu: &Cpu, gate: &mut [f32], up: &[f32]) -> Result<(), TensorError> {
    const PART: usize = 8192;
    expect("silu_mul", "length of up", up.len(), gate.len())?;
    let len = gate.len();
    let gate = crate::shared::SharedSlice::new(gate);
    cpu.threads().run(len.div_ceil(PART), &|part| {
        let range = part * PART..((part + 1) * PART).min(len);
        // SAFETY: each task has its own range.
        fast(cpu.simd(), unsafe { gate.part(range.clone()) }, &up[range]);
    });
    Ok(())
}

by_simd! {
    fn fast(gate: &mut [f32], up: &[f32]) = loops body;
}

#[inline(always)]
fn body(gate: &mut [f32], up: &[f32]) {
    for (gate, up) in gate.iter_mut().zip(up) {
        *gate = *gate / (1.0 + exp(-*gate)) * up;
    }
}

fn cases() -> Vec<Case> {
    [(1, 1.0), (160, 8.0), (20_000, 90.0)]
        .into_iter()
        .map(|(len, range)| {
            let name = format!("{len} elements up to {range}");
            Case::new(name, Bound::Relative(1e-6), move |cpu| {
                let gate: Vec<f32> = numbers(1, len).iter().map(|x| x * range).collect();
                let up = numbers(2, len);
                let mut fast = gate.clone();
                silu_mul(cpu, &mut fast, &up)?;
                let one = |(gate, up): (&f32, &f32)| {
                    let gate = f64::from(*gate);
                    (gate / (1.0 + (-gate).exp()) * f64::from(*up)) as f32
                };
                let reference = gate.iter().zip(&up).map(one).collect();
                Ok(Outcome { fast, reference })
            })
        })
        .collect()
}
