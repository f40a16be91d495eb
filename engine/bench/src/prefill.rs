//! Attention of many queries, and whole prompts.

use std::sync::Arc;

use anyhow::Result;
use engine_cuda::ops::{Attention, attention, fill_bf16};
use engine_cuda::{Decoder, DecoderShape, DecoderWeights, Device};

use crate::decode::LLAMA_3_8B;
use crate::receipt::{Receipt, Row, timed};

/// Tokens of the prompt that is timed.
const TOKENS: usize = 8192;

/// A prompt of the Llama-3-8B shape with random weights.
pub(crate) fn prompt(device: &Device, receipt: &mut Receipt) -> Result<()> {
    let shape = DecoderShape {
        context_tokens: TOKENS + 64,
        ..LLAMA_3_8B
    };
    let weights = Arc::new(DecoderWeights::random(
        device,
        &shape,
        (false, false, false),
        1,
    )?);
    let mut decoder = Decoder::new(device, shape, weights, 1)?;
    let tokens: Vec<u32> = (0..TOKENS as u32)
        .map(|at| at.wrapping_mul(2_654_435_761) % 128_256)
        .collect();
    let secs = timed(device, 9, || decoder.prefill(&tokens))?;
    receipt.add(Row {
        name: "prefill-llama-3-8b-8192",
        unit: "ms",
        higher: false,
        samples: secs.iter().map(|secs| secs * 1e3).collect(),
        bar: Some(220.0),
        floor: Some(165.0),
    });
    Ok(())
}

/// Attention alone.
pub(crate) fn attentions(device: &Device, receipt: &mut Receipt) -> Result<()> {
    let shapes = [
        (
            "attention-4608-24x128-both-ways",
            4608,
            24,
            24,
            false,
            Some(558.0),
        ),
        (
            "attention-8192-32x128-over-8-causal",
            8192,
            32,
            8,
            true,
            None,
        ),
    ];
    for (name, tokens, heads, kv_heads, causal, bar) in shapes {
        let d = 128;
        let (q, out) = (
            device.alloc(tokens * heads * d * 2)?,
            device.alloc(tokens * heads * d * 2)?,
        );
        let (k, v) = (
            device.alloc(tokens * kv_heads * d * 2)?,
            device.alloc(tokens * kv_heads * d * 2)?,
        );
        for (at, buffer) in [&q, &k, &v].into_iter().enumerate() {
            fill_bf16(device, buffer, at as u32, 1.7)?;
        }
        let work = Attention {
            q: (&q, 0),
            k: (&k, 0),
            v: (&v, 0),
            out: &out,
            q_stride: heads * d,
            kv_stride: kv_heads * d,
            queries: tokens,
            keys: tokens,
            heads,
            kv_heads,
            head_dim: d,
            causal,
        };
        let secs = timed(device, 15, || attention(device, &work))?;
        let share = if causal { 0.5 } else { 1.0 };
        let operations = 4.0 * (tokens * tokens * heads * d) as f64 * share;
        receipt.add(Row {
            name,
            unit: "TFLOP/s",
            higher: true,
            samples: secs.iter().map(|secs| operations / secs / 1e12).collect(),
            bar,
            floor: None,
        });
    }
    Ok(())
}
