//! The autoencoder of Qwen-Image, for one frame: a causal video autoencoder of the Wan 2.1 kind. Norms are
//! of single pixels. Checked against diffusers 0.42.1 (`autoencoder_kl_qwenimage.py`).

use engine_base::CancelToken;
use engine_tensor::ops::Conv2d;
use engine_tensor::{Cpu, Planes};
use serde::Deserialize;

use super::Posterior;
use super::kit::{convolved, doubled, expect_zero, halved};
use super::pixel_blocks::{Mid, ResBlock, gamma, normed};
use super::tensors::Tensors;
use crate::error::{check_sizes, wrong};
use crate::{LoadError, PictureError};

/// `vae/config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CausalVaeConfig {
    /// Channels of the first level.
    pub base_dim: usize,
    /// Channels of a latent.
    pub z_dim: usize,
    /// Channels of each level in first ones.
    pub dim_mult: Vec<usize>,
    /// Residual blocks of a level; the decoder has one more.
    pub num_res_blocks: usize,
    /// Channels of a picture.
    #[serde(default = "three")]
    pub input_channels: usize,
    /// What a latent is normalized by: `(z - mean) / std`.
    pub latents_mean: Vec<f32>,
    /// The same.
    pub latents_std: Vec<f32>,
}

fn three() -> usize {
    3
}

impl CausalVaeConfig {
    fn check(&self) -> Result<(), LoadError> {
        let sizes = [
            ("base_dim", self.base_dim),
            ("z_dim", self.z_dim),
            ("num_res_blocks", self.num_res_blocks),
            ("input_channels", self.input_channels),
        ];
        let levels = self.dim_mult.iter().map(|mult| ("dim_mult", *mult));
        check_sizes(sizes.into_iter().chain(levels))?;
        if !(1..=8).contains(&self.dim_mult.len()) {
            let got = self.dim_mult.len().to_string();
            return Err(wrong("length of dim_mult", got, "1 to 8"));
        }
        for (key, list) in [
            ("length of latents_mean", &self.latents_mean),
            ("length of latents_std", &self.latents_std),
        ] {
            if list.len() != self.z_dim {
                return Err(wrong(key, list.len().to_string(), "z_dim"));
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Level {
    blocks: Vec<ResBlock>,
    resize: Option<Conv2d>,
    channels: usize,
}

/// The autoencoder.
#[derive(Debug)]
pub struct CausalVae {
    config: CausalVaeConfig,
    cpu: Cpu,
    encoder_first: Conv2d,
    encoder_levels: Vec<Level>,
    encoder_mid: Mid,
    encoder_norm: Vec<f32>,
    encoder_last: Conv2d,
    quant: Conv2d,
    post_quant: Conv2d,
    decoder_first: Conv2d,
    decoder_mid: Mid,
    decoder_levels: Vec<Level>,
    decoder_norm: Vec<f32>,
    decoder_last: Conv2d,
}

impl CausalVae {
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        config: &CausalVaeConfig,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        config.check()?;
        let (base, z) = (config.base_dim, config.z_dim);
        let widths: Vec<usize> = config.dim_mult.iter().map(|mult| mult * base).collect();
        let last = widths.len() - 1;
        let encoder = tensors.under("encoder");
        let mut encoder_levels = Vec::new();
        // Blocks and changes of size are counted together.
        let mut index = 0;
        let mut inputs = base;
        for (level, outputs) in widths.iter().enumerate() {
            let mut blocks = Vec::new();
            for _ in 0..config.num_res_blocks {
                let tensors = encoder.under(format!("down_blocks.{index}"));
                blocks.push(ResBlock::load(&tensors, inputs, *outputs)?);
                (inputs, index) = (*outputs, index + 1);
            }
            let resize = if level < last {
                let name = format!("down_blocks.{index}.resample.1");
                index += 1;
                Some(encoder.conv(&name, *outputs, *outputs, 3)?)
            } else {
                None
            };
            encoder_levels.push(Level {
                blocks,
                resize,
                channels: *outputs,
            });
        }
        let decoder = tensors.under("decoder");
        let mut decoder_levels = Vec::new();
        let mut inputs = widths[last];
        for (level, outputs) in widths.iter().rev().enumerate() {
            let tensors = decoder.under(format!("up_blocks.{level}"));
            let mut blocks = Vec::new();
            for index in 0..=config.num_res_blocks {
                let tensors = tensors.under(format!("resnets.{index}"));
                blocks.push(ResBlock::load(&tensors, inputs, *outputs)?);
                inputs = *outputs;
            }
            let resize = if level < last {
                inputs = outputs / 2;
                Some(tensors.conv("upsamplers.0.resample.1", inputs, *outputs, 3)?)
            } else {
                None
            };
            decoder_levels.push(Level {
                blocks,
                resize,
                channels: *outputs,
            });
        }
        let outer = widths[0];
        let inner = widths[last];
        Ok(Self {
            encoder_first: encoder.conv("conv_in", base, config.input_channels, 3)?,
            encoder_levels,
            encoder_mid: Mid::load(&encoder.under("mid_block"), inner)?,
            encoder_norm: gamma(&encoder, "norm_out", inner)?,
            encoder_last: encoder.conv("conv_out", 2 * z, inner, 3)?,
            quant: tensors.conv("quant_conv", 2 * z, 2 * z, 1)?,
            post_quant: tensors.conv("post_quant_conv", z, z, 1)?,
            decoder_first: decoder.conv("conv_in", inner, z, 3)?,
            decoder_mid: Mid::load(&decoder.under("mid_block"), inner)?,
            decoder_levels,
            decoder_norm: gamma(&decoder, "norm_out", outer)?,
            decoder_last: decoder.conv("conv_out", config.input_channels, outer, 3)?,
            config: config.clone(),
            cpu: cpu.clone(),
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &CausalVaeConfig {
        &self.config
    }

    /// Pixels of a latent pixel, along each side.
    pub fn scale(&self) -> usize {
        1 << (self.config.dim_mult.len() - 1)
    }

    /// `picture: [input_channels, height, width]` in -1..1 to a latent's distribution.
    ///
    /// # Errors
    /// `Tensor` for sides that are no multiples of [`CausalVae::scale`]; `Cancelled`.
    pub fn encode(
        &self,
        picture: &[f32],
        (height, width): (usize, usize),
        cancel: &CancelToken,
    ) -> Result<Posterior, PictureError> {
        let remainder = height % self.scale() + width % self.scale();
        expect_zero("causal_vae", "sides % scale", remainder)?;
        let cpu = &self.cpu;
        let mut x = Planes::zeros(self.config.input_channels.div_ceil(16), height, width)?;
        x.fill(picture)?;
        let mut x = convolved(cpu, &self.encoder_first, &x, None)?;
        for level in &self.encoder_levels {
            cancel.check()?;
            for block in &level.blocks {
                x = block.run(cpu, &x)?;
            }
            if let Some(conv) = &level.resize {
                x = halved(cpu, conv, &x, (level.channels, 1))?;
            }
        }
        let x = self.encoder_mid.run(cpu, &x)?;
        let x = normed(cpu, &x, &self.encoder_norm, true)?;
        let x = convolved(cpu, &self.encoder_last, &x, None)?;
        let x = convolved(cpu, &self.quant, &x, None)?;
        let mut mean = x.values(2 * self.config.z_dim)?;
        let log_variance = mean.split_off(mean.len() / 2);
        Ok(Posterior { mean, log_variance })
    }

    /// `latent: [z_dim, height, width]`, not normalized, to `[input_channels, 8 * height, 8 * width]` in
    /// -1..1.
    ///
    /// # Errors
    /// `Tensor` for other lengths or too little memory; `Cancelled`.
    pub fn decode(
        &self,
        latent: &[f32],
        (height, width): (usize, usize),
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, PictureError> {
        let cpu = &self.cpu;
        let mut x = Planes::zeros(self.config.z_dim.div_ceil(16), height, width)?;
        x.fill(latent)?;
        let x = convolved(cpu, &self.post_quant, &x, None)?;
        let x = convolved(cpu, &self.decoder_first, &x, None)?;
        let mut x = self.decoder_mid.run(cpu, &x)?;
        for level in &self.decoder_levels {
            cancel.check()?;
            for block in &level.blocks {
                x = block.run(cpu, &x)?;
            }
            if let Some(conv) = &level.resize {
                x = doubled(cpu, conv, &x)?;
            }
        }
        let x = normed(cpu, &x, &self.decoder_norm, true)?;
        let x = convolved(cpu, &self.decoder_last, &x, None)?;
        let mut picture = x.values(self.config.input_channels)?;
        picture.iter_mut().for_each(|v| *v = v.clamp(-1.0, 1.0));
        Ok(picture)
    }

    /// Tokens of four latent pixels, `[height * width, 4 * z_dim]`, as a transformer knows them, to what
    /// [`CausalVae::decode`] takes at twice the height and width: `z * std + mean`.
    pub fn unpack(&self, tokens: &[f32], (height, width): (usize, usize)) -> Vec<f32> {
        let z = self.config.z_dim;
        let mut out = vec![0.0; height * width * 4 * z];
        for (at, value) in out.iter_mut().enumerate() {
            let (column, row) = (at % (2 * width), at / (2 * width));
            let (row, channel) = (row % (2 * height), row / (2 * height));
            let packed = 4 * channel + 2 * (row % 2) + column % 2;
            let token = row / 2 * width + column / 2;
            let found = tokens.get(token * 4 * z + packed).copied().unwrap_or(0.0);
            *value = found * self.config.latents_std[channel] + self.config.latents_mean[channel];
        }
        out
    }

    /// The other way: `latent: [z_dim, 2 * height, 2 * width]` to `[height * width, 4 * z_dim]`,
    /// `(z - mean) / std`.
    pub fn pack(&self, latent: &[f32], (height, width): (usize, usize)) -> Vec<f32> {
        let mut tokens = super::kit::packed(latent, (height, width));
        for token in tokens.chunks_exact_mut(4 * self.config.z_dim) {
            for (at, value) in token.iter_mut().enumerate() {
                let channel = at / 4;
                *value =
                    (*value - self.config.latents_mean[channel]) / self.config.latents_std[channel];
            }
        }
        tokens
    }
}
