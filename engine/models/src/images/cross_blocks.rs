//! Transformer blocks over the pixels of a latent that read a text, as U-Nets have them.

use engine_nn::{Linear, Runner};
use engine_tensor::ops::{Unary, activate, add, layer_norm, scaled_add};
use engine_tensor::{Cpu, Planes, TensorError};

use super::group_blocks::GroupNorm;
use super::kit::{columns, full_attention};
use super::tensors::Tensors;
use crate::LoadError;

const GROUP_EPSILON: f32 = 1e-6;
const EPSILON: f32 = 1e-5;
/// Inner size of the feed-forward layers in channels.
const RATIO: usize = 4;

/// Sizes of the blocks of one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct CrossShape {
    pub(super) channels: usize,
    pub(super) heads: usize,
    /// Elements of a text state.
    pub(super) text: usize,
    pub(super) blocks: usize,
    pub(super) groups: usize,
}

#[derive(Debug)]
struct Attention {
    norm: (Vec<f32>, Vec<f32>),
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
}

#[derive(Debug)]
struct Block {
    own: Attention,
    text: Attention,
    norm: (Vec<f32>, Vec<f32>),
    up: Linear,
    down: Linear,
}

/// Blocks between a way in and a way out, around which pixels pass.
#[derive(Debug)]
pub(super) struct CrossBlocks {
    shape: CrossShape,
    norm: GroupNorm,
    way_in: Linear,
    blocks: Vec<Block>,
    way_out: Linear,
}

fn norm(
    tensors: &Tensors<'_>,
    name: &str,
    channels: usize,
) -> Result<(Vec<f32>, Vec<f32>), LoadError> {
    let of = |part: &str| tensors.values(&format!("{name}.{part}"), &[channels]);
    Ok((of("weight")?, of("bias")?))
}

impl CrossBlocks {
    pub(super) fn load(tensors: &Tensors<'_>, shape: CrossShape) -> Result<Self, LoadError> {
        let channels = shape.channels;
        let mut blocks = Vec::new();
        for index in 0..shape.blocks {
            let block = tensors.under(format!("transformer_blocks.{index}"));
            let attention = |name: &str, before: &str, inputs: usize| -> Result<_, LoadError> {
                let inner = block.under(name);
                Ok(Attention {
                    norm: norm(&block, before, channels)?,
                    q: inner.linear("to_q", channels, channels)?,
                    k: inner.linear("to_k", channels, inputs)?,
                    v: inner.linear("to_v", channels, inputs)?,
                    o: inner.biased("to_out.0", channels, channels)?,
                })
            };
            blocks.push(Block {
                own: attention("attn1", "norm1", channels)?,
                text: attention("attn2", "norm2", shape.text)?,
                norm: norm(&block, "norm3", channels)?,
                up: block.biased("ff.net.0.proj", 2 * RATIO * channels, channels)?,
                down: block.biased("ff.net.2", channels, RATIO * channels)?,
            });
        }
        let groups = (shape.groups, GROUP_EPSILON);
        Ok(Self {
            shape,
            norm: GroupNorm::load(&tensors.under("norm"), channels, groups)?,
            way_in: tensors.biased("proj_in", channels, channels)?,
            blocks,
            way_out: tensors.biased("proj_out", channels, channels)?,
        })
    }

    /// `text: [tokens, text]`.
    pub(super) fn run(
        &self,
        runner: &mut Runner,
        x: &Planes,
        text: &[f32],
    ) -> Result<Planes, TensorError> {
        let cpu = runner.cpu().clone();
        let rows = self.norm.run(&cpu, x, false)?.rows(self.shape.channels)?;
        let mut inner = vec![0.0; rows.len()];
        runner.linear(&rows, [(&self.way_in, &mut inner)])?;
        for block in &self.blocks {
            self.block(runner, block, &mut inner, text)?;
        }
        let mut out = rows;
        runner.linear(&inner, [(&self.way_out, &mut out)])?;
        let mut planes = Planes::zeros(x.blocks(), x.height(), x.width())?;
        planes.fill_rows(&out)?;
        scaled_add(&cpu, planes.all_mut(), 1.0, x.all())?;
        Ok(planes)
    }

    fn block(
        &self,
        runner: &mut Runner,
        block: &Block,
        x: &mut [f32],
        text: &[f32],
    ) -> Result<(), TensorError> {
        let cpu = runner.cpu().clone();
        let channels = self.shape.channels;
        let shape = (self.shape.heads, channels / self.shape.heads);
        for (attention, seen) in [(&block.own, None), (&block.text, Some(text))] {
            let normed = normed(&cpu, x, &attention.norm)?;
            let seen = seen.unwrap_or(&normed);
            let rows = seen.len() / attention.k.weights().cols();
            let mut q = vec![0.0; x.len()];
            let (mut k, mut v) = (vec![0.0; rows * channels], vec![0.0; rows * channels]);
            runner.linear(&normed, [(&attention.q, &mut q)])?;
            runner.linear(seen, [(&attention.k, &mut k), (&attention.v, &mut v)])?;
            let mixed = full_attention(&cpu, shape, &q, &k, &v)?;
            runner.linear(&mixed, [(&attention.o, &mut q)])?;
            add(&cpu, x, &q)?;
        }
        let normed = normed(&cpu, x, &block.norm)?;
        let wide = 2 * RATIO * channels;
        let mut both = vec![0.0; x.len() / channels * wide];
        runner.linear(&normed, [(&block.up, &mut both)])?;
        let mut inner = columns(&both, wide, 0..wide / 2);
        let mut gate = columns(&both, wide, wide / 2..wide);
        activate(&cpu, Unary::Gelu, &mut gate);
        inner.iter_mut().zip(&gate).for_each(|(x, gate)| *x *= gate);
        let mut out = vec![0.0; x.len()];
        runner.linear(&inner, [(&block.down, &mut out)])?;
        add(&cpu, x, &out)
    }
}

fn normed(cpu: &Cpu, x: &[f32], norm: &(Vec<f32>, Vec<f32>)) -> Result<Vec<f32>, TensorError> {
    let mut out = vec![0.0; x.len()];
    layer_norm(cpu, x, (&norm.0, &norm.1), EPSILON, &mut out)?;
    Ok(out)
}
