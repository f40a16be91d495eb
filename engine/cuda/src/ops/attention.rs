//! Attention of many queries at once: prefill (causal) and bidirectional.

use engine_tensor::ops::{self, AttentionSpec, Bound, KvKind, KvRows, Outcome, QueryRow};

use super::case::{Case, Op, from_bf16, numbers, to_bf16};
use super::elementwise::{fits, int};
use crate::args::{Args, pair};
use crate::device::Kernel;
use crate::driver::Grid;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const OP: Op = Op {
    name: "attention",
    cases,
};

/// Queries that a block takes.
const ROWS: usize = 128;
/// Keys that it holds at a time.
const KEYS: usize = 64;

/// `out = softmax(q k^T * scale) v`; all bf16, rows of `heads * head_dim` elements.
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    /// `[queries, q_stride]` from element `q_start` on.
    pub q: (&'a Buffer, usize),
    /// `[keys, kv_stride]` from that element on.
    pub k: (&'a Buffer, usize),
    /// As `k`.
    pub v: (&'a Buffer, usize),
    /// `[queries, heads * head_dim]`.
    pub out: &'a Buffer,
    /// Elements from a row of queries to the next.
    pub q_stride: usize,
    /// Elements from a row of keys to the next.
    pub kv_stride: usize,
    /// Number of queries.
    pub queries: usize,
    /// Number of keys; at least as many as queries when causal.
    pub keys: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys: a divisor of `heads`.
    pub kv_heads: usize,
    /// 64 or 128.
    pub head_dim: usize,
    /// Whether query `i` sees keys up to `keys - queries + i` only.
    pub causal: bool,
}

/// Runs it, with `scale = 1 / sqrt(head_dim)`. Accumulates in f32; probabilities are rounded to bf16.
///
/// # Errors
/// `Shape`; those of a launch.
pub fn attention(device: &Device, work: &Attention<'_>) -> Result<(), CudaError> {
    run(device, work, Way::Best)
}

/// Which kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The device's best.
    Best,
    /// Those for any target.
    Any,
}

fn run(device: &Device, work: &Attention<'_>, way: Way) -> Result<(), CudaError> {
    const OP: &str = "attention";
    let d = work.head_dim;
    ensure(matches!(d, 64 | 128), OP, "head_dim", d, "64 or 128")?;
    ensure(
        work.kv_heads > 0 && work.heads.is_multiple_of(work.kv_heads) && work.heads > 0,
        OP,
        "heads",
        work.heads,
        format_args!("a multiple of {}", work.kv_heads),
    )?;
    ensure(
        work.queries > 0 && work.keys > 0,
        OP,
        "queries and keys",
        work.queries.min(work.keys),
        "over 0",
    )?;
    ensure(
        !work.causal || work.keys >= work.queries,
        OP,
        "keys",
        work.keys,
        format_args!("at least {}", work.queries),
    )?;
    let strides = [work.q_stride, work.kv_stride, work.q.1, work.k.1, work.v.1];
    ensure(
        strides.iter().all(|s| s.is_multiple_of(8)),
        OP,
        "strides % 8",
        1,
        0,
    )?;
    let end = |start: usize, rows: usize, stride: usize, heads: usize| {
        start + (rows - 1) * stride + heads * d
    };
    fits(
        OP,
        "q",
        work.q.0,
        end(work.q.1, work.queries, work.q_stride, work.heads),
        2,
    )?;
    fits(
        OP,
        "k",
        work.k.0,
        end(work.k.1, work.keys, work.kv_stride, work.kv_heads),
        2,
    )?;
    fits(
        OP,
        "v",
        work.v.0,
        end(work.v.1, work.keys, work.kv_stride, work.kv_heads),
        2,
    )?;
    fits(OP, "out", work.out, work.queries * work.heads * d, 2)?;
    let scale = 1.0 / (d as f64).sqrt() / std::f64::consts::LN_2;
    let at = |(buffer, start): (&Buffer, usize)| buffer.address() + 2 * start as u64;
    let places = [
        at(work.q),
        at(work.k),
        at(work.v),
        work.out.address(),
        work.q_stride as u64,
        work.kv_stride as u64,
        (work.heads * d) as u64,
        pair(
            int(OP, "queries", work.queries)?,
            int(OP, "keys", work.keys)?,
        ),
        pair(
            int(OP, "group", work.heads / work.kv_heads)?,
            i32::from(work.causal),
        ),
        pair(scale as f32, 0i32),
    ];
    let hopper = d == 128 && device.info().capability == (9, 0) && way == Way::Best;
    let (name, threads, shared_bytes) = match (d, hopper) {
        (64, _) => ("attention_d64", 256, (ROWS + 4 * KEYS) * d * 2),
        (_, false) => ("attention_d128", 256, (ROWS + 4 * KEYS) * d * 2),
        // Queries, three tiles of keys and of values, and room to begin at a multiple of 1024.
        (_, true) => ("attention_hopper_d128", 384, 7 * ROWS * d * 2 + 1024),
    };
    let kernel = Kernel {
        source: "attention",
        name,
    };
    let blocks = work.queries.div_ceil(ROWS);
    let grid = Grid {
        blocks: (
            int(OP, "queries", blocks)?.cast_unsigned(),
            int(OP, "heads", work.heads)?.cast_unsigned(),
            1,
        ),
        threads,
        shared_bytes: int(OP, "shared bytes", shared_bytes)?.cast_unsigned(),
        early: false,
    };
    let shape = [work.queries, work.keys, work.heads, work.kv_heads, d];
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel, grid, Args::new().with_struct(&places), (OP, &shape)) }
}

fn cases() -> Vec<Case> {
    let shapes = [
        (1, 1, 1, 1, 64),
        (7, 7, 4, 2, 64),
        (130, 200, 2, 1, 128),
        (64, 64, 3, 3, 128),
        (257, 257, 8, 2, 64),
        (5, 321, 4, 4, 128),
        (300, 700, 4, 2, 128),
        (1000, 1000, 2, 2, 128),
    ];
    let mut cases = Vec::new();
    for (queries, keys, heads, kv_heads, d) in shapes {
        for (causal, way) in [
            (true, Way::Best),
            (false, Way::Best),
            (true, Way::Any),
            (false, Way::Any),
        ] {
            let name = format!(
                "{queries} queries, {keys} keys, {heads} heads over {kv_heads} of {d}, causal {causal}, {way:?}"
            );
            cases.push(Case::new(
                name,
                Bound::Relative(1e-2),
                move |device, cpu| {
                    let q = to_bf16(&numbers(1, queries * heads * d));
                    let k = to_bf16(&numbers(2, keys * kv_heads * d));
                    let v = to_bf16(&numbers(3, keys * kv_heads * d));
                    let mut kv = KvRows::new(KvKind::F32, kv_heads, d);
                    let (ks, vs) = (from_bf16(&k), from_bf16(&v));
                    for (k, v) in ks
                        .chunks_exact(kv_heads * d)
                        .zip(vs.chunks_exact(kv_heads * d))
                    {
                        kv.push(k, v)?;
                    }
                    let rows: Vec<QueryRow<'_>> = (0..queries)
                        .map(|at| QueryRow {
                            kv: &kv,
                            position: if causal {
                                keys - queries + at
                            } else {
                                keys - 1
                            },
                        })
                        .collect();
                    let spec = AttentionSpec {
                        heads,
                        kv_heads,
                        head_dim: d,
                        scale: (1.0 / (d as f64).sqrt()) as f32,
                        window: None,
                    };
                    let mut reference = vec![0.0; q.len()];
                    ops::attention(cpu, &spec, &from_bf16(&q), &rows, &mut reference)?;
                    let (q, k, v) = (device.upload(&q)?, device.upload(&k)?, device.upload(&v)?);
                    let out = device.alloc(queries * heads * d * 2)?;
                    device.fill(&out, 0xff)?;
                    let work = Attention {
                        q: (&q, 0),
                        k: (&k, 0),
                        v: (&v, 0),
                        out: &out,
                        q_stride: heads * d,
                        kv_stride: kv_heads * d,
                        queries,
                        keys,
                        heads,
                        kv_heads,
                        head_dim: d,
                        causal,
                    };
                    run(device, &work, way)?;
                    let fast = from_bf16(&device.read(&out, 0, queries * heads * d)?);
                    Ok(Outcome { fast, reference })
                },
            ));
        }
    }
    cases
}
