//! The U-Net of Stable Diffusion 1.5 and SDXL (Rombach et al., arXiv 2112.10752; Podell et al., arXiv
//! 2307.01952), with the guidance input of latent consistency models where it has one.
//!
//! Checked against diffusers 0.42.1 (`unet_2d_condition.py`).

use engine_base::CancelToken;
use engine_nn::{Activations, Linear, Runner, TimestepWaves};
use engine_tensor::ops::{Conv2d, Unary, activate};
use engine_tensor::{Cpu, Planes, TensorError};

use super::cross_blocks::{CrossBlocks, CrossShape};
use super::group_blocks::{GroupNorm, ResBlock, active};
use super::kit::{convolved, doubled, expect_zero, halved, joined};
use super::tensors::Tensors;
use super::unet_config::UNetConfig;
use crate::{LoadError, PictureError};

/// A residual block, then perhaps blocks that read the text.
#[derive(Debug)]
struct Layer {
    block: ResBlock,
    cross: Option<CrossBlocks>,
}

#[derive(Debug)]
struct Level {
    layers: Vec<Layer>,
    resize: Option<Conv2d>,
    channels: usize,
}

/// The network.
#[derive(Debug)]
pub struct UNet {
    config: UNetConfig,
    cpu: Cpu,
    time: [Linear; 2],
    guidance: Option<Linear>,
    added: Option<[Linear; 2]>,
    first: Conv2d,
    down: Vec<Level>,
    mid_first: ResBlock,
    mid_cross: CrossBlocks,
    mid_second: ResBlock,
    up: Vec<Level>,
    /// Channels of what each layer of `up` is joined with: kept of the way down, and before it.
    joints: Vec<Vec<(usize, usize)>>,
    norm: GroupNorm,
    last: Conv2d,
}

/// What a call reads besides the latent.
#[derive(Debug, Clone, Copy)]
pub struct UNetInput<'a> {
    /// 0 to 999.
    pub timestep: f32,
    /// Text states: `[tokens, cross_attention_dim]`.
    pub text: &'a [f32],
    /// The whole text's state, for SDXL.
    pub pooled: &'a [f32],
    /// Height, width, top, left, height, width in pixels, for SDXL: original size, cut, wanted size.
    pub size_ids: &'a [f32],
    /// The embedded guidance of a latent consistency model; empty for none.
    pub guidance: &'a [f32],
}

impl UNet {
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        config: &UNetConfig,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        config.check()?;
        let widths = &config.block_out_channels;
        let (first, norm) = (widths[0], config.norm());
        let time = 4 * first;
        let cross = |tensors: &Tensors<'_>, level: usize| {
            CrossBlocks::load(tensors, config.cross_shape(level))
        };
        let mut down = Vec::new();
        let mut kept = vec![first];
        let mut inputs = first;
        for (index, outputs) in widths.iter().enumerate() {
            let tensors = tensors.under(format!("down_blocks.{index}"));
            let mut layers = Vec::new();
            for layer in 0..config.layers_per_block {
                let block = tensors.under(format!("resnets.{layer}"));
                let attention = tensors.under(format!("attentions.{layer}"));
                layers.push(Layer {
                    block: ResBlock::load(&block, (inputs, *outputs), norm, Some(time))?,
                    cross: match config.down_reads_text(index) {
                        true => Some(cross(&attention, index)?),
                        false => None,
                    },
                });
                inputs = *outputs;
                kept.push(inputs);
            }
            let resize = match index + 1 < widths.len() {
                true => {
                    kept.push(inputs);
                    Some(tensors.conv("downsamplers.0.conv", inputs, inputs, 3)?)
                }
                false => None,
            };
            down.push(Level {
                layers,
                resize,
                channels: inputs,
            });
        }
        let mid = tensors.under("mid_block");
        let of_mid =
            |name: &str| ResBlock::load(&mid.under(name), (inputs, inputs), norm, Some(time));
        let (mid_first, mid_second) = (of_mid("resnets.0")?, of_mid("resnets.1")?);
        let mid_cross = cross(&mid.under("attentions.0"), widths.len() - 1)?;
        let (mut up, mut joints) = (Vec::new(), Vec::new());
        for index in 0..widths.len() {
            let level = widths.len() - 1 - index;
            let outputs = widths[level];
            let tensors = tensors.under(format!("up_blocks.{index}"));
            let (mut layers, mut of_level) = (Vec::new(), Vec::new());
            for layer in 0..=config.layers_per_block {
                let skipped = kept.pop().unwrap_or(first);
                of_level.push((inputs, skipped));
                let block = tensors.under(format!("resnets.{layer}"));
                let attention = tensors.under(format!("attentions.{layer}"));
                let ends = (inputs + skipped, outputs);
                layers.push(Layer {
                    block: ResBlock::load(&block, ends, norm, Some(time))?,
                    cross: match config.up_reads_text(index) {
                        true => Some(cross(&attention, level)?),
                        false => None,
                    },
                });
                inputs = outputs;
            }
            let resize = match level > 0 {
                true => Some(tensors.conv("upsamplers.0.conv", outputs, outputs, 3)?),
                false => None,
            };
            up.push(Level {
                layers,
                resize,
                channels: outputs,
            });
            joints.push(of_level);
        }
        let embedding = tensors.under("time_embedding");
        let added = tensors.under("add_embedding");
        Ok(Self {
            time: [
                embedding.biased("linear_1", time, first)?,
                embedding.biased("linear_2", time, time)?,
            ],
            guidance: match config.time_cond_proj_dim {
                Some(inputs) => Some(embedding.linear("cond_proj", first, inputs)?),
                None => None,
            },
            added: match config.added_dims() {
                Some(inputs) => Some([
                    added.biased("linear_1", time, inputs)?,
                    added.biased("linear_2", time, time)?,
                ]),
                None => None,
            },
            first: tensors.conv("conv_in", first, config.in_channels, 3)?,
            down,
            mid_first,
            mid_cross,
            mid_second,
            up,
            joints,
            norm: GroupNorm::load(&tensors.under("conv_norm_out"), first, norm)?,
            last: tensors.conv("conv_out", config.out_channels, first, 3)?,
            config: config.clone(),
            cpu: cpu.clone(),
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &UNetConfig {
        &self.config
    }

    /// Sides of a latent are multiples of this.
    pub fn step(&self) -> usize {
        1 << (self.config.block_out_channels.len() - 1)
    }

    /// What it predicts (noise or velocity, by how it was trained) of `latent: [in_channels, height, width]`:
    /// `[out_channels, height, width]`.
    ///
    /// # Errors
    /// `Tensor` for sides that are no multiples of [`UNet::step`] and lengths that do not go together;
    /// `Cancelled`.
    pub fn run(
        &self,
        latent: &[f32],
        (height, width): (usize, usize),
        input: &UNetInput<'_>,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, PictureError> {
        const OP: &str = "unet";
        let remainder = height % self.step() + width % self.step();
        expect_zero(OP, "sides % step", remainder)?;
        let odd = input.text.len() % self.config.cross_attention_dim;
        expect_zero(OP, "length of text % cross_attention_dim", odd)?;
        let cpu = &self.cpu;
        let mut runner = Runner::new(cpu.clone(), Activations::Exact);
        let time = self.time(&mut runner, input)?;
        let mut x = Planes::zeros(self.config.in_channels.div_ceil(16), height, width)?;
        x.fill(latent)?;
        let mut x = convolved(cpu, &self.first, &x, None)?;
        let mut kept = vec![x.clone()];
        for level in &self.down {
            for layer in &level.layers {
                cancel.check()?;
                x = layer.run(&mut runner, &x, &time, input.text)?;
                kept.push(x.clone());
            }
            if let Some(conv) = &level.resize {
                x = halved(cpu, conv, &x, (level.channels, 0))?;
                kept.push(x.clone());
            }
        }
        let inner = self.mid_first.run_at(&mut runner, &x, &time)?;
        let inner = self.mid_cross.run(&mut runner, &inner, input.text)?;
        x = self.mid_second.run_at(&mut runner, &inner, &time)?;
        for (level, joints) in self.up.iter().zip(&self.joints) {
            for (layer, counts) in level.layers.iter().zip(joints) {
                cancel.check()?;
                let skipped = kept.pop();
                expect_zero(
                    OP,
                    "layers without a partner",
                    usize::from(skipped.is_none()),
                )?;
                if let Some(skipped) = skipped {
                    x = joined((&x, &skipped), *counts)?;
                }
                x = layer.run(&mut runner, &x, &time, input.text)?;
            }
            if let Some(conv) = &level.resize {
                x = doubled(cpu, conv, &x)?;
            }
        }
        let x = self.norm.run(cpu, &x, true)?;
        let x = convolved(cpu, &self.last, &x, None)?;
        Ok(x.values(self.config.out_channels)?)
    }

    /// The embedded timestep with what else tells the network how to draw, through a silu.
    fn time(&self, runner: &mut Runner, input: &UNetInput<'_>) -> Result<Vec<f32>, TensorError> {
        let waves = |dims: usize| TimestepWaves {
            dims,
            factor: 1.0,
            cosines_first: self.config.flip_sin_to_cos,
            frequency_shift: self.config.freq_shift,
        };
        let mut x = waves(self.config.block_out_channels[0]).of(input.timestep);
        if let (Some(linear), false) = (&self.guidance, input.guidance.is_empty()) {
            let mut by = vec![0.0; x.len()];
            runner.linear(input.guidance, [(linear, &mut by)])?;
            x.iter_mut().zip(&by).for_each(|(x, by)| *x += by);
        }
        let mut time = through(runner, &self.time, &x)?;
        if let (Some(linears), Some(dims)) = (&self.added, self.config.addition_time_embed_dim) {
            let mut all = input.pooled.to_vec();
            for id in input.size_ids {
                all.extend(waves(dims).of(*id));
            }
            let added = through(runner, linears, &all)?;
            time.iter_mut()
                .zip(&added)
                .for_each(|(time, by)| *time += by);
        }
        Ok(active(&self.cpu, &time))
    }
}

/// Two layers with a silu between them.
fn through(runner: &mut Runner, layers: &[Linear; 2], x: &[f32]) -> Result<Vec<f32>, TensorError> {
    let [first, second] = layers;
    let mut inner = vec![0.0; first.weights().rows()];
    runner.linear(x, [(first, &mut inner)])?;
    activate(runner.cpu(), Unary::Silu, &mut inner);
    let mut out = vec![0.0; second.weights().rows()];
    runner.linear(&inner, [(second, &mut out)])?;
    Ok(out)
}

impl Layer {
    fn run(
        &self,
        runner: &mut Runner,
        x: &Planes,
        time: &[f32],
        text: &[f32],
    ) -> Result<Planes, TensorError> {
        let x = self.block.run_at(runner, x, time)?;
        match &self.cross {
            Some(cross) => cross.run(runner, &x, text),
            None => Ok(x),
        }
    }
}

impl UNetConfig {
    fn cross_shape(&self, level: usize) -> CrossShape {
        CrossShape {
            channels: self.block_out_channels[level],
            heads: self.heads(level),
            text: self.cross_attention_dim,
            blocks: self.blocks(level),
            groups: self.norm_num_groups,
        }
    }
}
