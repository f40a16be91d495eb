//! Qwen3-VL as an encoder of prompts with pictures (Qwen team, arXiv 2511.21631): what its vision tower sees
//! early is added to the first layers of its language side too.
//!
//! Checked against transformers 5.24 (`models/qwen3_vl/modeling_qwen3_vl.py`).

use engine_base::CancelToken;
use engine_nn::{Activations, Linear, ModelError, Runner};
use engine_tensor::ops::{Unary, activate, add, layer_norm};
use engine_tensor::{Cpu, TensorError};
use serde_json::Value;

use super::vision::{VisionAttention, VisionConfig};
use super::vl_text::{AxisOrder, VlText, VlTextConfig, fault};
use super::{VlPicture, VlTower};
use crate::LoadError;
use crate::error::wrong;
use crate::images::Tensors;

const EPSILON: f32 = 1e-6;

#[derive(Debug)]
struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Norm {
    fn load(tensors: &Tensors<'_>, name: &str, len: usize) -> Result<Self, LoadError> {
        Ok(Self {
            weight: tensors.values(&format!("{name}.weight"), &[len])?,
            bias: tensors.values(&format!("{name}.bias"), &[len])?,
        })
    }

    fn run(&self, cpu: &Cpu, x: &[f32]) -> Result<Vec<f32>, TensorError> {
        let mut out = vec![0.0; x.len()];
        layer_norm(cpu, x, (&self.weight, &self.bias), EPSILON, &mut out)?;
        Ok(out)
    }
}

#[derive(Debug)]
struct Block {
    norm1: Norm,
    attention: VisionAttention,
    norm2: Norm,
    up: Linear,
    down: Linear,
}

/// The patches of a token to one state; the norm goes over single patches or over all of a token.
#[derive(Debug)]
struct Merger {
    norm: Norm,
    up: Linear,
    down: Linear,
}

impl Merger {
    fn load(tensors: &Tensors<'_>, config: &VisionConfig, deep: bool) -> Result<Self, LoadError> {
        let wide = config.hidden * config.merge * config.merge;
        let normed = if deep { wide } else { config.hidden };
        Ok(Self {
            norm: Norm::load(tensors, "norm", normed)?,
            up: tensors.biased("linear_fc1", wide, wide)?,
            down: tensors.biased("linear_fc2", config.out, wide)?,
        })
    }

    fn run(&self, runner: &mut Runner, x: &[f32]) -> Result<Vec<f32>, TensorError> {
        let cpu = runner.cpu().clone();
        let normed = self.norm.run(&cpu, x)?;
        let mut inner = vec![0.0; x.len()];
        runner.linear(&normed, [(&self.up, &mut inner)])?;
        activate(&cpu, Unary::Gelu, &mut inner);
        let rows = x.len() / self.up.weights().cols();
        let mut out = vec![0.0; rows * self.down.weights().rows()];
        runner.linear(&inner, [(&self.down, &mut out)])?;
        Ok(out)
    }
}

/// The vision tower.
#[derive(Debug)]
pub(super) struct Tower {
    config: VisionConfig,
    cpu: Cpu,
    patch_in: Linear,
    /// `[side, side, hidden]`.
    places: Vec<f32>,
    side: usize,
    blocks: Vec<Block>,
    merger: Merger,
    /// Blocks after which there is a state for the language side, and its merger.
    deep: Vec<(usize, Merger)>,
}

/// The decoder of a checkpoint and its tower, where it has one.
pub(super) fn load(
    tensors: &Tensors<'_>,
    json: &Value,
    cpu: &Cpu,
) -> Result<(VlText, Option<Box<dyn VlTower>>), LoadError> {
    let config = VlTextConfig::of(json, AxisOrder::Turns)?;
    let text = super::language_tensors(tensors);
    let text = VlText::load(&text, &config, cpu)?;
    let tower: Option<Box<dyn VlTower>> =
        match super::vision_tensors(tensors, "patch_embed.proj.weight") {
            Some(tensors) => Some(Box::new(Tower::load(&tensors, json, cpu)?)),
            None => None,
        };
    Ok((text, tower))
}

impl Tower {
    fn load(tensors: &Tensors<'_>, json: &Value, cpu: &Cpu) -> Result<Self, LoadError> {
        let config = VisionConfig::of(json)?;
        let part = &json["vision_config"];
        let count = part["num_position_embeddings"].as_u64().unwrap_or(0) as usize;
        let side = count.isqrt();
        if side == 0 || side * side != count || side > 4096 {
            return Err(wrong("num_position_embeddings", count, "a square"));
        }
        let wanted: Vec<usize> = serde_json::from_value(part["deepstack_visual_indexes"].clone())
            .map_err(|_other| {
            let got = &part["deepstack_visual_indexes"];
            wrong("deepstack_visual_indexes", got, "a list of whole numbers")
        })?;
        if let Some(beyond) = wanted.iter().find(|index| **index >= config.depth) {
            return Err(wrong("deepstack_visual_indexes", beyond, "less than depth"));
        }
        let hidden = config.hidden;
        let mut blocks = Vec::new();
        for index in 0..config.depth {
            let block = tensors.under(format!("blocks.{index}"));
            blocks.push(Block {
                norm1: Norm::load(&block, "norm1", hidden)?,
                attention: VisionAttention::load(&block.under("attn"), hidden)?,
                norm2: Norm::load(&block, "norm2", hidden)?,
                up: block.biased("mlp.linear_fc1", config.inner, hidden)?,
                down: block.biased("mlp.linear_fc2", hidden, config.inner)?,
            });
        }
        let mut deep = Vec::new();
        for (index, block) in wanted.into_iter().enumerate() {
            let tensors = tensors.under(format!("deepstack_merger_list.{index}"));
            deep.push((block, Merger::load(&tensors, &config, true)?));
        }
        Ok(Self {
            patch_in: tensors.flat("patch_embed.proj", hidden, config.patch_values())?,
            places: tensors.values("pos_embed.weight", &[count, hidden])?,
            side,
            blocks,
            merger: Merger::load(&tensors.under("merger"), &config, false)?,
            deep,
            config,
            cpu: cpu.clone(),
        })
    }

    /// The table of places stretched over `size` patches, between its entries by straight lines.
    fn place(&self, (row, column): (usize, usize), (height, width): (usize, usize)) -> Vec<f32> {
        let along = |at: usize, of: usize| -> (usize, usize, f32) {
            let last = (self.side - 1) as f32;
            let at = if of < 2 {
                0.0
            } else {
                at as f32 * (last / (of - 1) as f32)
            };
            let low = (at as usize).min(self.side - 1);
            (low, (low + 1).min(self.side - 1), at - low as f32)
        };
        let (top, bottom, down) = along(row, height);
        let (left, right, across) = along(column, width);
        let hidden = self.config.hidden;
        let mut out = vec![0.0; hidden];
        for (y, x, share) in [
            (top, left, (1.0 - down) * (1.0 - across)),
            (top, right, (1.0 - down) * across),
            (bottom, left, down * (1.0 - across)),
            (bottom, right, down * across),
        ] {
            let entry = &self.places[(y * self.side + x) * hidden..][..hidden];
            out.iter_mut()
                .zip(entry)
                .for_each(|(out, e)| *out += share * e);
        }
        out
    }

    fn block(
        &self,
        runner: &mut Runner,
        block: &Block,
        x: &mut [f32],
        how: (&engine_tensor::ops::RopeRows, &[usize]),
    ) -> Result<(), TensorError> {
        let normed = block.norm1.run(&self.cpu, x)?;
        let out = block.attention.run(runner, &self.config, &normed, how)?;
        add(&self.cpu, x, &out)?;
        let normed = block.norm2.run(&self.cpu, x)?;
        let mut inner = vec![0.0; x.len() / self.config.hidden * self.config.inner];
        runner.linear(&normed, [(&block.up, &mut inner)])?;
        activate(&self.cpu, Unary::GeluTanh, &mut inner);
        let mut out = vec![0.0; x.len()];
        runner.linear(&inner, [(&block.down, &mut out)])?;
        add(&self.cpu, x, &out)
    }
}

impl VlTower for Tower {
    fn config(&self) -> &VisionConfig {
        &self.config
    }

    fn see(
        &self,
        patches: &[f32],
        size: (usize, usize),
        cancel: &CancelToken,
    ) -> Result<VlPicture, ModelError> {
        let mut runner = Runner::new(self.cpu.clone(), Activations::Exact);
        let places = self.config.places(size);
        let mut x = vec![0.0; places.len() * self.config.hidden];
        runner
            .linear(patches, [(&self.patch_in, &mut x)])
            .map_err(fault)?;
        for (row, place) in x.chunks_exact_mut(self.config.hidden).zip(&places) {
            let by = self.place(*place, size);
            row.iter_mut().zip(&by).for_each(|(x, by)| *x += by);
        }
        let turns = self.config.turns(&places);
        let groups = vec![0; places.len()];
        let mut deep = Vec::new();
        for (index, block) in self.blocks.iter().enumerate() {
            cancel.check()?;
            self.block(&mut runner, block, &mut x, (&turns, &groups))
                .map_err(fault)?;
            for (_, merger) in self.deep.iter().filter(|(after, _)| *after == index) {
                deep.push(merger.run(&mut runner, &x).map_err(fault)?);
            }
        }
        let states = self.merger.run(&mut runner, &x).map_err(fault)?;
        Ok(VlPicture { states, deep })
    }
}
