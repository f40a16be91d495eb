//! Tokens of tiny models: the device's step against the CPU's forward pass.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use engine_base::CancelToken;
use engine_cuda::{
    Buffer, Decoder, DecoderLayer, DecoderShape, DecoderWeights, Device, GateUp, Matrix,
};
use engine_models::{Activations, KvKind, LoadOptions, load_dense};
use engine_nn::TokenModel as _;
use engine_tensor::ops::{RopePairs, RopeScaling, argmax};
use engine_weights::{Checkpoint, open};
use half::bf16;
use serde_json::Value;

/// Tokens that each model goes on for.
const TOKENS: usize = 100;
/// Below this gap between the two largest logits either is right.
const GAP: f32 = 1e-3;

/// What a model gave.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    pub(crate) equal: usize,
    /// Other choices where the CPU's two largest logits lie closer than [`GAP`].
    pub(crate) ties: usize,
    /// Other choices with a larger gap, which are faults: position and gap.
    pub(crate) wrong: Vec<(usize, f32)>,
    /// Largest difference of a logit, in parts of the largest logit.
    pub(crate) logits: f32,
    /// Whether streams that ran together gave the bits of one that ran alone.
    pub(crate) together: bool,
    /// Whether recorded steps gave the bits of launched ones, and a second run those of the first.
    pub(crate) repeated: bool,
}

fn shape_of(config: &Value) -> Result<DecoderShape> {
    let number = |key: &str| {
        let value = config[key]
            .as_u64()
            .with_context(|| format!("no {key:?} in the configuration"))?;
        Ok::<usize, anyhow::Error>(usize::try_from(value)?)
    };
    Ok(DecoderShape {
        hidden: number("hidden_size")?,
        layers: number("num_hidden_layers")?,
        heads: number("num_attention_heads")?,
        kv_heads: number("num_key_value_heads")?,
        head_dim: number("head_dim")?,
        inner: number("intermediate_size")?,
        vocab: number("vocab_size")?,
        context_tokens: number("max_position_embeddings")?,
        epsilon: config["rms_norm_eps"]
            .as_f64()
            .context("no \"rms_norm_eps\"")? as f32,
        rope_base: config["rope_parameters"]["rope_theta"]
            .as_f64()
            .context("no \"rope_theta\"")?,
        rope_scaling: RopeScaling::None,
        rope_pairs: RopePairs::Halves,
    })
}

fn weights_of(
    device: &Device,
    checkpoint: &dyn Checkpoint,
    shape: &DecoderShape,
) -> Result<DecoderWeights> {
    let values = |name: &str| -> Result<Vec<f32>> {
        let tensor = checkpoint
            .tensor(name)
            .with_context(|| format!("no tensor {name:?}"))?;
        Ok(tensor.to_f32()?)
    };
    let matrix = |names: &[String]| -> Result<Buffer> {
        let mut bits = Vec::new();
        for name in names {
            bits.extend(
                values(name)?
                    .into_iter()
                    .map(|value| bf16::from_f32(value).to_bits()),
            );
        }
        Ok(device.upload(&bits)?)
    };
    let vector = |name: String| -> Result<Buffer> { Ok(device.upload(&values(&name)?)?) };
    let mut layers = Vec::new();
    for at in 0..shape.layers {
        let name = |rest: &str| format!("model.layers.{at}.{rest}.weight");
        let attention =
            ["q_proj", "k_proj", "v_proj"].map(|part| name(&format!("self_attn.{part}")));
        let has_norms = checkpoint.tensor(&name("self_attn.q_norm")).is_some();
        layers.push(DecoderLayer {
            attention_norm: vector(name("input_layernorm"))?,
            qkv: Matrix::Bf16(matrix(&attention)?),
            qkv_bias: None,
            head_norms: match has_norms {
                true => Some((
                    vector(name("self_attn.q_norm"))?,
                    vector(name("self_attn.k_norm"))?,
                )),
                false => None,
            },
            o: Matrix::Bf16(matrix(&[name("self_attn.o_proj")])?),
            mlp_norm: vector(name("post_attention_layernorm"))?,
            gate_up: GateUp::Bf16 {
                gate: matrix(&[name("mlp.gate_proj")])?,
                up: matrix(&[name("mlp.up_proj")])?,
            },
            down: Matrix::Bf16(matrix(&[name("mlp.down_proj")])?),
        });
    }
    let head = "lm_head.weight".to_owned();
    Ok(DecoderWeights {
        embed: matrix(&["model.embed_tokens.weight".to_owned()])?,
        layers,
        norm: vector("model.norm.weight".to_owned())?,
        head: match checkpoint.tensor(&head) {
            Some(_) => Some(Matrix::Bf16(matrix(&[head])?)),
            None => None,
        },
    })
}

/// The model in `folder`: the CPU writes a reply, the device is given the same tokens and asked at each what comes
/// next.
pub(crate) fn agreement(device: &Device, folder: &Path) -> Result<Agreement> {
    let checkpoint = open(folder)?;
    let text = std::fs::read_to_string(folder.join("config.json"))?;
    let shape = shape_of(&serde_json::from_str(&text)?)?;
    let options = LoadOptions {
        kv: KvKind::F32,
        activations: Activations::Exact,
        ..LoadOptions::default()
    };
    let cancel = CancelToken::new();
    let mut stream = load_dense(checkpoint.as_ref(), &options)?.stream();
    let mut tokens: Vec<u32> = vec![1, 17, 200, 5, 43];
    let mut logits = vec![Vec::new(); tokens.len() - 1];
    logits.push(stream.extend(&tokens, &cancel)?.to_vec());
    while tokens.len() < TOKENS {
        let next = logits
            .last()
            .and_then(|logits| argmax(logits))
            .context("no logits")?;
        // Greedy replies of random models fall into loops: every third token is another.
        let next = if tokens.len().is_multiple_of(3) {
            (next * 7 + tokens.len()) % shape.vocab
        } else {
            next
        };
        tokens.push(u32::try_from(next)?);
        logits.push(
            stream
                .extend(&tokens[tokens.len() - 1..], &cancel)?
                .to_vec(),
        );
    }
    let weights = Arc::new(weights_of(device, checkpoint.as_ref(), &shape)?);
    let mut alone = Decoder::new(device, shape, Arc::clone(&weights), 1)?;
    alone.give(&[&tokens])?;
    let mut result = Agreement {
        together: true,
        repeated: true,
        ..Agreement::default()
    };
    let mut of_device = Vec::new();
    for (at, expected) in logits.iter().enumerate() {
        alone.step()?;
        let got = alone.logits()?;
        if !expected.is_empty() {
            compare(&mut result, at, expected, &got)?;
        }
        of_device.push(got);
    }
    // Launched kernel by kernel; then in company, at other positions.
    alone.give(&[&tokens])?;
    for expected in &of_device {
        alone.step_launched()?;
        result.repeated &= bits(expected) == bits(&alone.logits()?);
    }
    for rows in [2, 9, 16] {
        let mut company = Decoder::new(device, shape, Arc::clone(&weights), rows)?;
        let other: Vec<u32> = tokens.iter().rev().copied().collect();
        let prompts: Vec<&[u32]> = (0..rows)
            .map(|row| {
                if row == rows - 1 {
                    &tokens[..]
                } else {
                    &other[row..]
                }
            })
            .collect();
        company.give(&prompts)?;
        for expected in &of_device {
            company.step()?;
            let all = company.logits()?;
            result.together &= bits(expected) == bits(&all[(rows - 1) * shape.vocab..]);
        }
    }
    Ok(result)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn compare(result: &mut Agreement, at: usize, expected: &[f32], got: &[f32]) -> Result<()> {
    let largest = expected.iter().fold(1e-30f32, |a, b| a.max(b.abs()));
    let off = expected.iter().zip(got).fold(0.0f32, |a, (x, y)| {
        let off = (x - y).abs() / largest;
        if off.is_nan() {
            f32::INFINITY
        } else {
            a.max(off)
        }
    });
    result.logits = result.logits.max(off);
    let best = argmax(expected).context("no logits")?;
    if argmax(got) == Some(best) {
        result.equal += 1;
        return Ok(());
    }
    let second = expected
        .iter()
        .enumerate()
        .filter(|(token, _)| *token != best);
    let second = second.fold(f32::NEG_INFINITY, |a, (_, b)| a.max(*b));
    let gap = expected[best] - second;
    if gap <= GAP {
        result.ties += 1;
    } else {
        result.wrong.push((at, gap));
    }
    Ok(())
}

/// How far a prompt taken at once is from the same prompt taken step by step, by the logits after it: the largest
/// difference in parts of the largest logit. Random weights of a small model with heads of `head_dim`.
pub(crate) fn prefill_error(device: &Device, head_dim: usize, tokens: usize) -> Result<f32> {
    let shape = DecoderShape {
        hidden: 256,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim,
        inner: 512,
        vocab: 1000,
        context_tokens: 512,
        epsilon: 1e-5,
        rope_base: 1e4,
        rope_scaling: RopeScaling::None,
        rope_pairs: RopePairs::Halves,
    };
    let weights = Arc::new(DecoderWeights::random(
        device,
        &shape,
        (true, false, false),
        3,
    )?);
    let prompt: Vec<u32> = (0..tokens as u32).map(|at| at * 7919 % 1000).collect();
    let mut by_steps = Decoder::new(device, shape, Arc::clone(&weights), 1)?;
    by_steps.give(&[&prompt])?;
    for _ in 0..tokens {
        by_steps.step()?;
    }
    let mut at_once = Decoder::new(device, shape, weights, 1)?;
    at_once.prefill(&prompt)?;
    let mut worst = 0.0f32;
    // And a step further: the pages that were filled are read.
    for _ in 0..2 {
        let (expected, got) = (by_steps.logits()?, at_once.logits()?);
        let largest = expected.iter().fold(1e-30f32, |a, b| a.max(b.abs()));
        for (x, y) in expected.iter().zip(&got) {
            let off = (x - y).abs() / largest;
            worst = if off.is_nan() {
                f32::INFINITY
            } else {
                worst.max(off)
            };
        }
        // The same next token for both, whatever each would choose.
        let next = [prompt.as_slice(), &[17]].concat();
        by_steps.give(&[&next])?;
        for _ in 0..next.len() {
            by_steps.step()?;
        }
        at_once.follow(17)?;
        at_once.step()?;
    }
    Ok(worst)
}
