//! Z-Image: refiners of the picture and of the text, then one stream of both.
//!
//! Checked against diffusers 0.42.1 (`transformer_z_image.py`), without its Omni variant.

use engine_base::CancelToken;
use engine_nn::{
    Activations, AxesRope, Linear, Runner, TimestepWaves, modulated_layer_norm, rms_norm_in_place,
};
use engine_tensor::ops::{
    RopePairs, RopeRows, Unary, activate, add, gated_add, rms_norm, rope_rows, silu_mul,
};
use engine_tensor::{Cpu, TensorError};
use serde::Deserialize;

use super::kit::{expect_zero, full_attention};
use super::tensors::Tensors;
use crate::error::{SIZE_CAP, check_sizes, wrong};
use crate::{LoadError, PictureError};

/// Texts and pictures are filled up to multiples of this.
const FILL: usize = 32;
/// Elements of the timestep's waves.
const WAVES: usize = 256;
/// Inner size of the timestep's layers.
const TIME_INNER: usize = 1024;
/// Most elements of an embedded timestep.
const TIME_CAP: usize = 256;
const HEAD_EPSILON: f32 = 1e-5;
/// Epsilon of the last norm.
const LAST_EPSILON: f32 = 1e-6;
/// Latent pixels of a token, along each side.
const PATCH: usize = 2;
/// Name of the layers for patches of 2 x 2 of one frame.
const PATCH_KEY: &str = "2-1";

/// `transformer/config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ZImageConfig {
    /// Channels of a latent.
    pub in_channels: usize,
    /// Elements of a row.
    pub dim: usize,
    /// Blocks of both together.
    pub n_layers: usize,
    /// Blocks of each refiner.
    pub n_refiner_layers: usize,
    /// Heads.
    pub n_heads: usize,
    /// Heads of keys: as many.
    pub n_kv_heads: usize,
    /// Elements of a text state.
    pub cap_feat_dim: usize,
    /// Epsilon of the norms.
    pub norm_eps: f64,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// What timesteps are multiplied by.
    pub t_scale: f64,
    /// Turned elements of a head for index, row and column.
    pub axes_dims: [usize; 3],
    /// Whether heads are normalized.
    pub qk_norm: bool,
}

impl ZImageConfig {
    fn check(&self) -> Result<(), LoadError> {
        let sizes = [
            ("in_channels", self.in_channels),
            ("dim", self.dim),
            ("n_layers", self.n_layers),
            ("n_heads", self.n_heads),
            ("cap_feat_dim", self.cap_feat_dim),
        ];
        check_sizes(sizes)?;
        if self.n_kv_heads != self.n_heads {
            return Err(wrong("n_kv_heads", self.n_kv_heads.to_string(), "n_heads"));
        }
        if !self.dim.is_multiple_of(self.n_heads) {
            return Err(wrong("dim", self.dim.to_string(), "a multiple of n_heads"));
        }
        if !self.qk_norm {
            return Err(wrong("qk_norm", "false".to_owned(), "true"));
        }
        let turned: usize = self.axes_dims.iter().map(|dims| dims.min(&SIZE_CAP)).sum();
        if turned != self.dim / self.n_heads {
            let expected = "dim / n_heads together";
            return Err(wrong("axes_dims", turned.to_string(), expected));
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Block {
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    q_norm: Vec<f32>,
    k_norm: Vec<f32>,
    gate: Linear,
    down: Linear,
    up: Linear,
    /// Before and behind attention, before and behind the feed-forward layer.
    norms: [Vec<f32>; 4],
    modulation: Option<Linear>,
}

/// The transformer.
#[derive(Debug)]
pub struct ZImage {
    config: ZImageConfig,
    cpu: Cpu,
    rope: AxesRope,
    image_in: Linear,
    image_fill: Vec<f32>,
    text_norm: Vec<f32>,
    text_in: Linear,
    text_fill: Vec<f32>,
    time: [Linear; 2],
    image_refiner: Vec<Block>,
    text_refiner: Vec<Block>,
    blocks: Vec<Block>,
    last_modulation: Linear,
    last: Linear,
}

impl ZImage {
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        config: &ZImageConfig,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        config.check()?;
        let dim = config.dim;
        let time_dim = dim.min(TIME_CAP);
        let patch = config.in_channels * PATCH * PATCH;
        let blocks = |list: &str, count: usize, modulated: bool| -> Result<Vec<_>, LoadError> {
            let mut loaded = Vec::new();
            for index in 0..count {
                let tensors = tensors.under(format!("{list}.{index}"));
                loaded.push(load_block(&tensors, config, modulated)?);
            }
            Ok(loaded)
        };
        let last = tensors.under(format!("all_final_layer.{PATCH_KEY}"));
        Ok(Self {
            rope: AxesRope::new(&config.axes_dims, config.rope_theta)?,
            image_in: tensors.biased(&format!("all_x_embedder.{PATCH_KEY}"), dim, patch)?,
            image_fill: tensors.values("x_pad_token", &[1, dim])?,
            text_norm: tensors.values("cap_embedder.0.weight", &[config.cap_feat_dim])?,
            text_in: tensors.biased("cap_embedder.1", dim, config.cap_feat_dim)?,
            text_fill: tensors.values("cap_pad_token", &[1, dim])?,
            time: [
                tensors.biased("t_embedder.mlp.0", TIME_INNER, WAVES)?,
                tensors.biased("t_embedder.mlp.2", time_dim, TIME_INNER)?,
            ],
            image_refiner: blocks("noise_refiner", config.n_refiner_layers, true)?,
            text_refiner: blocks("context_refiner", config.n_refiner_layers, false)?,
            blocks: blocks("layers", config.n_layers, true)?,
            last_modulation: last.biased("adaLN_modulation.1", dim, time_dim)?,
            last: last.biased("linear", patch, dim)?,
            config: config.clone(),
            cpu: cpu.clone(),
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &ZImageConfig {
        &self.config
    }

    /// What the network makes of `latent: [in_channels, height, width]` behind `text: [tokens,
    /// cap_feat_dim]` at `t`, from 0 (noise) to 1: the negated velocity, of the latent's shape.
    ///
    /// # Errors
    /// `Tensor` for odd sides or lengths that do not go together; `Cancelled`.
    pub fn run(
        &self,
        latent: &[f32],
        (height, width): (usize, usize),
        text: &[f32],
        t: f32,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, PictureError> {
        const OP: &str = "z_image";
        let (dim, channels) = (self.config.dim, self.config.in_channels);
        expect_zero(OP, "sides % 2", height % PATCH + width % PATCH)?;
        let wanted = channels * height * width;
        expect_zero(
            OP,
            "length of latent less its sides'",
            latent.len().abs_diff(wanted),
        )?;
        expect_zero(
            OP,
            "length of text % cap_feat_dim",
            text.len() % self.config.cap_feat_dim,
        )?;
        let mut runner = Runner::new(self.cpu.clone(), Activations::Exact);
        let time = self.time(&mut runner, t)?;
        let (rows, columns) = (height / PATCH, width / PATCH);
        let texts = (text.len() / self.config.cap_feat_dim).next_multiple_of(FILL);

        let patches = patched(latent, (channels, height, width));
        let mut image = vec![0.0; rows * columns * dim];
        runner.linear(&patches, [(&self.image_in, &mut image)])?;
        let mut places: Vec<[f64; 3]> = (0..rows * columns)
            .map(|at| {
                [
                    (texts + 1) as f64,
                    (at / columns) as f64,
                    (at % columns) as f64,
                ]
            })
            .collect();
        let images = (rows * columns).next_multiple_of(FILL);
        for _ in rows * columns..images {
            image.extend_from_slice(&self.image_fill);
            places.push([0.0; 3]);
        }
        let mut turns = self.rope.rows(&places);
        for block in &self.image_refiner {
            cancel.check()?;
            self.block(&mut runner, block, &mut image, (&time, &turns))?;
        }

        let mut normed = text.to_vec();
        let epsilon = self.config.norm_eps as f32;
        rms_norm_in_place(&self.cpu, &mut normed, &self.text_norm, epsilon)?;
        let mut words = vec![0.0; text.len() / self.config.cap_feat_dim * dim];
        runner.linear(&normed, [(&self.text_in, &mut words)])?;
        while words.len() < texts * dim {
            words.extend_from_slice(&self.text_fill);
        }
        let places: Vec<[f64; 3]> = (0..texts).map(|at| [(at + 1) as f64, 0.0, 0.0]).collect();
        let of_text = self.rope.rows(&places);
        for block in &self.text_refiner {
            cancel.check()?;
            self.block(&mut runner, block, &mut words, (&time, &of_text))?;
        }

        let mut x = image;
        x.extend(words);
        turns.extend(&of_text);
        for block in &self.blocks {
            cancel.check()?;
            self.block(&mut runner, block, &mut x, (&time, &turns))?;
        }
        let mut active = time.clone();
        activate(&self.cpu, Unary::Silu, &mut active);
        let mut scale = vec![0.0; dim];
        runner.linear(&active, [(&self.last_modulation, &mut scale)])?;
        let x = &x[..rows * columns * dim];
        let mut normed = vec![0.0; x.len()];
        modulated_layer_norm(&self.cpu, x, (&scale, None), LAST_EPSILON, &mut normed)?;
        let mut out = vec![0.0; patches.len()];
        runner.linear(&normed, [(&self.last, &mut out)])?;
        Ok(unpatched(&out, (channels, height, width)))
    }

    fn time(&self, runner: &mut Runner, t: f32) -> Result<Vec<f32>, TensorError> {
        let waves = TimestepWaves {
            factor: self.config.t_scale as f32,
            ..TimestepWaves::of_unit(WAVES)
        };
        let mut inner = vec![0.0; TIME_INNER];
        runner.linear(&waves.of(t), [(&self.time[0], &mut inner)])?;
        activate(&self.cpu, Unary::Silu, &mut inner);
        let mut time = vec![0.0; self.config.dim.min(TIME_CAP)];
        runner.linear(&inner, [(&self.time[1], &mut time)])?;
        Ok(time)
    }

    /// One block over `x: [rows, dim]`, in which every row sees every row.
    fn block(
        &self,
        runner: &mut Runner,
        block: &Block,
        x: &mut [f32],
        (time, turns): (&[f32], &RopeRows),
    ) -> Result<(), TensorError> {
        let dim = self.config.dim;
        let shape = (self.config.n_heads, dim / self.config.n_heads);
        let epsilon = self.config.norm_eps as f32;
        // Scale and gate of attention, then of the feed-forward layer.
        let mut parts = [const { Vec::new() }; 4];
        if let Some(linear) = &block.modulation {
            let mut all = vec![0.0; 4 * dim];
            runner.linear(time, [(linear, &mut all)])?;
            for (part, values) in parts.iter_mut().zip(all.chunks_exact(dim)) {
                *part = values.to_vec();
            }
            activate(&self.cpu, Unary::Tanh, &mut parts[1]);
            activate(&self.cpu, Unary::Tanh, &mut parts[3]);
        }
        let scaled = |norm: &[f32], scale: &[f32]| -> Vec<f32> {
            match scale.is_empty() {
                true => norm.to_vec(),
                false => norm.iter().zip(scale).map(|(n, s)| n * (1.0 + s)).collect(),
            }
        };
        let joined = |x: &mut [f32], gate: &[f32], out: &[f32]| match gate.is_empty() {
            true => add(&self.cpu, x, out),
            false => gated_add(&self.cpu, x, gate, out),
        };
        let mut normed = vec![0.0; x.len()];
        let weight = scaled(&block.norms[0], &parts[0]);
        rms_norm(&self.cpu, x, &weight, epsilon, &mut normed)?;
        let (mut q, mut k, mut v) = (normed.clone(), normed.clone(), normed.clone());
        runner.linear(
            &normed,
            [(&block.q, &mut q), (&block.k, &mut k), (&block.v, &mut v)],
        )?;
        for (part, norm) in [(&mut q, &block.q_norm), (&mut k, &block.k_norm)] {
            rms_norm_in_place(&self.cpu, part, norm, HEAD_EPSILON)?;
            rope_rows(&self.cpu, turns, RopePairs::Neighbours, shape.1, part)?;
        }
        let mixed = full_attention(&self.cpu, shape, &q, &k, &v)?;
        runner.linear(&mixed, [(&block.o, &mut q)])?;
        rms_norm_in_place(&self.cpu, &mut q, &block.norms[1], epsilon)?;
        joined(x, &parts[1], &q)?;
        let weight = scaled(&block.norms[2], &parts[2]);
        rms_norm(&self.cpu, x, &weight, epsilon, &mut normed)?;
        let inner = block.gate.weights().rows();
        let mut gate = vec![0.0; x.len() / dim * inner];
        let mut up = gate.clone();
        runner.linear(&normed, [(&block.gate, &mut gate), (&block.up, &mut up)])?;
        silu_mul(&self.cpu, &mut gate, &up)?;
        runner.linear(&gate, [(&block.down, &mut q)])?;
        rms_norm_in_place(&self.cpu, &mut q, &block.norms[3], epsilon)?;
        joined(x, &parts[3], &q)
    }
}

fn load_block(
    tensors: &Tensors<'_>,
    config: &ZImageConfig,
    modulated: bool,
) -> Result<Block, LoadError> {
    let dim = config.dim;
    let head_dim = dim / config.n_heads;
    let inner = (dim as f64 / 3.0 * 8.0) as usize;
    let square = |name: &str| tensors.linear(&format!("attention.{name}"), dim, dim);
    let norm = |name: &str, len: usize| tensors.values(&format!("{name}.weight"), &[len]);
    Ok(Block {
        q: square("to_q")?,
        k: square("to_k")?,
        v: square("to_v")?,
        o: square("to_out.0")?,
        q_norm: norm("attention.norm_q", head_dim)?,
        k_norm: norm("attention.norm_k", head_dim)?,
        gate: tensors.linear("feed_forward.w1", inner, dim)?,
        down: tensors.linear("feed_forward.w2", dim, inner)?,
        up: tensors.linear("feed_forward.w3", inner, dim)?,
        norms: [
            norm("attention_norm1", dim)?,
            norm("attention_norm2", dim)?,
            norm("ffn_norm1", dim)?,
            norm("ffn_norm2", dim)?,
        ],
        modulation: match modulated {
            true => Some(tensors.biased("adaLN_modulation.0", 4 * dim, dim.min(TIME_CAP))?),
            false => None,
        },
    })
}

/// Where value `at` of a patch's list (`[row in patch, column in patch, channel]`) lies in a latent.
fn place(token: usize, at: usize, (channels, height, width): (usize, usize, usize)) -> usize {
    let columns = width / PATCH;
    let (channel, corner) = (at % channels, at / channels);
    let y = token / columns * PATCH + corner / PATCH;
    let x = token % columns * PATCH + corner % PATCH;
    (channel * height + y) * width + x
}

fn patched(latent: &[f32], size: (usize, usize, usize)) -> Vec<f32> {
    let patch = size.0 * PATCH * PATCH;
    (0..latent.len())
        .map(|at| latent[place(at / patch, at % patch, size)])
        .collect()
}

fn unpatched(rows: &[f32], size: (usize, usize, usize)) -> Vec<f32> {
    let patch = size.0 * PATCH * PATCH;
    let mut out = vec![0.0; rows.len()];
    for (at, value) in rows.iter().enumerate() {
        out[place(at / patch, at % patch, size)] = *value;
    }
    out
}
