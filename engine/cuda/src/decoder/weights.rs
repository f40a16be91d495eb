//! Sizes and weights of a dense decoder on the device.

use engine_tensor::ops::{RopePairs, RopeScaling};

use crate::ops::fill_bf16;
use crate::{Buffer, CudaError, Device};

/// Sizes of a dense decoder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecoderShape {
    /// Elements of the residual stream: a multiple of 32.
    pub hidden: usize,
    /// Layers.
    pub layers: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Elements between the products of a feed-forward layer: a multiple of 32.
    pub inner: usize,
    /// Size of the vocabulary.
    pub vocab: usize,
    /// Most positions of a stream.
    pub context_tokens: usize,
    /// Of every norm.
    pub epsilon: f32,
    /// Base of the rotary frequencies.
    pub rope_base: f64,
    /// How they are stretched.
    pub rope_scaling: RopeScaling,
    /// Which elements of a head form a pair.
    pub rope_pairs: RopePairs,
}

impl DecoderShape {
    pub(crate) fn q_width(&self) -> usize {
        self.heads * self.head_dim
    }

    pub(crate) fn qkv_width(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim
    }

    /// Bytes of weights that a step reads.
    pub fn step_bytes(&self) -> usize {
        let layer = self.qkv_width() * self.hidden
            + self.q_width() * self.hidden
            + 3 * self.inner * self.hidden;
        2 * (self.layers * layer + self.vocab * self.hidden)
    }
}

/// Weights of a layer. Matrices are bf16 `[outputs, inputs]`, the rest f32.
#[derive(Debug)]
pub struct DecoderLayer {
    /// `[hidden]`.
    pub attention_norm: Buffer,
    /// Queries, keys and values below each other: `[(heads + 2 kv_heads) * head_dim, hidden]`.
    pub qkv: Buffer,
    /// Their bias.
    pub qkv_bias: Option<Buffer>,
    /// Norms of each head of queries and of keys: `[head_dim]` each.
    pub head_norms: Option<(Buffer, Buffer)>,
    /// `[hidden, heads * head_dim]`.
    pub o: Buffer,
    /// `[hidden]`.
    pub mlp_norm: Buffer,
    /// `[inner, hidden]`.
    pub gate: Buffer,
    /// `[inner, hidden]`.
    pub up: Buffer,
    /// `[hidden, inner]`.
    pub down: Buffer,
}

/// Weights of a decoder.
#[derive(Debug)]
pub struct DecoderWeights {
    /// `[vocab, hidden]`, bf16.
    pub embed: Buffer,
    /// In their order.
    pub layers: Vec<DecoderLayer>,
    /// `[hidden]`, f32.
    pub norm: Buffer,
    /// `[vocab, hidden]`, bf16; the table of embeddings when `None`.
    pub head: Option<Buffer>,
}

impl DecoderWeights {
    /// Random weights made on the device, norms of ones: for benches.
    ///
    /// # Errors
    /// Those of an allocation and a launch.
    pub fn random(
        device: &Device,
        shape: &DecoderShape,
        (head_norms, tied): (bool, bool),
        seed: u32,
    ) -> Result<Self, CudaError> {
        let mut seed = seed;
        let mut matrix = |n: usize, k: usize| {
            let to = device.alloc(n * k * 2)?;
            seed += 1;
            fill_bf16(device, &to, seed, 0.035)?;
            Ok::<Buffer, CudaError>(to)
        };
        let ones = |n: usize| device.upload(&vec![1.0f32; n]);
        let mut layers = Vec::new();
        for _ in 0..shape.layers {
            layers.push(DecoderLayer {
                attention_norm: ones(shape.hidden)?,
                qkv: matrix(shape.qkv_width(), shape.hidden)?,
                qkv_bias: None,
                head_norms: match head_norms {
                    true => Some((ones(shape.head_dim)?, ones(shape.head_dim)?)),
                    false => None,
                },
                o: matrix(shape.hidden, shape.q_width())?,
                mlp_norm: ones(shape.hidden)?,
                gate: matrix(shape.inner, shape.hidden)?,
                up: matrix(shape.inner, shape.hidden)?,
                down: matrix(shape.hidden, shape.inner)?,
            });
        }
        Ok(Self {
            embed: matrix(shape.vocab, shape.hidden)?,
            layers,
            norm: ones(shape.hidden)?,
            head: match tied {
                true => None,
                false => Some(matrix(shape.vocab, shape.hidden)?),
            },
        })
    }
}
