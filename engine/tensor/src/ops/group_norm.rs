//! Group normalization of planes (Wu and He, arXiv 1803.08494).

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::lanes::Values;
use crate::math::exp;
use crate::planes::{BLOCK, Planes, PlanesMut, PlanesRef, same_size};
use crate::shared::SharedSlice;
use crate::simd::by_simd;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "group_norm",
    about: "groups of channels less their mean over their deviation, times a weight, plus a bias, perhaps through silu",
    cases,
};

/// What a group normalization has.
#[derive(Debug, Clone, Copy)]
pub struct GroupNormSpec<'a> {
    /// Groups of neighbouring channels; divides them.
    pub groups: usize,
    /// `[channels]`.
    pub weight: &'a [f32],
    /// `[channels]`.
    pub bias: &'a [f32],
    /// Added to the variance.
    pub epsilon: f32,
    /// Whether `y / (1 + e^-y)` follows.
    pub silu: bool,
}

/// `out = (x - mean) / sqrt(variance + epsilon) * weight + bias` with mean and variance of each group of
/// channels over all pixels, summed in f64.
///
/// Lanes of `input` beyond the channels do not count and give zeros.
///
/// # Errors
/// `Shape` when sizes do not go together.
pub fn group_norm(
    cpu: &Cpu,
    spec: &GroupNormSpec<'_>,
    input: PlanesRef<'_>,
    out: PlanesMut<'_>,
) -> Result<(), TensorError> {
    const OP: &str = "group_norm";
    let channels = spec.weight.len();
    let PlanesMut { data, size } = out;
    expect(OP, "groups > 0", usize::from(spec.groups > 0), 1)?;
    expect(OP, "channels > 0", usize::from(channels > 0), 1)?;
    expect(OP, "channels % groups", channels % spec.groups, 0)?;
    expect(OP, "length of bias", spec.bias.len(), channels)?;
    let blocks = channels.div_ceil(BLOCK);
    expect(OP, "blocks of the input", input.size.blocks, blocks)?;
    expect(OP, "blocks of out", size.blocks, blocks)?;
    same_size(OP, size, input.size)?;
    // Sums of each row of each block, then of rows in order: the same for any threads.
    let rows = blocks * size.height;
    let mut sums = vec![([0f64; BLOCK], [0f64; BLOCK]); rows];
    {
        let sums = SharedSlice::new(&mut sums);
        cpu.threads().run(rows, &|task| {
            let start = size.at(task / size.height, task % size.height, 0);
            let row = &input.data[start..start + size.width];
            // SAFETY: each task has its own sums.
            let sums = unsafe { sums.part(task..task + 1) };
            row_sums(cpu.simd(), row, sums);
        });
    }
    let per_group = channels / spec.groups;
    let mut scales = vec![Values::ZERO; blocks];
    let mut shifts = vec![Values::ZERO; blocks];
    let count = (per_group * size.height * size.width) as f64;
    for group in 0..spec.groups {
        let (mut total, mut squares) = (0.0, 0.0);
        for channel in group * per_group..(group + 1) * per_group {
            for (sum, square) in &sums[channel / BLOCK * size.height..][..size.height] {
                total += sum[channel % BLOCK];
                squares += square[channel % BLOCK];
            }
        }
        let mean = total / count;
        let variance = (squares / count - mean * mean).max(0.0);
        let inverse = 1.0 / (variance + f64::from(spec.epsilon)).sqrt();
        for channel in group * per_group..(group + 1) * per_group {
            let scale = inverse * f64::from(spec.weight[channel]);
            scales[channel / BLOCK].0[channel % BLOCK] = scale as f32;
            let shift = f64::from(spec.bias[channel]) - mean * scale;
            shifts[channel / BLOCK].0[channel % BLOCK] = shift as f32;
        }
    }
    let out = SharedSlice::new(data);
    cpu.threads().run(rows, &|task| {
        let block = task / size.height;
        let start = size.at(block, task % size.height, 0);
        let from = &input.data[start..start + size.width];
        // SAFETY: each task has its own row.
        let to = unsafe { out.part(start..start + size.width) };
        let by = (&scales[block], &shifts[block], spec.silu);
        row(cpu.simd(), from, by, to);
    });
    Ok(())
}

by_simd! {
    fn row_sums(row: &[Values], sums: &mut [([f64; BLOCK], [f64; BLOCK])]) = loops sums_body;
}

#[inline(always)]
fn sums_body(row: &[Values], sums: &mut [([f64; BLOCK], [f64; BLOCK])]) {
    for (sum, square) in sums {
        for pixel in row {
            for lane in 0..BLOCK {
                let value = f64::from(pixel.0[lane]);
                sum[lane] += value;
                square[lane] += value * value;
            }
        }
    }
}

by_simd! {
    fn row(from: &[Values], by: (&Values, &Values, bool), to: &mut [Values]) = loops row_body;
}

#[inline(always)]
fn row_body(from: &[Values], (scale, shift, silu): (&Values, &Values, bool), to: &mut [Values]) {
    for (from, to) in from.iter().zip(to) {
        for lane in 0..BLOCK {
            to.0[lane] = from.0[lane] * scale.0[lane] + shift.0[lane];
        }
        if silu {
            for value in &mut to.0 {
                *value /= 1.0 + exp(-*value);
            }
        }
    }
}

fn cases() -> Vec<Case> {
    [(16, 4, 1, 2), (24, 3, 3, 5), (40, 8, 4, 7)]
        .into_iter()
        .flat_map(|shape| [(shape, false), (shape, true)])
        .map(|((channels, groups, height, width), silu)| {
            let name =
                format!("{groups} groups of {channels} channels, {width} x {height}, {silu}");
            Case::new(name, Bound::Relative(3e-6), move |cpu| {
                let plane = height * width;
                let values = numbers(1, channels * plane);
                let (weight, bias) = (numbers(2, channels), numbers(3, channels));
                let spec = GroupNormSpec {
                    groups,
                    weight: &weight,
                    bias: &bias,
                    epsilon: 1e-5,
                    silu,
                };
                let mut from = Planes::zeros(channels.div_ceil(BLOCK), height, width)?;
                from.fill(&values)?;
                let mut to = Planes::zeros(from.blocks(), height, width)?;
                group_norm(cpu, &spec, from.all(), to.all_mut())?;
                let per_group = channels / groups;
                let mut reference = Vec::new();
                for (group, part) in values.chunks_exact(per_group * plane).enumerate() {
                    let count = part.len() as f64;
                    let mean = part.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
                    let squares = part.iter().map(|x| (f64::from(*x) - mean).powi(2));
                    let root = (squares.sum::<f64>() / count + 1e-5).sqrt();
                    reference.extend(part.iter().enumerate().map(|(at, x)| {
                        let channel = group * per_group + at / plane;
                        let y = (f64::from(*x) - mean) / root * f64::from(weight[channel])
                            + f64::from(bias[channel]);
                        (if silu { y / (1.0 + (-y).exp()) } else { y }) as f32
                    }));
                }
                Ok(Outcome {
                    fast: to.values(channels)?,
                    reference,
                })
            })
        })
        .collect()
}
