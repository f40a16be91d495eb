//! Qwen-Image 2.1: one stream of text, condition images and the picture.
//!
//! Text and condition images are modulated at t = 0 and never see the picture, so their keys and values
//! are the same at every step: a [`Prefix`] is made once and every step runs the picture's rows only.
//! Checked against diffusers 0.42.1 (`transformer_qwenimage21.py`).

use engine_base::CancelToken;
use engine_nn::{
    Activations, AxesRope, Linear, Runner, TimestepWaves, modulated_layer_norm, rms_norm_in_place,
};
use engine_tensor::ops::{
    AttentionSpec, KvKind, KvRows, QueryRow, RopePairs, RopeRows, Unary, activate, attention,
    gated_add, rope_rows, silu_mul,
};
use engine_tensor::{Cpu, TensorError};
use serde::Deserialize;

use super::kit::expect_zero;
use super::tensors::Tensors;
use crate::error::{SIZE_CAP, check_sizes, wrong};
use crate::{LoadError, PictureError};

/// Elements of a timestep's waves.
const WAVES: usize = 256;
/// Epsilon of the norms of heads.
const HEAD_EPSILON: f32 = 1e-6;
const ROPE_BASE: f64 = 10_000.0;

/// `transformer/config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct QwenImage21Config {
    /// Elements of a head.
    pub attention_head_dim: usize,
    /// Heads.
    pub num_attention_heads: usize,
    /// Blocks.
    pub num_layers: usize,
    /// Channels of a latent.
    pub in_channels: usize,
    /// The same.
    pub out_channels: usize,
    /// Elements of a text state.
    pub context_in_dim: usize,
    /// Inner size of the feed-forward layer in hidden sizes.
    #[serde(default = "three")]
    pub mlp_ratio: usize,
    /// Turned elements of a head for frame, row and column.
    pub axes_dims_rope: [usize; 3],
    /// Epsilon of the layer norms.
    #[serde(default = "epsilon")]
    pub eps: f64,
    /// Latent pixels of a token, along each side.
    #[serde(default = "one")]
    pub patch_size: usize,
    /// Whether text and condition images are modulated at t = 0.
    #[serde(default = "yes")]
    pub causal_condition: bool,
}

fn one() -> usize {
    1
}

fn three() -> usize {
    3
}

fn epsilon() -> f64 {
    1e-6
}

fn yes() -> bool {
    true
}

impl QwenImage21Config {
    fn check(&self) -> Result<(), LoadError> {
        let sizes = [
            ("attention_head_dim", self.attention_head_dim),
            ("num_attention_heads", self.num_attention_heads),
            ("num_layers", self.num_layers),
            ("in_channels", self.in_channels),
            ("context_in_dim", self.context_in_dim),
            ("mlp_ratio", self.mlp_ratio),
        ];
        check_sizes(sizes)?;
        if self.patch_size != 1 {
            return Err(wrong("patch_size", self.patch_size, "1"));
        }
        if self.out_channels != self.in_channels {
            let expected = format!("in_channels, {}", self.in_channels);
            return Err(wrong("out_channels", self.out_channels, &expected));
        }
        if !self.causal_condition {
            return Err(wrong("causal_condition", false, "true"));
        }
        let turned: usize = self
            .axes_dims_rope
            .iter()
            .map(|dims| dims.min(&SIZE_CAP))
            .sum();
        if turned > self.attention_head_dim || turned == 0 {
            let expected = "even numbers of at most attention_head_dim together";
            return Err(wrong("axes_dims_rope", turned, expected));
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
    up: Linear,
    down: Linear,
}

/// The transformer.
#[derive(Debug)]
pub struct QwenImage21 {
    config: QwenImage21Config,
    rope: AxesRope,
    img_in: Linear,
    text_norm: Vec<f32>,
    text_in: Linear,
    text_out: Linear,
    time: [Linear; 2],
    modulation: Linear,
    blocks: Vec<Block>,
    norm_out: Linear,
    proj_out: Linear,
    cpu: Cpu,
}

/// What stands before the picture.
#[derive(Debug, Clone, Copy)]
pub enum Condition<'a> {
    /// Text states: `[tokens, context_in_dim]`.
    Text(&'a [f32]),
    /// An image's latent: `[height * width, in_channels]`.
    Image {
        /// Its values.
        latent: &'a [f32],
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
}

/// Keys and values of text and condition images: the same at every step.
#[derive(Debug)]
pub struct Prefix {
    layers: Vec<KvRows>,
    rows: usize,
    /// Where the picture stands on the axis of frames.
    position: usize,
}

impl Prefix {
    /// Rows of text and condition images.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// What a block does to its rows at a timestep.
struct Modulation {
    scale1: Vec<f32>,
    gate1: Vec<f32>,
    scale2: Vec<f32>,
    gate2: Vec<f32>,
    scale_out: Vec<f32>,
}

/// Rows of a forward pass: which cache each belongs to and up to which position it sees.
struct Rows {
    cache: Vec<usize>,
    sees: Vec<usize>,
    turns: RopeRows,
}

impl QwenImage21 {
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        config: &QwenImage21Config,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        config.check()?;
        let head_dim = config.attention_head_dim;
        let hidden = config.num_attention_heads * head_dim;
        let inner = hidden * config.mlp_ratio;
        let text = tensors.under("txt_in");
        let mut text_norm = text.values("text_norm.weight", &[config.context_in_dim])?;
        // Stored less 1.
        text_norm.iter_mut().for_each(|weight| *weight += 1.0);
        let time = tensors.under("time_text_embed.timestep_embedder");
        let mut blocks = Vec::new();
        for index in 0..config.num_layers {
            let block = tensors.under(format!("transformer_blocks.{index}"));
            let square = |name: &str| block.linear(name, hidden, hidden);
            blocks.push(Block {
                q: square("attn.to_q")?,
                k: square("attn.to_k")?,
                v: square("attn.to_v")?,
                o: square("attn.to_out.0")?,
                q_norm: block.values("attn.norm_q.weight", &[head_dim])?,
                k_norm: block.values("attn.norm_k.weight", &[head_dim])?,
                gate: block.linear("img_mlp.gate_layer", inner, hidden)?,
                up: block.linear("img_mlp.proj", inner, hidden)?,
                down: block.linear("img_mlp.out", hidden, inner)?,
            });
        }
        Ok(Self {
            rope: AxesRope::new(&config.axes_dims_rope, ROPE_BASE)?,
            img_in: tensors.linear("img_in", hidden, config.in_channels)?,
            text_norm,
            text_in: text.linear("in_layer", hidden, config.context_in_dim)?,
            text_out: text.linear("out_layer", hidden, hidden)?,
            time: [
                time.linear("linear_1", hidden, WAVES)?,
                time.linear("linear_2", hidden, hidden)?,
            ],
            modulation: tensors.linear("modulation.1", 4 * hidden, hidden)?,
            blocks,
            norm_out: tensors.linear("norm_out.linear", hidden, hidden)?,
            proj_out: tensors.linear("proj_out", config.out_channels, hidden)?,
            config: config.clone(),
            cpu: cpu.clone(),
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &QwenImage21Config {
        &self.config
    }

    fn hidden(&self) -> usize {
        self.config.num_attention_heads * self.config.attention_head_dim
    }

    fn runner(&self) -> Runner {
        Runner::new(self.cpu.clone(), Activations::Exact)
    }

    fn modulation(&self, runner: &mut Runner, timestep: f32) -> Result<Modulation, TensorError> {
        let hidden = self.hidden();
        let waves = TimestepWaves::of_unit(WAVES).of(timestep);
        let mut inner = vec![0.0; hidden];
        let mut embedded = vec![0.0; hidden];
        runner.linear(&waves, [(&self.time[0], &mut inner)])?;
        activate(&self.cpu, Unary::Silu, &mut inner);
        runner.linear(&inner, [(&self.time[1], &mut embedded)])?;
        activate(&self.cpu, Unary::Silu, &mut embedded);
        let mut all = vec![0.0; 4 * hidden];
        let mut scale_out = vec![0.0; hidden];
        runner.linear(
            &embedded,
            [
                (&self.modulation, &mut all),
                (&self.norm_out, &mut scale_out),
            ],
        )?;
        let mut parts = all.chunks_exact(hidden).map(<[f32]>::to_vec);
        let mut next = || parts.next().unwrap_or_default();
        let (scale1, mut gate1, scale2, mut gate2) = (next(), next(), next(), next());
        activate(&self.cpu, Unary::Tanh, &mut gate1);
        activate(&self.cpu, Unary::Tanh, &mut gate2);
        Ok(Modulation {
            scale1,
            gate1,
            scale2,
            gate2,
            scale_out,
        })
    }

    /// Places of an image's tokens: `frame`, then rows and columns around 0.
    fn places(frame: usize, height: usize, width: usize) -> Vec<[f64; 3]> {
        let centred = |at: usize, side: usize| at as f64 - (side - side / 2) as f64;
        (0..height * width)
            .map(|at| {
                [
                    frame as f64,
                    centred(at / width, height),
                    centred(at % width, width),
                ]
            })
            .collect()
    }

    fn text_rows(&self, runner: &mut Runner, states: &[f32]) -> Result<Vec<f32>, TensorError> {
        let rows = states.len() / self.config.context_in_dim;
        let mut normed = states.to_vec();
        rms_norm_in_place(
            &self.cpu,
            &mut normed,
            &self.text_norm,
            self.config.eps as f32,
        )?;
        let mut inner = vec![0.0; rows * self.hidden()];
        runner.linear(&normed, [(&self.text_in, &mut inner)])?;
        activate(&self.cpu, Unary::GeluTanh, &mut inner);
        let mut out = vec![0.0; inner.len()];
        runner.linear(&inner, [(&self.text_out, &mut out)])?;
        Ok(out)
    }

    /// Runs what stands before the picture.
    ///
    /// # Errors
    /// `Tensor` for states or latents that are no whole rows, or none at all; `Cancelled`.
    pub fn prefix(
        &self,
        conditions: &[Condition<'_>],
        cancel: &CancelToken,
    ) -> Result<Prefix, PictureError> {
        let mut runner = self.runner();
        let hidden = self.hidden();
        let (mut x, mut places, mut sees) = (Vec::new(), Vec::new(), Vec::new());
        let mut position = 0;
        for condition in conditions {
            match condition {
                Condition::Text(states) => {
                    check("length of text states % context_in_dim", {
                        states.len() % self.config.context_in_dim
                    })?;
                    for _ in 0..states.len() / self.config.context_in_dim {
                        sees.push(sees.len());
                        places.push([position as f64; 3]);
                        position += 1;
                    }
                    x.extend(self.text_rows(&mut runner, states)?);
                }
                Condition::Image {
                    latent,
                    height,
                    width,
                } => {
                    let tokens = height * width;
                    check("length of an image's latent less its tokens'", {
                        latent.len().abs_diff(tokens * self.config.in_channels)
                    })?;
                    let last = sees.len() + tokens.saturating_sub(1);
                    sees.extend(std::iter::repeat_n(last, tokens));
                    places.extend(Self::places(position, *height, *width));
                    position += height.max(width);
                    let mut rows = vec![0.0; tokens * hidden];
                    runner.linear(latent, [(&self.img_in, &mut rows)])?;
                    x.extend(rows);
                }
            }
        }
        let heads = self.config.num_attention_heads;
        let empty = || KvRows::new(KvKind::F32, heads, self.config.attention_head_dim);
        let mut prefix = Prefix {
            layers: self.blocks.iter().map(|_| empty()).collect(),
            rows: sees.len(),
            position,
        };
        if sees.is_empty() {
            return Ok(prefix);
        }
        let rows = Rows {
            cache: vec![0; sees.len()],
            sees,
            turns: self.rope.rows(&places),
        };
        let modulation = self.modulation(&mut runner, 0.0)?;
        self.run(
            &mut runner,
            &mut x,
            &rows,
            (&modulation, &mut [&mut prefix]),
            cancel,
        )?;
        Ok(prefix)
    }

    /// Velocities of pictures of one size at `timestep` (0..1), each behind its own prefix, in one pass:
    /// `latents`, `[height * width, in_channels]` each, one for every prefix. Each gets the bits it would
    /// get alone.
    ///
    /// # Errors
    /// `Tensor` for latents of another size; `Cancelled`.
    pub fn velocities(
        &self,
        prefixes: &mut [&mut Prefix],
        latents: &[&[f32]],
        (height, width): (usize, usize),
        timestep: f32,
        cancel: &CancelToken,
    ) -> Result<Vec<Vec<f32>>, PictureError> {
        let (tokens, channels) = (height * width, self.config.in_channels);
        check(
            "latents less prefixes",
            latents.len().abs_diff(prefixes.len()),
        )?;
        let mut all = Vec::with_capacity(latents.len() * tokens * channels);
        let (mut cache, mut sees, mut turns) = (Vec::new(), Vec::new(), RopeRows::default());
        for (index, (latent, prefix)) in latents.iter().zip(prefixes.iter()).enumerate() {
            check("length of a latent less its tokens'", {
                latent.len().abs_diff(tokens * channels)
            })?;
            all.extend_from_slice(latent);
            cache.extend(std::iter::repeat_n(index, tokens));
            sees.extend(std::iter::repeat_n(prefix.rows + tokens - 1, tokens));
            let places = Self::places(prefix.position, height, width);
            let of_picture = self.rope.rows(&places);
            turns.dims = of_picture.dims;
            turns.extend(&of_picture);
        }
        let mut runner = self.runner();
        let mut x = vec![0.0; cache.len() * self.hidden()];
        runner.linear(&all, [(&self.img_in, &mut x)])?;
        let modulation = self.modulation(&mut runner, timestep)?;
        let rows = Rows { cache, sees, turns };
        let run = self.run(
            &mut runner,
            &mut x,
            &rows,
            (&modulation, &mut *prefixes),
            cancel,
        );
        // What the picture's rows left behind is not part of the prefix.
        for prefix in prefixes.iter_mut() {
            let rows = prefix.rows;
            prefix.layers.iter_mut().for_each(|kv| kv.truncate(rows));
        }
        run?;
        let mut normed = vec![0.0; x.len()];
        let epsilon = self.config.eps as f32;
        let scale = (&modulation.scale_out[..], None);
        modulated_layer_norm(&self.cpu, &x, scale, epsilon, &mut normed)?;
        let mut out = vec![0.0; all.len()];
        runner.linear(&normed, [(&self.proj_out, &mut out)])?;
        Ok(out
            .chunks_exact((tokens * channels).max(1))
            .map(<[f32]>::to_vec)
            .collect())
    }

    /// All blocks over `x: [rows, hidden]`; keys and values of the rows are added to their caches.
    fn run(
        &self,
        runner: &mut Runner,
        x: &mut [f32],
        rows: &Rows,
        (modulation, prefixes): (&Modulation, &mut [&mut Prefix]),
        cancel: &CancelToken,
    ) -> Result<(), PictureError> {
        let (hidden, head_dim) = (self.hidden(), self.config.attention_head_dim);
        let epsilon = self.config.eps as f32;
        let spec = AttentionSpec {
            heads: self.config.num_attention_heads,
            kv_heads: self.config.num_attention_heads,
            head_dim,
            scale: (1.0 / (head_dim as f64).sqrt()) as f32,
            window: None,
        };
        let inner = hidden * self.config.mlp_ratio;
        let len = x.len();
        let mut normed = vec![0.0; len];
        let (mut q, mut k, mut v) = (vec![0.0; len], vec![0.0; len], vec![0.0; len]);
        let mut mixed = vec![0.0; len];
        let mut gate = vec![0.0; len / hidden * inner];
        let mut up = gate.clone();
        for (index, block) in self.blocks.iter().enumerate() {
            cancel.check()?;
            let scale = (&modulation.scale1[..], None);
            modulated_layer_norm(&self.cpu, x, scale, epsilon, &mut normed)?;
            runner.linear(
                &normed,
                [(&block.q, &mut q), (&block.k, &mut k), (&block.v, &mut v)],
            )?;
            for (part, norm) in [(&mut q, &block.q_norm), (&mut k, &block.k_norm)] {
                rms_norm_in_place(&self.cpu, part, norm, HEAD_EPSILON)?;
                let pairs = RopePairs::Neighbours;
                rope_rows(&self.cpu, &rows.turns, pairs, head_dim, part)?;
            }
            let pairs = k.chunks_exact(hidden).zip(v.chunks_exact(hidden));
            for (cache, (key, value)) in rows.cache.iter().zip(pairs) {
                prefixes[*cache].layers[index].push(key, value)?;
            }
            let queries: Vec<QueryRow<'_>> = rows
                .cache
                .iter()
                .zip(&rows.sees)
                .map(|(cache, sees)| QueryRow {
                    kv: &prefixes[*cache].layers[index],
                    position: *sees,
                })
                .collect();
            attention(&self.cpu, &spec, &q, &queries, &mut mixed)?;
            runner.linear(&mixed, [(&block.o, &mut normed)])?;
            gated_add(&self.cpu, x, &modulation.gate1, &normed)?;
            let scale = (&modulation.scale2[..], None);
            modulated_layer_norm(&self.cpu, x, scale, epsilon, &mut normed)?;
            runner.linear(&normed, [(&block.gate, &mut gate), (&block.up, &mut up)])?;
            silu_mul(&self.cpu, &mut gate, &up)?;
            runner.linear(&gate, [(&block.down, &mut mixed)])?;
            gated_add(&self.cpu, x, &modulation.gate2, &mixed)?;
        }
        Ok(())
    }
}

fn check(what: &'static str, got: usize) -> Result<(), TensorError> {
    expect_zero("qwen_image_21", what, got)
}
