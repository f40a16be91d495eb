//! Root mean square over the channels of each pixel, as the video autoencoders of the Wan kind have it
//! (diffusers: `WanRMS_norm`, `QwenImageRMS_norm`).

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::lanes::Values;
use crate::math::exp;
use crate::planes::{BLOCK, Planes, PlanesMut, PlanesRef, same_size};
use crate::shared::SharedSlice;
use crate::simd::by_simd;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "channel_norm",
    about: "pixels divided by their root mean square over channels, times a weight, perhaps through silu",
    cases,
};

/// `out = x * sqrt(channels) / max(|x|, 1e-12) * weight`, pixel by pixel; with `silu` then
/// `y / (1 + e^-y)`.
///
/// `weight: [channels]`; lanes beyond the channels must hold zeros and give zeros. Bits of a pixel
/// depend on that pixel only.
///
/// # Errors
/// `Shape` when sizes do not go together.
pub fn channel_norm(
    cpu: &Cpu,
    input: PlanesRef<'_>,
    weight: &[f32],
    silu: bool,
    out: PlanesMut<'_>,
) -> Result<(), TensorError> {
    const OP: &str = "channel_norm";
    let PlanesMut { data, size } = out;
    expect(OP, "channels > 0", usize::from(!weight.is_empty()), 1)?;
    expect(
        OP,
        "blocks of the input",
        input.size.blocks,
        weight.len().div_ceil(BLOCK),
    )?;
    expect(OP, "blocks of out", size.blocks, input.size.blocks)?;
    same_size(OP, size, input.size)?;
    let mut weights = vec![Values::ZERO; size.blocks];
    for (channel, weight) in weight.iter().enumerate() {
        weights[channel / BLOCK].0[channel % BLOCK] = *weight;
    }
    let root = (weight.len() as f32).sqrt();
    let out = SharedSlice::new(data);
    cpu.threads().run(size.height, &|y| {
        let mut rows: Vec<&mut [Values]> = (0..size.blocks)
            .map(|block| {
                let start = size.at(block, y, 0);
                // SAFETY: each task has its own row of every block.
                unsafe { out.part(start..start + size.width) }
            })
            .collect();
        row(cpu.simd(), input, &weights, (root, silu, y), &mut rows);
    });
    Ok(())
}

by_simd! {
    fn row(
        input: PlanesRef<'_>,
        weights: &[Values],
        how: (f32, bool, usize),
        out: &mut [&mut [Values]],
    ) = loops row_body;
}

#[inline(always)]
fn row_body(
    input: PlanesRef<'_>,
    weights: &[Values],
    (root, silu, y): (f32, bool, usize),
    out: &mut [&mut [Values]],
) {
    let size = input.size;
    let scale_of = |x: usize| {
        let mut squares = Values::ZERO;
        for block in 0..size.blocks {
            let pixel = &input.data[size.at(block, y, x)];
            for lane in 0..BLOCK {
                squares.0[lane] += pixel.0[lane] * pixel.0[lane];
            }
        }
        for width in [8, 4, 2, 1] {
            for lane in 0..width {
                squares.0[lane] += squares.0[lane + width];
            }
        }
        let norm = squares.0[0].sqrt();
        root / if norm > 1e-12 { norm } else { 1e-12 }
    };
    let scales: Vec<f32> = (0..size.width).map(scale_of).collect();
    for (block, (weights, row)) in weights.iter().zip(out).enumerate() {
        let start = size.at(block, y, 0);
        let pixels = input.data[start..].iter().zip(&scales);
        for (to, (pixel, scale)) in row.iter_mut().zip(pixels) {
            for lane in 0..BLOCK {
                to.0[lane] = pixel.0[lane] * scale * weights.0[lane];
            }
            if silu {
                for value in &mut to.0 {
                    *value /= 1.0 + exp(-*value);
                }
            }
        }
    }
}

fn cases() -> Vec<Case> {
    [(16, 1, 1), (20, 3, 5), (48, 4, 7)]
        .into_iter()
        .flat_map(|shape| [(shape, false), (shape, true)])
        .map(|((channels, height, width), silu)| {
            let name = format!("{channels} channels of {width} x {height} px, silu {silu}");
            Case::new(name, Bound::Relative(2e-6), move |cpu| {
                let plane = height * width;
                let values = numbers(1, channels * plane);
                let weight = numbers(2, channels);
                let mut from = Planes::zeros(channels.div_ceil(BLOCK), height, width)?;
                from.fill(&values)?;
                let mut to = Planes::zeros(from.blocks(), height, width)?;
                channel_norm(cpu, from.all(), &weight, silu, to.all_mut())?;
                let mut reference = vec![0.0; values.len()];
                for pixel in 0..plane {
                    let of = |channel: usize| f64::from(values[channel * plane + pixel]);
                    let squares: f64 = (0..channels).map(|channel| of(channel).powi(2)).sum();
                    let root = (squares / channels as f64).sqrt();
                    for channel in 0..channels {
                        let y = of(channel) / root * f64::from(weight[channel]);
                        let y = if silu { y / (1.0 + (-y).exp()) } else { y };
                        reference[channel * plane + pixel] = y as f32;
                    }
                }
                Ok(Outcome {
                    fast: to.values(channels)?,
                    reference,
                })
            })
        })
        .collect()
}
