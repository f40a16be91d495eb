//! Shares that add up to 1.

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::math::{exp, sum};
use crate::simd::by_simd;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "softmax",
    about: "e^x over the row's sum of it",
    cases,
};

/// `x = e^x / sum(e^x)`, for each row of `x: [rows, cols]`. Bits do not depend on other rows.
///
/// # Errors
/// `Shape` unless `x` is whole rows.
pub fn softmax(cpu: &Cpu, x: &mut [f32], cols: usize) -> Result<(), TensorError> {
    expect("softmax", "cols > 0", usize::from(cols > 0), 1)?;
    expect("softmax", "length of x % cols", x.len() % cols, 0)?;
    fast(cpu.simd(), x, cols);
    Ok(())
}

by_simd! {
    fn fast(x: &mut [f32], cols: usize) = loops body;
}

#[inline(always)]
fn body(x: &mut [f32], cols: usize) {
    for row in x.chunks_exact_mut(cols) {
        let scale = 1.0 / exponentials(row);
        for value in row {
            *value *= scale;
        }
    }
}

/// `x = e^(x - max)`; gives their sum.
#[inline(always)]
pub(super) fn exponentials(row: &mut [f32]) -> f32 {
    let mut most = [f32::NEG_INFINITY; 16];
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let (chunks, rest) = row.as_chunks::<16>();
    for chunk in chunks {
        for (most, value) in most.iter_mut().zip(chunk) {
            *most = larger(*most, *value);
        }
    }
    let most = rest
        .iter()
        .chain(&most)
        .fold(f32::NEG_INFINITY, |a, b| larger(a, *b));
    for value in row.iter_mut() {
        *value = exp(*value - most);
    }
    sum(row, |value| value)
}

fn cases() -> Vec<Case> {
    [(1, 1, 1.0), (3, 37, 5.0), (2, 512, 60.0)]
        .into_iter()
        .map(|(rows, cols, range)| {
            let name = format!("{rows} x {cols} up to {range}");
            Case::new(name, Bound::Relative(1e-6), move |cpu| {
                let x: Vec<f32> = numbers(1, rows * cols).iter().map(|x| x * range).collect();
                let mut fast = x.clone();
                softmax(cpu, &mut fast, cols)?;
                let mut reference = Vec::new();
                for row in x.chunks_exact(cols) {
                    let most = row.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
                    let each = row.iter().map(|x| f64::from(x - most).exp());
                    let each: Vec<f64> = each.collect();
                    let total: f64 = each.iter().sum();
                    reference.extend(each.iter().map(|value| (value / total) as f32));
                }
                Ok(Outcome { fast, reference })
            })
        })
        .collect()
}
