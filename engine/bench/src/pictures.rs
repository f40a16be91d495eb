//! Pictures at twice their size.

use anyhow::{Result, bail};
use engine_base::CancelToken;
use engine_cuda::{ChainConv, CudaError, DenseChain, Device, PictureChain};
use engine_models::{
    ConvWeights, PictureMemory, PictureWeights, load_picture_model, picture_weights,
};
use engine_tensor::ops::halve_bicubic;
use engine_tensor::{Cpu, f16_to_f32, f32_to_f16};
use engine_weights::{Checkpoint, open};

use crate::receipt::{Receipt, Row, timed};
use crate::{Order, dense};

pub(crate) const SIZE: (usize, usize) = (720, 1280);
const REPEATS: usize = 30;
/// Bf16 and f16 products a second that the library's matrix product reaches in short runs on an H200.
pub(crate) const PEAK: f64 = 800e12;

/// The convolutions of a checkpoint that is one chain.
fn read(checkpoint: &dyn Checkpoint) -> Result<Vec<ConvWeights>> {
    match picture_weights(checkpoint)? {
        PictureWeights::Chain(convs) => Ok(convs),
        PictureWeights::Dense(_) => bail!("expected one chain of convolutions"),
    }
}

/// Numbers in -1 to 1 (SplitMix64).
pub(crate) fn numbers(seed: u64, count: usize) -> Vec<f32> {
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
fn random(count: usize) -> Vec<ConvWeights> {
    let mut convs = Vec::new();
    for at in 0..count + 2 {
        let inputs = if at == 0 { 3 } else { 64 };
        let outputs = if at == count + 1 { 12 } else { 64 };
        let size = (6.0 / (9.0 * inputs as f32 * 1.0625)).sqrt();
        let weights = numbers(at as u64, outputs * inputs * 9);
        convs.push(ConvWeights {
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

fn chain(device: &Device, convs: &[ConvWeights], size: (usize, usize)) -> Result<PictureChain> {
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

fn operations(convs: &[ConvWeights], (height, width): (usize, usize)) -> f64 {
    let taps: usize = convs.iter().map(|conv| conv.weights.len()).sum();
    2.0 * taps as f64 * (height * width) as f64
}

/// A picture with slopes, edges and grain: `[3, height, width]`, 0 to 1, exact in f16.
pub(crate) fn test_picture((height, width): (usize, usize)) -> Vec<f32> {
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

/// A network on the device for pictures of one size.
pub(crate) enum OnDevice {
    Chain(Box<PictureChain>),
    Dense(Box<DenseChain>),
}

impl OnDevice {
    pub(crate) fn new(
        device: &Device,
        weights: &PictureWeights,
        size: (usize, usize),
    ) -> Result<Self> {
        Ok(match weights {
            PictureWeights::Chain(convs) => Self::Chain(Box::new(chain(device, convs, size)?)),
            PictureWeights::Dense(network) => {
                let chain = DenseChain::new(device, &dense::borrowed(network), size)?;
                Self::Dense(Box::new(chain))
            }
        })
    }

    pub(crate) fn give(&self, bits: &[u16]) -> Result<(), CudaError> {
        match self {
            Self::Chain(chain) => chain.give(bits),
            Self::Dense(chain) => chain.give(bits),
        }
    }

    fn run_launched(&self) -> Result<(), CudaError> {
        match self {
            Self::Chain(chain) => chain.run_launched(),
            Self::Dense(chain) => chain.run_launched(),
        }
    }

    pub(crate) fn run(&mut self) -> Result<(), CudaError> {
        match self {
            Self::Chain(chain) => chain.run(),
            Self::Dense(chain) => chain.run(),
        }
    }

    fn result(&self) -> Result<Vec<u16>, CudaError> {
        match self {
            Self::Chain(chain) => chain.result(),
            Self::Dense(chain) => chain.result(),
        }
    }
}

/// The upscaler at `path` on both sides for a picture of `size`.
pub(crate) fn agreement(
    device: &Device,
    path: &std::path::Path,
    size: (usize, usize),
) -> Result<Agreement> {
    let checkpoint = open(path)?;
    let weights = picture_weights(checkpoint.as_ref())?;
    let mut on_device = OnDevice::new(device, &weights, size)?;
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
    convs: &[ConvWeights],
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
