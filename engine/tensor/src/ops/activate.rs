//! Activations of single elements.

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::Cpu;
use crate::math::exp;
use crate::shared::SharedSlice;
use crate::simd::by_simd;

pub(super) const OP: Op = Op {
    name: "activate",
    about: "silu, gelu in its three forms, tanh",
    cases,
};

/// A function of single elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    /// `x / (1 + e^-x)`.
    Silu,
    /// `x/2 (1 + erf(x / sqrt 2))` (Hendrycks and Gimpel, arXiv 1606.08415).
    Gelu,
    /// The same by `tanh(sqrt(2 / pi) (x + 0.044715 x^3))`.
    GeluTanh,
    /// `x / (1 + e^(-1.702 x))`, as CLIP has it.
    GeluQuick,
    /// Hyperbolic tangent.
    Tanh,
}

/// `x = f(x)`, element by element.
pub fn activate(cpu: &Cpu, unary: Unary, x: &mut [f32]) {
    const PART: usize = 8192;
    let len = x.len();
    let x = SharedSlice::new(x);
    cpu.threads().run(len.div_ceil(PART), &|part| {
        let range = part * PART..((part + 1) * PART).min(len);
        // SAFETY: each task has its own range.
        fast(cpu.simd(), unary, unsafe { x.part(range) });
    });
}

by_simd! {
    fn fast(unary: Unary, x: &mut [f32]) = loops body;
}

#[inline(always)]
fn body(unary: Unary, x: &mut [f32]) {
    match unary {
        Unary::Silu => x.iter_mut().for_each(|x| *x /= 1.0 + exp(-*x)),
        Unary::Gelu => x
            .iter_mut()
            .for_each(|x| *x = 0.5 * *x * (1.0 + erf(*x * std::f32::consts::FRAC_1_SQRT_2))),
        Unary::GeluTanh => x.iter_mut().for_each(|x| {
            let inner = 0.797_884_6 * (*x + 0.044_715 * *x * *x * *x);
            *x = 0.5 * *x * (1.0 + tanh(inner));
        }),
        Unary::GeluQuick => x.iter_mut().for_each(|x| *x /= 1.0 + exp(-1.702 * *x)),
        Unary::Tanh => x.iter_mut().for_each(|x| *x = tanh(*x)),
    }
}

#[inline(always)]
fn tanh(x: f32) -> f32 {
    // Near 0 the difference from 1 would lose digits.
    let small = x.abs() < 0.25;
    let square = x * x;
    let mut series = 62.0 / 2835.0;
    for factor in [-17.0 / 315.0, 2.0 / 15.0, -1.0 / 3.0, 1.0] {
        series = series * square + factor;
    }
    let large = 1.0 - 2.0 / (1.0 + exp(2.0 * x));
    if small { x * series } else { large }
}

/// Within 2e-7 (Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.26, and the series
/// near 0, where it would lose digits).
#[inline(always)]
fn erf(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * size);
    let mut series = 1.061_405_4;
    for factor in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
        series = series * t + factor;
    }
    let far = 1.0 - series * t * exp(-size * size);
    let square = size * size;
    let near =
        std::f32::consts::FRAC_2_SQRT_PI * size * (1.0 - square / 3.0 + square * square / 10.0);
    let value = if size < 0.08 { near } else { far };
    if x < 0.0 { -value } else { value }
}

/// erf in f64 by its series, for cases.
fn erf_reference(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn cases() -> Vec<Case> {
    let kinds = [
        Unary::Silu,
        Unary::Gelu,
        Unary::GeluTanh,
        Unary::GeluQuick,
        Unary::Tanh,
    ];
    kinds
        .into_iter()
        .flat_map(|kind| [(kind, 1, 1.0), (kind, 10_001, 5.0), (kind, 999, 0.05)])
        .map(|(kind, len, range)| {
            let name = format!("{kind:?}, {len} elements up to {range}");
            Case::new(name, Bound::Relative(2e-6), move |cpu| {
                let x: Vec<f32> = numbers(1, len).iter().map(|x| x * range).collect();
                let mut fast = x.clone();
                activate(cpu, kind, &mut fast);
                let one = |x: &f32| {
                    let x = f64::from(*x);
                    let y = match kind {
                        Unary::Silu => x / (1.0 + (-x).exp()),
                        Unary::Gelu => {
                            0.5 * x * (1.0 + erf_reference(x * std::f64::consts::FRAC_1_SQRT_2))
                        }
                        Unary::GeluTanh => {
                            let root = (2.0 / std::f64::consts::PI).sqrt();
                            0.5 * x * (1.0 + (root * (x + 0.044_715 * x.powi(3))).tanh())
                        }
                        Unary::GeluQuick => x / (1.0 + (-1.702 * x).exp()),
                        Unary::Tanh => x.tanh(),
                    };
                    y as f32
                };
                let reference = x.iter().map(one).collect();
                Ok(Outcome { fast, reference })
            })
        })
        .collect()
}
