//! Sizes and weights of a dense decoder on the device.

use engine_tensor::ops::{RopePairs, RopeScaling};

use crate::ops::{PackedWeights, fill_bf16};
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
}

/// A matrix of weights, `[outputs, inputs]`.
#[derive(Debug)]
pub enum Matrix {
    /// bf16.
    Bf16(Buffer),
    /// 4 bits in groups.
    Packed(PackedWeights),
}

impl Matrix {
    /// As bf16.
    pub(crate) fn bf16(&self, op: &'static str) -> Result<&Buffer, CudaError> {
        match self {
            Self::Bf16(buffer) => Ok(buffer),
            Self::Packed(_) => Err(not_bf16(op)),
        }
    }

    fn len_bytes(&self) -> usize {
        match self {
            Self::Bf16(buffer) => buffer.len_bytes(),
            Self::Packed(packed) => packed.len_bytes(),
        }
    }
}

fn not_bf16(op: &'static str) -> CudaError {
    CudaError::Shape {
        op,
        what: "bits of the weights",
        got: 4,
        expected: "16".to_owned(),
    }
}

/// Gate and up of a feed-forward layer, `[inner, hidden]` each.
#[derive(Debug)]
pub enum GateUp {
    /// bf16.
    Bf16 {
        /// Its first matrix.
        gate: Buffer,
        /// Its second.
        up: Buffer,
    },
    /// As made by [`PackedWeights::gate_up`].
    Packed(PackedWeights),
}

impl GateUp {
    /// Both as bf16.
    pub(crate) fn bf16(&self, op: &'static str) -> Result<(&Buffer, &Buffer), CudaError> {
        match self {
            Self::Bf16 { gate, up } => Ok((gate, up)),
            Self::Packed(_) => Err(not_bf16(op)),
        }
    }

    fn len_bytes(&self) -> usize {
        match self {
            Self::Bf16 { gate, up } => gate.len_bytes() + up.len_bytes(),
            Self::Packed(packed) => packed.len_bytes(),
        }
    }
}

/// Weights of a layer. Vectors are f32.
#[derive(Debug)]
pub struct DecoderLayer {
    /// `[hidden]`.
    pub attention_norm: Buffer,
    /// Queries, keys and values below each other: `[(heads + 2 kv_heads) * head_dim, hidden]`.
    pub qkv: Matrix,
    /// Their bias.
    pub qkv_bias: Option<Buffer>,
    /// Norms of each head of queries and of keys: `[head_dim]` each.
    pub head_norms: Option<(Buffer, Buffer)>,
    /// `[hidden, heads * head_dim]`.
    pub o: Matrix,
    /// `[hidden]`.
    pub mlp_norm: Buffer,
    /// Both of its first matrices.
    pub gate_up: GateUp,
    /// `[hidden, inner]`.
    pub down: Matrix,
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
    /// `[vocab, hidden]`; the table of embeddings when `None`.
    pub head: Option<Matrix>,
}

impl DecoderWeights {
    /// Bytes of matrices that a step reads.
    pub fn step_bytes(&self) -> usize {
        let layer = |layer: &DecoderLayer| {
            layer.qkv.len_bytes()
                + layer.o.len_bytes()
                + layer.gate_up.len_bytes()
                + layer.down.len_bytes()
        };
        let head = self.head.as_ref().map(Matrix::len_bytes);
        self.layers.iter().map(layer).sum::<usize>() + head.unwrap_or(self.embed.len_bytes())
    }

    /// Random weights made on the device, norms of ones: for benches. With `four_bits` all matrices but the table of
    /// embeddings are 4 bits in groups of 64.
    ///
    /// # Errors
    /// Those of an allocation and a launch.
    pub fn random(
        device: &Device,
        shape: &DecoderShape,
        (head_norms, tied, four_bits): (bool, bool, bool),
        seed: u32,
    ) -> Result<Self, CudaError> {
        let mut seed = seed;
        let mut table = |n: usize, k: usize| {
            let to = device.alloc(n * k * 2)?;
            seed += 1;
            fill_bf16(device, &to, seed, 0.035)?;
            Ok::<Buffer, CudaError>(to)
        };
        let embed = table(shape.vocab, shape.hidden)?;
        let mut matrix = |n: usize, k: usize| {
            Ok::<Matrix, CudaError>(match four_bits {
                true => {
                    Matrix::Packed(PackedWeights::random_4_bits(device, (n, k), seed_of(n, k))?)
                }
                false => Matrix::Bf16(table(n, k)?),
            })
        };
        let ones = |n: usize| device.upload(&vec![1.0f32; n]);
        let mut layers = Vec::new();
        for _ in 0..shape.layers {
            let (qkv, o) = (
                matrix(shape.qkv_width(), shape.hidden)?,
                matrix(shape.hidden, shape.q_width())?,
            );
            let down = matrix(shape.hidden, shape.inner)?;
            let gate_up = match matrix(shape.inner * if four_bits { 2 } else { 1 }, shape.hidden)? {
                Matrix::Packed(both) => GateUp::Packed(both),
                Matrix::Bf16(gate) => match matrix(shape.inner, shape.hidden)? {
                    Matrix::Bf16(up) => GateUp::Bf16 { gate, up },
                    Matrix::Packed(both) => GateUp::Packed(both),
                },
            };
            layers.push(DecoderLayer {
                attention_norm: ones(shape.hidden)?,
                qkv,
                qkv_bias: None,
                head_norms: match head_norms {
                    true => Some((ones(shape.head_dim)?, ones(shape.head_dim)?)),
                    false => None,
                },
                o,
                mlp_norm: ones(shape.hidden)?,
                gate_up,
                down,
            });
        }
        let head = match tied {
            true => None,
            false => Some(matrix(shape.vocab, shape.hidden)?),
        };
        Ok(Self {
            embed,
            layers,
            norm: ones(shape.hidden)?,
            head,
        })
    }
}

fn seed_of(n: usize, k: usize) -> u32 {
    (n * 31 + k) as u32
}
