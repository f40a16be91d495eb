//! Qwen-Image: blocks of two streams (text and picture) that meet in attention, each with its own
//! modulation.
//!
//! Checked against diffusers 0.42.1 (`transformer_qwenimage.py`).

use engine_base::CancelToken;
use engine_nn::{
    Activations, AxesRope, Linear, Runner, TimestepWaves, modulated_layer_norm, rms_norm_in_place,
};
use engine_tensor::ops::{RopePairs, RopeRows, Unary, activate, gated_add, rope_rows};
use engine_tensor::{Cpu, TensorError};
use serde::Deserialize;

use super::kit::{expect_zero, full_attention};
use super::tensors::Tensors;
use crate::error::{check_axes, check_sizes, wrong};
use crate::{LoadError, PictureError};

/// Elements of a timestep's waves.
const WAVES: usize = 256;
const EPSILON: f32 = 1e-6;
const ROPE_BASE: f64 = 10_000.0;
/// Inner size of the feed-forward layers in hidden sizes.
const RATIO: usize = 4;

/// `transformer/config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct QwenImageConfig {
    /// Channels of a token.
    pub in_channels: usize,
    /// Channels of a latent pixel.
    pub out_channels: usize,
    /// Latent pixels of a token, along each side.
    pub patch_size: usize,
    /// Blocks.
    pub num_layers: usize,
    /// Elements of a head.
    pub attention_head_dim: usize,
    /// Heads.
    pub num_attention_heads: usize,
    /// Elements of a text state.
    pub joint_attention_dim: usize,
    /// Turned elements of a head for image, row and column.
    pub axes_dims_rope: [usize; 3],
    /// Whether guidance is an input.
    #[serde(default)]
    pub guidance_embeds: bool,
    /// Whether references are modulated at t = 0.
    #[serde(default)]
    pub zero_cond_t: bool,
    /// Whether layers are an input.
    #[serde(default)]
    pub use_additional_t_cond: bool,
}

impl QwenImageConfig {
    fn hidden(&self) -> usize {
        self.num_attention_heads * self.attention_head_dim
    }

    fn check(&self) -> Result<(), LoadError> {
        let sizes = [
            ("in_channels", self.in_channels),
            ("out_channels", self.out_channels),
            ("patch_size", self.patch_size),
            ("num_layers", self.num_layers),
            ("attention_head_dim", self.attention_head_dim),
            ("num_attention_heads", self.num_attention_heads),
            ("joint_attention_dim", self.joint_attention_dim),
        ];
        check_sizes(sizes)?;
        check_axes(
            "axes_dims_rope",
            &self.axes_dims_rope,
            self.attention_head_dim,
        )?;
        for (key, flag) in [
            ("guidance_embeds", self.guidance_embeds),
            ("zero_cond_t", self.zero_cond_t),
            ("use_additional_t_cond", self.use_additional_t_cond),
        ] {
            if flag {
                return Err(wrong(key, "true".to_owned(), "false"));
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Stream {
    modulation: Linear,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    q_norm: Vec<f32>,
    k_norm: Vec<f32>,
    up: Linear,
    down: Linear,
}

/// Shift, scale and gate.
struct Modulation {
    shift: Vec<f32>,
    scale: Vec<f32>,
    gate: Vec<f32>,
}

/// The transformer.
#[derive(Debug)]
pub struct QwenImage {
    config: QwenImageConfig,
    cpu: Cpu,
    rope: AxesRope,
    image_in: Linear,
    text_norm: Vec<f32>,
    text_in: Linear,
    time: [Linear; 2],
    /// Text, then picture.
    blocks: Vec<[Stream; 2]>,
    norm_out: Linear,
    proj_out: Linear,
}

impl QwenImage {
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        config: &QwenImageConfig,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        config.check()?;
        let (hidden, head_dim) = (config.hidden(), config.attention_head_dim);
        let text = config.joint_attention_dim;
        let mut blocks = Vec::new();
        for index in 0..config.num_layers {
            let block = tensors.under(format!("transformer_blocks.{index}"));
            let attention = block.under("attn");
            let stream = |kind: &str, names: [&str; 4], norms: [&str; 2]| -> Result<_, LoadError> {
                let square = |name: &str| attention.biased(name, hidden, hidden);
                let norm = |name: &str| attention.values(&format!("{name}.weight"), &[head_dim]);
                let inner = RATIO * hidden;
                Ok(Stream {
                    modulation: block.biased(&format!("{kind}_mod.1"), 6 * hidden, hidden)?,
                    q: square(names[0])?,
                    k: square(names[1])?,
                    v: square(names[2])?,
                    o: square(names[3])?,
                    q_norm: norm(norms[0])?,
                    k_norm: norm(norms[1])?,
                    up: block.biased(&format!("{kind}_mlp.net.0.proj"), inner, hidden)?,
                    down: block.biased(&format!("{kind}_mlp.net.2"), hidden, inner)?,
                })
            };
            let of_text = ["add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"];
            let of_image = ["to_q", "to_k", "to_v", "to_out.0"];
            blocks.push([
                stream("txt", of_text, ["norm_added_q", "norm_added_k"])?,
                stream("img", of_image, ["norm_q", "norm_k"])?,
            ]);
        }
        let time = tensors.under("time_text_embed.timestep_embedder");
        let patch = config.patch_size * config.patch_size * config.out_channels;
        Ok(Self {
            rope: AxesRope::new(&config.axes_dims_rope, ROPE_BASE)?,
            image_in: tensors.biased("img_in", hidden, config.in_channels)?,
            text_norm: tensors.values("txt_norm.weight", &[text])?,
            text_in: tensors.biased("txt_in", hidden, text)?,
            time: [
                time.biased("linear_1", hidden, WAVES)?,
                time.biased("linear_2", hidden, hidden)?,
            ],
            blocks,
            norm_out: tensors.biased("norm_out.linear", 2 * hidden, hidden)?,
            proj_out: tensors.biased("proj_out", patch, hidden)?,
            config: config.clone(),
            cpu: cpu.clone(),
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &QwenImageConfig {
        &self.config
    }

    /// The velocity of `tokens: [rows, in_channels]` behind `text: [tokens, joint_attention_dim]` at
    /// `timestep` (0..1). `sizes`: rows and columns of the picture and of each reference behind it, which
    /// together are the rows of `tokens`. Result: as many rows.
    ///
    /// # Errors
    /// `Tensor` for lengths that do not go together; `Cancelled`.
    pub fn velocity(
        &self,
        tokens: &[f32],
        sizes: &[(usize, usize)],
        text: &[f32],
        timestep: f32,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, PictureError> {
        const OP: &str = "qwen_image";
        let (hidden, channels) = (self.config.hidden(), self.config.in_channels);
        let images: usize = sizes.iter().map(|(height, width)| height * width).sum();
        let difference = tokens.len().abs_diff(images * channels);
        expect_zero(OP, "length of tokens less their sizes'", difference)?;
        let odd = text.len() % self.config.joint_attention_dim;
        expect_zero(OP, "length of text % joint_attention_dim", odd)?;
        let texts = text.len() / self.config.joint_attention_dim;
        let mut runner = Runner::new(self.cpu.clone(), Activations::Exact);
        let mut x = vec![0.0; (texts + images) * hidden];
        let (of_text, of_image) = x.split_at_mut(texts * hidden);
        let mut normed = text.to_vec();
        rms_norm_in_place(&self.cpu, &mut normed, &self.text_norm, EPSILON)?;
        runner.linear(&normed, [(&self.text_in, of_text)])?;
        runner.linear(tokens, [(&self.image_in, of_image)])?;
        let turns = self.rope.rows(&places(sizes, texts));
        let (mut inner, mut time) = (vec![0.0; hidden], vec![0.0; hidden]);
        let waves = TimestepWaves::of_unit(WAVES).of(timestep);
        runner.linear(&waves, [(&self.time[0], &mut inner)])?;
        activate(&self.cpu, Unary::Silu, &mut inner);
        runner.linear(&inner, [(&self.time[1], &mut time)])?;
        // All that reads it begins with a silu.
        activate(&self.cpu, Unary::Silu, &mut time);
        for block in &self.blocks {
            cancel.check()?;
            self.block(&mut runner, block, (&mut x, texts), (&time, &turns))?;
        }
        let x = &x[texts * hidden..];
        let mut last = vec![0.0; 2 * hidden];
        runner.linear(&time, [(&self.norm_out, &mut last)])?;
        let (scale, shift) = last.split_at(hidden);
        let mut normed = vec![0.0; x.len()];
        modulated_layer_norm(&self.cpu, x, (scale, Some(shift)), EPSILON, &mut normed)?;
        let mut out = vec![0.0; images * self.proj_out.weights().rows()];
        runner.linear(&normed, [(&self.proj_out, &mut out)])?;
        Ok(out)
    }

    fn modulations(
        &self,
        runner: &mut Runner,
        linear: &Linear,
        time: &[f32],
    ) -> Result<[Modulation; 2], TensorError> {
        let hidden = self.config.hidden();
        let mut all = vec![0.0; 6 * hidden];
        runner.linear(time, [(linear, &mut all)])?;
        let of = |half: usize| {
            let part = |at: usize| all[(3 * half + at) * hidden..][..hidden].to_vec();
            Modulation {
                shift: part(0),
                scale: part(1),
                gate: part(2),
            }
        };
        Ok([of(0), of(1)])
    }

    fn modulated(&self, x: &[f32], by: &Modulation) -> Result<Vec<f32>, TensorError> {
        let mut normed = vec![0.0; x.len()];
        let how = (&by.scale[..], Some(&by.shift[..]));
        modulated_layer_norm(&self.cpu, x, how, EPSILON, &mut normed)?;
        Ok(normed)
    }

    /// One block over `x: [texts + images, hidden]`.
    fn block(
        &self,
        runner: &mut Runner,
        block: &[Stream; 2],
        (x, texts): (&mut [f32], usize),
        (time, turns): (&[f32], &RopeRows),
    ) -> Result<(), TensorError> {
        let hidden = self.config.hidden();
        let shape = (
            self.config.num_attention_heads,
            self.config.attention_head_dim,
        );
        let (mut q, mut k, mut v) = (Vec::new(), Vec::new(), Vec::new());
        let mut modulations = Vec::new();
        let (of_text, of_image) = x.split_at(texts * hidden);
        for (stream, x) in block.iter().zip([of_text, of_image]) {
            let by = self.modulations(runner, &stream.modulation, time)?;
            let normed = self.modulated(x, &by[0])?;
            modulations.push(by);
            let (mut a, mut b, mut c) = (normed.clone(), normed.clone(), normed.clone());
            let parts = [
                (&stream.q, &mut a[..]),
                (&stream.k, &mut b),
                (&stream.v, &mut c),
            ];
            runner.linear(&normed, parts)?;
            rms_norm_in_place(&self.cpu, &mut a, &stream.q_norm, EPSILON)?;
            rms_norm_in_place(&self.cpu, &mut b, &stream.k_norm, EPSILON)?;
            q.extend(a);
            k.extend(b);
            v.extend(c);
        }
        for part in [&mut q, &mut k] {
            rope_rows(&self.cpu, turns, RopePairs::Neighbours, shape.1, part)?;
        }
        let mixed = full_attention(&self.cpu, shape, &q, &k, &v)?;
        let (mixed_text, mixed_image) = mixed.split_at(texts * hidden);
        let (of_text, of_image) = x.split_at_mut(texts * hidden);
        let streams = [(of_text, mixed_text), (of_image, mixed_image)];
        for ((stream, (x, mixed)), by) in block.iter().zip(streams).zip(&modulations) {
            let mut out = vec![0.0; mixed.len()];
            runner.linear(mixed, [(&stream.o, &mut out)])?;
            gated_add(&self.cpu, x, &by[0].gate, &out)?;
            let normed = self.modulated(x, &by[1])?;
            let mut wide = vec![0.0; RATIO * x.len()];
            runner.linear(&normed, [(&stream.up, &mut wide)])?;
            activate(&self.cpu, Unary::GeluTanh, &mut wide);
            runner.linear(&wide, [(&stream.down, &mut out)])?;
            gated_add(&self.cpu, x, &by[1].gate, &out)?;
        }
        Ok(())
    }
}

/// Text stands beyond the largest half side of all images on every axis; images are centred.
fn places(sizes: &[(usize, usize)], texts: usize) -> Vec<[f64; 3]> {
    let halves = sizes.iter().map(|(height, width)| height.max(width) / 2);
    let first = halves.max().unwrap_or(0);
    let mut places: Vec<[f64; 3]> = (first..first + texts).map(|at| [at as f64; 3]).collect();
    for (index, (height, width)) in sizes.iter().enumerate() {
        let centred = |at: usize, side: usize| at as f64 - (side - side / 2) as f64;
        places.extend((0..height * width).map(|at| {
            let (row, column) = (at / width, at % width);
            [index as f64, centred(row, *height), centred(column, *width)]
        }));
    }
    places
}
