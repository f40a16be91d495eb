//! The small autoencoder of Stable Diffusion's latents that previews are made with (TAESD, by Ollin Boer
//! Bohan). Checked against diffusers 0.42.1 (`autoencoder_tiny.py`).

use engine_base::CancelToken;
use engine_tensor::ops::{Activation, Conv2d, upsample_nearest};
use engine_tensor::{Cpu, Planes, TensorError};
use serde::Deserialize;

use super::kit::{convolved, expect_zero, halved};
use super::tensors::Tensors;
use crate::error::{check_sizes, wrong};
use crate::{LoadError, PictureError};

/// Latents go softly to this and no further.
const MOST: f32 = 3.0;

/// `config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TinyVaeConfig {
    /// Channels of a picture.
    pub in_channels: usize,
    /// The same.
    pub out_channels: usize,
    /// Channels of a latent.
    pub latent_channels: usize,
    /// Channels of each level of the encoder: all alike.
    pub encoder_block_out_channels: Vec<usize>,
    /// Channels of each level of the decoder: all alike.
    pub decoder_block_out_channels: Vec<usize>,
    /// Blocks of each level.
    pub num_encoder_blocks: Vec<usize>,
    /// Blocks of each level.
    pub num_decoder_blocks: Vec<usize>,
    /// `relu`.
    pub act_fn: String,
}

impl TinyVaeConfig {
    fn check(&self) -> Result<(), LoadError> {
        check_sizes([
            ("in_channels", self.in_channels),
            ("out_channels", self.out_channels),
            ("latent_channels", self.latent_channels),
        ])?;
        for (key, widths, blocks) in [
            (
                "encoder_block_out_channels",
                &self.encoder_block_out_channels,
                &self.num_encoder_blocks,
            ),
            (
                "decoder_block_out_channels",
                &self.decoder_block_out_channels,
                &self.num_decoder_blocks,
            ),
        ] {
            check_sizes(widths.iter().map(|width| (key, *width)))?;
            if !(1..=8).contains(&widths.len()) || widths.len() != blocks.len() {
                let got = format!("{} and {} blocks", widths.len(), blocks.len());
                return Err(wrong(key, got, "1 to 8, and as many blocks"));
            }
            if widths.windows(2).any(|pair| pair[0] != pair[1]) {
                return Err(wrong(key, format!("{widths:?}"), "equal numbers"));
            }
        }
        if self.act_fn != "relu" {
            return Err(wrong("act_fn", format!("{:?}", self.act_fn), "\"relu\""));
        }
        Ok(())
    }
}

/// A convolution or a block of three with a way around.
#[derive(Debug)]
enum Part {
    Conv(Conv2d),
    Relu,
    /// The last convolution has no activation: it follows the sum.
    Block(Box<[Conv2d; 3]>),
    Double,
    Halve(Conv2d),
}

/// The autoencoder.
#[derive(Debug)]
pub struct TinyVae {
    config: TinyVaeConfig,
    cpu: Cpu,
    encoder: Vec<Part>,
    decoder: Vec<Part>,
}

const RELU: Activation = Activation::LeakyRelu(0.0);

fn block(tensors: &Tensors<'_>, index: usize, width: usize) -> Result<Part, LoadError> {
    let block = tensors.under(format!("{index}.conv"));
    let conv = |name: &str, end: &Activation| block.conv_with(name, (width, width), 3, end);
    Ok(Part::Block(Box::new([
        conv("0", &RELU)?,
        conv("2", &RELU)?,
        conv("4", &Activation::None)?,
    ])))
}

impl TinyVae {
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        config: &TinyVaeConfig,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        config.check()?;
        let layers = tensors.under("encoder.layers");
        let mut encoder = Vec::new();
        // Names count all parts, also those without weights.
        let mut index = 0;
        let levels = config.encoder_block_out_channels.iter();
        for (level, (width, blocks)) in levels.zip(&config.num_encoder_blocks).enumerate() {
            let inputs = if level == 0 {
                config.in_channels
            } else {
                *width
            };
            let conv = layers.conv(&index.to_string(), *width, inputs, 3)?;
            encoder.push(match level {
                0 => Part::Conv(conv),
                _ => Part::Halve(conv),
            });
            index += 1;
            for _ in 0..*blocks {
                encoder.push(block(&layers, index, *width)?);
                index += 1;
            }
        }
        let last = config
            .encoder_block_out_channels
            .last()
            .copied()
            .unwrap_or(1);
        let conv = layers.conv(&index.to_string(), config.latent_channels, last, 3)?;
        encoder.push(Part::Conv(conv));

        let layers = tensors.under("decoder.layers");
        let widths = &config.decoder_block_out_channels;
        let first = layers.conv("0", widths[0], config.latent_channels, 3)?;
        let mut decoder = vec![Part::Conv(first), Part::Relu];
        let mut index = 2;
        for (level, (width, blocks)) in widths.iter().zip(&config.num_decoder_blocks).enumerate() {
            for _ in 0..*blocks {
                decoder.push(block(&layers, index, *width)?);
                index += 1;
            }
            let ends = level + 1 == widths.len();
            if !ends {
                decoder.push(Part::Double);
                index += 1;
            }
            let outputs = if ends { config.out_channels } else { *width };
            decoder.push(Part::Conv(layers.conv(
                &index.to_string(),
                outputs,
                *width,
                3,
            )?));
            index += 1;
        }
        Ok(Self {
            config: config.clone(),
            cpu: cpu.clone(),
            encoder,
            decoder,
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &TinyVaeConfig {
        &self.config
    }

    /// Pixels of a latent pixel, along each side.
    pub fn scale(&self) -> usize {
        1 << (self.config.decoder_block_out_channels.len() - 1)
    }

    /// `picture: [in_channels, height, width]` in -1..1 to `[latent_channels, height / scale, width / scale]`.
    ///
    /// # Errors
    /// `Tensor` for sides that are no multiples of [`TinyVae::scale`]; `Cancelled`.
    pub fn encode(
        &self,
        picture: &[f32],
        (height, width): (usize, usize),
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, PictureError> {
        let scale = 1 << (self.config.encoder_block_out_channels.len() - 1);
        expect_zero("tiny_vae", "sides % scale", height % scale + width % scale)?;
        let unit: Vec<f32> = picture.iter().map(|value| (value + 1.0) / 2.0).collect();
        let channels = self.config.in_channels;
        let out = self.run(&self.encoder, &unit, (channels, height, width), cancel)?;
        Ok(out.values(self.config.latent_channels)?)
    }

    /// `latent: [latent_channels, height, width]` to `[out_channels, scale * height, scale * width]`.
    ///
    /// # Errors
    /// `Tensor` for other lengths; `Cancelled`.
    pub fn decode(
        &self,
        latent: &[f32],
        (height, width): (usize, usize),
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, PictureError> {
        let soft: Vec<f32> = latent.iter().map(|z| (z / MOST).tanh() * MOST).collect();
        let channels = self.config.latent_channels;
        let out = self.run(&self.decoder, &soft, (channels, height, width), cancel)?;
        let mut picture = out.values(self.config.out_channels)?;
        picture
            .iter_mut()
            .for_each(|value| *value = 2.0 * *value - 1.0);
        Ok(picture)
    }

    fn run(
        &self,
        parts: &[Part],
        values: &[f32],
        (channels, height, width): (usize, usize, usize),
        cancel: &CancelToken,
    ) -> Result<Planes, PictureError> {
        let mut x = Planes::zeros(channels.div_ceil(16), height, width)?;
        x.fill(values)?;
        for part in parts {
            cancel.check()?;
            x = self.part(part, &x)?;
        }
        Ok(x)
    }

    fn part(&self, part: &Part, x: &Planes) -> Result<Planes, TensorError> {
        let cpu = &self.cpu;
        match part {
            Part::Conv(conv) => convolved(cpu, conv, x, None),
            Part::Relu => relu(x),
            Part::Block(convs) => {
                let [a, b, c] = convs.as_ref();
                let inner = convolved(cpu, a, x, None)?;
                let inner = convolved(cpu, b, &inner, None)?;
                relu(&convolved(cpu, c, &inner, Some(x))?)
            }
            Part::Double => {
                let mut large = Planes::zeros(x.blocks(), 2 * x.height(), 2 * x.width())?;
                upsample_nearest(cpu, x.all(), large.all_mut())?;
                Ok(large)
            }
            Part::Halve(conv) => halved(cpu, conv, x, (conv.outputs(), 0)),
        }
    }
}

fn relu(x: &Planes) -> Result<Planes, TensorError> {
    let mut values = x.values(16 * x.blocks())?;
    values.iter_mut().for_each(|value| *value = value.max(0.0));
    let mut out = Planes::zeros(x.blocks(), x.height(), x.width())?;
    out.fill(&values)?;
    Ok(out)
}
