//! Sums of two tensors.

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::simd::by_simd;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "add",
    about: "x += y",
    cases,
};

/// `x += y`, both of one length.
///
/// # Errors
/// `Shape` when lengths differ.
pub fn add(cpu: &Cpu, x: &mut [f32], y: &[f32]) -> Result<(), TensorError> {
    expect("add", "length of y", y.len(), x.len())?;
    fast(cpu.simd(), x, y);
    Ok(())
}

by_simd! {
    fn fast(x: &mut [f32], y: &[f32]) = loops body;
}

#[inline(always)]
fn body(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}

fn cases() -> Vec<Case> {
    [1, 15, 16, 577]
        .into_iter()
        .map(|len| {
            Case::new(format!("{len} elements"), Bound::Equal, move |cpu| {
                let (x, y) = (numbers(1, len), numbers(2, len));
                let mut fast = x.clone();
                add(cpu, &mut fast, &y)?;
                let reference = x.iter().zip(&y).map(|(x, y)| x + y).collect();
                Ok(Outcome { fast, reference })
            })
        })
        .collect()
}
