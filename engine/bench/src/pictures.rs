//! Pictures at twice their size.

use anyhow::{Context as _, Result};
use engine_base::CancelToken;
use engine_cuda::{ChainConv, Device, PictureChain};
use engine_models::{PictureMemory, load_picture_model};
use engine_tensor::ops::halve_bicubic;
use engine_tensor::{Cpu, f16_to_f32, f32_to_f16};
use engine_weights::{Checkpoint, open};

use crate::Order;
use crate::receipt::{Receipt, Row, timed};

const SIZE: (usize, usize) = (720, 1280);
const REPEATS: usize = 30;
/// Bf16 and f16 products a second that the library's matrix product reaches in short runs on an H200.
const PEAK: f64 = 800e12;

/// Weights of one convolution.
struct Conv {
    weights: Vec<f32>,
    bias: Vec<f32>,
    slopes: Option<Vec<f32>>,
    inputs: usize,
    outputs: usize,
}

/// A checkpoint `body.0.weight`, `body.0.bias`, `body.1.weight` (slopes) and so on.
fn read(checkpoint: &dyn Checkpoint) -> Result<Vec<Conv>> {
    let values = |name: &str| -> Result<Option<Vec<f32>>> {
        match checkpoint.tensor(name) {
            Some(tensor) => Ok(Some(tensor.to_f32()?)),
            None => Ok(None),
        }
    };
    let mut convs = Vec::new();
    let mut inputs = 3;
    for at in 0.. {
        let Some(weights) = values(&format!("body.{}.weight", 2 * at))? else {
            break;
        };
        let bias =
            values(&format!("body.{}.bias", 2 * at))?.context("a convolution without bias")?;
        let outputs = bias.len();
        convs.push(Conv {
            weights,
            bias,
            slopes: values(&format!("body.{}.weight", 2 * at + 1))?,
            inputs,
            outputs,
        });
        inputs = outputs;
    }
    Ok(convs)
}

/// Numbers in -1 to 1 (SplitMix64).
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((word ^ (word >> 31)) >> 40) as f32 / 8_388_608.0 - 1.0
        })
        .collect()
}

/// A network of `count` convolutions of 64 channels whose activations keep their size.
fn random(count: usize) -> Vec<Conv> {
    let mut convs = Vec::new();
    for at in 0..count + 2 {
        let inputs = if at == 0 { 3 } else { 64 };
        let outputs = if at == count + 1 { 12 } else { 64 };
        let size = (6.0 / (9.0 * inputs as f32 * 1.0625)).sqrt();
        let weights = numbers(at as u64, outputs * inputs * 9);
        convs.push(Conv {
            weights: weights.iter().map(|w| w * size).collect(),
            bias: numbers(100 + at as u64, outputs)
                .iter()
                .map(|b| b * 0.01)
                .collect(),
            slopes: (at <= count).then(|| vec![0.25; outputs]),
            inputs,
            outputs,
        });
    }
    convs
}

fn chain(device: &Device, convs: &[Conv], size: (usize, usize)) -> Result<PictureChain> {
    let convs: Vec<ChainConv<'_>> = convs
        .iter()
        .map(|conv| ChainConv {
            weights: &conv.weights,
            bias: &conv.bias,
            slopes: conv.slopes.as_deref(),
            inputs: conv.inputs,
            outputs: conv.outputs,
        })
        .collect();
    Ok(PictureChain::new(device, &convs, size)?)
}

fn operations(convs: &[Conv], (height, width): (usize, usize)) -> f64 {
    let taps: usize = convs.iter().map(|conv| conv.weights.len()).sum();
    2.0 * taps as f64 * (height * width) as f64
}

/// A picture with slopes, edges and grain: `[3, height, width]`, 0 to 1, exact in f16.
fn test_picture((height, width): (usize, usize)) -> Vec<f32> {
    let grain = numbers(77, 3 * height * width);
    (0..3 * height * width)
        .map(|at| {
            let (c, y, x) = (at / (height * width), at / width % height, at % width);
            let (u, v) = (x as f32 / width as f32, y as f32 / height as f32);
            let waves = 0.25 * (40.0 * u + 9.0 * v * v + c as f32).sin();
            let edge = if ((x / 37 + y / 23 + c) % 5) < 2 {
                0.2
            } else {
                0.0
            };
            let value = 0.35 + 0.2 * u + waves + edge + 0.03 * grain[at];
            f16_to_f32(f32_to_f16(value.clamp(0.0, 1.0)))
        })
        .collect()
}

/// What a checked picture gave.
pub(crate) struct Agreement {
    /// Share of values within 1/255 of the CPU's.
    pub(crate) within: f64,
    pub(crate) largest: f32,
    /// Whether a replayed run gave the bits of a launched one.
    pub(crate) replay_equal: bool,
}

/// The upscaler at `path` on both sides for a picture of `size`.
pub(crate) fn agreement(
    device: &Device,
    path: &std::path::Path,
    size: (usize, usize),
) -> Result<Agreement> {
    let checkpoint = open(path)?;
    let mut on_device = chain(device, &read(checkpoint.as_ref())?, size)?;
    let picture = test_picture(size);
    let bits: Vec<u16> = picture.iter().map(|value| f32_to_f16(*value)).collect();
    on_device.give(&bits)?;
    on_device.run_launched()?;
    let launched = on_device.result()?;
    on_device.run()?;
    on_device.run()?;
    let replayed = on_device.result()?;
    let model = load_picture_model(checkpoint.as_ref())?;
    let (cpu, cancel) = (Cpu::new(0)?, CancelToken::new());
    let mut reference = model.run(&cpu, &picture, size, &mut PictureMemory::new(), &cancel)?;
    if model.scale() == 4 {
        let mut half = vec![0.0; reference.len() / 4];
        halve_bicubic(&cpu, &reference, (4 * size.0, 4 * size.1), &mut half)?;
        reference = half;
    }
    let mut within = 0;
    let mut largest = 0.0f32;
    for (bits, expected) in launched.iter().zip(&reference) {
        let off = (f16_to_f32(*bits) - expected).abs();
        // No number is within nothing.
        within += usize::from(off <= 1.0 / 255.0);
        largest = if off.is_nan() {
            f32::INFINITY
        } else {
            largest.max(off)
        };
    }
    anyhow::ensure!(
        launched.len() == reference.len(),
        "the device gave another size"
    );
    Ok(Agreement {
        within: within as f64 / reference.len() as f64,
        largest,
        replay_equal: launched == replayed,
    })
}

pub(crate) fn run(device: &Device, order: &Order, receipt: &mut Receipt) -> Result<()> {
    if let Some(path) = order.path("upscaler") {
        let agreement = agreement(device, &path, SIZE)?;
        receipt.add(Row {
            name: "srvgg-x2-animevideov3-720p-within-1-of-255",
            unit: "share",
            higher: true,
            samples: vec![agreement.within],
            bar: Some(0.999),
            floor: None,
        });
        println!(
            "  largest difference {}, replay equal {}",
            agreement.largest, agreement.replay_equal
        );
        let checkpoint = open(&path)?;
        let convs = read(checkpoint.as_ref())?;
        frames(
            device,
            receipt,
            "srvgg-x2-animevideov3-720p-f16",
            &convs,
            Some(200.0),
        )?;
    }
    // The shape of the published compact network, which has twice as many convolutions.
    frames(
        device,
        receipt,
        "srvgg-x2-32-convs-720p-f16",
        &random(32),
        Some(200.0),
    )
}

fn frames(
    device: &Device,
    receipt: &mut Receipt,
    name: &str,
    convs: &[Conv],
    bar: Option<f64>,
) -> Result<()> {
    let mut chain = chain(device, convs, SIZE)?;
    let bits: Vec<u16> = test_picture(SIZE)
        .iter()
        .map(|value| f32_to_f16(*value))
        .collect();
    chain.give(&bits)?;
    chain.run()?;
    let secs = timed(device, REPEATS, || chain.run())?;
    receipt.add(Row {
        name,
        unit: "frames/s",
        higher: true,
        samples: secs.iter().map(|secs| 1.0 / secs).collect(),
        bar,
        floor: Some(PEAK / operations(convs, SIZE)),
    });
    Ok(())
}
