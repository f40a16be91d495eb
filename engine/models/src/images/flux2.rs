//! FLUX.2: blocks of two streams, then blocks of one, modulation shared by all blocks of a kind.
//!
//! Checked against diffusers 0.42.1 (`transformer_flux2.py`).

use engine_base::CancelToken;
use engine_nn::{
    Activations, AxesRope, Linear, Runner, TimestepWaves, modulated_layer_norm, rms_norm_in_place,
};
use engine_tensor::ops::{RopePairs, RopeRows, Unary, activate, gated_add, rope_rows};
use engine_tensor::{Cpu, TensorError};
use serde::Deserialize;

use super::kit::{columns, expect_zero, full_attention, gated_halves};
use super::tensors::Tensors;
use crate::error::{SIZE_CAP, check_axes, check_sizes, wrong};
use crate::{LoadError, PictureError};

const HEAD_EPSILON: f32 = 1e-6;

/// `transformer/config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Flux2Config {
    /// Channels of a token.
    pub in_channels: usize,
    /// The same when absent.
    pub out_channels: Option<usize>,
    /// Blocks of two streams.
    pub num_layers: usize,
    /// Blocks of one stream.
    pub num_single_layers: usize,
    /// Elements of a head.
    pub attention_head_dim: usize,
    /// Heads.
    pub num_attention_heads: usize,
    /// Elements of a text state.
    pub joint_attention_dim: usize,
    /// Elements of the timestep's waves.
    #[serde(default = "waves")]
    pub timestep_guidance_channels: usize,
    /// Inner size of the feed-forward layers in hidden sizes.
    pub mlp_ratio: f64,
    /// Turned elements of a head for time, row, column and index.
    pub axes_dims_rope: [usize; 4],
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// Epsilon of the layer norms.
    pub eps: f64,
    /// Whether guidance is an input.
    #[serde(default)]
    pub guidance_embeds: bool,
}

fn waves() -> usize {
    256
}

impl Flux2Config {
    fn hidden(&self) -> usize {
        self.num_attention_heads * self.attention_head_dim
    }

    fn inner(&self) -> usize {
        (self.hidden() as f64 * self.mlp_ratio) as usize
    }

    fn check(&self) -> Result<(), LoadError> {
        let sizes = [
            ("in_channels", self.in_channels),
            ("attention_head_dim", self.attention_head_dim),
            ("num_attention_heads", self.num_attention_heads),
            ("joint_attention_dim", self.joint_attention_dim),
            (
                "timestep_guidance_channels",
                self.timestep_guidance_channels,
            ),
        ];
        check_sizes(sizes)?;
        if self.num_layers > SIZE_CAP || self.num_single_layers > SIZE_CAP {
            let got = self.num_layers.max(self.num_single_layers).to_string();
            return Err(wrong("num_layers", got, "at most 2^20"));
        }
        if !(self.mlp_ratio > 0.0 && self.mlp_ratio < 1000.0) {
            return Err(wrong(
                "mlp_ratio",
                self.mlp_ratio.to_string(),
                "a number over 0",
            ));
        }
        check_axes(
            "axes_dims_rope",
            &self.axes_dims_rope,
            self.attention_head_dim,
        )?;
        if self.guidance_embeds {
            return Err(wrong("guidance_embeds", "true".to_owned(), "false (klein)"));
        }
        Ok(())
    }
}

/// Queries, keys and values of one stream with the norms of their heads, and the way out.
#[derive(Debug)]
struct Stream {
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    q_norm: Vec<f32>,
    k_norm: Vec<f32>,
    ff_in: Linear,
    ff_out: Linear,
}

#[derive(Debug)]
struct Single {
    fused: Linear,
    out: Linear,
    q_norm: Vec<f32>,
    k_norm: Vec<f32>,
}

/// Shift, scale and gate.
struct Modulation {
    shift: Vec<f32>,
    scale: Vec<f32>,
    gate: Vec<f32>,
}

/// The transformer.
#[derive(Debug)]
pub struct Flux2 {
    config: Flux2Config,
    cpu: Cpu,
    rope: AxesRope,
    image_in: Linear,
    text_in: Linear,
    time: [Linear; 2],
    image_modulation: Linear,
    text_modulation: Linear,
    single_modulation: Linear,
    /// Text, then image.
    double: Vec<[Stream; 2]>,
    single: Vec<Single>,
    norm_out: Linear,
    proj_out: Linear,
}

/// Rows of a stream and where they are: time, row, column, index.
#[derive(Debug, Clone, Copy)]
pub struct PlacedRows<'a> {
    /// `[rows, channels]`.
    pub rows: &'a [f32],
    /// One for each row.
    pub places: &'a [[f64; 4]],
}

impl Flux2 {
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        config: &Flux2Config,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        config.check()?;
        let (hidden, inner, head_dim) =
            (config.hidden(), config.inner(), config.attention_head_dim);
        let mut double = Vec::new();
        for index in 0..config.num_layers {
            let block = tensors.under(format!("transformer_blocks.{index}"));
            let attention = block.under("attn");
            let stream = |names: [&str; 4], norms: [&str; 2], ff: &str| -> Result<_, LoadError> {
                let square = |name: &str| attention.linear(name, hidden, hidden);
                let norm = |name: &str| attention.values(&format!("{name}.weight"), &[head_dim]);
                Ok(Stream {
                    q: square(names[0])?,
                    k: square(names[1])?,
                    v: square(names[2])?,
                    o: square(names[3])?,
                    q_norm: norm(norms[0])?,
                    k_norm: norm(norms[1])?,
                    ff_in: block.linear(&format!("{ff}.linear_in"), 2 * inner, hidden)?,
                    ff_out: block.linear(&format!("{ff}.linear_out"), hidden, inner)?,
                })
            };
            let text = ["add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"];
            let image = ["to_q", "to_k", "to_v", "to_out.0"];
            double.push([
                stream(text, ["norm_added_q", "norm_added_k"], "ff_context")?,
                stream(image, ["norm_q", "norm_k"], "ff")?,
            ]);
        }
        let mut single = Vec::new();
        for index in 0..config.num_single_layers {
            let block = tensors.under(format!("single_transformer_blocks.{index}.attn"));
            single.push(Single {
                fused: block.linear("to_qkv_mlp_proj", 3 * hidden + 2 * inner, hidden)?,
                out: block.linear("to_out", hidden, hidden + inner)?,
                q_norm: block.values("norm_q.weight", &[head_dim])?,
                k_norm: block.values("norm_k.weight", &[head_dim])?,
            });
        }
        let time = tensors.under("time_guidance_embed.timestep_embedder");
        let waves = config.timestep_guidance_channels;
        Ok(Self {
            rope: AxesRope::new(&config.axes_dims_rope, config.rope_theta)?,
            image_in: tensors.linear("x_embedder", hidden, config.in_channels)?,
            text_in: tensors.linear("context_embedder", hidden, config.joint_attention_dim)?,
            time: [
                time.linear("linear_1", hidden, waves)?,
                time.linear("linear_2", hidden, hidden)?,
            ],
            image_modulation: tensors.linear(
                "double_stream_modulation_img.linear",
                6 * hidden,
                hidden,
            )?,
            text_modulation: tensors.linear(
                "double_stream_modulation_txt.linear",
                6 * hidden,
                hidden,
            )?,
            single_modulation: tensors.linear(
                "single_stream_modulation.linear",
                3 * hidden,
                hidden,
            )?,
            double,
            single,
            norm_out: tensors.linear("norm_out.linear", 2 * hidden, hidden)?,
            proj_out: tensors.linear(
                "proj_out",
                config.out_channels.unwrap_or(config.in_channels),
                hidden,
            )?,
            config: config.clone(),
            cpu: cpu.clone(),
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &Flux2Config {
        &self.config
    }

    /// The velocity of `image` (references behind it are part of its rows) at `timestep` (0..1):
    /// `[rows, out_channels]`.
    ///
    /// # Errors
    /// `Tensor` for rows that are not whole or without places; `Cancelled`.
    pub fn velocity(
        &self,
        image: PlacedRows<'_>,
        text: PlacedRows<'_>,
        timestep: f32,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, PictureError> {
        let hidden = self.config.hidden();
        for (rows, channels) in [
            (&image, self.config.in_channels),
            (&text, self.config.joint_attention_dim),
        ] {
            let wanted = rows.places.len() * channels;
            expect_zero("flux2", "length of rows less their places'", {
                rows.rows.len().abs_diff(wanted)
            })?;
        }
        let mut runner = Runner::new(self.cpu.clone(), Activations::Exact);
        let (texts, images) = (text.places.len(), image.places.len());
        let mut x = vec![0.0; (texts + images) * hidden];
        let (of_text, of_image) = x.split_at_mut(texts * hidden);
        runner.linear(text.rows, [(&self.text_in, of_text)])?;
        runner.linear(image.rows, [(&self.image_in, of_image)])?;
        let places = [text.places, image.places].concat();
        let turns = self.rope.rows(&places);
        let mut time = TimestepWaves::of_unit(self.config.timestep_guidance_channels).of(timestep);
        for linear in &self.time {
            let mut out = vec![0.0; hidden];
            runner.linear(&time, [(linear, &mut out)])?;
            activate(&self.cpu, Unary::Silu, &mut out);
            time = out;
        }
        // `time` went through the silu before the modulations' linears already.
        let of_text = self.modulations(&mut runner, &self.text_modulation, &time)?;
        let of_image = self.modulations(&mut runner, &self.image_modulation, &time)?;
        for block in &self.double {
            cancel.check()?;
            self.double(
                &mut runner,
                block,
                (&mut x, texts),
                [&of_text, &of_image],
                &turns,
            )?;
        }
        let of_single = self.modulations(&mut runner, &self.single_modulation, &time)?;
        for block in &self.single {
            cancel.check()?;
            self.single(&mut runner, block, &mut x, &of_single, &turns)?;
        }
        let x = &x[texts * hidden..];
        let mut last = vec![0.0; 2 * hidden];
        runner.linear(&time, [(&self.norm_out, &mut last)])?;
        let (scale, shift) = last.split_at(hidden);
        let mut normed = vec![0.0; x.len()];
        let epsilon = self.config.eps as f32;
        modulated_layer_norm(&self.cpu, x, (scale, Some(shift)), epsilon, &mut normed)?;
        let mut out = vec![0.0; images * self.proj_out.weights().rows()];
        runner.linear(&normed, [(&self.proj_out, &mut out)])?;
        Ok(out)
    }

    fn modulations(
        &self,
        runner: &mut Runner,
        linear: &Linear,
        time: &[f32],
    ) -> Result<Vec<Modulation>, TensorError> {
        let hidden = self.config.hidden();
        let mut all = vec![0.0; linear.weights().rows()];
        runner.linear(time, [(linear, &mut all)])?;
        let of = |part: &[f32]| Modulation {
            shift: part[..hidden].to_vec(),
            scale: part[hidden..2 * hidden].to_vec(),
            gate: part[2 * hidden..].to_vec(),
        };
        Ok(all.chunks_exact(3 * hidden).map(of).collect())
    }

    fn modulated(&self, x: &[f32], by: &Modulation) -> Result<Vec<f32>, TensorError> {
        let mut normed = vec![0.0; x.len()];
        let epsilon = self.config.eps as f32;
        let how = (&by.scale[..], Some(&by.shift[..]));
        modulated_layer_norm(&self.cpu, x, how, epsilon, &mut normed)?;
        Ok(normed)
    }

    /// One block of two streams over `x: [texts + images, hidden]`.
    fn double(
        &self,
        runner: &mut Runner,
        block: &[Stream; 2],
        (x, texts): (&mut [f32], usize),
        modulations: [&[Modulation]; 2],
        turns: &RopeRows,
    ) -> Result<(), TensorError> {
        let (hidden, inner) = (self.config.hidden(), self.config.inner());
        let shape = (
            self.config.num_attention_heads,
            self.config.attention_head_dim,
        );
        let (mut q, mut k, mut v) = (Vec::new(), Vec::new(), Vec::new());
        let (of_text, of_image) = x.split_at(texts * hidden);
        for ((stream, x), by) in block.iter().zip([of_text, of_image]).zip(modulations) {
            let normed = self.modulated(x, &by[0])?;
            let mut parts = [normed.clone(), normed.clone(), normed.clone()];
            let [a, b, c] = &mut parts;
            runner.linear(&normed, [(&stream.q, a), (&stream.k, b), (&stream.v, c)])?;
            let [mut a, mut b, c] = parts;
            rms_norm_in_place(&self.cpu, &mut a, &stream.q_norm, HEAD_EPSILON)?;
            rms_norm_in_place(&self.cpu, &mut b, &stream.k_norm, HEAD_EPSILON)?;
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
        for ((stream, (x, mixed)), by) in block.iter().zip(streams).zip(modulations) {
            let mut out = vec![0.0; mixed.len()];
            runner.linear(mixed, [(&stream.o, &mut out)])?;
            gated_add(&self.cpu, x, &by[0].gate, &out)?;
            let normed = self.modulated(x, &by[1])?;
            let mut wide = vec![0.0; x.len() / hidden * 2 * inner];
            runner.linear(&normed, [(&stream.ff_in, &mut wide)])?;
            let gated = gated_halves(&self.cpu, &wide, inner)?;
            runner.linear(&gated, [(&stream.ff_out, &mut out)])?;
            gated_add(&self.cpu, x, &by[1].gate, &out)?;
        }
        Ok(())
    }

    /// One block of one stream over `x: [rows, hidden]`: attention and feed-forward side by side.
    fn single(
        &self,
        runner: &mut Runner,
        block: &Single,
        x: &mut [f32],
        by: &[Modulation],
        turns: &RopeRows,
    ) -> Result<(), TensorError> {
        let (hidden, inner) = (self.config.hidden(), self.config.inner());
        let shape = (
            self.config.num_attention_heads,
            self.config.attention_head_dim,
        );
        let normed = self.modulated(x, &by[0])?;
        let wide = 3 * hidden + 2 * inner;
        let rows = x.len() / hidden;
        let mut fused = vec![0.0; rows * wide];
        runner.linear(&normed, [(&block.fused, &mut fused)])?;
        let part = |at: usize| columns(&fused, wide, at * hidden..(at + 1) * hidden);
        let (mut q, mut k, v) = (part(0), part(1), part(2));
        for (part, norm) in [(&mut q, &block.q_norm), (&mut k, &block.k_norm)] {
            rms_norm_in_place(&self.cpu, part, norm, HEAD_EPSILON)?;
            rope_rows(&self.cpu, turns, RopePairs::Neighbours, shape.1, part)?;
        }
        let mixed = full_attention(&self.cpu, shape, &q, &k, &v)?;
        let gated = gated_halves(&self.cpu, &columns(&fused, wide, 3 * hidden..wide), inner)?;
        let pairs = mixed
            .chunks_exact(hidden)
            .zip(gated.chunks_exact(inner.max(1)));
        let both: Vec<f32> = pairs
            .flat_map(|(mixed, gated)| mixed.iter().chain(gated))
            .copied()
            .collect();
        let mut out = vec![0.0; x.len()];
        runner.linear(&both, [(&block.out, &mut out)])?;
        gated_add(&self.cpu, x, &by[0].gate, &out)
    }
}
