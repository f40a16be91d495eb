//! Attention of grouped heads over cached keys and values (Vaswani et al., arXiv 1706.03762;
//! grouped heads: Ainslie et al., arXiv 2305.13245).

use std::cell::RefCell;

use super::case::{Bound, Case, Op, Outcome, numbers};
use super::softmax::exponentials;
use crate::error::expect;
use crate::lanes::{Lanes, Values};
use crate::shared::SharedSlice;
use crate::simd::by_simd;
use crate::{Cpu, TensorError, f32_to_f16};

pub(super) const OP: Op = Op {
    name: "attention",
    about: "softmax(q k^T * scale) v, causal, grouped heads, optionally over a window",
    cases,
};

/// Positions of a tile of keys.
const TILE: usize = 16;
/// Query rows that share what is read.
const ROWS: usize = 8;

/// How keys and values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvKind {
    /// 4 bytes each.
    F32,
    /// 2 bytes each; larger magnitudes than 65,504 are cut.
    F16,
}

#[derive(Debug, Clone)]
enum Kept {
    F32 {
        keys: Vec<[f32; 16]>,
        values: Vec<[f32; 16]>,
    },
    F16 {
        keys: Vec<[u16; 16]>,
        values: Vec<[u16; 16]>,
    },
}

/// Keys and values of one layer of one stream. Grows as positions are added.
///
/// Keys lie in tiles of 16 positions: `[tiles, kv_heads, head_dim, 16]`; values as
/// `[positions, kv_heads, head_dim rounded up to 16]`.
#[derive(Debug, Clone)]
pub struct KvRows {
    kv_heads: usize,
    head_dim: usize,
    positions: usize,
    kept: Kept,
}

impl KvRows {
    /// Empty.
    pub fn new(kind: KvKind, kv_heads: usize, head_dim: usize) -> Self {
        let kept = match kind {
            KvKind::F32 => Kept::F32 {
                keys: Vec::new(),
                values: Vec::new(),
            },
            KvKind::F16 => Kept::F16 {
                keys: Vec::new(),
                values: Vec::new(),
            },
        };
        Self {
            kv_heads,
            head_dim,
            positions: 0,
            kept,
        }
    }

    /// Positions kept.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Forgets all positions from `positions` on.
    pub fn truncate(&mut self, positions: usize) {
        self.positions = self.positions.min(positions);
    }

    /// Bytes that one position takes.
    pub fn position_bytes(kind: KvKind, kv_heads: usize, head_dim: usize) -> usize {
        let bytes = match kind {
            KvKind::F32 => 4,
            KvKind::F16 => 2,
        };
        bytes * kv_heads * (head_dim + head_dim.next_multiple_of(16))
    }

    /// Appends one position. `key`, `value`: `[kv_heads, head_dim]`.
    ///
    /// # Errors
    /// `Shape` for other lengths.
    pub fn push(&mut self, key: &[f32], value: &[f32]) -> Result<(), TensorError> {
        const OP: &str = "attention";
        let len = self.kv_heads * self.head_dim;
        expect(OP, "length of a key", key.len(), len)?;
        expect(OP, "length of a value", value.len(), len)?;
        match &mut self.kept {
            Kept::F32 { keys, values } => {
                push(
                    keys,
                    values,
                    self.positions,
                    self.head_dim,
                    (key, value),
                    |x| x,
                );
            }
            Kept::F16 { keys, values } => {
                push(
                    keys,
                    values,
                    self.positions,
                    self.head_dim,
                    (key, value),
                    |x| f32_to_f16(x.clamp(-65_504.0, 65_504.0)),
                );
            }
        }
        self.positions += 1;
        Ok(())
    }
}

fn push<T: Copy + Default>(
    keys: &mut Vec<[T; 16]>,
    values: &mut Vec<[T; 16]>,
    position: usize,
    head_dim: usize,
    (key, value): (&[f32], &[f32]),
    keep: impl Fn(f32) -> T,
) {
    let (tile, lane) = (position / TILE * key.len(), position % TILE);
    if keys.len() < tile + key.len() {
        keys.resize(tile + key.len(), [T::default(); 16]);
    }
    for (keys, key) in keys[tile..].iter_mut().zip(key) {
        keys[lane] = keep(*key);
    }
    let chunks = head_dim.div_ceil(16);
    let row = value.len() / head_dim.max(1) * chunks;
    if values.len() < (position + 1) * row {
        values.resize((position + 1) * row, [T::default(); 16]);
    }
    let rows = values[position * row..][..row].chunks_exact_mut(chunks.max(1));
    for (out, head) in rows.zip(value.chunks_exact(head_dim.max(1))) {
        for (at, value) in head.iter().enumerate() {
            out[at / 16][at % 16] = keep(*value);
        }
    }
}

/// What is the same for all rows of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionSpec {
    /// Heads of queries: a multiple of the heads of keys.
    pub heads: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Factor of the scores.
    pub scale: f32,
    /// Positions a query sees, its own among them; all before it when `None`.
    pub window: Option<usize>,
}

/// One row of queries.
#[derive(Debug, Clone, Copy)]
pub struct QueryRow<'a> {
    /// Keys and values of its stream.
    pub kv: &'a KvRows,
    /// Its position: it sees this position and those before it.
    pub position: usize,
}

/// `out: [rows, heads, head_dim]` for queries `q` of the same shape, row `r` as `rows[r]` says.
///
/// Bits of a row do not depend on other rows, on threads or on the instruction set.
///
/// # Errors
/// `Shape` when lengths do not go together or a position is not in the cache.
pub fn attention(
    cpu: &Cpu,
    spec: &AttentionSpec,
    q: &[f32],
    rows: &[QueryRow<'_>],
    out: &mut [f32],
) -> Result<(), TensorError> {
    const OP: &str = "attention";
    expect(OP, "kv_heads > 0", usize::from(spec.kv_heads > 0), 1)?;
    expect(OP, "window > 0", usize::from(spec.window != Some(0)), 1)?;
    expect(OP, "heads % kv_heads", spec.heads % spec.kv_heads, 0)?;
    let width = spec.heads * spec.head_dim;
    expect(OP, "length of q", q.len(), rows.len() * width)?;
    expect(OP, "length of out", out.len(), q.len())?;
    for row in rows {
        expect(OP, "kv_heads of a cache", row.kv.kv_heads, spec.kv_heads)?;
        expect(OP, "head_dim of a cache", row.kv.head_dim, spec.head_dim)?;
        let inside = usize::from(row.position < row.kv.positions);
        expect(OP, "position in the cache", inside, 1)?;
    }
    let group = spec.heads / spec.kv_heads;
    // Blocks of query rows that share a cache and a head of keys.
    let tokens_per_block = (ROWS / group).max(1);
    let mut blocks = Vec::new();
    let mut start = 0;
    while start < rows.len() {
        let same = rows[start..].iter().take(tokens_per_block);
        let same = same.take_while(|row| std::ptr::eq(row.kv, rows[start].kv));
        let end = start + same.count();
        blocks.push(start..end);
        start = end;
    }
    let out = SharedSlice::new(out);
    cpu.threads().run(blocks.len() * spec.kv_heads, &|task| {
        let block = Block {
            spec,
            q,
            rows,
            tokens: blocks[task / spec.kv_heads].clone(),
            kv_head: task % spec.kv_heads,
            out: &out,
        };
        SCRATCH.with_borrow_mut(|scratch| run_block(cpu.simd(), &block, scratch));
    });
    Ok(())
}

struct Block<'a> {
    spec: &'a AttentionSpec,
    q: &'a [f32],
    rows: &'a [QueryRow<'a>],
    tokens: std::ops::Range<usize>,
    kv_head: usize,
    out: &'a SharedSlice<'a, f32>,
}

#[derive(Default)]
struct Scratch {
    /// Queries times the scale: `[rows, head_dim]`.
    q: Vec<f32>,
    /// Scores, then shares: `[rows, positions rounded up to 16]`.
    scores: Vec<[f32; 16]>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

by_simd! {
    fn run_block(block: &Block<'_>, scratch: &mut Scratch) = block_body;
}

#[inline(always)]
fn block_body<L: Lanes>(block: &Block<'_>, scratch: &mut Scratch) {
    let kv = block.rows[block.tokens.start].kv;
    match &kv.kept {
        Kept::F32 { keys, values } => {
            let load = |from: &[f32; 16]| {
                // SAFETY: `by_simd!` chose `L`.
                unsafe { L::load_slice(from) }
            };
            attend::<L, f32>(block, scratch, keys, values, load);
        }
        Kept::F16 { keys, values } => {
            let load = |from: &[u16; 16]| {
                // SAFETY: `by_simd!` chose `L`; halves are finite as `push` cuts them.
                unsafe { L::load_f16(from) }
            };
            attend::<L, u16>(block, scratch, keys, values, load);
        }
    }
}

#[inline(always)]
fn attend<L: Lanes, T>(
    block: &Block<'_>,
    scratch: &mut Scratch,
    keys: &[[T; 16]],
    values: &[[T; 16]],
    load: impl Fn(&[T; 16]) -> L::Floats + Copy,
) {
    let spec = block.spec;
    let (dim, group) = (spec.head_dim, spec.heads / spec.kv_heads);
    let tokens = block.tokens.clone();
    let count = tokens.len() * group;
    let range_of = |row: usize| {
        let end = block.rows[tokens.start + row / group].position + 1;
        spec.window.map_or(0, |window| end.saturating_sub(window))..end
    };
    let at_of = |row: usize| {
        let head = block.kv_head * group + row % group;
        ((tokens.start + row / group) * spec.heads + head) * dim
    };
    scratch.q.clear();
    for row in 0..count {
        let q = &block.q[at_of(row)..][..dim];
        scratch.q.extend(q.iter().map(|q| q * spec.scale));
    }
    let first = (0..count).map(|row| range_of(row).start).min().unwrap_or(0);
    let end = (0..count).map(|row| range_of(row).end).max().unwrap_or(0);
    let tiles = first / TILE..end.div_ceil(TILE);
    let width = tiles.len();
    scratch.scores.clear();
    scratch.scores.resize(count * width, [0.0; 16]);
    let mut row = 0;
    while row < count {
        macro_rules! some {
            ($rows:literal) => {{
                let q: [&[f32]; $rows] =
                    std::array::from_fn(|at| &scratch.q[(row + at) * dim..][..dim]);
                for tile in tiles.clone() {
                    let start = (tile * spec.kv_heads + block.kv_head) * dim;
                    let keys = &keys[start..start + dim];
                    // SAFETY: `by_simd!` chose `L`.
                    let acc = unsafe { scores::<L, T, $rows>(keys, &q, load) };
                    for (at, acc) in acc.into_iter().enumerate() {
                        let to = (row + at) * width + tile - tiles.start;
                        // SAFETY: as above.
                        unsafe { L::store_slice(&mut scratch.scores[to], acc) };
                    }
                }
                row += $rows;
            }};
        }
        match count - row {
            8.. => some!(8),
            4.. => some!(4),
            3 => some!(3),
            2 => some!(2),
            _ => some!(1),
        }
    }
    let mut inverse = Vec::with_capacity(count);
    for row in 0..count {
        let range = range_of(row);
        let scores = scratch.scores[row * width..][..width].as_flattened_mut();
        let base = tiles.start * TILE;
        scores[..range.start - base].fill(0.0);
        scores[range.end - base..].fill(0.0);
        // The order of the sum follows the position within the window alone.
        let total = exponentials(&mut scores[range.start - base..range.end - base]);
        inverse.push(1.0 / total);
    }
    let chunks = dim.div_ceil(16);
    for chunk in 0..chunks {
        let mut row = 0;
        while row < count {
            macro_rules! some {
                ($rows:literal) => {{
                    let shares: [&[f32]; $rows] = std::array::from_fn(|at| {
                        let scores = scratch.scores[(row + at) * width..][..width].as_flattened();
                        &scores[first - tiles.start * TILE..end - tiles.start * TILE]
                    });
                    let stride = spec.kv_heads * chunks;
                    let values = &values[first * stride + block.kv_head * chunks + chunk..];
                    // SAFETY: `by_simd!` chose `L`.
                    let acc = unsafe { mix::<L, T, $rows>(values, stride, &shares, load) };
                    for (at, acc) in acc.into_iter().enumerate() {
                        let mut mixed = Values::ZERO;
                        // SAFETY: as above.
                        unsafe {
                            L::store(&mut mixed, L::mul(acc, L::splat(inverse[row + at])));
                        }
                        let start = at_of(row + at) + 16 * chunk;
                        let len = 16.min(dim - 16 * chunk);
                        // SAFETY: each block writes its own heads of its own rows.
                        let out = unsafe { block.out.part(start..start + len) };
                        out.copy_from_slice(&mixed.0[..len]);
                    }
                    row += $rows;
                }};
            }
            match count - row {
                8.. => some!(8),
                4.. => some!(4),
                3 => some!(3),
                2 => some!(2),
                _ => some!(1),
            }
        }
    }
}

/// Scores of 16 positions: `keys: [head_dim, 16]`.
#[inline(always)]
unsafe fn scores<L: Lanes, T, const N: usize>(
    keys: &[[T; 16]],
    q: &[&[f32]; N],
    load: impl Fn(&[T; 16]) -> L::Floats,
) -> [L::Floats; N] {
    // SAFETY: the caller chose `L`.
    unsafe {
        let mut acc = [L::splat(0.0); N];
        for (at, key) in keys.iter().enumerate() {
            let key = load(key);
            for (acc, q) in acc.iter_mut().zip(q) {
                *acc = L::fused(key, L::splat(q[at]), *acc);
            }
        }
        acc
    }
}

/// Values times shares, position after position, for 16 elements of a head.
#[inline(always)]
unsafe fn mix<L: Lanes, T, const N: usize>(
    values: &[[T; 16]],
    stride: usize,
    shares: &[&[f32]; N],
    load: impl Fn(&[T; 16]) -> L::Floats,
) -> [L::Floats; N] {
    // SAFETY: the caller chose `L`.
    unsafe {
        let mut acc = [L::splat(0.0); N];
        for (at, value) in values
            .iter()
            .step_by(stride)
            .take(shares[0].len())
            .enumerate()
        {
            let value = load(value);
            for (acc, shares) in acc.iter_mut().zip(shares) {
                *acc = L::fused(value, L::splat(shares[at]), *acc);
            }
        }
        acc
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let shapes = [(4, 2, 16), (9, 3, 64), (4, 1, 8), (3, 3, 20)];
    for (heads, kv_heads, head_dim) in shapes {
        for (kind, bound) in [(KvKind::F32, 2e-6), (KvKind::F16, 2e-3)] {
            for (start, count, window) in [
                (0, 1, None),
                (40, 1, None),
                (13, 21, None),
                (30, 9, Some(17)),
            ] {
                let name = format!(
                    "{heads}/{kv_heads} heads of {head_dim}, {kind:?}, {count} from {start}, {window:?}"
                );
                cases.push(Case::new(name, Bound::Relative(bound), move |cpu| {
                    let spec = AttentionSpec {
                        heads,
                        kv_heads,
                        head_dim,
                        scale: 1.0 / (head_dim as f32).sqrt(),
                        window,
                    };
                    run_case(cpu, &spec, kind, start, count)
                }));
            }
        }
    }
    cases
}

fn run_case(
    cpu: &Cpu,
    spec: &AttentionSpec,
    kind: KvKind,
    start: usize,
    count: usize,
) -> Result<Outcome, TensorError> {
    let (dim, row) = (spec.head_dim, spec.kv_heads * spec.head_dim);
    let positions = start + count;
    let (keys, values) = (numbers(1, positions * row), numbers(2, positions * row));
    let mut kv = KvRows::new(kind, spec.kv_heads, dim);
    for (key, value) in keys.chunks_exact(row).zip(values.chunks_exact(row)) {
        kv.push(key, value)?;
    }
    let q: Vec<f32> = numbers(3, count * spec.heads * dim)
        .iter()
        .map(|q| 3.0 * q)
        .collect();
    let rows: Vec<QueryRow<'_>> = (start..positions)
        .map(|position| QueryRow { kv: &kv, position })
        .collect();
    let mut fast = vec![0.0; q.len()];
    attention(cpu, spec, &q, &rows, &mut fast)?;
    let mut reference = Vec::new();
    for (at, q) in q.chunks_exact(dim).enumerate() {
        let position = start + at / spec.heads;
        let kv_head = at % spec.heads / (spec.heads / spec.kv_heads);
        let from = spec
            .window
            .map_or(0, |window| (position + 1).saturating_sub(window));
        let of = |rows: &[f32], at: usize, i: usize| f64::from(rows[at * row + kv_head * dim + i]);
        let score = |at: usize| -> f64 {
            let products = (0..dim).map(|i| f64::from(q[i]) * of(&keys, at, i));
            products.sum::<f64>() * f64::from(spec.scale)
        };
        let shares: Vec<f64> = (from..=position).map(|at| score(at).exp()).collect();
        let total: f64 = shares.iter().sum();
        reference.extend((0..dim).map(|i| {
            let mixed = shares
                .iter()
                .enumerate()
                .map(|(at, share)| share * of(&values, from + at, i));
            (mixed.sum::<f64>() / total) as f32
        }));
    }
    Ok(Outcome { fast, reference })
}
