//! The language side of Qwen's vision-language models, as encoders of prompts: decoders whose rotary
//! positions have an axis for time, rows and columns (Wang et al., "Qwen2-VL", arXiv 2409.12191).

use engine_base::CancelToken;
use engine_nn::{Activations, Linear, ModelError, Runner, rms_norm_in_place};
use engine_tensor::ops::{
    AttentionSpec, KvKind, KvRows, QueryRow, RopePairs, RopeRows, add, attention, embedding,
    rms_norm, rope_rows, silu_mul,
};
use engine_tensor::{Cpu, TensorError};
use serde_json::Value;

use crate::LoadError;
use crate::error::{check_sizes, wrong};
use crate::images::Tensors;

/// Most tokens of a prompt with its pictures.
const MOST_TOKENS: usize = 16_384;

/// How the angles of a head are shared between time, rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AxisOrder {
    /// One after the other.
    Blocks,
    /// In turns; what is left belongs to time.
    Turns,
}

/// Sizes of the decoder.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct VlTextConfig {
    pub(super) hidden: usize,
    inner: usize,
    layers: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    vocab: usize,
    epsilon: f32,
    theta: f64,
    sections: [usize; 3],
    order: AxisOrder,
}

impl VlTextConfig {
    /// Of `config.json`, whose text part may stand on its own or among the rest.
    pub(super) fn of(config: &Value, order: AxisOrder) -> Result<Self, LoadError> {
        let part = config.get("text_config").unwrap_or(config);
        let count = |key: &str| part[key].as_u64().and_then(|n| usize::try_from(n).ok());
        let needed = |key: &str| {
            count(key).ok_or_else(|| wrong(key, &part[key], "a whole number from 1 to 2^20"))
        };
        let (hidden, heads) = (needed("hidden_size")?, needed("num_attention_heads")?);
        let rope = ["rope_parameters", "rope_scaling"]
            .into_iter()
            .map(|key| &part[key])
            .find(|rope| rope.is_object())
            .unwrap_or(&Value::Null);
        let theta = rope["rope_theta"].as_f64().or(part["rope_theta"].as_f64());
        let theta = theta.filter(|theta| theta.is_finite() && *theta > 1.0);
        let theta =
            theta.ok_or_else(|| wrong("rope_theta", &rope["rope_theta"], "a number over 1"))?;
        let sections: Option<Vec<usize>> =
            serde_json::from_value(rope["mrope_section"].clone()).unwrap_or_default();
        let sections = sections.and_then(|list| <[usize; 3]>::try_from(list).ok());
        let sections = sections
            .ok_or_else(|| wrong("mrope_section", &rope["mrope_section"], "three numbers"))?;
        let config = Self {
            hidden,
            inner: needed("intermediate_size")?,
            layers: needed("num_hidden_layers")?,
            heads,
            kv_heads: count("num_key_value_heads").unwrap_or(heads),
            head_dim: count("head_dim").unwrap_or(hidden / heads.max(1)),
            vocab: needed("vocab_size")?,
            epsilon: part["rms_norm_eps"].as_f64().unwrap_or(1e-6) as f32,
            theta,
            sections,
            order,
        };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), LoadError> {
        check_sizes([
            ("hidden_size", self.hidden),
            ("intermediate_size", self.inner),
            ("num_hidden_layers", self.layers),
            ("num_attention_heads", self.heads),
            ("num_key_value_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("vocab_size", self.vocab),
        ])?;
        if !self.heads.is_multiple_of(self.kv_heads) {
            let expected = "a divisor of num_attention_heads";
            return Err(wrong("num_key_value_heads", self.kv_heads, expected));
        }
        let turned = self
            .sections
            .iter()
            .try_fold(0usize, |sum, n| sum.checked_add(*n));
        if turned != Some(self.head_dim / 2) || !self.head_dim.is_multiple_of(2) {
            let got = format!("{:?}", self.sections);
            return Err(wrong("mrope_section", got, "half of head_dim together"));
        }
        Ok(())
    }

    /// Which axis turns pair `pair` of a head.
    fn axis(&self, pair: usize) -> usize {
        let [time, rows, columns] = self.sections;
        match self.order {
            AxisOrder::Blocks if pair < time => 0,
            AxisOrder::Blocks if pair < time + rows => 1,
            AxisOrder::Blocks => 2,
            AxisOrder::Turns if pair % 3 == 1 && pair < 3 * rows => 1,
            AxisOrder::Turns if pair % 3 == 2 && pair < 3 * columns => 2,
            AxisOrder::Turns => 0,
        }
    }
}

#[derive(Debug)]
struct Layer {
    norm1: Vec<f32>,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    head_norms: Option<[Vec<f32>; 2]>,
    norm2: Vec<f32>,
    gate: Linear,
    up: Linear,
    down: Linear,
}

/// The decoder.
#[derive(Debug)]
pub(super) struct VlText {
    config: VlTextConfig,
    cpu: Cpu,
    embed: Linear,
    layers: Vec<Layer>,
    norm: Vec<f32>,
}

/// What a model of pictures and words makes of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct VlStates {
    /// Before the first layer and as each one gives them, not normed: `[layers + 1][tokens, hidden]`. What a
    /// tower adds between two layers is not in it, except behind the last.
    pub hidden: Vec<Vec<f32>>,
    /// The last, normed: `[tokens, hidden]`.
    pub last: Vec<f32>,
}

/// A picture in a prompt: where its tokens begin, its rows and columns of tokens, what they are.
#[derive(Debug)]
pub(super) struct SeenPicture {
    pub(super) at: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// `[rows * columns, hidden]`.
    pub(super) states: Vec<f32>,
    /// Added after the first layers, one list for each.
    pub(super) deep: Vec<Vec<f32>>,
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn fault(error: TensorError) -> ModelError {
    ModelError::NotANumber(error.to_string())
}

impl VlText {
    /// `tensors`: those below the language model's name.
    pub(super) fn load(
        tensors: &Tensors<'_>,
        config: &VlTextConfig,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        let hidden = config.hidden;
        let (wide, narrow) = (
            config.heads * config.head_dim,
            config.kv_heads * config.head_dim,
        );
        let mut layers = Vec::new();
        for index in 0..config.layers {
            let layer = tensors.under(format!("layers.{index}"));
            let own = layer.under("self_attn");
            let linear = |name: &str, outputs: usize, inputs: usize| match own
                .has(&format!("{name}.bias"))
            {
                true => own.biased(name, outputs, inputs),
                false => own.linear(name, outputs, inputs),
            };
            let norm = |name: &str| layer.values(&format!("{name}.weight"), &[hidden]);
            let head_norm = |name: &str| own.values(name, &[config.head_dim]);
            layers.push(Layer {
                norm1: norm("input_layernorm")?,
                q: linear("q_proj", wide, hidden)?,
                k: linear("k_proj", narrow, hidden)?,
                v: linear("v_proj", narrow, hidden)?,
                o: linear("o_proj", hidden, wide)?,
                head_norms: match own.has("q_norm.weight") {
                    true => Some([head_norm("q_norm.weight")?, head_norm("k_norm.weight")?]),
                    false => None,
                },
                norm2: norm("post_attention_layernorm")?,
                gate: layer.linear("mlp.gate_proj", config.inner, hidden)?,
                up: layer.linear("mlp.up_proj", config.inner, hidden)?,
                down: layer.linear("mlp.down_proj", hidden, config.inner)?,
            });
        }
        Ok(Self {
            embed: tensors.linear("embed_tokens", config.vocab, hidden)?,
            layers,
            norm: tensors.values("norm.weight", &[hidden])?,
            config: config.clone(),
            cpu: cpu.clone(),
        })
    }

    pub(super) fn config(&self) -> &VlTextConfig {
        &self.config
    }

    /// Time, row and column of each token: words follow each other, a picture stands still in time.
    fn places(tokens: usize, pictures: &[SeenPicture]) -> Vec<[usize; 3]> {
        let mut places = Vec::with_capacity(tokens);
        let mut next = 0;
        let mut pictures = pictures.iter().peekable();
        while places.len() < tokens {
            match pictures.next_if(|picture| picture.at == places.len()) {
                Some(picture) => {
                    for at in 0..picture.rows * picture.columns {
                        let (row, column) = (at / picture.columns, at % picture.columns);
                        places.push([next, next + row, next + column]);
                    }
                    next += picture.rows.max(picture.columns).max(1);
                }
                None => {
                    places.push([next; 3]);
                    next += 1;
                }
            }
        }
        places
    }

    fn turns(&self, places: &[[usize; 3]]) -> RopeRows {
        let half = self.config.head_dim / 2;
        let frequencies: Vec<f64> = (0..half)
            .map(|pair| self.config.theta.powf(-(pair as f64) / half as f64))
            .collect();
        let angles: Vec<f64> = places
            .iter()
            .flat_map(|place| {
                let of = |(pair, frequency): (usize, &f64)| {
                    place[self.config.axis(pair)] as f64 * frequency
                };
                frequencies.iter().enumerate().map(of)
            })
            .collect();
        RopeRows::of_angles(2 * half, &angles)
    }

    /// The states of `tokens`, with `pictures` (in order) in the places of some of them.
    pub(super) fn states(
        &self,
        tokens: &[u32],
        pictures: &[SeenPicture],
        cancel: &CancelToken,
    ) -> Result<VlStates, ModelError> {
        let config = &self.config;
        if tokens.is_empty() || tokens.len() > MOST_TOKENS {
            return Err(ModelError::ContextFull {
                got_tokens: tokens.len(),
                max_tokens: MOST_TOKENS,
            });
        }
        if let Some(got) = tokens.iter().find(|id| **id as usize >= config.vocab) {
            return Err(ModelError::BadToken {
                got: *got,
                vocab: config.vocab,
            });
        }
        let mut x = vec![0.0; tokens.len() * config.hidden];
        embedding(&self.cpu, self.embed.weights(), tokens, &mut x).map_err(fault)?;
        for picture in pictures {
            let start = picture.at * config.hidden;
            let place = x.get_mut(start..start + picture.states.len());
            let place = place.ok_or_else(|| {
                ModelError::NotANumber("a picture stands behind the end of its prompt".to_owned())
            })?;
            place.copy_from_slice(&picture.states);
        }
        let turns = self.turns(&Self::places(tokens.len(), pictures));
        let mut runner = Runner::new(self.cpu.clone(), Activations::Exact);
        let mut hidden = vec![x.clone()];
        for (index, layer) in self.layers.iter().enumerate() {
            cancel.check()?;
            self.layer(&mut runner, layer, &mut x, &turns)
                .map_err(fault)?;
            hidden.push(x.clone());
            for picture in pictures {
                let Some(deep) = picture.deep.get(index) else {
                    continue;
                };
                let start = picture.at * config.hidden;
                add(&self.cpu, &mut x[start..start + deep.len()], deep).map_err(fault)?;
            }
        }
        let mut last = vec![0.0; x.len()];
        rms_norm(&self.cpu, &x, &self.norm, config.epsilon, &mut last).map_err(fault)?;
        // A model whose tower speaks to its last layer too.
        if let Some(behind) = hidden.last_mut() {
            *behind = x;
        }
        Ok(VlStates { hidden, last })
    }

    fn layer(
        &self,
        runner: &mut Runner,
        layer: &Layer,
        x: &mut [f32],
        turns: &RopeRows,
    ) -> Result<(), TensorError> {
        let config = &self.config;
        let rows = x.len() / config.hidden;
        let narrow = config.kv_heads * config.head_dim;
        let mut normed = vec![0.0; x.len()];
        rms_norm(&self.cpu, x, &layer.norm1, config.epsilon, &mut normed)?;
        let mut q = vec![0.0; rows * config.heads * config.head_dim];
        let (mut k, mut v) = (vec![0.0; rows * narrow], vec![0.0; rows * narrow]);
        runner.linear(
            &normed,
            [(&layer.q, &mut q), (&layer.k, &mut k), (&layer.v, &mut v)],
        )?;
        if let Some([q_norm, k_norm]) = &layer.head_norms {
            rms_norm_in_place(&self.cpu, &mut q, q_norm, config.epsilon)?;
            rms_norm_in_place(&self.cpu, &mut k, k_norm, config.epsilon)?;
        }
        for part in [&mut q, &mut k] {
            rope_rows(&self.cpu, turns, RopePairs::Halves, config.head_dim, part)?;
        }
        let mut kv = KvRows::new(KvKind::F32, config.kv_heads, config.head_dim);
        for (key, value) in k.chunks_exact(narrow).zip(v.chunks_exact(narrow)) {
            kv.push(key, value)?;
        }
        let queries: Vec<QueryRow<'_>> = (0..rows)
            .map(|position| QueryRow { kv: &kv, position })
            .collect();
        let spec = AttentionSpec {
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
            scale: (1.0 / (config.head_dim as f64).sqrt()) as f32,
            window: None,
        };
        let mut mixed = vec![0.0; q.len()];
        attention(&self.cpu, &spec, &q, &queries, &mut mixed)?;
        let mut out = vec![0.0; x.len()];
        runner.linear(&mixed, [(&layer.o, &mut out)])?;
        add(&self.cpu, x, &out)?;
        rms_norm(&self.cpu, x, &layer.norm2, config.epsilon, &mut normed)?;
        let mut gate = vec![0.0; rows * config.inner];
        let mut up = gate.clone();
        runner.linear(&normed, [(&layer.gate, &mut gate), (&layer.up, &mut up)])?;
        silu_mul(&self.cpu, &mut gate, &up)?;
        runner.linear(&gate, [(&layer.down, &mut out)])?;
        add(&self.cpu, x, &out)
    }
}
