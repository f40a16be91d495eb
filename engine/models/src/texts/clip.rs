//! The text model of CLIP (Radford et al., arXiv 2103.00020).
//!
//! Checked against transformers 5.24 (`models/clip/modeling_clip.py`).

use engine_base::CancelToken;
use engine_nn::{Activations, Linear, ModelError, Runner};
use engine_tensor::ops::{Unary, activate, add, embedding, layer_norm};
use engine_tensor::{Cpu, TensorError};
use serde::Deserialize;

use crate::LoadError;
use crate::error::{check_sizes, wrong};
use crate::images::Tensors;
use crate::images::kit::causal_attention;

/// An end token that old configurations name wrongly: there the largest id ends the text.
const OLD_END: u32 = 2;

/// `text_encoder/config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ClipTextConfig {
    /// Elements of a state.
    pub hidden_size: usize,
    /// Inner size of the feed-forward layers.
    pub intermediate_size: usize,
    /// Blocks.
    pub num_hidden_layers: usize,
    /// Heads.
    pub num_attention_heads: usize,
    /// Most tokens.
    pub max_position_embeddings: usize,
    /// Size of the vocabulary.
    pub vocab_size: usize,
    /// `quick_gelu` or `gelu`.
    pub hidden_act: String,
    /// Epsilon of the norms.
    pub layer_norm_eps: f64,
    /// The token at which the whole text's state is taken.
    pub eos_token_id: u32,
    /// Elements of the projected state, where there is a projection.
    pub projection_dim: usize,
}

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

    fn run(&self, cpu: &Cpu, x: &[f32], epsilon: f32) -> Result<Vec<f32>, TensorError> {
        let mut out = vec![0.0; x.len()];
        layer_norm(cpu, x, (&self.weight, &self.bias), epsilon, &mut out)?;
        Ok(out)
    }
}

#[derive(Debug)]
struct Block {
    norm1: Norm,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    norm2: Norm,
    up: Linear,
    down: Linear,
}

/// CLIP's text model.
#[derive(Debug)]
pub struct ClipText {
    config: ClipTextConfig,
    cpu: Cpu,
    unary: Unary,
    tokens: Linear,
    positions: Vec<f32>,
    blocks: Vec<Block>,
    norm: Norm,
    projection: Option<Linear>,
}

/// What CLIP's text model makes of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct ClipTextStates {
    /// Before each block and behind the last, not normed: `[blocks + 1][tokens, hidden]`.
    pub hidden: Vec<Vec<f32>>,
    /// The last, normed: `[tokens, hidden]`.
    pub last: Vec<f32>,
    /// The last of the first end token: `[hidden]`.
    pub pooled: Vec<f32>,
    /// Its projection, where there is one: `[projection_dim]`.
    pub projected: Option<Vec<f32>>,
}

/// Shapes were checked at load, so an op that refuses them is a fault of ours.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn fault(error: TensorError) -> ModelError {
    ModelError::NotANumber(error.to_string())
}

impl ClipText {
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        config: &ClipTextConfig,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        let sizes = [
            ("hidden_size", config.hidden_size),
            ("intermediate_size", config.intermediate_size),
            ("num_hidden_layers", config.num_hidden_layers),
            ("num_attention_heads", config.num_attention_heads),
            ("max_position_embeddings", config.max_position_embeddings),
            ("vocab_size", config.vocab_size),
        ];
        check_sizes(sizes)?;
        if !config
            .hidden_size
            .is_multiple_of(config.num_attention_heads)
        {
            let got = config.hidden_size.to_string();
            return Err(wrong(
                "hidden_size",
                got,
                "a multiple of num_attention_heads",
            ));
        }
        let unary = match config.hidden_act.as_str() {
            "quick_gelu" => Unary::GeluQuick,
            "gelu" => Unary::Gelu,
            other => {
                let expected = "\"quick_gelu\" or \"gelu\"";
                return Err(wrong("hidden_act", format!("{other:?}"), expected));
            }
        };
        // With and without the name of the model that holds it.
        let text = match tensors.has("text_model.final_layer_norm.weight") {
            true => tensors.under("text_model"),
            false => tensors.clone(),
        };
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let mut blocks = Vec::new();
        for index in 0..config.num_hidden_layers {
            let block = text.under(format!("encoder.layers.{index}"));
            let square = |name: &str| block.biased(&format!("self_attn.{name}"), hidden, hidden);
            blocks.push(Block {
                norm1: Norm::load(&block, "layer_norm1", hidden)?,
                q: square("q_proj")?,
                k: square("k_proj")?,
                v: square("v_proj")?,
                o: square("out_proj")?,
                norm2: Norm::load(&block, "layer_norm2", hidden)?,
                up: block.biased("mlp.fc1", inner, hidden)?,
                down: block.biased("mlp.fc2", hidden, inner)?,
            });
        }
        let embeddings = text.under("embeddings");
        let places = [config.max_position_embeddings, hidden];
        let projection = match tensors.has("text_projection.weight") {
            true => Some(tensors.linear("text_projection", config.projection_dim, hidden)?),
            false => None,
        };
        Ok(Self {
            unary,
            tokens: embeddings.linear("token_embedding", config.vocab_size, hidden)?,
            positions: embeddings.values("position_embedding.weight", &places)?,
            blocks,
            norm: Norm::load(&text, "final_layer_norm", hidden)?,
            projection,
            config: config.clone(),
            cpu: cpu.clone(),
        })
    }

    /// Most tokens of a text.
    pub fn most_tokens(&self) -> usize {
        self.config.max_position_embeddings
    }

    /// The states of a text.
    ///
    /// # Errors
    /// `ContextFull` for no tokens or too many, `BadToken`, `Cancelled`.
    pub fn states(
        &self,
        tokens: &[u32],
        cancel: &CancelToken,
    ) -> Result<ClipTextStates, ModelError> {
        let config = &self.config;
        if tokens.is_empty() || tokens.len() > self.most_tokens() {
            return Err(ModelError::ContextFull {
                got_tokens: tokens.len(),
                max_tokens: self.most_tokens(),
            });
        }
        if let Some(got) = tokens.iter().find(|id| **id as usize >= config.vocab_size) {
            return Err(ModelError::BadToken {
                got: *got,
                vocab: config.vocab_size,
            });
        }
        let hidden_size = config.hidden_size;
        let epsilon = config.layer_norm_eps as f32;
        let mut x = vec![0.0; tokens.len() * hidden_size];
        embedding(&self.cpu, self.tokens.weights(), tokens, &mut x).map_err(fault)?;
        add(
            &self.cpu,
            &mut x,
            &self.positions[..tokens.len() * hidden_size],
        )
        .map_err(fault)?;
        let mut hidden = vec![x.clone()];
        let mut runner = Runner::new(self.cpu.clone(), Activations::Exact);
        for block in &self.blocks {
            cancel.check()?;
            self.block(&mut runner, block, &mut x).map_err(fault)?;
            hidden.push(x.clone());
        }
        let last = self.norm.run(&self.cpu, &x, epsilon).map_err(fault)?;
        let end = if config.eos_token_id == OLD_END {
            let largest = tokens.iter().max();
            tokens.iter().position(|id| Some(id) == largest)
        } else {
            tokens.iter().position(|id| *id == config.eos_token_id)
        };
        let end = end.unwrap_or(0);
        let pooled = last[end * hidden_size..(end + 1) * hidden_size].to_vec();
        let projected = match &self.projection {
            Some(projection) => {
                let mut out = vec![0.0; projection.weights().rows()];
                runner
                    .linear(&pooled, [(projection, &mut out)])
                    .map_err(fault)?;
                Some(out)
            }
            None => None,
        };
        Ok(ClipTextStates {
            hidden,
            last,
            pooled,
            projected,
        })
    }

    fn block(&self, runner: &mut Runner, block: &Block, x: &mut [f32]) -> Result<(), TensorError> {
        let config = &self.config;
        let heads = config.num_attention_heads;
        let shape = (heads, config.hidden_size / heads);
        let epsilon = config.layer_norm_eps as f32;
        let normed = block.norm1.run(&self.cpu, x, epsilon)?;
        let (mut q, mut k, mut v) = (normed.clone(), normed.clone(), normed.clone());
        runner.linear(
            &normed,
            [(&block.q, &mut q), (&block.k, &mut k), (&block.v, &mut v)],
        )?;
        let mixed = causal_attention(&self.cpu, shape, &q, &k, &v)?;
        runner.linear(&mixed, [(&block.o, &mut q)])?;
        add(&self.cpu, x, &q)?;
        let normed = block.norm2.run(&self.cpu, x, epsilon)?;
        let mut inner = vec![0.0; x.len() / config.hidden_size * config.intermediate_size];
        runner.linear(&normed, [(&block.up, &mut inner)])?;
        activate(&self.cpu, self.unary, &mut inner);
        runner.linear(&inner, [(&block.down, &mut q)])?;
        add(&self.cpu, x, &q)
    }
}
