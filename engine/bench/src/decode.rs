//! Decode steps of models with random weights: whole steps, and where their time goes.

use std::sync::Arc;

use anyhow::Result;
use engine_cuda::{Decoder, DecoderPart, DecoderShape, DecoderWeights, Device};
use engine_tensor::ops::{RopePairs, RopeScaling};

use crate::receipt::{Receipt, Row, median, timed, timed_graph};

struct Model {
    name: &'static str,
    shape: DecoderShape,
    head_norms: bool,
    tied: bool,
    four_bits: bool,
    bar: Bar,
}

/// What has to be reached.
enum Bar {
    /// Tokens a second.
    Rate(f64),
    /// Times the model that was timed before.
    TimesBefore(f64),
}

const BASE: DecoderShape = DecoderShape {
    hidden: 0,
    layers: 0,
    heads: 0,
    kv_heads: 8,
    head_dim: 128,
    inner: 0,
    vocab: 0,
    context_tokens: 1024,
    epsilon: 1e-6,
    rope_base: 1e6,
    rope_scaling: RopeScaling::None,
    rope_pairs: RopePairs::Halves,
};

/// Sizes of Llama 3 8B.
pub(crate) const LLAMA_3_8B: DecoderShape = DecoderShape {
    hidden: 4096,
    layers: 32,
    heads: 32,
    inner: 14336,
    vocab: 128_256,
    ..BASE
};

const MODELS: &[Model] = &[
    Model {
        name: "decode-llama-3-8b-bf16",
        shape: LLAMA_3_8B,
        head_norms: false,
        tied: false,
        four_bits: false,
        bar: Bar::Rate(210.0),
    },
    Model {
        name: "decode-llama-3-8b-q4-g64",
        shape: LLAMA_3_8B,
        head_norms: false,
        tied: false,
        four_bits: true,
        bar: Bar::TimesBefore(2.2),
    },
    Model {
        name: "decode-qwen3-0.6b-bf16",
        shape: DecoderShape {
            hidden: 1024,
            layers: 28,
            heads: 16,
            inner: 3072,
            vocab: 151_936,
            ..BASE
        },
        head_norms: true,
        tied: true,
        four_bits: false,
        bar: Bar::Rate(795.0),
    },
];

/// Position of the first step that is timed, as for the peers.
const POSITION: usize = 128;
const STEPS: usize = 50;

/// Those of the models whose names have `which`.
pub(crate) fn run(
    device: &Device,
    which: &str,
    receipt: &mut Receipt,
    read_rate: f64,
) -> Result<()> {
    let mut before = 0.0;
    for model in MODELS.iter().filter(|model| model.name.contains(which)) {
        let kinds = (model.head_norms, model.tied, model.four_bits);
        let weights = Arc::new(DecoderWeights::random(device, &model.shape, kinds, 1)?);
        let bar = match model.bar {
            Bar::Rate(rate) => rate,
            Bar::TimesBefore(times) => times * before,
        };
        for rows in [1, 8] {
            let mut decoder = Decoder::new(device, model.shape, Arc::clone(&weights), rows)?;
            let prompts = vec![&[1u32][..]; rows];
            decoder.give(&prompts)?;
            decoder.step()?;
            decoder.skip_to(POSITION)?;
            let secs = timed(device, STEPS, || decoder.step())?;
            let name = match rows {
                1 => model.name.to_owned(),
                _ => format!("{}-streams-{rows}", model.name),
            };
            let samples: Vec<f64> = secs.iter().map(|secs| rows as f64 / secs).collect();
            if rows == 1 {
                if matches!(model.bar, Bar::TimesBefore(_)) && before > 0.0 {
                    receipt.add(Row {
                        name: &format!("{name}-over-bf16"),
                        unit: "times",
                        higher: true,
                        samples: samples.iter().map(|rate| rate / before).collect(),
                        bar: Some(bar / before),
                        floor: None,
                    });
                }
                before = median(&samples);
            }
            receipt.add(Row {
                name: &name,
                unit: "tokens/s",
                higher: true,
                samples,
                bar: (rows == 1).then_some(bar),
                floor: Some(rows as f64 * read_rate / weights.step_bytes() as f64),
            });
            if rows == 1 {
                parts(device, receipt, model, &decoder)?;
            }
        }
    }
    Ok(())
}

fn parts(device: &Device, receipt: &mut Receipt, model: &Model, decoder: &Decoder) -> Result<()> {
    for part in DecoderPart::OF_LAYER.iter().chain(&[DecoderPart::Head]) {
        let graph = decoder.record_part(*part)?;
        let inner = match part {
            DecoderPart::Head => 1,
            _ => model.shape.layers,
        };
        let secs = timed_graph(device, 9, inner, &graph)?;
        receipt.add(Row {
            name: &format!("{}-part-{part:?}", model.name).to_lowercase(),
            unit: "us",
            higher: false,
            samples: secs.iter().map(|secs| secs * 1e6).collect(),
            bar: None,
            floor: None,
        });
    }
    Ok(())
}
