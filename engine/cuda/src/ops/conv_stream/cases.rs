//! Cases of the convolutions of many channels.

use engine_tensor::ops::{Bound, Outcome};

use super::super::case::{Case, from_half, numbers};
use super::super::conv3x3::{ConvWay, Picture};
use super::{Floats, StreamConv, StreamEnd, StreamKind, StreamTo, conv_stream};
use crate::{CudaError, Device};

pub(super) fn cases() -> Vec<Case> {
    let kinds = [
        (StreamKind::Three, 64, 12),
        (StreamKind::Three, 32, 96),
        (StreamKind::Three, 128, 160),
        (StreamKind::One, 64, 128),
        (StreamKind::Doubled, 64, 64),
        (StreamKind::Planes, 3, 64),
    ];
    let mut cases = Vec::new();
    for (kind, outputs, inputs) in kinds {
        for (height, width) in [(1, 1), (7, 5), (9, 130), (13, 257)] {
            for floats in [Floats::Half, Floats::Bf16] {
                for way in [ConvWay::Best, ConvWay::Tiles] {
                    let name = format!(
                        "{kind:?}, {inputs} to {outputs} channels, {width} x {height} px, {floats:?}, {way:?}"
                    );
                    let bound = match floats {
                        Floats::Half => 2e-3,
                        Floats::Bf16 => 1.6e-2,
                    };
                    let work = (kind, floats, way);
                    cases.push(Case::new(name, Bound::Relative(bound), move |device, _| {
                        run_case(device, work, (outputs, inputs), (height, width))
                    }));
                }
            }
        }
    }
    cases
}

/// Nearest pixels at twice the size.
fn doubled_planes(values: &[f32], (height, width): (usize, usize)) -> Vec<f32> {
    let plane = height * width;
    let channels = values.len() / plane;
    let at = |at: usize| {
        let (c, y, x) = (
            at / (4 * plane),
            at / (2 * width) % (2 * height),
            at % (2 * width),
        );
        values[c * plane + y / 2 * width + x / 2]
    };
    (0..channels * 4 * plane).map(at).collect()
}

/// Sums of a convolution, `[outputs, height, width]`.
fn by_hand(
    values: &[f32],
    (height, width): (usize, usize),
    (weights, side): (&[f32], usize),
    (outputs, inputs): (usize, usize),
    bias: &[f32],
) -> Vec<f32> {
    let (plane, reach) = (height * width, side / 2);
    let mut out = Vec::new();
    for (output, bias) in (0..outputs).zip(bias) {
        let mut sums = vec![*bias; plane];
        for input in 0..inputs {
            for tap in 0..side * side {
                let weight = weights[(output * inputs + input) * side * side + tap];
                let (down, across) = (tap / side, tap % side);
                for y in reach.saturating_sub(down)..height.min(height + reach - down) {
                    for x in reach.saturating_sub(across)..width.min(width + reach - across) {
                        let from = (y + down - reach) * width + x + across - reach;
                        sums[y * width + x] += weight * values[input * plane + from];
                    }
                }
            }
        }
        out.extend(sums);
    }
    out
}

fn run_case(
    device: &Device,
    (kind, floats, way): (StreamKind, Floats, ConvWay),
    (outputs, inputs): (usize, usize),
    (height, width): (usize, usize),
) -> Result<Outcome, CudaError> {
    let rounded = |seed, count| floats.values(&floats.bits(&numbers(seed, count)));
    let side = if kind == StreamKind::One { 1 } else { 3 };
    let pixels = rounded(1, inputs * height * width);
    // Sixteenths whose sums of four are exact in either kind of floats.
    let weights: Vec<f32> = numbers(2, outputs * inputs * side * side)
        .iter()
        .map(|w| (w * 8.0).round() / 64.0)
        .collect();
    let bias = numbers(3, outputs);
    let conv = StreamConv::new(device, (kind, floats), (outputs, inputs), &weights, &bias)?;
    let input = Picture::zeros(device, inputs.next_multiple_of(16) + 16, (height, width))?;
    input.write(device, &floats.bits(&pixels))?;
    let (size, seen) = match kind {
        StreamKind::Doubled => (
            (2 * height, 2 * width),
            doubled_planes(&pixels, (height, width)),
        ),
        _ => ((height, width), pixels),
    };
    let mut reference = by_hand(&seen, size, (&weights, side), (outputs, inputs), &bias);
    if kind == StreamKind::Planes {
        let out = device.alloc(6 * size.0 * size.1)?;
        device.fill(&out, 0xff)?;
        let end = StreamEnd::plain(StreamTo::Planes(&out));
        conv_stream(device, &conv, &input, end, way)?;
        let fast = from_half(&device.read(&out, 0, 3 * size.0 * size.1)?);
        return Ok(Outcome { fast, reference });
    }
    let (first, second) = (
        Picture::zeros(device, outputs + 8, size)?,
        Picture::zeros(device, outputs, size)?,
    );
    let count = outputs * size.0 * size.1;
    let (a, b) = (rounded(5, count), rounded(6, count));
    first.write(device, &floats.bits(&a))?;
    second.write(device, &floats.bits(&b))?;
    // What is below the outputs must stay.
    let out = Picture::zeros(device, outputs + 16, size)?;
    let before = rounded(7, 8 * size.0 * size.1);
    out.write(device, &floats.bits(&before))?;
    let mut end = StreamEnd {
        slope: 0.2,
        own: 0.5,
        ..StreamEnd::plain(StreamTo::Picture(&out, 8))
    };
    for (at, value) in reference.iter_mut().enumerate() {
        *value = 0.5 * (value.max(0.0) + 0.2 * value.min(0.0));
        if kind != StreamKind::Doubled {
            *value += 2.0 * a[at] - b[at];
        }
    }
    if kind != StreamKind::Doubled {
        (end.first, end.second) = (Some((&first, 2.0)), Some((&second, -1.0)));
    }
    conv_stream(device, &conv, &input, end, way)?;
    let (bits, border) = out.read(device)?;
    let mut fast = floats.values(&bits);
    let mut expected = before;
    expected.extend(reference);
    expected.resize(fast.len(), 0.0);
    if !border {
        fast.push(f32::NAN);
        expected.push(0.0);
    }
    Ok(Outcome {
        fast,
        reference: expected,
    })
}
