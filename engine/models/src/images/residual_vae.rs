//! The residual autoencoder of Qwen-Image 2.1: RGBA pictures and latents of a sixteenth of each side.
//!
//! A causal video autoencoder of the Wan kind, here for one frame: shortcuts around every change of size
//! repeat or average channels. All norms are of single pixels, so that a picture that is decoded in
//! windows gives what it gives whole. Checked against diffusers 0.42.1 (`autoencoder_kl_qwenimage21.py`).

use engine_base::CancelToken;
use engine_tensor::ops::{Conv2d, shuffle_add};
use engine_tensor::{Cpu, Planes, TensorError};
use serde::Deserialize;

use super::kit::{convolved, doubled, every_second};
use super::pixel_blocks::{Mid, ResBlock, gamma, normed};
use super::tensors::Tensors;
use crate::error::{check_sizes, wrong};
use crate::{LoadError, PictureError};

/// Channels of a picture: RGBA.
const PICTURE_CHANNELS: usize = 4;
/// Planes that are alive at once while a level is run.
const LIVE_PLANES: usize = 4;
/// Smallest window, in pixels of its level.
const WINDOW_PX: usize = 32;

/// `vae/config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ResidualVaeConfig {
    /// Channels of the encoder's first level.
    pub base_dim: usize,
    /// Channels of the decoder's last level; `base_dim` when absent.
    pub decoder_base_dim: Option<usize>,
    /// Channels of a latent.
    pub z_dim: usize,
    /// Channels of each level in first ones.
    pub dim_mult: Vec<usize>,
    /// Residual blocks of a level; the decoder has one more.
    pub num_res_blocks: usize,
    /// Which changes of size also halve time in videos.
    pub temperal_downsample: Vec<bool>,
    /// What a latent is normalized by: `(z - mean) / std`.
    pub latents_mean: Vec<f32>,
    /// The same.
    pub latents_std: Vec<f32>,
    /// Whether there are shortcuts around changes of size.
    #[serde(default)]
    pub is_residual: bool,
}

impl ResidualVaeConfig {
    fn check(&self) -> Result<(), LoadError> {
        let sizes = [
            ("base_dim", self.base_dim),
            ("decoder_base_dim", self.decoder_base()),
            ("z_dim", self.z_dim),
            ("num_res_blocks", self.num_res_blocks),
        ];
        let levels = self.dim_mult.iter().map(|mult| ("dim_mult", *mult));
        check_sizes(sizes.into_iter().chain(levels))?;
        if !(2..=8).contains(&self.dim_mult.len()) {
            let got = self.dim_mult.len().to_string();
            return Err(wrong("length of dim_mult", got, "2 to 8"));
        }
        if self.temperal_downsample.len() + 1 != self.dim_mult.len() {
            let got = self.temperal_downsample.len().to_string();
            let expected = "one less than levels";
            return Err(wrong("length of temperal_downsample", got, expected));
        }
        for (key, list) in [
            ("length of latents_mean", &self.latents_mean),
            ("length of latents_std", &self.latents_std),
        ] {
            if list.len() != self.z_dim {
                return Err(wrong(key, list.len().to_string(), "z_dim"));
            }
        }
        let sound = |std: &f32| std.is_finite() && *std > 0.0;
        if !self.latents_std.iter().all(sound) {
            let got = format!("{:?}", self.latents_std);
            return Err(wrong("latents_std", got, "finite numbers over 0"));
        }
        if !self.is_residual {
            return Err(wrong("is_residual", "false".to_owned(), "true"));
        }
        Ok(())
    }

    fn decoder_base(&self) -> usize {
        self.decoder_base_dim.unwrap_or(self.base_dim)
    }
}

/// One level of the decoder.
#[derive(Debug)]
struct Up {
    blocks: Vec<ResBlock>,
    /// Convolution after doubling, and which channels the shortcut takes.
    double: Option<(Conv2d, Vec<[usize; 4]>)>,
    channels: usize,
}

impl Up {
    fn load(
        tensors: &Tensors<'_>,
        (inputs, outputs): (usize, usize),
        blocks: usize,
        double: Option<bool>,
    ) -> Result<Self, LoadError> {
        let mut loaded = Vec::new();
        for index in 0..blocks {
            let inputs = if index == 0 { inputs } else { outputs };
            let tensors = tensors.under(format!("resnets.{index}"));
            loaded.push(ResBlock::load(&tensors, inputs, outputs)?);
        }
        let double = match double {
            None => None,
            Some(in_time) => {
                let conv = tensors.conv("upsampler.resample.1", outputs, outputs, 3)?;
                // A video's first frame keeps the second of two repeats in time.
                let (copies, first) = if in_time { (8, 4) } else { (4, 0) };
                let repeats = outputs * copies / inputs;
                if repeats == 0 || outputs * copies % inputs != 0 {
                    return Err(LoadError::Config {
                        key: "dim_mult".to_owned(),
                        got: format!("{inputs} to {outputs} channels"),
                        expected: "channels that divide those of the next level times 4".to_owned(),
                    });
                }
                let source = |channel: usize| {
                    std::array::from_fn(|at| (channel * copies + first + at) / repeats)
                };
                Some((conv, (0..outputs).map(source).collect()))
            }
        };
        Ok(Self {
            blocks: loaded,
            double,
            channels: outputs,
        })
    }

    fn run(&self, cpu: &Cpu, x: &Planes) -> Result<Planes, TensorError> {
        let mut y = None;
        for block in &self.blocks {
            y = Some(block.run(cpu, y.as_ref().unwrap_or(x))?);
        }
        let Some(y) = y else {
            return Ok(x.clone());
        };
        let Some((conv, sources)) = &self.double else {
            return Ok(y);
        };
        let mut out = doubled(cpu, conv, &y)?;
        shuffle_add(cpu, x.all(), sources, out.all_mut())?;
        Ok(out)
    }
}

/// One level of the encoder.
#[derive(Debug)]
struct Down {
    blocks: Vec<ResBlock>,
    /// Convolution of which every second pixel is kept.
    half: Option<Conv2d>,
    in_time: bool,
    inputs: usize,
    outputs: usize,
}

impl Down {
    fn load(
        tensors: &Tensors<'_>,
        (inputs, outputs): (usize, usize),
        blocks: usize,
        half: Option<bool>,
    ) -> Result<Self, LoadError> {
        let mut loaded = Vec::new();
        for index in 0..blocks {
            let inputs = if index == 0 { inputs } else { outputs };
            let tensors = tensors.under(format!("resnets.{index}"));
            loaded.push(ResBlock::load(&tensors, inputs, outputs)?);
        }
        let in_time = half.unwrap_or(false);
        let copies = if half.is_none() {
            1
        } else if in_time {
            8
        } else {
            4
        };
        if inputs * copies % outputs != 0 {
            return Err(LoadError::Config {
                key: "dim_mult".to_owned(),
                got: format!("{inputs} to {outputs} channels"),
                expected: "channels that divide those of the level before times 4".to_owned(),
            });
        }
        Ok(Self {
            blocks: loaded,
            half: match half {
                None => None,
                Some(_) => Some(tensors.conv("downsampler.resample.1", outputs, outputs, 3)?),
            },
            in_time,
            inputs,
            outputs,
        })
    }

    fn run(&self, cpu: &Cpu, x: &Planes) -> Result<Planes, TensorError> {
        let mut y = None;
        for block in &self.blocks {
            y = Some(block.run(cpu, y.as_ref().unwrap_or(x))?);
        }
        let mut y = y.unwrap_or_else(|| x.clone());
        let (height, width) = (x.height(), x.width());
        let before = x.values(self.inputs)?;
        let (mut values, scale) = match &self.half {
            None => (y.values(self.outputs)?, 1),
            Some(conv) => {
                y = convolved(cpu, conv, &y, None)?;
                (every_second(&y, self.outputs, 1)?, 2)
            }
        };
        self.add_average(&before, (height, width), scale, &mut values);
        let mut out = Planes::zeros(self.outputs.div_ceil(16), height / scale, width / scale)?;
        out.fill(&values)?;
        Ok(out)
    }

    /// Adds averages of neighbouring channels of `before`, pixels of a square taken as channels. In time a
    /// frame of zeros stands before the first.
    fn add_average(
        &self,
        before: &[f32],
        (height, width): (usize, usize),
        scale: usize,
        out: &mut [f32],
    ) {
        let squares = scale * scale;
        let copies = if self.in_time { 2 * squares } else { squares };
        let group = self.inputs * copies / self.outputs;
        let (rows, columns) = (height / scale, width / scale);
        for (at, value) in out.iter_mut().enumerate() {
            let (column, row) = (at % columns, at / columns);
            let (row, channel) = (row % rows, row / rows);
            let mut sum = 0.0;
            for part in channel * group..(channel + 1) * group {
                let (input, copy) = (part / copies, part % copies);
                if self.in_time && copy < squares {
                    continue;
                }
                let (i, j) = (copy % squares / scale, copy % scale);
                sum += before[(input * height + scale * row + i) * width + scale * column + j];
            }
            *value += sum / group as f32;
        }
    }
}

/// The autoencoder.
#[derive(Debug)]
pub struct ResidualVae {
    config: ResidualVaeConfig,
    cpu: Cpu,
    encoder: Encoder,
    decoder: Decoder,
}

#[derive(Debug)]
struct Encoder {
    first: Conv2d,
    levels: Vec<Down>,
    mid: Mid,
    norm: Vec<f32>,
    last: Conv2d,
    quant: Conv2d,
}

#[derive(Debug)]
struct Decoder {
    quant: Conv2d,
    first: Conv2d,
    mid: Mid,
    levels: Vec<Up>,
    norm: Vec<f32>,
    last: Conv2d,
}

/// Means and logarithms of variances of a latent, `[z_dim, height, width]` each.
#[derive(Debug, Clone, PartialEq)]
pub struct Posterior {
    /// Means.
    pub mean: Vec<f32>,
    /// Logarithms of variances, not clamped.
    pub log_variance: Vec<f32>,
}

/// A stretch of a side: where its window begins and how long it is, and the part that is kept.
#[derive(Clone, Copy)]
struct Window {
    start: usize,
    len: usize,
    kept: (usize, usize),
}

fn windows(side: usize, step: usize, margin: usize) -> Vec<Window> {
    (0..side)
        .step_by(step.max(1))
        .map(|first| {
            let last = (first + step).min(side);
            let start = first.saturating_sub(margin);
            Window {
                start,
                len: (last + margin).min(side) - start,
                kept: (first, last),
            }
        })
        .collect()
}

impl ResidualVae {
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        config: &ResidualVaeConfig,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        config.check()?;
        let (z, blocks) = (config.z_dim, config.num_res_blocks);
        let mults = &config.dim_mult;
        let last = mults.len() - 1;
        let of_encoder = tensors.under("encoder");
        let mut widths = vec![config.base_dim];
        widths.extend(mults.iter().map(|mult| mult * config.base_dim));
        let mut levels = Vec::new();
        for index in 0..=last {
            let half = config.temperal_downsample.get(index).copied();
            let tensors = of_encoder.under(format!("down_blocks.{index}"));
            let sizes = (widths[index], widths[index + 1]);
            levels.push(Down::load(&tensors, sizes, blocks, half)?);
        }
        let inner = widths[last + 1];
        let encoder = Encoder {
            first: of_encoder.conv("conv_in", widths[0], PICTURE_CHANNELS, 3)?,
            levels,
            mid: Mid::load(&of_encoder.under("mid_block"), inner)?,
            norm: gamma(&of_encoder, "norm_out", inner)?,
            last: of_encoder.conv("conv_out", 2 * z, inner, 3)?,
            quant: tensors.conv("quant_conv", 2 * z, 2 * z, 1)?,
        };
        let of_decoder = tensors.under("decoder");
        let base = config.decoder_base();
        let mut widths = vec![mults[last] * base];
        widths.extend(mults.iter().rev().map(|mult| mult * base));
        let mut levels = Vec::new();
        for index in 0..=last {
            let double = config.temperal_downsample.iter().rev().nth(index).copied();
            let tensors = of_decoder.under(format!("up_blocks.{index}"));
            let sizes = (widths[index], widths[index + 1]);
            levels.push(Up::load(&tensors, sizes, blocks + 1, double)?);
        }
        let outer = widths[last + 1];
        let decoder = Decoder {
            quant: tensors.conv("post_quant_conv", z, z, 1)?,
            first: of_decoder.conv("conv_in", widths[0], z, 3)?,
            mid: Mid::load(&of_decoder.under("mid_block"), widths[0])?,
            levels,
            norm: gamma(&of_decoder, "norm_out", outer)?,
            last: of_decoder.conv("conv_out", PICTURE_CHANNELS, outer, 3)?,
        };
        Ok(Self {
            config: config.clone(),
            cpu: cpu.clone(),
            encoder,
            decoder,
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &ResidualVaeConfig {
        &self.config
    }

    /// Pixels of a latent pixel, along each side.
    pub fn scale(&self) -> usize {
        1 << (self.config.dim_mult.len() - 1)
    }

    /// `rgba: [4, height, width]` in -1..1 to a latent's distribution.
    ///
    /// # Errors
    /// `Tensor` for sides that are no multiples of [`ResidualVae::scale`]; `Cancelled`.
    pub fn encode(
        &self,
        rgba: &[f32],
        (height, width): (usize, usize),
        cancel: &CancelToken,
    ) -> Result<Posterior, PictureError> {
        for (what, side) in [("height % scale", height), ("width % scale", width)] {
            if side == 0 || side % self.scale() != 0 {
                return Err(TensorError::Shape {
                    op: "residual_vae",
                    what,
                    got: side % self.scale(),
                    expected: 0,
                }
                .into());
            }
        }
        let (cpu, encoder) = (&self.cpu, &self.encoder);
        let mut x = Planes::zeros(1, height, width)?;
        x.fill(rgba)?;
        let mut x = convolved(cpu, &encoder.first, &x, None)?;
        for level in &encoder.levels {
            cancel.check()?;
            x = level.run(cpu, &x)?;
        }
        let x = encoder.mid.run(cpu, &x)?;
        let x = normed(cpu, &x, &encoder.norm, true)?;
        let x = convolved(cpu, &encoder.last, &x, None)?;
        let x = convolved(cpu, &encoder.quant, &x, None)?;
        let mut mean = x.values(2 * self.config.z_dim)?;
        let log_variance = mean.split_off(mean.len() / 2);
        Ok(Posterior { mean, log_variance })
    }

    /// `latent: [z_dim, height, width]`, not normalized, to RGBA `[4, 16 * height, 16 * width]` in -1..1.
    /// Above `work_bytes` of memory for a level, the levels from there on are run in windows; at least a
    /// window of 32 px is run.
    ///
    /// # Errors
    /// `Tensor` for other lengths or too little memory; `Cancelled`.
    pub fn decode(
        &self,
        latent: &[f32],
        (height, width): (usize, usize),
        work_bytes: usize,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, PictureError> {
        let (cpu, decoder) = (&self.cpu, &self.decoder);
        let mut x = Planes::zeros(self.config.z_dim.div_ceil(16), height, width)?;
        x.fill(latent)?;
        let x = convolved(cpu, &decoder.quant, &x, None)?;
        let x = convolved(cpu, &decoder.first, &x, None)?;
        let mut x = decoder.mid.run(cpu, &x)?;
        for (index, level) in decoder.levels.iter().enumerate() {
            let size = (x.height(), x.width());
            if self.level_bytes(index, size) > work_bytes {
                return self.decode_windows(&x, index, work_bytes, cancel);
            }
            cancel.check()?;
            x = level.run(cpu, &x)?;
        }
        self.finish(&x)
    }

    /// Memory that the decoder takes from level `first` on, with what is its input.
    fn level_bytes(&self, first: usize, (height, width): (usize, usize)) -> usize {
        let mut largest = 0;
        let mut pixels = height.saturating_mul(width);
        for level in &self.decoder.levels[first..] {
            if level.double.is_some() {
                pixels = pixels.saturating_mul(4);
            }
            let planes = LIVE_PLANES * level.channels.next_multiple_of(16) * size_of::<f32>();
            largest = largest.max(pixels.saturating_mul(planes));
        }
        largest
    }

    fn finish(&self, x: &Planes) -> Result<Vec<f32>, PictureError> {
        let x = normed(&self.cpu, x, &self.decoder.norm, true)?;
        let x = convolved(&self.cpu, &self.decoder.last, &x, None)?;
        let mut rgba = x.values(PICTURE_CHANNELS)?;
        for value in &mut rgba {
            *value = value.clamp(-1.0, 1.0);
        }
        Ok(rgba)
    }

    /// How far a pixel of the picture reaches into the input of level `first`.
    fn reach(&self, first: usize) -> usize {
        let mut reach = 1;
        for level in self.decoder.levels[first..].iter().rev() {
            if level.double.is_some() {
                reach = (reach + 1usize).div_ceil(2);
            }
            reach += 2 * level.blocks.len();
        }
        // Products of 3 x 3 are taken in steps of 4 px, whose roundings are shared.
        (reach + 4).next_multiple_of(4)
    }

    fn decode_windows(
        &self,
        x: &Planes,
        first: usize,
        work_bytes: usize,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, PictureError> {
        let margin = self.reach(first);
        let mut step = WINDOW_PX;
        let fits = |step: usize| {
            let side = step + 2 * margin;
            self.level_bytes(first, (side, side)) <= work_bytes
        };
        while step < x.height().max(x.width()) && fits(2 * step) {
            step *= 2;
        }
        let doubled = self.decoder.levels[first..]
            .iter()
            .filter(|level| level.double.is_some())
            .count();
        let scale = 1 << doubled;
        let (height, width) = (scale * x.height(), scale * x.width());
        let mut out = vec![0.0; PICTURE_CHANNELS * height * width];
        for rows in windows(x.height(), step, margin) {
            for columns in windows(x.width(), step, margin) {
                cancel.check()?;
                let mut window = Planes::zeros(x.blocks(), rows.len, columns.len)?;
                let corner = (rows.start, columns.start);
                window.all_mut().copy_window(x.all(), corner)?;
                for level in &self.decoder.levels[first..] {
                    window = level.run(&self.cpu, &window)?;
                }
                let part = self.finish(&window)?;
                let part_width = scale * columns.len;
                let kept = scale * (columns.kept.1 - columns.kept.0);
                for channel in 0..PICTURE_CHANNELS {
                    for y in scale * rows.kept.0..scale * rows.kept.1 {
                        let from = (channel * scale * rows.len + y - scale * rows.start)
                            * part_width
                            + scale * (columns.kept.0 - columns.start);
                        let to = (channel * height + y) * width + scale * columns.kept.0;
                        out[to..to + kept].copy_from_slice(&part[from..from + kept]);
                    }
                }
            }
        }
        Ok(out)
    }

    /// `latent: [z_dim, pixels]` as the transformer knows it to what the decoder takes: `z * std + mean`.
    pub fn restore(&self, latent: &mut [f32]) {
        let pixels = latent.len() / self.config.z_dim;
        let by = self
            .config
            .latents_mean
            .iter()
            .zip(&self.config.latents_std);
        for (plane, (mean, std)) in latent.chunks_exact_mut(pixels.max(1)).zip(by) {
            plane.iter_mut().for_each(|z| *z = *z * std + mean);
        }
    }

    /// The other way: `(z - mean) / std`.
    pub fn normalize(&self, latent: &mut [f32]) {
        let pixels = latent.len() / self.config.z_dim;
        let by = self
            .config
            .latents_mean
            .iter()
            .zip(&self.config.latents_std);
        for (plane, (mean, std)) in latent.chunks_exact_mut(pixels.max(1)).zip(by) {
            plane.iter_mut().for_each(|z| *z = (*z - mean) / std);
        }
    }
}
