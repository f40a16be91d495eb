//! Products with matrices of weights: `out = input x weights^T + bias`.
//!
//! Sixteen rows of weights are turned into a tile; each output then adds up in its own lane, block
//! after block. A block of packed weights meets a block of 8-bit activations in whole numbers,
//! which are exact, so the only roundings are those of the scales: the bits of an output depend on
//! its own row of weights and its own row of input, and on nothing else.

use std::cell::RefCell;

use super::case::{Bound, Case, Op, Outcome, numbers, words};
use crate::error::expect;
use crate::lanes::{Lanes, Line, Values};
use crate::packed::decode::{Coding, coding};
use crate::shared::SharedSlice;
use crate::simd::by_simd;
use crate::tile::{CodeTile, TILE, TileRows, turn_floats, unpack};
use crate::{Bytes, Cpu, DType, PackedMatrix, QuantRows, TensorError};

pub(super) const OP: Op = Op {
    name: "matmul",
    about: "rows of input times rows of packed or plain weights",
    cases,
};

/// Columns that are unpacked at a time: their codes stay in the first cache.
const CODE_COLS: usize = 1024;
/// The same for plain floats.
const FLOAT_COLS: usize = 256;

/// Rows of input.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// `[rows, cols]`.
    pub values: &'a [f32],
    /// The same in 8 bits: used with packed weights, whose rows are decoded to f32 without it.
    pub quant: Option<&'a QuantRows>,
}

/// One product of a call; those of a call share their input.
#[derive(Debug)]
pub struct Product<'a> {
    /// `[outputs, cols]`.
    pub weights: &'a PackedMatrix,
    /// `[outputs]`.
    pub bias: Option<&'a [f32]>,
    /// `[rows, outputs]`.
    pub out: &'a mut [f32],
}

/// Runs all `products` on `input`.
///
/// Accumulates in f32, in the order of columns. Bits do not depend on rows, threads or
/// instruction set.
///
/// # Errors
/// `Shape` when lengths do not go together.
pub fn matmul(
    cpu: &Cpu,
    input: Input<'_>,
    products: &mut [Product<'_>],
) -> Result<(), TensorError> {
    const OP: &str = "matmul";
    let mut parts = Vec::with_capacity(products.len());
    let mut tiles = 0;
    for product in products.iter_mut() {
        let (outputs, cols) = (product.weights.rows(), product.weights.cols());
        expect(OP, "length of input % cols", input.values.len() % cols, 0)?;
        let rows = input.values.len() / cols;
        expect(OP, "length of out", product.out.len(), rows * outputs)?;
        if let Some(bias) = product.bias {
            expect(OP, "length of bias", bias.len(), outputs)?;
        }
        let quant = input.quant.filter(|_| product.weights.is_packed());
        if let Some(quant) = quant {
            expect(OP, "cols of the input in 8 bits", quant.cols, cols)?;
            expect(OP, "rows of the input in 8 bits", quant.rows, rows)?;
        }
        parts.push(Part {
            weights: product.weights,
            bias: product.bias,
            values: input.values,
            quant,
            out: SharedSlice::new(product.out),
            first_tile: tiles,
        });
        tiles += outputs.div_ceil(TILE);
    }
    // Some tasks for each thread, so that a thread that was held up is helped out.
    let per_task = (tiles / (cpu.threads().count() * 8)).clamp(1, 64);
    cpu.threads().run(tiles.div_ceil(per_task), &|task| {
        let range = task * per_task..((task + 1) * per_task).min(tiles);
        SCRATCH.with_borrow_mut(|scratch| {
            for tile in range {
                let at = parts.partition_point(|part| part.first_tile <= tile) - 1;
                let part = &parts[at];
                run_tile(cpu.simd(), part, tile - part.first_tile, scratch);
            }
        });
    });
    Ok(())
}

struct Part<'a> {
    weights: &'a PackedMatrix,
    bias: Option<&'a [f32]>,
    values: &'a [f32],
    quant: Option<&'a QuantRows>,
    out: SharedSlice<'a, f32>,
    first_tile: usize,
}

/// Memory of a thread for the tile it works on.
#[derive(Default)]
struct Scratch {
    lines: Vec<Line>,
    scales: Vec<Values>,
    offsets: Vec<Values>,
    floats: Vec<Values>,
    /// One for each row of input.
    sums: Vec<Values>,
    row: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

by_simd! {
    fn run_tile(part: &Part<'_>, tile: usize, scratch: &mut Scratch) = tile_body;
}

#[inline(always)]
fn tile_body<L: Lanes>(part: &Part<'_>, tile: usize, scratch: &mut Scratch) {
    let (outputs, cols) = (part.weights.rows(), part.weights.cols());
    let rows = part.values.len() / cols;
    let first = tile * TILE;
    let count = TILE.min(outputs - first);
    scratch.sums.clear();
    scratch.sums.resize(rows, Values::ZERO);
    let (bytes, row_bytes) = part.weights.bytes();
    let bytes = &bytes[first * row_bytes..(first + count) * row_bytes];
    let mut tile_rows = TileRows {
        starts: [bytes.as_ptr(); TILE],
    };
    for (row, start) in tile_rows.starts.iter_mut().enumerate() {
        *start = bytes[row.min(count - 1) * row_bytes..].as_ptr();
    }
    match (part.quant, coding(part.weights.dtype())) {
        (Some(quant), Some(coding)) => {
            // SAFETY: the tile's rows are whole rows of the matrix; `by_simd!` chose `L`.
            unsafe { code_sums::<L>(part.weights, &tile_rows, coding, quant, scratch) };
        }
        (None, Some(_)) => {
            turn_decoded(part.weights, first, count, scratch);
            let Scratch { floats, sums, .. } = scratch;
            // SAFETY: `by_simd!` chose `L`.
            unsafe { float_sums::<L>(floats, part.values, cols, 0, sums) };
        }
        (_, None) => {
            let Scratch { floats, sums, .. } = scratch;
            let mut start = 0;
            while start < cols {
                let width = FLOAT_COLS.min(cols - start);
                floats.resize(width, Values::ZERO);
                // SAFETY: columns are inside the rows; `by_simd!` chose `L`.
                unsafe {
                    turn_floats::<L>(part.weights.dtype(), &tile_rows, start, floats);
                    float_sums::<L>(floats, part.values, cols, start, sums);
                }
                start += width;
            }
        }
    }
    for (row, sums) in scratch.sums.iter().enumerate() {
        let start = row * outputs + first;
        // SAFETY: each tile writes its own columns.
        let out = unsafe { part.out.part(start..start + count) };
        match part.bias {
            Some(bias) => {
                for (at, out) in out.iter_mut().enumerate() {
                    *out = sums.0[at] + bias[first + at];
                }
            }
            None => out.copy_from_slice(&sums.0[..count]),
        }
    }
}

/// The tile of decoded rows, all columns: for products without rounded activations.
fn turn_decoded(weights: &PackedMatrix, first: usize, count: usize, scratch: &mut Scratch) {
    let Scratch { floats, row, .. } = scratch;
    floats.clear();
    floats.resize(weights.cols(), Values::ZERO);
    row.resize(weights.cols(), 0.0);
    for lane in 0..count {
        weights.decode_row(first + lane, row);
        for (floats, value) in floats.iter_mut().zip(row.iter()) {
            floats.0[lane] = *value;
        }
    }
}

/// Adds `tile: [width]` times columns `start..start + width` of each input row.
#[inline(always)]
unsafe fn float_sums<L: Lanes>(
    tile: &[Values],
    values: &[f32],
    cols: usize,
    start: usize,
    sums: &mut [Values],
) {
    macro_rules! rows {
        ($count:literal, $row:expr, $sums:expr) => {{
            let inputs: [&[f32]; $count] =
                std::array::from_fn(|at| &values[($row + at) * cols + start..][..tile.len()]);
            // SAFETY: the caller chose `L`.
            unsafe {
                let mut acc = [L::splat(0.0); $count];
                for (acc, sums) in acc.iter_mut().zip($sums.iter()) {
                    *acc = L::load(sums);
                }
                for (col, weights) in tile.iter().enumerate() {
                    let weights = L::load(weights);
                    for (acc, input) in acc.iter_mut().zip(&inputs) {
                        *acc = L::fused(weights, L::splat(input[col]), *acc);
                    }
                }
                for (sums, acc) in $sums.iter_mut().zip(acc) {
                    L::store(sums, acc);
                }
            }
        }};
    }
    let (eights, rest) = sums.as_chunks_mut::<8>();
    let done = 8 * eights.len();
    for (at, sums) in eights.iter_mut().enumerate() {
        rows!(8, 8 * at, sums);
    }
    for (at, sums) in rest.iter_mut().enumerate() {
        let sums = std::slice::from_mut(sums);
        rows!(1, done + at, sums);
    }
}

#[inline(always)]
unsafe fn code_sums<L: Lanes>(
    weights: &PackedMatrix,
    rows: &TileRows,
    coding: Coding,
    quant: &QuantRows,
    scratch: &mut Scratch,
) {
    let dtype = weights.dtype();
    let cols = weights.cols();
    let after = rows.starts[0].wrapping_add(TILE * weights.bytes().1);
    let mut start = 0;
    while start < cols {
        let width = CODE_COLS.min(cols - start);
        scratch.lines.resize(width / 4, Line([0; 64]));
        scratch.scales.resize(width / coding.group, Values::ZERO);
        scratch.offsets.resize(width / coding.group, Values::ZERO);
        let mut tile = CodeTile {
            lines: &mut scratch.lines,
            scales: &mut scratch.scales,
            offsets: &mut scratch.offsets,
        };
        let block = start / dtype.block_elements();
        let sums = &mut scratch.sums;
        // SAFETY: the blocks are inside the rows; the caller chose `L`.
        unsafe {
            let block = block * dtype.block_bytes();
            let skipped = rows.skip(block);
            let blocks = width / dtype.block_elements();
            unpack::<L>(
                dtype,
                &skipped,
                blocks,
                after.wrapping_add(block * TILE),
                &mut tile,
            );
            match (coding.group, coding.bias) {
                (32, 0) => dot_rows::<L, false, 0>(&tile, quant, start, sums),
                (32, 8) => dot_rows::<L, false, 8>(&tile, quant, start, sums),
                (32, 16) => dot_rows::<L, false, 16>(&tile, quant, start, sums),
                (32, _) => dot_rows::<L, false, 128>(&tile, quant, start, sums),
                (_, 0) => dot_rows::<L, true, 0>(&tile, quant, start, sums),
                (_, 4) => dot_rows::<L, true, 4>(&tile, quant, start, sums),
                _ => dot_rows::<L, true, 32>(&tile, quant, start, sums),
            }
        }
        start += width;
    }
}

/// Adds the tile times columns from `start` of each input row; `HALF` when groups are of 16.
#[inline(always)]
unsafe fn dot_rows<L: Lanes, const HALF: bool, const BIAS: i32>(
    tile: &CodeTile<'_>,
    quant: &QuantRows,
    start: usize,
    sums: &mut [Values],
) {
    let (eights, rest) = sums.as_chunks_mut::<8>();
    let mut row = 0;
    for sums in eights {
        // SAFETY: the caller's promise.
        unsafe { dot_some::<L, HALF, BIAS, 8>(tile, quant, start, row, sums) };
        row += 8;
    }
    let (twos, rest) = rest.as_chunks_mut::<2>();
    for sums in twos {
        // SAFETY: the caller's promise.
        unsafe { dot_some::<L, HALF, BIAS, 2>(tile, quant, start, row, sums) };
        row += 2;
    }
    for sums in rest {
        let sums = std::array::from_mut(sums);
        // SAFETY: the caller's promise.
        unsafe { dot_some::<L, HALF, BIAS, 1>(tile, quant, start, row, sums) };
        row += 1;
    }
}

fn four(codes: &[i8; 32], at: usize) -> [i8; 4] {
    [
        codes[4 * at],
        codes[4 * at + 1],
        codes[4 * at + 2],
        codes[4 * at + 3],
    ]
}

#[inline(always)]
unsafe fn dot_some<L: Lanes, const HALF: bool, const BIAS: i32, const ROWS: usize>(
    tile: &CodeTile<'_>,
    quant: &QuantRows,
    start: usize,
    first_row: usize,
    sums: &mut [Values; ROWS],
) {
    let (lines, _) = tile.lines.as_chunks::<8>();
    let blocks = lines.len();
    let row_blocks = quant.cols / 32;
    let at = |row: usize| (first_row + row) * row_blocks + start / 32;
    let (codes, _) = quant.codes.as_chunks::<32>();
    let codes: [&[[i8; 32]]; ROWS] = std::array::from_fn(|row| &codes[at(row)..][..blocks]);
    let scales: [&[f32]; ROWS] = std::array::from_fn(|row| &quant.scales[at(row)..][..blocks]);
    let whole: [&[i32]; ROWS] = std::array::from_fn(|row| &quant.sums[at(row)..][..blocks]);
    let weighted: [&[f32]; ROWS] = std::array::from_fn(|row| &quant.weighted[at(row)..][..blocks]);
    let (halves, _) = quant.half_sums.as_chunks::<2>();
    let halves: [&[[i32; 2]]; ROWS] = std::array::from_fn(|row| &halves[at(row)..][..blocks]);
    // SAFETY: the caller chose `L`.
    unsafe {
        let mut acc = [L::splat(0.0); ROWS];
        for (acc, sums) in acc.iter_mut().zip(sums.iter()) {
            *acc = L::load(sums);
        }
        for (block, lines) in lines.iter().enumerate() {
            for row in 0..ROWS {
                let codes = &codes[row][block];
                let scale = scales[row][block];
                let parts = if HALF { 2 } else { 1 };
                for (part, half_sum) in halves[row][block].iter().enumerate().take(parts) {
                    let range = 8 / parts * part..8 / parts * (part + 1);
                    let mut dot = L::splat_int(0);
                    for group in range {
                        let codes = four(codes, group);
                        dot = if BIAS == 128 {
                            L::dot::<true>(dot, &lines[group], codes)
                        } else {
                            L::dot::<false>(dot, &lines[group], codes)
                        };
                    }
                    let sum = if HALF { *half_sum } else { whole[row][block] };
                    if BIAS != 0 {
                        dot = L::unbias(dot, BIAS, sum);
                    }
                    let scales = L::load(&tile.scales[parts * block + part]);
                    let scales = L::mul(scales, L::splat(scale));
                    acc[row] = L::fused(L::to_floats(dot), scales, acc[row]);
                    if BIAS == 0 {
                        let offsets = L::load(&tile.offsets[parts * block + part]);
                        let weighted = if HALF {
                            scale * sum as f32
                        } else {
                            weighted[row][block]
                        };
                        acc[row] = L::fused(offsets, L::splat(weighted), acc[row]);
                    }
                }
            }
        }
        for (sums, acc) in sums.iter_mut().zip(acc) {
            L::store(sums, acc);
        }
    }
}

/// A matrix of any type with random codes and scales of about 1/16, for cases.
pub(super) fn test_matrix(
    dtype: DType,
    rows: usize,
    cols: usize,
    seed: u64,
) -> Result<PackedMatrix, TensorError> {
    let len = dtype.bytes_of(rows * cols).unwrap_or(0);
    let mut bytes: Vec<u8> = words(seed, len).map(|word| (word >> 33) as u8).collect();
    let scales: &[usize] = match dtype {
        DType::Q4_1 | DType::Q5_1 | DType::Q4_K | DType::Q5_K => &[0, 2],
        DType::Q2_K => &[80, 82],
        DType::Q3_K => &[108],
        DType::Q6_K => &[208],
        _ => &[0],
    };
    let values = numbers(seed, rows * cols);
    for (at, block) in bytes.chunks_exact_mut(dtype.block_bytes()).enumerate() {
        match dtype {
            DType::F32 => block.copy_from_slice(&values[at].to_le_bytes()),
            DType::BF16 => block.copy_from_slice(&values[at].to_le_bytes()[2..]),
            _ => {
                for (which, offset) in scales.iter().enumerate() {
                    let value = values[(at + which) % values.len()] / 16.0;
                    let half = crate::f32_to_f16(value).to_le_bytes();
                    block[*offset..offset + 2].copy_from_slice(&half);
                }
            }
        }
    }
    PackedMatrix::new("case", dtype, rows, cols, Bytes::from(bytes))
}

/// Products in f64 of decoded weights and input.
fn reference(weights: &PackedMatrix, input: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let cols = weights.cols();
    let mut decoded = vec![0.0; cols];
    let rows = input.len() / cols;
    let mut out = vec![0.0; rows * weights.rows()];
    for output in 0..weights.rows() {
        weights.decode_row(output, &mut decoded);
        for (row, input) in input.chunks_exact(cols).enumerate() {
            let pairs = decoded.iter().zip(input);
            let sum: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let bias = bias.map_or(0.0, |bias| f64::from(bias[output]));
            out[row * weights.rows() + output] = (sum + bias) as f32;
        }
    }
    out
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in PackedMatrix::DTYPES.iter().copied() {
        let cols: &[usize] = if dtype.block_elements() == 256 {
            &[256, 1280]
        } else if dtype.block_elements() == 32 {
            &[32, 1120]
        } else {
            &[3, 300]
        };
        for cols in cols.iter().copied() {
            for rows in [1, 11] {
                let name = format!("{dtype}, {rows} x {cols}");
                cases.push(Case::new(name, Bound::Relative(3e-6), move |cpu| {
                    let weights = test_matrix(dtype, 53, cols, 5)?;
                    let bias = numbers(6, 53);
                    let values = numbers(7, rows * cols);
                    let mut quant = QuantRows::new();
                    let mut known = values.clone();
                    if weights.is_packed() {
                        quant.fill(cpu, &values, cols)?;
                        let known = known.chunks_exact_mut(cols).enumerate();
                        known.for_each(|(row, known)| quant.decode_row(row, known));
                    }
                    let mut fast = vec![0.0; rows * 53];
                    let product = Product {
                        weights: &weights,
                        bias: Some(&bias),
                        out: &mut fast,
                    };
                    let quant = weights.is_packed().then_some(&quant);
                    let input = Input {
                        values: &values,
                        quant,
                    };
                    matmul(cpu, input, &mut [product])?;
                    let reference = reference(&weights, &known, Some(&bias));
                    Ok(Outcome { fast, reference })
                }));
            }
        }
    }
    for dtype in [DType::Q4_1, DType::Q6_K] {
        let name = format!("{dtype}, activations not rounded");
        cases.push(Case::new(name, Bound::Relative(3e-6), move |cpu| {
            let weights = test_matrix(dtype, 20, 512, 5)?;
            let values = numbers(7, 3 * 512);
            let mut fast = vec![0.0; 3 * 20];
            let product = Product {
                weights: &weights,
                bias: None,
                out: &mut fast,
            };
            let input = Input {
                values: &values,
                quant: None,
            };
            matmul(cpu, input, &mut [product])?;
            let reference = reference(&weights, &values, None);
            Ok(Outcome { fast, reference })
        }));
    }
    cases
}
