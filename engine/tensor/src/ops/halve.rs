//! Pictures at half the size by cubic convolution (Keys 1981) with a = -3/4.
//!
//! A pixel of the half lies in the middle of four, so all weights are the same two: those of ncnn's and
//! PyTorch's bicubic interpolation without antialiasing, which the makers of the networks use.

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::shared::SharedSlice;
use crate::simd::by_simd;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "halve_bicubic",
    about: "planes at half their height and width",
    cases,
};

/// At distances 1.5, 0.5, 0.5, 1.5.
const WEIGHTS: [f32; 4] = [-0.09375, 0.59375, 0.59375, -0.09375];

/// `[channels, height, width]` to `[channels, height / 2, width / 2]`; pixels beyond an edge are those
/// at it. Rows are weighted first.
///
/// # Errors
/// `Shape` for odd sides, or when lengths do not go together.
pub fn halve_bicubic(
    cpu: &Cpu,
    values: &[f32],
    (height, width): (usize, usize),
    out: &mut [f32],
) -> Result<(), TensorError> {
    const OP: &str = "halve_bicubic";
    expect(OP, "height % 2", height % 2, 0)?;
    expect(OP, "width % 2", width % 2, 0)?;
    expect(OP, "pixels > 0", usize::from(height * width > 0), 1)?;
    let channels = values.len() / (height * width);
    expect(
        OP,
        "length of values",
        values.len(),
        channels * height * width,
    )?;
    expect(OP, "length of out", out.len(), values.len() / 4)?;
    let (rows, half) = (height / 2, width / 2);
    let out = SharedSlice::new(out);
    cpu.threads().run(channels * rows, &|task| {
        let plane = &values[task / rows * height * width..][..height * width];
        // SAFETY: each task has its own row.
        let row = unsafe { out.part(task * half..(task + 1) * half) };
        fast(cpu.simd(), plane, width, task % rows, row);
    });
    Ok(())
}

by_simd! {
    fn fast(plane: &[f32], width: usize, y: usize, out: &mut [f32]) = loops body;
}

/// The four neighbours of an output along a side of `len`.
#[inline(always)]
fn neighbours(at: usize, len: usize) -> [usize; 4] {
    let first = 2 * at;
    [
        first.saturating_sub(1),
        first,
        first + 1,
        (first + 2).min(len - 1),
    ]
}

#[inline(always)]
fn weigh(values: [f32; 4]) -> f32 {
    let outer = (values[0] + values[3]) * WEIGHTS[0];
    (values[1] + values[2]).mul_add(WEIGHTS[1], outer)
}

#[inline(always)]
fn body(plane: &[f32], width: usize, y: usize, out: &mut [f32]) {
    let height = plane.len() / width;
    let rows = neighbours(y, height).map(|row| &plane[row * width..(row + 1) * width]);
    let mut column = |x: usize| {
        let at = neighbours(x, width);
        let down = at.map(|at| weigh(rows.map(|row| row[at])));
        out[x] = weigh(down);
    };
    for x in 0..width / 2 {
        column(x);
    }
}

fn cases() -> Vec<Case> {
    [(1, 2, 2), (3, 4, 10), (2, 32, 6)]
        .into_iter()
        .map(|(channels, height, width)| {
            let name = format!("{channels} channels of {width} x {height} px");
            Case::new(name, Bound::Relative(5e-7), move |cpu| {
                let values = numbers(1, channels * height * width);
                let mut fast = vec![0.0; values.len() / 4];
                halve_bicubic(cpu, &values, (height, width), &mut fast)?;
                let clamped = |at: isize, len: usize| at.clamp(0, len as isize - 1) as usize;
                let mut reference = Vec::new();
                for row in 0..channels * height / 2 {
                    let (channel, y) = (row / (height / 2), (row % (height / 2)) as isize);
                    for x in 0..(width / 2) as isize {
                        let mut sum = 0.0;
                        for tap in 0..16 {
                            let down = clamped(2 * y + tap / 4 - 1, height);
                            let along = clamped(2 * x + tap % 4 - 1, width);
                            let weight = WEIGHTS[tap as usize / 4] * WEIGHTS[tap as usize % 4];
                            let value = values[(channel * height + down) * width + along];
                            sum += f64::from(weight) * f64::from(value);
                        }
                        reference.push(sum as f32);
                    }
                }
                Ok(Outcome { fast, reference })
            })
        })
        .collect()
}
