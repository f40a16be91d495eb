//! Residual sums of planes.

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::lanes::{Lanes, Values};
use crate::planes::{Planes, PlanesMut, PlanesRef, same_size};
use crate::shared::SharedSlice;
use crate::simd::by_simd;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "scaled_add",
    about: "x = x * scale + y, of planes",
    cases,
};

/// `x = x * scale + y`, both of one size; rounded once.
///
/// # Errors
/// `Shape` when sizes differ.
pub fn scaled_add(
    cpu: &Cpu,
    x: PlanesMut<'_>,
    scale: f32,
    y: PlanesRef<'_>,
) -> Result<(), TensorError> {
    const PART: usize = 4096;
    let PlanesMut { data, size } = x;
    expect("scaled_add", "blocks of y", y.size.blocks, size.blocks)?;
    same_size("scaled_add", y.size, size)?;
    let len = data.len();
    let x = SharedSlice::new(data);
    // Borders are 0 in both and stay so.
    cpu.threads().run(len.div_ceil(PART), &|part| {
        let range = part * PART..((part + 1) * PART).min(len);
        // SAFETY: each task has its own range.
        fast(
            cpu.simd(),
            unsafe { x.part(range.clone()) },
            scale,
            &y.data[range],
        );
    });
    Ok(())
}

by_simd! {
    fn fast(x: &mut [Values], scale: f32, y: &[Values]) = body;
}

#[inline(always)]
fn body<L: Lanes>(x: &mut [Values], scale: f32, y: &[Values]) {
    for (x, y) in x.iter_mut().zip(y) {
        // SAFETY: `by_simd!` chose `L`.
        unsafe { L::store(x, L::fused(L::load(x), L::splat(scale), L::load(y))) };
    }
}

fn cases() -> Vec<Case> {
    [(1, 1, 1), (2, 7, 5), (3, 40, 41)]
        .into_iter()
        .map(|(blocks, height, width)| {
            let name = format!("{blocks} blocks of {width} x {height} px");
            Case::new(name, Bound::Equal, move |cpu| {
                let count = blocks * 16 * height * width;
                let (a, b) = (numbers(1, count), numbers(2, count));
                let (mut x, mut y) = (
                    Planes::zeros(blocks, height, width)?,
                    Planes::zeros(blocks, height, width)?,
                );
                x.fill(&a)?;
                y.fill(&b)?;
                scaled_add(cpu, x.all_mut(), 0.2, y.all())?;
                let reference = a.iter().zip(&b).map(|(a, b)| a.mul_add(0.2, *b)).collect();
                Ok(Outcome {
                    fast: x.values(blocks * 16)?,
                    reference,
                })
            })
        })
        .collect()
}
