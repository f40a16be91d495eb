//! Keys and values of a stream, layer by layer.

use engine_tensor::ops::{KvKind, KvRows};

/// The KV cache of one stream. Memory grows with its tokens.
#[derive(Debug, Clone)]
pub struct KvCache {
    pub(crate) layers: Vec<KvRows>,
    position_bytes: usize,
}

impl KvCache {
    /// Empty, for `layers` layers of `kv_heads` heads of `head_dim`.
    pub fn new(kind: KvKind, layers: usize, kv_heads: usize, head_dim: usize) -> Self {
        Self {
            layers: vec![KvRows::new(kind, kv_heads, head_dim); layers],
            position_bytes: layers * KvRows::position_bytes(kind, kv_heads, head_dim),
        }
    }

    /// Tokens that all layers hold.
    pub fn tokens(&self) -> usize {
        let positions = self.layers.iter().map(KvRows::positions);
        positions.min().unwrap_or(0)
    }

    /// Forget all tokens from `tokens` on, in every layer.
    pub fn truncate(&mut self, tokens: usize) {
        for layer in &mut self.layers {
            layer.truncate(tokens);
        }
    }

    /// Bytes that `tokens` tokens take.
    pub fn bytes_of(&self, tokens: usize) -> usize {
        self.position_bytes * tokens
    }
}

/// One row of a forward pass: a token of one of the streams that run together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamRow {
    /// Index of its stream's cache.
    pub stream: usize,
    /// Its position in the stream. Rows of a stream are consecutive and in order.
    pub position: usize,
}
