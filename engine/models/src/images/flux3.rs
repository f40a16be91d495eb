//! FLUX.3: blocks of each kind of rows alone, then blocks of all together; every block runs attention and
//! feed-forward side by side. Distilled models are told the timestep that they jump to.
//!
//! Checked against diffusers 0.42.1 (`transformer_flux3.py`).

use engine_base::CancelToken;
use engine_nn::{
    Activations, AxesRope, Linear, Runner, TimestepWaves, modulated_layer_norm, rms_norm_in_place,
};
use engine_tensor::ops::{RopePairs, RopeRows, Unary, activate, add, gated_add, rope_rows};
use engine_tensor::{Cpu, TensorError};
use serde::Deserialize;

use super::PlacedRows;
use super::kit::{expect_zero, full_attention, gated_halves};
use super::tensors::Tensors;
use crate::error::{SIZE_CAP, check_axes, check_sizes, wrong};
use crate::{LoadError, PictureError};

/// Kinds of rows, in the order in which they stand together: text, picture, references.
const MODES: [&str; 3] = ["txt", "image", "image_cond"];
const TEXT: usize = 0;
const IMAGE: usize = 1;

/// `transformer/config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Flux3Config {
    /// Channels of a token.
    pub in_channels: usize,
    /// Channels of a reference's token.
    pub cond_in_channels: usize,
    /// Blocks of each kind of rows.
    pub num_layers: usize,
    /// Blocks of all together.
    pub num_single_layers: usize,
    /// Elements of a head.
    pub attention_head_dim: usize,
    /// Heads.
    pub num_attention_heads: usize,
    /// Elements of a text state.
    pub joint_attention_dim: usize,
    /// Elements of a timestep's waves.
    pub timestep_channels: usize,
    /// Inner size of the feed-forward layers in hidden sizes.
    pub mlp_ratio: f64,
    /// Turned elements of a head for time, row, column and index.
    pub axes_dims_rope: [usize; 4],
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// Epsilon of all norms.
    pub eps: f64,
    /// Whether the timestep that is jumped to is an input.
    #[serde(default)]
    pub flow_map: bool,
}

impl Flux3Config {
    fn hidden(&self) -> usize {
        self.num_attention_heads * self.attention_head_dim
    }

    fn inner(&self) -> usize {
        (self.hidden() as f64 * self.mlp_ratio) as usize
    }

    fn check(&self) -> Result<(), LoadError> {
        let sizes = [
            ("in_channels", self.in_channels),
            ("cond_in_channels", self.cond_in_channels),
            ("attention_head_dim", self.attention_head_dim),
            ("num_attention_heads", self.num_attention_heads),
            ("joint_attention_dim", self.joint_attention_dim),
            ("timestep_channels", self.timestep_channels),
            ("num_single_layers", self.num_single_layers),
        ];
        check_sizes(sizes)?;
        if self.num_layers > SIZE_CAP {
            return Err(wrong(
                "num_layers",
                self.num_layers.to_string(),
                "at most 2^20",
            ));
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
    ff_in: Linear,
    ff_out: Linear,
}

/// One kind of rows.
#[derive(Debug)]
struct Mode {
    embed: Linear,
    early: Linear,
    joint: Linear,
    blocks: Vec<Block>,
}

/// Shift, scale and gate of one kind of rows.
struct Modulation {
    shift: Vec<f32>,
    scale: Vec<f32>,
    gate: Vec<f32>,
}

/// The transformer.
#[derive(Debug)]
pub struct Flux3 {
    config: Flux3Config,
    cpu: Cpu,
    rope: AxesRope,
    modes: [Mode; 3],
    time: [Linear; 2],
    target: Option<[Linear; 2]>,
    blocks: Vec<Block>,
    norm_out: Linear,
    proj_out: Linear,
}

/// What a FLUX.3 network reads.
#[derive(Debug, Clone, Copy)]
pub struct Flux3Input<'a> {
    /// The picture's tokens.
    pub image: PlacedRows<'a>,
    /// Text states.
    pub text: PlacedRows<'a>,
    /// Tokens of references, where there are any.
    pub references: Option<PlacedRows<'a>>,
    /// 0..1.
    pub timestep: f32,
    /// The timestep that is jumped to: for distilled models, and only for them.
    pub target: Option<f32>,
}

fn load_block(tensors: &Tensors<'_>, config: &Flux3Config) -> Result<Block, LoadError> {
    let (hidden, inner) = (config.hidden(), config.inner());
    let square = |name: &str| tensors.linear(&format!("attn.{name}"), hidden, hidden);
    let norm =
        |name: &str| tensors.values(&format!("attn.{name}.weight"), &[config.attention_head_dim]);
    Ok(Block {
        q: square("to_q")?,
        k: square("to_k")?,
        v: square("to_v")?,
        o: square("to_out.0")?,
        q_norm: norm("norm_q")?,
        k_norm: norm("norm_k")?,
        ff_in: tensors.linear("ff.linear_in", 2 * inner, hidden)?,
        ff_out: tensors.linear("ff.linear_out", hidden, inner)?,
    })
}

impl Flux3 {
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        config: &Flux3Config,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        config.check()?;
        let hidden = config.hidden();
        let blocks = |list: &str, count: usize| -> Result<Vec<Block>, LoadError> {
            let mut loaded = Vec::new();
            for index in 0..count {
                loaded.push(load_block(
                    &tensors.under(format!("{list}.{index}")),
                    config,
                )?);
            }
            Ok(loaded)
        };
        let mode = |at: usize| -> Result<Mode, LoadError> {
            let name = MODES[at];
            let (embed, list, channels) = match at {
                TEXT => (
                    "context_embedder".to_owned(),
                    "txt_mode_blocks".to_owned(),
                    config.joint_attention_dim,
                ),
                IMAGE => (
                    format!("x_embedders.{name}"),
                    format!("mode_blocks.{name}"),
                    config.in_channels,
                ),
                _ => (
                    format!("x_embedders.{name}"),
                    format!("mode_blocks.{name}"),
                    config.cond_in_channels,
                ),
            };
            let modulation = |kind: &str| {
                let name = format!("{kind}_stream_modulations.{name}.linear");
                tensors.linear(&name, 3 * hidden, hidden)
            };
            Ok(Mode {
                embed: tensors.linear(&embed, hidden, channels)?,
                early: modulation("early")?,
                joint: modulation("single")?,
                blocks: blocks(&list, config.num_layers)?,
            })
        };
        let time = |name: &str| -> Result<[Linear; 2], LoadError> {
            let time = tensors.under(name);
            Ok([
                time.linear("linear_1", hidden, config.timestep_channels)?,
                time.linear("linear_2", hidden, hidden)?,
            ])
        };
        Ok(Self {
            rope: AxesRope::new(&config.axes_dims_rope, config.rope_theta)?,
            modes: [mode(0)?, mode(1)?, mode(2)?],
            time: time("timestep_embedder")?,
            target: match config.flow_map {
                true => Some(time("target_timestep_embedder")?),
                false => None,
            },
            blocks: blocks("single_transformer_blocks", config.num_single_layers)?,
            norm_out: tensors.linear("norm_out.linear", 2 * hidden, hidden)?,
            proj_out: tensors.linear("proj_out", config.in_channels, hidden)?,
            config: config.clone(),
            cpu: cpu.clone(),
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &Flux3Config {
        &self.config
    }

    /// The velocity of the picture: `[rows, in_channels]`.
    ///
    /// # Errors
    /// `Tensor` for rows that are not whole or without places, or a target where none belongs;
    /// `Cancelled`.
    pub fn velocity(
        &self,
        input: &Flux3Input<'_>,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, PictureError> {
        const OP: &str = "flux3";
        let hidden = self.config.hidden();
        let none = PlacedRows {
            rows: &[],
            places: &[],
        };
        let rows = [input.text, input.image, input.references.unwrap_or(none)];
        for (rows, mode) in rows.iter().zip(&self.modes) {
            let wanted = rows.places.len() * mode.embed.weights().cols();
            let difference = rows.rows.len().abs_diff(wanted);
            expect_zero(OP, "length of rows less their places'", difference)?;
        }
        let odd = usize::from(input.target.is_some() != self.target.is_some());
        expect_zero(OP, "targets that belong to another kind of model", odd)?;
        let mut runner = Runner::new(self.cpu.clone(), Activations::Exact);
        let now = self.embedded(&mut runner, input.timestep, input.target)?;
        let still = self.embedded(&mut runner, 0.0, input.target)?;
        let (mut x, mut turns) = (Vec::new(), RopeRows::default());
        let (mut counts, mut joint) = ([0; 3], Vec::new());
        for (at, (rows, mode)) in rows.iter().zip(&self.modes).enumerate() {
            counts[at] = rows.places.len();
            let time = if at == IMAGE { &now } else { &still };
            joint.push(self.modulation(&mut runner, &mode.joint, time)?);
            if rows.places.is_empty() {
                continue;
            }
            let mut part = vec![0.0; rows.places.len() * hidden];
            runner.linear(rows.rows, [(&mode.embed, &mut part)])?;
            let own = self.rope.rows(rows.places);
            let early = self.modulation(&mut runner, &mode.early, time)?;
            for block in &mode.blocks {
                cancel.check()?;
                let count = [rows.places.len()];
                let by = std::slice::from_ref(&early);
                self.block(&mut runner, block, &mut part, (&count, by, &own))?;
            }
            x.extend(part);
            turns.dims = own.dims;
            turns.extend(&own);
        }
        for block in &self.blocks {
            cancel.check()?;
            self.block(&mut runner, block, &mut x, (&counts, &joint, &turns))?;
        }
        let start = counts[TEXT] * hidden;
        let x = &x[start..start + counts[IMAGE] * hidden];
        let mut last = vec![0.0; 2 * hidden];
        runner.linear(&now, [(&self.norm_out, &mut last)])?;
        let (scale, shift) = last.split_at(hidden);
        let mut normed = vec![0.0; x.len()];
        let epsilon = self.config.eps as f32;
        modulated_layer_norm(&self.cpu, x, (scale, Some(shift)), epsilon, &mut normed)?;
        let mut out = vec![0.0; input.image.rows.len()];
        runner.linear(&normed, [(&self.proj_out, &mut out)])?;
        Ok(out)
    }

    /// The embedded timestep, with the target's on top where there is one, through the silu that all its
    /// readers begin with.
    fn embedded(
        &self,
        runner: &mut Runner,
        timestep: f32,
        target: Option<f32>,
    ) -> Result<Vec<f32>, TensorError> {
        let hidden = self.config.hidden();
        let mut of = |[first, second]: &[Linear; 2], t: f32| -> Result<Vec<f32>, TensorError> {
            let waves = TimestepWaves::of_unit(self.config.timestep_channels).of(t);
            let (mut inner, mut out) = (vec![0.0; hidden], vec![0.0; hidden]);
            runner.linear(&waves, [(first, &mut inner)])?;
            activate(&self.cpu, Unary::Silu, &mut inner);
            runner.linear(&inner, [(second, &mut out)])?;
            Ok(out)
        };
        let mut time = of(&self.time, timestep)?;
        if let (Some(embedder), Some(target)) = (&self.target, target) {
            add(&self.cpu, &mut time, &of(embedder, target)?)?;
        }
        activate(&self.cpu, Unary::Silu, &mut time);
        Ok(time)
    }

    fn modulation(
        &self,
        runner: &mut Runner,
        linear: &Linear,
        time: &[f32],
    ) -> Result<Modulation, TensorError> {
        let hidden = self.config.hidden();
        let mut all = vec![0.0; 3 * hidden];
        runner.linear(time, [(linear, &mut all)])?;
        Ok(Modulation {
            shift: all[..hidden].to_vec(),
            scale: all[hidden..2 * hidden].to_vec(),
            gate: all[2 * hidden..].to_vec(),
        })
    }

    /// One block over `x: [rows, hidden]`, of which the first `counts[0]` rows are modulated by
    /// `modulations[0]`, and so on.
    fn block(
        &self,
        runner: &mut Runner,
        block: &Block,
        x: &mut [f32],
        (counts, modulations, turns): (&[usize], &[Modulation], &RopeRows),
    ) -> Result<(), TensorError> {
        let hidden = self.config.hidden();
        let shape = (
            self.config.num_attention_heads,
            self.config.attention_head_dim,
        );
        let epsilon = self.config.eps as f32;
        let mut normed = vec![0.0; x.len()];
        let mut start = 0;
        for (count, by) in counts.iter().zip(modulations) {
            let range = start..start + count * hidden;
            let how = (&by.scale[..], Some(&by.shift[..]));
            modulated_layer_norm(
                &self.cpu,
                &x[range.clone()],
                how,
                epsilon,
                &mut normed[range.clone()],
            )?;
            start = range.end;
        }
        let (mut q, mut k, mut v) = (normed.clone(), normed.clone(), normed.clone());
        runner.linear(
            &normed,
            [(&block.q, &mut q), (&block.k, &mut k), (&block.v, &mut v)],
        )?;
        for (part, norm) in [(&mut q, &block.q_norm), (&mut k, &block.k_norm)] {
            rms_norm_in_place(&self.cpu, part, norm, epsilon)?;
            rope_rows(&self.cpu, turns, RopePairs::Neighbours, shape.1, part)?;
        }
        let mixed = full_attention(&self.cpu, shape, &q, &k, &v)?;
        runner.linear(&mixed, [(&block.o, &mut q)])?;
        let inner = self.config.inner();
        let mut wide = vec![0.0; x.len() / hidden * 2 * inner];
        runner.linear(&normed, [(&block.ff_in, &mut wide)])?;
        let gated = gated_halves(&self.cpu, &wide, inner)?;
        runner.linear(&gated, [(&block.ff_out, &mut k)])?;
        add(&self.cpu, &mut q, &k)?;
        let mut start = 0;
        for (count, by) in counts.iter().zip(modulations) {
            let range = start..start + count * hidden;
            gated_add(
                &self.cpu,
                &mut x[range.clone()],
                &by.gate,
                &q[range.clone()],
            )?;
            start = range.end;
        }
        Ok(())
    }
}
