//! Self-attention with grouped heads, rotary positions and a KV cache.

use engine_tensor::TensorError;
use engine_tensor::ops::{AttentionSpec, QueryRow, RopeTable, attention, rope};
use engine_weights::Checkpoint;

use crate::{KvCache, LayerError, Linear, RmsNorm, Runner, StreamRow};

/// Sizes of an attention layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionShape {
    /// Elements of a row of the residual stream.
    pub hidden: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Positions a token sees; all when `None`.
    pub window: Option<usize>,
}

/// Names of the tensors of an attention layer; biases and norms only where the model has them.
#[derive(Debug, Clone, Default)]
pub struct AttentionTensors {
    /// Weight and, perhaps, bias of the queries.
    pub q: (String, Option<String>),
    /// Of the keys.
    pub k: (String, Option<String>),
    /// Of the values.
    pub v: (String, Option<String>),
    /// Of the output.
    pub o: (String, Option<String>),
    /// Norms of each head of queries and of keys, with their epsilon.
    pub head_norms: Option<(String, String, f32)>,
}

/// An attention layer.
#[derive(Debug)]
pub struct SelfAttention {
    shape: AttentionShape,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    head_norms: Option<(RmsNorm, RmsNorm)>,
}

impl SelfAttention {
    /// Of these tensors.
    ///
    /// # Errors
    /// [`LayerError`], with the tensor's name.
    pub fn load(
        checkpoint: &dyn Checkpoint,
        shape: AttentionShape,
        tensors: &AttentionTensors,
    ) -> Result<Self, LayerError> {
        let linear = |(name, bias): &(String, Option<String>), outputs, inputs| {
            let layer = Linear::load(checkpoint, name, outputs, inputs)?;
            match bias {
                Some(bias) => layer.with_bias(checkpoint, bias),
                None => Ok(layer),
            }
        };
        let q_width = shape.heads * shape.head_dim;
        let kv_width = shape.kv_heads * shape.head_dim;
        let norm = |name: &str, epsilon| RmsNorm::load(checkpoint, name, shape.head_dim, epsilon);
        let head_norms = match &tensors.head_norms {
            Some((q, k, epsilon)) => Some((norm(q, *epsilon)?, norm(k, *epsilon)?)),
            None => None,
        };
        Ok(Self {
            shape,
            q: linear(&tensors.q, q_width, shape.hidden)?,
            k: linear(&tensors.k, kv_width, shape.hidden)?,
            v: linear(&tensors.v, kv_width, shape.hidden)?,
            o: linear(&tensors.o, shape.hidden, q_width)?,
            head_norms,
        })
    }

    /// `out = attention(x)`, both `[rows, hidden]`; adds the rows' keys and values to layer `layer`
    /// of their caches. The table must reach every position.
    ///
    /// # Errors
    /// `Shape` when lengths do not go together.
    pub fn run(
        &self,
        runner: &mut Runner,
        (x, out): (&[f32], &mut [f32]),
        table: &RopeTable,
        rows: &[StreamRow],
        (caches, layer): (&mut [&mut KvCache], usize),
    ) -> Result<(), TensorError> {
        let shape = &self.shape;
        let q_width = shape.heads * shape.head_dim;
        let kv_width = shape.kv_heads * shape.head_dim;
        let mut q = vec![0.0; rows.len() * q_width];
        let mut k = vec![0.0; rows.len() * kv_width];
        let mut v = vec![0.0; rows.len() * kv_width];
        runner.linear(x, [(&self.q, &mut q), (&self.k, &mut k), (&self.v, &mut v)])?;
        if let Some((q_norm, k_norm)) = &self.head_norms {
            let before = q.clone();
            q_norm.run(runner.cpu(), &before, &mut q)?;
            let before = k.clone();
            k_norm.run(runner.cpu(), &before, &mut k)?;
        }
        let positions: Vec<usize> = rows.iter().map(|row| row.position).collect();
        rope(table, &mut q, shape.head_dim, &positions)?;
        rope(table, &mut k, shape.head_dim, &positions)?;
        let pairs = k.chunks_exact(kv_width).zip(v.chunks_exact(kv_width));
        for (row, (key, value)) in rows.iter().zip(pairs) {
            caches[row.stream].layers[layer].push(key, value)?;
        }
        let queries: Vec<QueryRow<'_>> = rows
            .iter()
            .map(|row| QueryRow {
                kv: &caches[row.stream].layers[layer],
                position: row.position,
            })
            .collect();
        let spec = AttentionSpec {
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            head_dim: shape.head_dim,
            scale: (1.0 / (shape.head_dim as f64).sqrt()) as f32,
            window: shape.window,
        };
        let mut mixed = vec![0.0; q.len()];
        attention(runner.cpu(), &spec, &q, &queries, &mut mixed)?;
        runner.linear(&mixed, [(&self.o, out)])
    }
}
