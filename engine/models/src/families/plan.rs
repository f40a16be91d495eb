//! Sizes and tensor names that the dense families share.

use engine_nn::AttentionTensors;
use engine_tensor::ops::RopePairs;
use engine_weights::Checkpoint;

use crate::LoadError;
use crate::config::Config;
use crate::dense::{DensePlan, LayerTensors};

/// What a family adds to the plain decoder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traits {
    /// Pairs of rotary positions in GGUF files; `config.json` checkpoints pair halves.
    pub(super) gguf_pairs: RopePairs,
    /// Queries and keys are normalized head by head.
    pub(super) head_norms: bool,
    /// Queries, keys and values always have biases; else only where the checkpoint has them.
    pub(super) qkv_bias: bool,
}

/// The plan of a dense decoder.
pub(super) fn dense(
    config: &Config<'_>,
    checkpoint: &dyn Checkpoint,
    traits: Traits,
) -> Result<DensePlan, LoadError> {
    let hidden = config.required(("hidden_size", "embedding_length"))?;
    let layers = config.required(("num_hidden_layers", "block_count"))?;
    let heads = config.required(("num_attention_heads", "attention.head_count"))?;
    let kv_heads = config
        .count(("num_key_value_heads", "attention.head_count_kv"))?
        .unwrap_or(heads);
    let head_dim = match config.count(("head_dim", "attention.key_length"))? {
        Some(head_dim) => head_dim,
        None => divided("hidden size", hidden, "heads", heads)?,
    };
    divided("heads", heads, "kv heads", kv_heads)?;
    let inner = config.required(("intermediate_size", "feed_forward_length"))?;
    let context = config
        .count(("max_position_embeddings", "context_length"))?
        .unwrap_or(2048);
    let epsilon = config
        .number(("rms_norm_eps", "attention.layer_norm_rms_epsilon"))?
        .unwrap_or(1e-6) as f32;
    if let Some(activation) = config.text(("hidden_act", "hidden_act"))?
        && activation != "silu"
    {
        return Err(LoadError::Config {
            key: "hidden_act".to_owned(),
            got: format!("{activation:?}"),
            expected: "\"silu\"".to_owned(),
        });
    }
    let (rope_base, rope_scaling) = config.rope(context)?;
    let rope_dims = config
        .count(("rotary_dim", "rope.dimension_count"))?
        .unwrap_or(head_dim);
    let names = Names {
        gguf: config.is_gguf(),
    };
    let embed = names.of("model.embed_tokens.weight", "token_embd.weight");
    let head = names.of("lm_head.weight", "output.weight");
    // GGUF has no key for a tied head: the tensor is just not there.
    let tied = if config.is_gguf() {
        checkpoint.tensor(head).is_none()
    } else {
        config.flag("tie_word_embeddings")?.unwrap_or(false)
    };
    let vocab = match config.count(("vocab_size", "vocab_size"))? {
        Some(vocab) => vocab,
        None => {
            let table = checkpoint.tensor(embed);
            let rows = table.and_then(|table| table.shape.first().copied());
            rows.unwrap_or(1)
        }
    };
    let has = |name: &str| checkpoint.tensor(name).is_some();
    // Layers are checked one by one as they are loaded: a count that is too large stops at the
    // first that is missing, so nothing is sized by it.
    let rope_factors = names.of("", "rope_freqs.weight");
    Ok(DensePlan {
        hidden,
        layers,
        heads,
        kv_heads,
        head_dim,
        inner,
        vocab,
        context,
        epsilon,
        rope_base,
        rope_scaling,
        rope_dims,
        rope_pairs: if config.is_gguf() {
            traits.gguf_pairs
        } else {
            RopePairs::Halves
        },
        rope_factors: has(rope_factors).then(|| rope_factors.to_owned()),
        windows: windows(config)?,
        embed: embed.to_owned(),
        norm: names
            .of("model.norm.weight", "output_norm.weight")
            .to_owned(),
        head: (!tied).then(|| head.to_owned()),
        layer_tensors: Box::new(move |checkpoint, layer| {
            names.layer(checkpoint, layer, traits, epsilon)
        }),
    })
}

fn divided(what: &str, value: usize, by: &str, divisor: usize) -> Result<usize, LoadError> {
    if value.is_multiple_of(divisor) && value > 0 {
        Ok(value / divisor)
    } else {
        Err(LoadError::Config {
            key: what.to_owned(),
            got: value.to_string(),
            expected: format!("a multiple of {divisor}, the {by}"),
        })
    }
}

/// Layers that see a window only: `(first layer or list, window)`.
fn windows(config: &Config<'_>) -> Result<Box<dyn Fn(usize) -> Option<usize>>, LoadError> {
    let window = config.count(("sliding_window", "attention.sliding_window"))?;
    let (Some(window), false) = (window, config.is_gguf()) else {
        return Ok(Box::new(|_| None));
    };
    if let Some(kinds) = config.texts("layer_types") {
        let sliding: Vec<bool> = kinds
            .iter()
            .map(|kind| *kind == "sliding_attention")
            .collect();
        return Ok(Box::new(move |layer| {
            sliding
                .get(layer)
                .copied()
                .unwrap_or(false)
                .then_some(window)
        }));
    }
    if config.flag("use_sliding_window")? != Some(true) {
        return Ok(Box::new(|_| None));
    }
    let first = config.count(("max_window_layers", ""))?.unwrap_or(0);
    Ok(Box::new(move |layer| (layer >= first).then_some(window)))
}

/// Names of tensors in both kinds of checkpoint.
#[derive(Debug, Clone, Copy)]
struct Names {
    gguf: bool,
}

impl Names {
    fn of(self, json: &'static str, gguf: &'static str) -> &'static str {
        if self.gguf { gguf } else { json }
    }

    fn layer(
        self,
        checkpoint: &dyn Checkpoint,
        layer: usize,
        traits: Traits,
        epsilon: f32,
    ) -> LayerTensors {
        let name = |json: &'static str, gguf: &'static str, end: &str| {
            if self.gguf {
                format!("blk.{layer}.{gguf}.{end}")
            } else {
                format!("model.layers.{layer}.{json}.{end}")
            }
        };
        let linear = |json: &'static str, gguf: &'static str, biased: bool| {
            let bias = name(json, gguf, "bias");
            let biased = biased || checkpoint.tensor(&bias).is_some();
            (name(json, gguf, "weight"), biased.then_some(bias))
        };
        LayerTensors {
            attention_norm: name("input_layernorm", "attn_norm", "weight"),
            attention: AttentionTensors {
                q: linear("self_attn.q_proj", "attn_q", traits.qkv_bias),
                k: linear("self_attn.k_proj", "attn_k", traits.qkv_bias),
                v: linear("self_attn.v_proj", "attn_v", traits.qkv_bias),
                o: linear("self_attn.o_proj", "attn_output", false),
                head_norms: traits.head_norms.then(|| {
                    (
                        name("self_attn.q_norm", "attn_q_norm", "weight"),
                        name("self_attn.k_norm", "attn_k_norm", "weight"),
                        epsilon,
                    )
                }),
            },
            mlp_norm: name("post_attention_layernorm", "ffn_norm", "weight"),
            gate: linear("mlp.gate_proj", "ffn_gate", false),
            up: linear("mlp.up_proj", "ffn_up", false),
            down: linear("mlp.down_proj", "ffn_down", false),
        }
    }
}
