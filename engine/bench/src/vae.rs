//! The decoder of an autoencoder of pictures.

use anyhow::Result;
use engine_cuda::{CudaError, Device, VaeDecoder, VaeShape};
use engine_tensor::f16_to_f32;

use crate::pictures::{PEAK, numbers};
use crate::receipt::{Receipt, Row, timed};

const REPEATS: usize = 15;
/// Operations of the published shape for 1024 x 1024 px, as torch counts its convolutions.
const OPERATIONS: f64 = 9.89e12;

fn shape(channels: &[usize], blocks: usize) -> VaeShape {
    VaeShape {
        latent: 4,
        channels: channels.to_vec(),
        blocks,
        epsilon: 1e-6,
    }
}

/// Weights by name: the same name gives the same values.
fn tensor(name: &str, len: usize) -> Vec<f32> {
    let seed = name
        .bytes()
        .fold(7u64, |seed, byte| seed.wrapping_mul(131) + u64::from(byte));
    let values = numbers(seed, len);
    if name.contains("norm") {
        let middle = if name.ends_with("weight") { 1.0 } else { 0.0 };
        return values.iter().map(|v| middle + 0.1 * v).collect();
    }
    if name.ends_with("bias") {
        return values.iter().map(|v| 0.1 * v).collect();
    }
    let known = [
        512 * 512,
        256 * 256,
        128 * 128,
        512 * 256,
        256 * 128,
        512 * 4,
    ];
    let is_three = known.iter().any(|count| len == count * 9) || name == "conv_out.weight";
    let inputs = match (len, is_three) {
        _ if name == "conv_in.weight" => 36,
        _ if name == "conv_out.weight" => len / 3,
        (len, true) => (len / 9).isqrt().next_power_of_two() * 9,
        (len, false) => len.isqrt().next_power_of_two(),
    };
    let size = (1.5 / inputs as f32).sqrt();
    values.iter().map(|v| v * size).collect()
}

fn source(name: &str, len: usize) -> Result<Vec<f32>, CudaError> {
    Ok(tensor(name, len))
}

pub(crate) fn run(device: &Device, receipt: &mut Receipt) -> Result<()> {
    let shape = shape(&[128, 256, 512, 512], 3);
    let mut decoder = VaeDecoder::new(device, &shape, (128, 128), &source)?;
    decoder.give(&numbers(5, 4 * 128 * 128))?;
    decoder.run()?;
    let secs = timed(device, REPEATS, || decoder.run())?;
    receipt.add(Row {
        name: "vae-decode-1024",
        unit: "ms",
        higher: false,
        samples: secs.iter().map(|secs| secs * 1e3).collect(),
        bar: Some(34.0),
        floor: Some(OPERATIONS / PEAK * 1e3),
    });
    Ok(())
}

/// A plane of the reference: channels of pixels in f32.
#[derive(Clone)]
struct Maps {
    values: Vec<f32>,
    channels: usize,
    height: usize,
    width: usize,
}

impl Maps {
    fn conv(&self, name: &str, outputs: usize, side: usize) -> Self {
        let taps = side * side;
        let weights = tensor(&format!("{name}.weight"), outputs * self.channels * taps);
        let bias = tensor(&format!("{name}.bias"), outputs);
        let plane = self.height * self.width;
        let mut values = Vec::new();
        for output in 0..outputs {
            let mut sums = vec![bias[output]; plane];
            for (at, weight) in weights[output * self.channels * taps..][..self.channels * taps]
                .iter()
                .enumerate()
            {
                let (input, tap) = (at / taps, at % taps);
                let (down, across) = (tap / side, tap % side);
                let reach = side / 2;
                for y in reach.saturating_sub(down)..self.height.min(self.height + reach - down) {
                    let row = (y + down - reach) * self.width + input * plane;
                    for x in
                        reach.saturating_sub(across)..self.width.min(self.width + reach - across)
                    {
                        sums[y * self.width + x] += weight * self.values[row + x + across - reach];
                    }
                }
            }
            values.extend(sums);
        }
        Self {
            values,
            channels: outputs,
            ..*self
        }
    }

    fn normed(&self, name: &str, activated: bool) -> Self {
        let weight = tensor(&format!("{name}.weight"), self.channels);
        let bias = tensor(&format!("{name}.bias"), self.channels);
        let plane = self.height * self.width;
        let group = self.channels / 32 * plane;
        let mut values = Vec::new();
        for of_group in self.values.chunks_exact(group) {
            let mean = of_group.iter().map(|v| f64::from(*v)).sum::<f64>() / group as f64;
            let off: f64 = of_group
                .iter()
                .map(|v| (f64::from(*v) - mean).powi(2))
                .sum();
            let root = (off / group as f64 + 1e-6).sqrt();
            for value in of_group {
                let channel = values.len() / plane;
                let v = (f64::from(*value) - mean) / root;
                let v = v as f32 * weight[channel] + bias[channel];
                values.push(if activated { v / (1.0 + (-v).exp()) } else { v });
            }
        }
        Self { values, ..*self }
    }

    fn block(&self, name: &str, outputs: usize) -> Self {
        let inner =
            self.normed(&format!("{name}.norm1"), true)
                .conv(&format!("{name}.conv1"), outputs, 3);
        let mut out =
            inner
                .normed(&format!("{name}.norm2"), true)
                .conv(&format!("{name}.conv2"), outputs, 3);
        let shortcut = match outputs == self.channels {
            true => self.clone(),
            false => self.conv(&format!("{name}.conv_shortcut"), outputs, 1),
        };
        for (to, from) in out.values.iter_mut().zip(&shortcut.values) {
            *to += from;
        }
        out
    }

    fn mixed(&self, name: &str) -> Self {
        let normed = self.normed(&format!("{name}.group_norm"), false);
        let [q, k, v] = ["to_q", "to_k", "to_v"]
            .map(|part| normed.conv(&format!("{name}.{part}"), self.channels, 1));
        let plane = self.height * self.width;
        let mut gathered = normed.clone();
        let scale = 1.0 / (self.channels as f32).sqrt();
        for from in 0..plane {
            let score = |to: usize| {
                let pairs = (0..self.channels)
                    .map(|c| q.values[c * plane + from] * k.values[c * plane + to]);
                pairs.sum::<f32>() * scale
            };
            let scores: Vec<f32> = (0..plane).map(score).collect();
            let most = scores.iter().copied().fold(f32::MIN, f32::max);
            let powers: Vec<f32> = scores.iter().map(|s| (s - most).exp()).collect();
            let sum: f32 = powers.iter().sum();
            for c in 0..self.channels {
                let parts = powers.iter().zip(&v.values[c * plane..]);
                gathered.values[c * plane + from] = parts.map(|(p, v)| p * v).sum::<f32>() / sum;
            }
        }
        let mut out = gathered.conv(&format!("{name}.to_out.0"), self.channels, 1);
        for (to, from) in out.values.iter_mut().zip(&self.values) {
            *to += from;
        }
        out
    }

    fn doubled(&self) -> Self {
        let (height, width) = (2 * self.height, 2 * self.width);
        let plane = height * width;
        let at = |at: usize| {
            let (c, y, x) = (at / plane, at % plane / width, at % width);
            self.values[(c * self.height + y / 2) * self.width + x / 2]
        };
        Self {
            values: (0..self.channels * plane).map(at).collect(),
            channels: self.channels,
            height,
            width,
        }
    }
}

/// A small decoder on both sides: the largest difference in parts of the largest value.
pub(crate) fn error(device: &Device) -> Result<f32> {
    let (height, width) = (4, 6);
    let latents = numbers(5, 4 * height * width);
    let shape = shape(&[128, 256], 1);
    let mut decoder = VaeDecoder::new(device, &shape, (height, width), &source)?;
    decoder.give(&latents)?;
    decoder.run()?;
    let first = decoder.result()?;
    decoder.run()?;
    let again = decoder.result()?;
    anyhow::ensure!(first == again, "a replayed decode gave other bits");
    let maps = Maps {
        values: latents,
        channels: 4,
        height,
        width,
    };
    let maps = maps
        .conv("conv_in", 256, 3)
        .block("mid_block.resnets.0", 256)
        .mixed("mid_block.attentions.0")
        .block("mid_block.resnets.1", 256)
        .block("up_blocks.0.resnets.0", 256)
        .doubled()
        .conv("up_blocks.0.upsamplers.0.conv", 256, 3)
        .block("up_blocks.1.resnets.0", 128)
        .normed("conv_norm_out", true)
        .conv("conv_out", 3, 3);
    let largest = maps.values.iter().fold(1e-30f32, |a, b| a.max(b.abs()));
    let mut worst = if first.len() == maps.values.len() {
        0.0f32
    } else {
        f32::INFINITY
    };
    for (bits, expected) in first.iter().zip(&maps.values) {
        let off = (f16_to_f32(*bits) - expected).abs() / largest;
        worst = if off.is_nan() {
            f32::INFINITY
        } else {
            worst.max(off)
        };
    }
    Ok(worst)
}
