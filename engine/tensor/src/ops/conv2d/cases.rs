//! Convolutions held to sums in f64.

use super::{Activation, Conv2d, ConvEnd, conv2d};
use crate::ops::case::{Bound, Case, Outcome, numbers};
use crate::planes::{BLOCK, Planes};

/// Winograd's points grow and shrink values by up to 24 and cancel them again: a few f32 roundings of
/// sums that are some times larger than the result. Measured over these cases: 3e-6 at most.
const WINOGRAD: f32 = 1e-5;
/// Sums of up to 27 x 16 products in f32.
const DIRECT: f32 = 2e-6;

/// Sizes of one case.
struct Sizes {
    segments: &'static [usize],
    outputs: usize,
    side: usize,
    height: usize,
    width: usize,
    activation: fn(usize) -> Activation,
    residual: Option<f32>,
}

fn prelu(outputs: usize) -> Activation {
    Activation::Prelu(numbers(9, outputs))
}

fn none(_: usize) -> Activation {
    Activation::None
}

fn leaky(_: usize) -> Activation {
    Activation::LeakyRelu(0.2)
}

/// Values with every segment at its own block: `[blocks * 16, height, width]`.
fn spread(values: &[f32], segments: &[usize], pixels: usize) -> Vec<f32> {
    let mut out = Vec::new();
    let mut from = 0;
    for &count in segments {
        out.extend_from_slice(&values[from * pixels..(from + count) * pixels]);
        out.resize(
            out.len() + (count.next_multiple_of(BLOCK) - count) * pixels,
            0.0,
        );
        from += count;
    }
    out
}

/// The sum of one output's products at one pixel, in f64.
fn product(sizes: &Sizes, input: &[f32], weights: &[f32], (y, x): (usize, usize)) -> f64 {
    let (height, width, side) = (sizes.height, sizes.width, sizes.side);
    let reach = side / 2;
    let mut sum = 0.0;
    for (at, weight) in weights.iter().enumerate() {
        let (channel, tap) = (at / (side * side), at % (side * side));
        let (row, column) = (y + tap / side, x + tap % side);
        if (reach..height + reach).contains(&row) && (reach..width + reach).contains(&column) {
            let from = (channel * height + row - reach) * width + column - reach;
            sum += f64::from(input[from]) * f64::from(*weight);
        }
    }
    sum
}

fn reference(
    sizes: &Sizes,
    input: &[f32],
    weights: &[f32],
    bias: &[f32],
    residual: &[f32],
) -> Vec<f32> {
    let pixels = sizes.height * sizes.width;
    let activation = (sizes.activation)(sizes.outputs);
    let one = |at: usize| {
        let (output, pixel) = (at / pixels, at % pixels);
        let taps = weights.len() / sizes.outputs;
        let weights = &weights[output * taps..(output + 1) * taps];
        let place = (pixel / sizes.width, pixel % sizes.width);
        let mut sum = f64::from(bias[output]) + product(sizes, input, weights, place);
        let slope = match &activation {
            Activation::None => 1.0,
            Activation::LeakyRelu(slope) => *slope,
            Activation::Prelu(slopes) => slopes[output],
        };
        sum *= if sum < 0.0 { f64::from(slope) } else { 1.0 };
        let scaled = |scale| f64::from(residual[at]) + f64::from(scale) * sum;
        sizes.residual.map_or(sum, scaled) as f32
    };
    (0..sizes.outputs * pixels).map(one).collect()
}

fn case(sizes: Sizes) -> Case {
    let channels: usize = sizes.segments.iter().sum();
    let name = format!(
        "{:?} -> {} by {} x {}, {} x {} px{}",
        sizes.segments,
        sizes.outputs,
        sizes.side,
        sizes.side,
        sizes.width,
        sizes.height,
        if sizes.residual.is_some() {
            ", residual"
        } else {
            ""
        }
    );
    let winograd = sizes.side == 3 && channels >= super::WINOGRAD_CHANNELS;
    let bound = Bound::Relative(if winograd { WINOGRAD } else { DIRECT });
    Case::new(name, bound, move |cpu| {
        let (height, width) = (sizes.height, sizes.width);
        let pixels = height * width;
        let input = numbers(1, channels * pixels);
        let weights = numbers(2, sizes.outputs * channels * sizes.side * sizes.side);
        let bias = numbers(3, sizes.outputs);
        let residual = numbers(4, sizes.outputs * pixels);
        let activation = (sizes.activation)(sizes.outputs);
        let conv = Conv2d::new(&weights, &bias, (sizes.segments, sizes.side), &activation)?;
        let mut from = Planes::zeros(conv.in_blocks(), height, width)?;
        from.fill(&spread(&input, sizes.segments, pixels))?;
        let mut beside = Planes::zeros(conv.out_blocks(), height, width)?;
        beside.fill(&residual)?;
        let mut out = Planes::zeros(conv.out_blocks(), height, width)?;
        let end = ConvEnd {
            residual: sizes.residual.map(|scale| (scale, beside.all())),
        };
        conv2d(cpu, &conv, from.all(), end, out.all_mut())?;
        Ok(Outcome {
            fast: out.values(sizes.outputs)?,
            reference: reference(&sizes, &input, &weights, &bias, &residual),
        })
    })
}

type Row = (
    &'static [usize],
    (usize, usize),
    (usize, usize),
    fn(usize) -> Activation,
    Option<f32>,
);

pub(super) fn cases() -> Vec<Case> {
    const ROWS: &[Row] = &[
        (&[3], (64, 3), (9, 7), prelu, None),
        (&[3], (16, 3), (1, 1), none, None),
        (&[12], (8, 3), (2, 13), leaky, None),
        (&[8], (8, 3), (5, 6), none, Some(0.2)),
        (&[20], (5, 1), (3, 8), leaky, None),
        (&[64], (32, 1), (4, 4), none, Some(1.0)),
        (&[16], (16, 3), (1, 1), prelu, None),
        (&[16], (48, 3), (1, 40), none, None),
        (&[16], (3, 3), (40, 1), none, None),
        (&[16], (16, 3), (4, 4), leaky, None),
        (&[16], (12, 3), (5, 9), leaky, Some(0.2)),
        (&[64], (64, 3), (17, 22), prelu, None),
        (&[64], (48, 3), (8, 51), none, None),
        (&[8, 8, 8], (8, 3), (6, 6), leaky, None),
        (&[64, 32, 32, 32, 32], (64, 3), (9, 10), none, Some(0.2)),
        (&[40, 24], (33, 3), (12, 13), leaky, Some(1.0)),
    ];
    ROWS.iter()
        .map(
            |&(segments, (outputs, side), (height, width), activation, residual)| {
                case(Sizes {
                    segments,
                    outputs,
                    side,
                    height,
                    width,
                    activation,
                    residual,
                })
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Cpu, Simd, TensorError, Threads};

    #[test]
    fn a_picture_cut_at_multiples_of_4_gives_the_same_bits() {
        let cpu = Cpu::with(Arc::new(Threads::new(2).unwrap()), Simd::best());
        let (height, width) = (24, 32);
        let values = numbers(1, 16 * height * width);
        let activation = Activation::LeakyRelu(0.2);
        let weights = numbers(2, 16 * 16 * 9);
        let conv = Conv2d::new(&weights, &numbers(3, 16), (&[16], 3), &activation).unwrap();
        let run = |values: &[f32], height, width| -> Result<Vec<f32>, TensorError> {
            let mut from = Planes::zeros(1, height, width)?;
            from.fill(values)?;
            let mut out = Planes::zeros(1, height, width)?;
            conv2d(&cpu, &conv, from.all(), ConvEnd::default(), out.all_mut())?;
            out.values(16)
        };
        let whole = run(&values, height, width).unwrap();
        let pixel = |values: &[f32], width: usize, height: usize, c: usize, y: usize, x: usize| {
            values[(c * height + y) * width + x]
        };
        let (top, left) = (8, 12);
        let mut cut = Vec::new();
        for c in 0..16 {
            for y in top..height {
                cut.extend((left..width).map(|x| pixel(&values, width, height, c, y, x)));
            }
        }
        let part = run(&cut, height - top, width - left).unwrap();
        for c in 0..16 {
            for y in top + 1..height {
                for x in left + 1..width {
                    let a = pixel(&whole, width, height, c, y, x);
                    let b = pixel(&part, width - left, height - top, c, y - top, x - left);
                    assert_eq!(a.to_bits(), b.to_bits());
                }
            }
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let none = Activation::None;
        assert!(Conv2d::new(&[0.0; 4], &[0.0], (&[1], 2), &none).is_err());
        assert!(Conv2d::new(&[0.0; 8], &[0.0], (&[1], 3), &none).is_err());
        assert!(Conv2d::new(&[], &[], (&[1], 3), &none).is_err());
        assert!(Conv2d::new(&[], &[0.0], (&[], 3), &none).is_err());
        let slopes = Activation::Prelu(vec![0.1, 0.2]);
        assert!(Conv2d::new(&[0.0; 9], &[0.0], (&[1], 3), &slopes).is_err());
        let conv = Conv2d::new(&[0.0; 9], &[0.0], (&[1], 3), &none).unwrap();
        let cpu = Cpu::new(1).unwrap();
        let from = Planes::zeros(1, 3, 4).unwrap();
        for mut out in [Planes::zeros(2, 3, 4), Planes::zeros(1, 4, 3)].map(Result::unwrap) {
            let refused = conv2d(&cpu, &conv, from.all(), ConvEnd::default(), out.all_mut());
            assert!(refused.is_err());
        }
    }
}
