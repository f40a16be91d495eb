//! The encoders of T5 1.1 (Raffel et al., arXiv 1910.10683; gated: Shazeer, arXiv 2002.05202) and UMT5
//! (Chung et al., arXiv 2304.09151): relative positions as a bias, no scaling of scores.
//!
//! Checked against transformers 5.24 (`models/t5/modeling_t5.py`, `models/umt5/modeling_umt5.py`).

use engine_base::CancelToken;
use engine_nn::{Activations, Linear, ModelError, Runner};
use engine_tensor::ops::{Unary, activate, add, embedding, rms_norm, softmax};
use engine_tensor::{Cpu, TensorError};
use serde::Deserialize;

use crate::LoadError;
use crate::error::{SIZE_CAP, check_sizes, wrong};
use crate::images::Tensors;

/// Most tokens: scores of all pairs are held at once.
const MOST_TOKENS: usize = 4096;

/// `text_encoder/config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct T5Config {
    /// `t5` or `umt5`.
    pub model_type: String,
    /// Elements of a state.
    pub d_model: usize,
    /// Elements of a head.
    pub d_kv: usize,
    /// Inner size of the feed-forward layers.
    pub d_ff: usize,
    /// Blocks.
    pub num_layers: usize,
    /// Heads.
    pub num_heads: usize,
    /// Kinds of distance.
    pub relative_attention_num_buckets: usize,
    /// Distance from which all count alike.
    pub relative_attention_max_distance: usize,
    /// Epsilon of the norms.
    pub layer_norm_epsilon: f64,
    /// Size of the vocabulary.
    pub vocab_size: usize,
    /// `gated-gelu`.
    pub feed_forward_proj: String,
}

#[derive(Debug)]
struct Block {
    norm1: Vec<f32>,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    /// `[buckets, heads]`; that of the first block where there is none.
    bias: Option<Vec<f32>>,
    norm2: Vec<f32>,
    gate: Linear,
    up: Linear,
    down: Linear,
}

/// The encoder of a T5 or UMT5.
#[derive(Debug)]
pub struct T5Encoder {
    config: T5Config,
    cpu: Cpu,
    tokens: Linear,
    blocks: Vec<Block>,
    norm: Vec<f32>,
}

/// Shapes were checked at load, so an op that refuses them is a fault of ours.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn fault(error: TensorError) -> ModelError {
    ModelError::NotANumber(error.to_string())
}

impl T5Config {
    fn check(&self) -> Result<(), LoadError> {
        let sizes = [
            ("d_model", self.d_model),
            ("d_kv", self.d_kv),
            ("d_ff", self.d_ff),
            ("num_layers", self.num_layers),
            ("num_heads", self.num_heads),
            ("vocab_size", self.vocab_size),
            (
                "relative_attention_max_distance",
                self.relative_attention_max_distance,
            ),
        ];
        check_sizes(sizes)?;
        let buckets = self.relative_attention_num_buckets;
        if !(4..=SIZE_CAP).contains(&buckets) || !buckets.is_multiple_of(4) {
            let key = "relative_attention_num_buckets";
            return Err(wrong(key, buckets.to_string(), "a multiple of 4 from 4"));
        }
        if self.relative_attention_max_distance <= buckets / 4 {
            let key = "relative_attention_max_distance";
            let got = self.relative_attention_max_distance.to_string();
            return Err(wrong(key, got, "more than a quarter of the buckets"));
        }
        if self.feed_forward_proj != "gated-gelu" {
            let got = format!("{:?}", self.feed_forward_proj);
            return Err(wrong("feed_forward_proj", got, "\"gated-gelu\""));
        }
        Ok(())
    }

    /// Which kind of distance lies between a query and a key.
    fn bucket(&self, query: usize, key: usize) -> usize {
        let half = self.relative_attention_num_buckets / 2;
        let (exact, distance) = (half / 2, query.abs_diff(key));
        let near = if distance < exact {
            distance
        } else {
            // In f32, as the reference rounds.
            let ratio = (distance as f32 / exact as f32).ln();
            let whole = (self.relative_attention_max_distance as f64 / exact as f64).ln() as f32;
            let more = (ratio / whole * (half - exact) as f32) as usize;
            (exact + more).min(half - 1)
        };
        near + if key > query { half } else { 0 }
    }
}

impl T5Encoder {
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        config: &T5Config,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        config.check()?;
        let (model, ff) = (config.d_model, config.d_ff);
        let inner = config.num_heads * config.d_kv;
        let mut blocks = Vec::new();
        for index in 0..config.num_layers {
            let block = tensors.under(format!("encoder.block.{index}"));
            let attention = block.under("layer.0.SelfAttention");
            let dense = block.under("layer.1.DenseReluDense");
            let table = "relative_attention_bias.weight";
            let shape = [config.relative_attention_num_buckets, config.num_heads];
            let bias = match index == 0 || attention.has(table) {
                true => Some(attention.values(table, &shape)?),
                false => None,
            };
            blocks.push(Block {
                norm1: block.values("layer.0.layer_norm.weight", &[model])?,
                q: attention.linear("q", inner, model)?,
                k: attention.linear("k", inner, model)?,
                v: attention.linear("v", inner, model)?,
                o: attention.linear("o", model, inner)?,
                bias,
                norm2: block.values("layer.1.layer_norm.weight", &[model])?,
                gate: dense.linear("wi_0", ff, model)?,
                up: dense.linear("wi_1", ff, model)?,
                down: dense.linear("wo", model, ff)?,
            });
        }
        Ok(Self {
            tokens: tensors.linear("shared", config.vocab_size, model)?,
            blocks,
            norm: tensors.values("encoder.final_layer_norm.weight", &[model])?,
            config: config.clone(),
            cpu: cpu.clone(),
        })
    }

    /// The states of a text: before each block, and the normed end: `[blocks + 1][tokens, d_model]`.
    ///
    /// # Errors
    /// `ContextFull` for no tokens or more than 4096, `BadToken`, `Cancelled`.
    pub fn states(
        &self,
        tokens: &[u32],
        cancel: &CancelToken,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        let config = &self.config;
        if tokens.is_empty() || tokens.len() > MOST_TOKENS {
            return Err(ModelError::ContextFull {
                got_tokens: tokens.len(),
                max_tokens: MOST_TOKENS,
            });
        }
        if let Some(got) = tokens.iter().find(|id| **id as usize >= config.vocab_size) {
            return Err(ModelError::BadToken {
                got: *got,
                vocab: config.vocab_size,
            });
        }
        let mut x = vec![0.0; tokens.len() * config.d_model];
        embedding(&self.cpu, self.tokens.weights(), tokens, &mut x).map_err(fault)?;
        let mut runner = Runner::new(self.cpu.clone(), Activations::Exact);
        let mut hidden = Vec::new();
        let mut bias: &[f32] = &[];
        for block in &self.blocks {
            cancel.check()?;
            hidden.push(x.clone());
            bias = block.bias.as_deref().unwrap_or(bias);
            self.block(&mut runner, block, &mut x, bias)
                .map_err(fault)?;
        }
        let mut last = vec![0.0; x.len()];
        let epsilon = config.layer_norm_epsilon as f32;
        rms_norm(&self.cpu, &x, &self.norm, epsilon, &mut last).map_err(fault)?;
        hidden.push(last);
        Ok(hidden)
    }

    fn block(
        &self,
        runner: &mut Runner,
        block: &Block,
        x: &mut [f32],
        bias: &[f32],
    ) -> Result<(), TensorError> {
        let config = &self.config;
        let epsilon = config.layer_norm_epsilon as f32;
        let rows = x.len() / config.d_model;
        let mut normed = vec![0.0; x.len()];
        rms_norm(&self.cpu, x, &block.norm1, epsilon, &mut normed)?;
        let mut q = vec![0.0; rows * config.num_heads * config.d_kv];
        let (mut k, mut v) = (q.clone(), q.clone());
        runner.linear(
            &normed,
            [(&block.q, &mut q), (&block.k, &mut k), (&block.v, &mut v)],
        )?;
        let mixed = self.attend((&q, &k, &v), bias)?;
        let mut out = vec![0.0; x.len()];
        runner.linear(&mixed, [(&block.o, &mut out)])?;
        add(&self.cpu, x, &out)?;
        rms_norm(&self.cpu, x, &block.norm2, epsilon, &mut normed)?;
        let mut gate = vec![0.0; rows * config.d_ff];
        let mut up = gate.clone();
        runner.linear(&normed, [(&block.gate, &mut gate), (&block.up, &mut up)])?;
        activate(&self.cpu, Unary::GeluTanh, &mut gate);
        for (gate, up) in gate.iter_mut().zip(&up) {
            *gate *= up;
        }
        runner.linear(&gate, [(&block.down, &mut out)])?;
        add(&self.cpu, x, &out)
    }

    /// `softmax(q k^T + bias) v`, `[rows, heads, d_kv]` each; head after head, the plain way.
    fn attend(
        &self,
        (q, k, v): (&[f32], &[f32], &[f32]),
        bias: &[f32],
    ) -> Result<Vec<f32>, TensorError> {
        let (heads, dim) = (self.config.num_heads, self.config.d_kv);
        let width = heads * dim;
        let rows = q.len() / width;
        let mut out = vec![0.0; q.len()];
        let mut scores = vec![0.0; rows * rows];
        for head in 0..heads {
            let of = |x: &'_ [f32], row: usize| -> std::ops::Range<usize> {
                debug_assert!(row * width < x.len());
                row * width + head * dim..row * width + (head + 1) * dim
            };
            for (at, score) in scores.iter_mut().enumerate() {
                let (query, key) = (at / rows, at % rows);
                let pairs = q[of(q, query)].iter().zip(&k[of(k, key)]);
                let product: f32 = pairs.map(|(a, b)| a * b).sum();
                *score = product + bias[self.config.bucket(query, key) * heads + head];
            }
            softmax(&self.cpu, &mut scores, rows)?;
            for (query, shares) in scores.chunks_exact(rows).enumerate() {
                for (key, share) in shares.iter().enumerate() {
                    let to = of(&out, query);
                    for (out, value) in out[to].iter_mut().zip(&v[of(v, key)]) {
                        *out += share * value;
                    }
                }
            }
        }
        Ok(out)
    }
}
