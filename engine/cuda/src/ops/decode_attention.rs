//! One decode step of attention over paged keys and values, and the step's beginning.

use engine_tensor::Cpu;
use engine_tensor::ops::{
    self, AttentionSpec, Bound, KvKind, KvRows, Outcome, QueryRow, RopePairs, RopeScaling,
    RopeTable,
};

use super::case::{Case, Op, from_bf16, numbers, to_bf16};
use super::elementwise::{fits, int};
use super::rope::turns;
use crate::args::{Args, pair};
use crate::device::Kernel;
use crate::driver::Grid;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const OP: Op = Op {
    name: "decode_attention",
    cases,
};

/// Positions of a page.
pub(crate) const PAGE: usize = 64;

/// Heads' sizes and their counts of queries for each of keys that have a kernel.
const KERNELS: &[(usize, usize, &str)] = &[
    (16, 1, "decode_attention_d16_g1"),
    (16, 2, "decode_attention_d16_g2"),
    (16, 4, "decode_attention_d16_g4"),
    (32, 1, "decode_attention_d32_g1"),
    (32, 2, "decode_attention_d32_g2"),
    (32, 4, "decode_attention_d32_g4"),
    (64, 1, "decode_attention_d64_g1"),
    (64, 2, "decode_attention_d64_g2"),
    (64, 3, "decode_attention_d64_g3"),
    (64, 4, "decode_attention_d64_g4"),
    (64, 8, "decode_attention_d64_g8"),
    (128, 1, "decode_attention_d128_g1"),
    (128, 2, "decode_attention_d128_g2"),
    (128, 4, "decode_attention_d128_g4"),
    (128, 8, "decode_attention_d128_g8"),
];

/// A step of attention. Row `r` is one stream at `positions[r]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    /// `[rows, (heads + 2 kv_heads) * head_dim]`, f32: not yet normed or turned.
    pub(crate) qkv: &'a Buffer,
    /// Norms of each head of queries and keys: `[head_dim]` each, f32, and their epsilon.
    pub(crate) norms: Option<(&'a Buffer, &'a Buffer, f32)>,
    /// `[positions, head_dim]`.
    pub(crate) turns: &'a Buffer,
    pub(crate) pairs: RopePairs,
    /// `[rows]`, i32.
    pub(crate) positions: &'a Buffer,
    /// `[rows, max_pages]`, i32: places in `keys` and `values`.
    pub(crate) pages: &'a Buffer,
    /// `[pages, kv_heads, 64, head_dim]`, bf16. All places in `pages` must be inside.
    pub(crate) keys: &'a Buffer,
    pub(crate) values: &'a Buffer,
    /// `[rows, heads, max_pages, head_dim + 2]`, f32.
    pub(crate) partial: &'a Buffer,
    /// `[rows, kv_heads]`, u32, zeros between calls.
    pub(crate) counters: &'a Buffer,
    /// `[rows, heads * head_dim]`, bf16.
    pub(crate) out: &'a Buffer,
    pub(crate) rows: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
    pub(crate) max_pages: usize,
}

/// Runs it: the new keys and values go to their pages. Rows at positions beyond their pages are left alone.
pub(crate) fn decode_attention(device: &Device, step: &Step<'_>) -> Result<(), CudaError> {
    const OP: &str = "decode_attention";
    let Step {
        rows,
        heads,
        kv_heads,
        head_dim: d,
        max_pages,
        ..
    } = *step;
    ensure(
        kv_heads > 0 && heads.is_multiple_of(kv_heads),
        OP,
        "heads",
        heads,
        format_args!("a multiple of {kv_heads}"),
    )?;
    let group = heads / kv_heads;
    let found = KERNELS
        .iter()
        .find(|(dim, of, _)| (*dim, *of) == (d, group));
    let Some((_, _, name)) = found else {
        return ensure(
            false,
            OP,
            "head_dim",
            d,
            format_args!("a kernel for {group} heads of queries a head of keys"),
        );
    };
    ensure(
        rows > 0 && max_pages > 0,
        OP,
        "rows and pages",
        rows.min(max_pages),
        "over 0",
    )?;
    fits(OP, "qkv", step.qkv, rows * (heads + 2 * kv_heads) * d, 4)?;
    fits(OP, "turns", step.turns, max_pages * PAGE * d, 4)?;
    fits(OP, "positions", step.positions, rows, 4)?;
    fits(OP, "pages", step.pages, rows * max_pages, 4)?;
    fits(
        OP,
        "partial",
        step.partial,
        rows * heads * max_pages * (d + 2),
        4,
    )?;
    fits(OP, "counters", step.counters, rows * kv_heads, 4)?;
    fits(OP, "out", step.out, rows * heads * d, 2)?;
    let (q_norm, k_norm, epsilon) = match step.norms {
        Some((q, k, epsilon)) => {
            fits(OP, "norm of queries", q, d, 4)?;
            fits(OP, "norm of keys", k, d, 4)?;
            (q.address(), k.address(), epsilon)
        }
        None => (0, 0, 0.0),
    };
    let scale = (1.0 / (d as f64).sqrt()) as f32;
    let places = [
        step.qkv.address(),
        q_norm,
        k_norm,
        step.turns.address(),
        step.positions.address(),
        step.pages.address(),
        step.keys.address(),
        step.values.address(),
        step.partial.address(),
        step.counters.address(),
        step.out.address(),
        pair(int(OP, "heads", heads)?, int(OP, "kv_heads", kv_heads)?),
        pair(
            int(OP, "pages", max_pages)?,
            i32::from(step.pairs == RopePairs::Neighbours),
        ),
        pair(scale, epsilon),
    ];
    let part = |what, n| int(OP, what, n).map(i32::cast_unsigned);
    let grid = Grid {
        blocks: (
            part("kv_heads", kv_heads)?,
            part("pages", max_pages)?,
            part("rows", rows)?,
        ),
        threads: if d >= 64 { 256 } else { 128 },
        shared_bytes: 0,
        // Measured: it gains nothing itself, and takes places from the product before it.
        early: false,
    };
    let kernel = Kernel {
        source: "decode_attention",
        name,
    };
    let shape = [rows, heads, kv_heads, d, max_pages];
    // SAFETY: lengths were checked above; the owner of the pages keeps their places inside.
    unsafe { device.launch(kernel, grid, Args::new().with_struct(&places), (OP, &shape)) }
}

/// Lets a kernel fail: keys and values are looked for far outside memory. For checks of how faults are told; nothing
/// runs on the device after it in this process.
///
/// # Errors
/// `Fault`.
pub fn fault(device: &Device) -> Result<(), CudaError> {
    let d = 16;
    let zeros = device.zeros(PAGE * d * 4)?;
    let step = Step {
        qkv: &zeros,
        norms: None,
        turns: &zeros,
        pairs: RopePairs::Halves,
        positions: &zeros,
        pages: &device.upload(&[1i32 << 30])?,
        keys: &zeros,
        values: &zeros,
        partial: &zeros,
        counters: &zeros,
        out: &device.zeros(d * 2)?,
        rows: 1,
        heads: 1,
        kv_heads: 1,
        head_dim: d,
        max_pages: 1,
    };
    decode_attention(device, &step)?;
    device.wait()
}

/// What a step begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begin<'a> {
    /// `[vocab, hidden]`, bf16.
    pub(crate) table: &'a Buffer,
    /// `[rows]`, u64.
    pub(crate) best: &'a Buffer,
    /// `[rows]`, i32.
    pub(crate) positions: &'a Buffer,
    /// `[rows, tokens_cap]`, u32.
    pub(crate) tokens: &'a Buffer,
    /// `[rows]`, i32.
    pub(crate) given: &'a Buffer,
    /// `[rows, hidden]`, f32.
    pub(crate) x: &'a Buffer,
    pub(crate) rows: usize,
    pub(crate) hidden: usize,
    pub(crate) vocab: usize,
    pub(crate) tokens_cap: usize,
}

/// Moves each row on by one position and puts its token's row of the table into `x`.
pub(crate) fn begin(device: &Device, work: &Begin<'_>) -> Result<(), CudaError> {
    const OP: &str = "decode_begin";
    let Begin {
        rows,
        hidden,
        vocab,
        tokens_cap,
        ..
    } = *work;
    ensure(
        rows > 0 && vocab > 0 && tokens_cap > 0,
        OP,
        "rows",
        rows,
        "over 0",
    )?;
    fits(OP, "table", work.table, vocab * hidden, 2)?;
    fits(OP, "best", work.best, rows, 8)?;
    fits(OP, "positions", work.positions, rows, 4)?;
    fits(OP, "tokens", work.tokens, rows * tokens_cap, 4)?;
    fits(OP, "given", work.given, rows, 4)?;
    fits(OP, "x", work.x, rows * hidden, 4)?;
    let places = [
        work.table.address(),
        work.best.address(),
        work.positions.address(),
        work.tokens.address(),
        work.given.address(),
        work.x.address(),
        pair(int(OP, "hidden", hidden)?, int(OP, "vocab", vocab)?),
        pair(int(OP, "tokens", tokens_cap)?, 0i32),
    ];
    let grid = Grid {
        blocks: (int(OP, "rows", rows)?.cast_unsigned(), 1, 1),
        threads: 256,
        shared_bytes: 0,
        early: true,
    };
    let kernel = Kernel {
        source: "decode_attention",
        name: OP,
    };
    // SAFETY: lengths were checked above; the kernel checks tokens against the table.
    unsafe {
        device.launch(
            kernel,
            grid,
            Args::new().with_struct(&places),
            (OP, &[rows, hidden]),
        )
    }
}

fn cases() -> Vec<Case> {
    let positions: [&[usize]; 4] = [&[0], &[63], &[64, 0, 200], &[5, 383, 128, 127]];
    let mut cases = Vec::new();
    for (d, group, _) in KERNELS {
        for (at, positions) in positions.into_iter().enumerate() {
            let (kv_heads, normed) = (1 + at % 3, at % 2 == 1);
            let name = format!(
                "{} heads over {kv_heads} of {d} at {positions:?}, normed {normed}",
                group * kv_heads
            );
            let shape = (group * kv_heads, kv_heads, *d);
            cases.push(Case::new(
                name,
                Bound::Relative(1e-2),
                move |device, cpu| run_case(device, cpu, shape, positions, normed),
            ));
        }
    }
    cases
}

/// Caches before a step by both sides, then the step.
fn run_case(
    device: &Device,
    cpu: &Cpu,
    (heads, kv_heads, d): (usize, usize, usize),
    positions: &[usize],
    normed: bool,
) -> Result<Outcome, CudaError> {
    let (rows, max_pages) = (positions.len(), 6);
    let qkv = numbers(1, rows * (heads + 2 * kv_heads) * d);
    let norms = (numbers(2, d), numbers(3, d));
    let width = kv_heads * d;
    let (mut keys, mut values) = (
        vec![0u16; rows * max_pages * PAGE * width],
        vec![0u16; rows * max_pages * PAGE * width],
    );
    // Pages in no order.
    let pages: Vec<i32> = (0..rows * max_pages)
        .map(|at| (at * 5 % (rows * max_pages)) as i32)
        .collect();
    let mut caches = Vec::new();
    for (row, position) in positions.iter().enumerate() {
        let mut cache = KvRows::new(KvKind::F32, kv_heads, d);
        for at in 0..*position {
            let seed = (1000 * row + at) as u64;
            let (k, v) = (
                to_bf16(&numbers(2 * seed + 10, width)),
                to_bf16(&numbers(2 * seed + 11, width)),
            );
            cache.push(&from_bf16(&k), &from_bf16(&v))?;
            let page = pages[row * max_pages + at / PAGE] as usize;
            for (i, (k, v)) in k.iter().zip(&v).enumerate() {
                let to = ((page * kv_heads + i / d) * PAGE + at % PAGE) * d + i % d;
                (keys[to], values[to]) = (*k, *v);
            }
        }
        caches.push(cache);
    }
    let mut table = RopeTable::new(d, 1e4, RopeScaling::None, RopePairs::Halves)?;
    table.extend(max_pages * PAGE);
    let mut queries = Vec::new();
    for ((row, position), cache) in qkv
        .chunks_exact((heads + 2 * kv_heads) * d)
        .zip(positions)
        .zip(&mut caches)
    {
        let (mut q, mut k) = (
            row[..heads * d].to_vec(),
            row[heads * d..][..width].to_vec(),
        );
        if normed {
            let (q_before, k_before) = (q.clone(), k.clone());
            ops::rms_norm(cpu, &q_before, &norms.0, 1e-6, &mut q)?;
            ops::rms_norm(cpu, &k_before, &norms.1, 1e-6, &mut k)?;
        }
        ops::rope(&table, &mut q, d, &[*position])?;
        ops::rope(&table, &mut k, d, &[*position])?;
        let v = &row[heads * d + width..];
        cache.push(&from_bf16(&to_bf16(&k)), &from_bf16(&to_bf16(v)))?;
        queries.extend(q);
    }
    let of_rows: Vec<QueryRow<'_>> = caches
        .iter()
        .zip(positions)
        .map(|(kv, position)| QueryRow {
            kv,
            position: *position,
        })
        .collect();
    let spec = AttentionSpec {
        heads,
        kv_heads,
        head_dim: d,
        scale: (1.0 / (d as f64).sqrt()) as f32,
        window: None,
    };
    let mut reference = vec![0.0; queries.len()];
    ops::attention(cpu, &spec, &queries, &of_rows, &mut reference)?;
    let (q_norm, k_norm) = (device.upload(&norms.0)?, device.upload(&norms.1)?);
    let at: Vec<i32> = positions.iter().map(|at| *at as i32).collect();
    let out = device.alloc(rows * heads * d * 2)?;
    device.fill(&out, 0xff)?;
    let step = Step {
        qkv: &device.upload(&qkv)?,
        norms: normed.then_some((&q_norm, &k_norm, 1e-6)),
        turns: &device.upload(&turns(d, 1e4, RopeScaling::None, max_pages * PAGE)?)?,
        pairs: RopePairs::Halves,
        positions: &device.upload(&at)?,
        pages: &device.upload(&pages)?,
        keys: &device.upload(&keys)?,
        values: &device.upload(&values)?,
        partial: &device.alloc(rows * heads * max_pages * (d + 2) * 4)?,
        counters: &device.zeros(rows * kv_heads * 4)?,
        out: &out,
        rows,
        heads,
        kv_heads,
        head_dim: d,
        max_pages,
    };
    decode_attention(device, &step)?;
    let fast = from_bf16(&device.read(&out, 0, rows * heads * d)?);
    Ok(Outcome { fast, reference })
}
