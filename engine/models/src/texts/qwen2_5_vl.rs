//! Qwen2.5-VL as an encoder of prompts with pictures (Bai et al., arXiv 2502.13923): its vision tower looks
//! through windows, in some layers at everything.
//!
//! Checked against transformers 5.24 (`models/qwen2_5_vl/modeling_qwen2_5_vl.py`).

use engine_base::CancelToken;
use engine_nn::{Activations, Linear, ModelError, Runner};
use engine_tensor::ops::{RopeRows, Unary, activate, add, rms_norm, silu_mul};
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
struct Block {
    norm1: Vec<f32>,
    attention: VisionAttention,
    norm2: Vec<f32>,
    gate: Linear,
    up: Linear,
    down: Linear,
}

/// The vision tower.
#[derive(Debug)]
struct Tower {
    config: VisionConfig,
    cpu: Cpu,
    /// Tokens of a window, along each side.
    window: usize,
    /// Layers that see everything.
    whole: Vec<usize>,
    patch_in: Linear,
    blocks: Vec<Block>,
    norm: Vec<f32>,
    merge: [Linear; 2],
}

/// The decoder of a checkpoint and its tower, where it has one.
pub(super) fn load(
    tensors: &Tensors<'_>,
    json: &Value,
    cpu: &Cpu,
) -> Result<(VlText, Option<Box<dyn VlTower>>), LoadError> {
    let config = VlTextConfig::of(json, AxisOrder::Blocks)?;
    let text = VlText::load(&super::language_tensors(tensors), &config, cpu)?;
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
        let window_px = part["window_size"].as_u64().unwrap_or(0) as usize;
        let window = window_px / config.token_px();
        if window == 0 {
            let expected = "at least a token's pixels";
            return Err(wrong("window_size", window_px, expected));
        }
        let whole = serde_json::from_value(part["fullatt_block_indexes"].clone());
        let whole = whole.map_err(|_other| {
            let got = &part["fullatt_block_indexes"];
            wrong("fullatt_block_indexes", got, "a list of whole numbers")
        })?;
        let (hidden, inner) = (config.hidden, config.inner);
        let mut blocks = Vec::new();
        for index in 0..config.depth {
            let block = tensors.under(format!("blocks.{index}"));
            blocks.push(Block {
                norm1: block.values("norm1.weight", &[hidden])?,
                attention: VisionAttention::load(&block.under("attn"), hidden)?,
                norm2: block.values("norm2.weight", &[hidden])?,
                gate: block.biased("mlp.gate_proj", inner, hidden)?,
                up: block.biased("mlp.up_proj", inner, hidden)?,
                down: block.biased("mlp.down_proj", hidden, inner)?,
            });
        }
        let wide = hidden * config.merge * config.merge;
        Ok(Self {
            window,
            whole,
            patch_in: tensors.flat("patch_embed.proj", hidden, config.patch_values())?,
            blocks,
            norm: tensors.values("merger.ln_q.weight", &[hidden])?,
            merge: [
                tensors.biased("merger.mlp.0", wide, wide)?,
                tensors.biased("merger.mlp.2", config.out, wide)?,
            ],
            config,
            cpu: cpu.clone(),
        })
    }

    fn normed(&self, x: &[f32], weight: &[f32]) -> Result<Vec<f32>, TensorError> {
        let mut out = vec![0.0; x.len()];
        rms_norm(&self.cpu, x, weight, EPSILON, &mut out)?;
        Ok(out)
    }

    fn block(
        &self,
        runner: &mut Runner,
        block: &Block,
        x: &mut [f32],
        how: (&RopeRows, &[usize]),
    ) -> Result<(), TensorError> {
        let normed = self.normed(x, &block.norm1)?;
        let out = block.attention.run(runner, &self.config, &normed, how)?;
        add(&self.cpu, x, &out)?;
        let normed = self.normed(x, &block.norm2)?;
        let mut gate = vec![0.0; x.len() / self.config.hidden * self.config.inner];
        let mut up = gate.clone();
        runner.linear(&normed, [(&block.gate, &mut gate), (&block.up, &mut up)])?;
        silu_mul(&self.cpu, &mut gate, &up)?;
        let mut out = vec![0.0; x.len()];
        runner.linear(&gate, [(&block.down, &mut out)])?;
        add(&self.cpu, x, &out)
    }

    fn merged(&self, runner: &mut Runner, x: &[f32]) -> Result<Vec<f32>, TensorError> {
        let normed = self.normed(x, &self.norm)?;
        let mut inner = vec![0.0; x.len()];
        runner.linear(&normed, [(&self.merge[0], &mut inner)])?;
        activate(&self.cpu, Unary::Gelu, &mut inner);
        let rows = x.len() / self.merge[0].weights().cols();
        let mut out = vec![0.0; rows * self.config.out];
        runner.linear(&inner, [(&self.merge[1], &mut out)])?;
        Ok(out)
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
        let turns = self.config.turns(&places);
        let side = self.window * self.config.merge;
        let across = size.1.div_ceil(side);
        let windows: Vec<usize> = places
            .iter()
            .map(|(row, column)| row / side * across + column / side)
            .collect();
        let all = vec![0; places.len()];
        for (index, block) in self.blocks.iter().enumerate() {
            cancel.check()?;
            let groups = if self.whole.contains(&index) {
                &all
            } else {
                &windows
            };
            self.block(&mut runner, block, &mut x, (&turns, groups))
                .map_err(fault)?;
        }
        let states = self.merged(&mut runner, &x).map_err(fault)?;
        Ok(VlPicture {
            states,
            deep: Vec::new(),
        })
    }
}
