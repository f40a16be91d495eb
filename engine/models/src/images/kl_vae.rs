//! The autoencoder of Stable Diffusion and its kin (Rombach et al., arXiv 2112.10752): residual blocks with
//! group norms, attention in the middle. With running means and variances of its packed latents it is that
//! of FLUX.2. Checked against diffusers 0.42.1 (`autoencoder_kl.py`, `autoencoder_kl_flux2.py`).

use engine_base::CancelToken;
use engine_nn::{Activations, Linear, Runner};
use engine_tensor::ops::{Conv2d, scaled_add};
use engine_tensor::{Cpu, Planes, TensorError};
use serde::Deserialize;

use super::Posterior;
use super::group_blocks::{GroupNorm, ResBlock};
use super::kit::{convolved, doubled, full_attention, halved};
use super::tensors::Tensors;
use crate::error::{check_sizes, wrong};
use crate::{LoadError, PictureError};

const EPSILON: f32 = 1e-6;

/// `vae/config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct KlVaeConfig {
    /// Channels of a picture.
    pub in_channels: usize,
    /// The same.
    pub out_channels: usize,
    /// Channels of each level of the encoder.
    pub block_out_channels: Vec<usize>,
    /// Of the decoder; those of the encoder when absent.
    #[serde(default)]
    pub decoder_block_out_channels: Option<Vec<usize>>,
    /// Residual blocks of a level; the decoder has one more.
    pub layers_per_block: usize,
    /// Channels of a latent.
    pub latent_channels: usize,
    /// Groups of the norms.
    pub norm_num_groups: usize,
    /// Whether a convolution of 1 x 1 follows the encoder.
    #[serde(default = "yes")]
    pub use_quant_conv: bool,
    /// Whether a convolution of 1 x 1 stands before the decoder.
    #[serde(default = "yes")]
    pub use_post_quant_conv: bool,
    /// Whether there is attention in the middle.
    #[serde(default = "yes")]
    pub mid_block_add_attention: bool,
    /// Added to the variances of packed latents, where there are any.
    #[serde(default)]
    pub batch_norm_eps: Option<f64>,
}

fn yes() -> bool {
    true
}

impl KlVaeConfig {
    fn check(&self) -> Result<(), LoadError> {
        let levels = self.block_out_channels.len();
        if !(1..=8).contains(&levels) {
            return Err(wrong("length of block_out_channels", levels, "1 to 8"));
        }
        if self.decoder_channels().len() != levels {
            let got = self.decoder_channels().len();
            let expected = "as many as block_out_channels";
            return Err(wrong("length of decoder_block_out_channels", got, expected));
        }
        let sizes = [
            ("in_channels", self.in_channels),
            ("out_channels", self.out_channels),
            ("layers_per_block", self.layers_per_block),
            ("latent_channels", self.latent_channels),
            ("norm_num_groups", self.norm_num_groups),
        ];
        let channels = self
            .block_out_channels
            .iter()
            .chain(self.decoder_channels());
        let channels = channels.map(|count| ("block_out_channels", *count));
        check_sizes(sizes.into_iter().chain(channels))?;
        Ok(())
    }

    fn decoder_channels(&self) -> &[usize] {
        let own = self.decoder_block_out_channels.as_ref();
        own.unwrap_or(&self.block_out_channels)
    }
}

/// Attention of one head over all pixels.
#[derive(Debug)]
struct PixelAttention {
    norm: GroupNorm,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
}

impl PixelAttention {
    fn load(tensors: &Tensors<'_>, channels: usize, groups: usize) -> Result<Self, LoadError> {
        let linear = |name: &str| tensors.biased(name, channels, channels);
        Ok(Self {
            norm: GroupNorm::load(&tensors.under("group_norm"), channels, (groups, EPSILON))?,
            q: linear("to_q")?,
            k: linear("to_k")?,
            v: linear("to_v")?,
            o: linear("to_out.0")?,
        })
    }

    fn run(&self, cpu: &Cpu, x: &Planes) -> Result<Planes, TensorError> {
        let channels = self.norm.channels();
        let rows = self.norm.run(cpu, x, false)?.rows(channels)?;
        let mut runner = Runner::new(cpu.clone(), Activations::Exact);
        let (mut q, mut k, mut v) = (rows.clone(), rows.clone(), rows.clone());
        runner.linear(
            &rows,
            [(&self.q, &mut q), (&self.k, &mut k), (&self.v, &mut v)],
        )?;
        let mixed = full_attention(cpu, (1, channels), &q, &k, &v)?;
        runner.linear(&mixed, [(&self.o, &mut q)])?;
        let mut out = Planes::zeros(x.blocks(), x.height(), x.width())?;
        out.fill_rows(&q)?;
        scaled_add(cpu, out.all_mut(), 1.0, x.all())?;
        Ok(out)
    }
}

#[derive(Debug)]
struct Mid {
    first: ResBlock,
    attention: Option<PixelAttention>,
    second: ResBlock,
}

impl Mid {
    fn load(
        tensors: &Tensors<'_>,
        channels: usize,
        config: &KlVaeConfig,
    ) -> Result<Self, LoadError> {
        let groups = config.norm_num_groups;
        let block = |name: &str| {
            ResBlock::load(
                &tensors.under(name),
                (channels, channels),
                (groups, EPSILON),
                None,
            )
        };
        let attention = match config.mid_block_add_attention {
            false => None,
            true => {
                let tensors = tensors.under("attentions.0");
                Some(PixelAttention::load(&tensors, channels, groups)?)
            }
        };
        Ok(Self {
            first: block("resnets.0")?,
            attention,
            second: block("resnets.1")?,
        })
    }

    fn run(&self, cpu: &Cpu, x: &Planes) -> Result<Planes, TensorError> {
        let mut x = self.first.run(cpu, x)?;
        if let Some(attention) = &self.attention {
            x = attention.run(cpu, &x)?;
        }
        self.second.run(cpu, &x)
    }
}

/// Residual blocks, then perhaps a convolution that halves or doubles.
#[derive(Debug)]
struct Level {
    blocks: Vec<ResBlock>,
    resize: Option<Conv2d>,
    channels: usize,
}

impl Level {
    fn load(
        tensors: &Tensors<'_>,
        (inputs, outputs): (usize, usize),
        (blocks, groups): (usize, usize),
        resize: Option<&str>,
    ) -> Result<Self, LoadError> {
        let mut loaded = Vec::new();
        for index in 0..blocks {
            let inputs = if index == 0 { inputs } else { outputs };
            let tensors = tensors.under(format!("resnets.{index}"));
            loaded.push(ResBlock::load(
                &tensors,
                (inputs, outputs),
                (groups, EPSILON),
                None,
            )?);
        }
        Ok(Self {
            blocks: loaded,
            resize: match resize {
                Some(name) => Some(tensors.conv(name, outputs, outputs, 3)?),
                None => None,
            },
            channels: outputs,
        })
    }

    fn run(&self, cpu: &Cpu, x: Planes) -> Result<Planes, TensorError> {
        let mut x = x;
        for block in &self.blocks {
            x = block.run(cpu, &x)?;
        }
        Ok(x)
    }
}

/// The autoencoder.
#[derive(Debug)]
pub struct KlVae {
    config: KlVaeConfig,
    cpu: Cpu,
    encoder_first: Conv2d,
    encoder_levels: Vec<Level>,
    encoder_mid: Mid,
    encoder_norm: GroupNorm,
    encoder_last: Conv2d,
    quant: Option<Conv2d>,
    post_quant: Option<Conv2d>,
    decoder_first: Conv2d,
    decoder_mid: Mid,
    decoder_levels: Vec<Level>,
    decoder_norm: GroupNorm,
    decoder_last: Conv2d,
    /// Means and deviations of packed latents.
    packed: Option<(Vec<f32>, Vec<f32>)>,
}

impl KlVae {
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        config: &KlVaeConfig,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        config.check()?;
        let (groups, z) = (config.norm_num_groups, config.latent_channels);
        let encoder = tensors.under("encoder");
        let widths = &config.block_out_channels;
        let last = widths.len() - 1;
        let mut encoder_levels = Vec::new();
        for (index, outputs) in widths.iter().enumerate() {
            let inputs = widths[index.saturating_sub(1)];
            let tensors = encoder.under(format!("down_blocks.{index}"));
            let resize = (index < last).then_some("downsamplers.0.conv");
            let blocks = (config.layers_per_block, groups);
            encoder_levels.push(Level::load(&tensors, (inputs, *outputs), blocks, resize)?);
        }
        let inner = widths[last];
        let decoder = tensors.under("decoder");
        let widths: Vec<usize> = config.decoder_channels().iter().rev().copied().collect();
        let mut decoder_levels = Vec::new();
        for (index, outputs) in widths.iter().enumerate() {
            let inputs = widths[index.saturating_sub(1)];
            let tensors = decoder.under(format!("up_blocks.{index}"));
            let resize = (index < last).then_some("upsamplers.0.conv");
            let blocks = (config.layers_per_block + 1, groups);
            decoder_levels.push(Level::load(&tensors, (inputs, *outputs), blocks, resize)?);
        }
        let quant = |wanted: bool, name: &str, channels: usize| -> Result<_, LoadError> {
            Ok(match wanted {
                true => Some(tensors.conv(name, channels, channels, 1)?),
                false => None,
            })
        };
        let packed = match (config.batch_norm_eps, tensors.has("bn.running_mean")) {
            (Some(epsilon), true) => {
                let mean = tensors.values("bn.running_mean", &[4 * z])?;
                let variance = tensors.values("bn.running_var", &[4 * z])?;
                let root = |v: &f32| (f64::from(*v) + epsilon).sqrt() as f32;
                Some((mean, variance.iter().map(root).collect()))
            }
            _ => None,
        };
        Ok(Self {
            encoder_first: encoder.conv(
                "conv_in",
                config.block_out_channels[0],
                config.in_channels,
                3,
            )?,
            encoder_levels,
            encoder_mid: Mid::load(&encoder.under("mid_block"), inner, config)?,
            encoder_norm: GroupNorm::load(
                &encoder.under("conv_norm_out"),
                inner,
                (groups, EPSILON),
            )?,
            encoder_last: encoder.conv("conv_out", 2 * z, inner, 3)?,
            quant: quant(config.use_quant_conv, "quant_conv", 2 * z)?,
            post_quant: quant(config.use_post_quant_conv, "post_quant_conv", z)?,
            decoder_first: decoder.conv("conv_in", widths[0], z, 3)?,
            decoder_mid: Mid::load(&decoder.under("mid_block"), widths[0], config)?,
            decoder_levels,
            decoder_norm: GroupNorm::load(
                &decoder.under("conv_norm_out"),
                widths[last],
                (groups, EPSILON),
            )?,
            decoder_last: decoder.conv("conv_out", config.out_channels, widths[last], 3)?,
            packed,
            config: config.clone(),
            cpu: cpu.clone(),
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &KlVaeConfig {
        &self.config
    }

    /// Pixels of a latent pixel, along each side.
    pub fn scale(&self) -> usize {
        1 << (self.config.block_out_channels.len() - 1)
    }

    /// `picture: [in_channels, height, width]` in -1..1 to a latent's distribution.
    ///
    /// # Errors
    /// `Tensor` for sides that are no multiples of [`KlVae::scale`]; `Cancelled`.
    pub fn encode(
        &self,
        picture: &[f32],
        (height, width): (usize, usize),
        cancel: &CancelToken,
    ) -> Result<Posterior, PictureError> {
        let remainder = height % self.scale() + width % self.scale();
        super::kit::expect_zero("kl_vae", "sides % scale", remainder)?;
        let cpu = &self.cpu;
        let mut x = Planes::zeros(self.config.in_channels.div_ceil(16), height, width)?;
        x.fill(picture)?;
        let mut x = convolved(cpu, &self.encoder_first, &x, None)?;
        for level in &self.encoder_levels {
            cancel.check()?;
            x = level.run(cpu, x)?;
            if let Some(conv) = &level.resize {
                x = halved(cpu, conv, &x, (level.channels, 1))?;
            }
        }
        let x = self.encoder_mid.run(cpu, &x)?;
        let x = self.encoder_norm.run(cpu, &x, true)?;
        let mut x = convolved(cpu, &self.encoder_last, &x, None)?;
        if let Some(quant) = &self.quant {
            x = convolved(cpu, quant, &x, None)?;
        }
        let mut mean = x.values(2 * self.config.latent_channels)?;
        let log_variance = mean.split_off(mean.len() / 2);
        Ok(Posterior { mean, log_variance })
    }

    /// `latent: [latent_channels, height, width]` to `[out_channels, scale * height, scale * width]`.
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
        let mut x = Planes::zeros(self.config.latent_channels.div_ceil(16), height, width)?;
        x.fill(latent)?;
        if let Some(quant) = &self.post_quant {
            x = convolved(cpu, quant, &x, None)?;
        }
        let x = convolved(cpu, &self.decoder_first, &x, None)?;
        let mut x = self.decoder_mid.run(cpu, &x)?;
        for level in &self.decoder_levels {
            cancel.check()?;
            x = level.run(cpu, x)?;
            if let Some(conv) = &level.resize {
                x = doubled(cpu, conv, &x)?;
            }
        }
        let x = self.decoder_norm.run(cpu, &x, true)?;
        let x = convolved(cpu, &self.decoder_last, &x, None)?;
        Ok(x.values(self.config.out_channels)?)
    }

    /// Tokens of packed latents, `[height * width, 4 * latent_channels]`, as a transformer knows them, to
    /// what [`KlVae::decode`] takes at twice the height and width: normalized back, four channels a square.
    pub fn unpack(&self, tokens: &[f32], (height, width): (usize, usize)) -> Vec<f32> {
        let z = self.config.latent_channels;
        let mut out = vec![0.0; height * width * 4 * z];
        for (at, value) in out.iter_mut().enumerate() {
            let (column, row) = (at % (2 * width), at / (2 * width));
            let (row, channel) = (row % (2 * height), row / (2 * height));
            let packed = 4 * channel + 2 * (row % 2) + column % 2;
            let token = row / 2 * width + column / 2;
            *value = tokens.get(token * 4 * z + packed).copied().unwrap_or(0.0);
            if let Some((mean, deviation)) = &self.packed {
                *value = *value * deviation[packed] + mean[packed];
            }
        }
        out
    }

    /// The other way: `latent: [latent_channels, 2 * height, 2 * width]` to `[height * width, 4 *
    /// latent_channels]`, `(z - mean) / deviation` where there are such.
    pub fn pack(&self, latent: &[f32], (height, width): (usize, usize)) -> Vec<f32> {
        let mut tokens = super::kit::packed(latent, (height, width));
        if let Some((mean, deviation)) = &self.packed {
            for token in tokens.chunks_exact_mut(mean.len().max(1)) {
                for ((value, mean), deviation) in token.iter_mut().zip(mean).zip(deviation) {
                    *value = (*value - mean) / deviation;
                }
            }
        }
        tokens
    }
}
