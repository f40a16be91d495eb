//! Products of 1 to 16 rows with weights of 8 and 4 bits.

use std::sync::atomic::{AtomicU8, Ordering};

use engine_tensor::ops::{self, Bound, Input, Outcome, Product};
use engine_tensor::{Bytes, Cpu, DType, PackedMatrix, f32_to_f16};

use super::GEMV_ROWS;
use super::case::{Case, Op, from_half, numbers, to_half, words};
use super::elementwise::{fits, int};
use crate::args::{Args, pair};
use crate::device::Kernel;
use crate::driver::Grid;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const OP: Op = Op {
    name: "packed_gemv",
    cases,
};

/// Outputs and elements of k of a tile of 4-bit weights.
pub(super) const TILE: usize = 16;
const STEP: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bits8,
    /// Elements of a group.
    Bits4(usize),
}

/// A matrix of packed weights on the device, laid out as the kernels read it.
#[derive(Debug)]
pub struct PackedWeights {
    pub(super) kind: Kind,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) codes: Buffer,
    pub(super) scales: Buffer,
}

impl PackedWeights {
    /// From rows as they lie in a file: Q8_0, Q4_0 or Q4_1. `bytes`: `[n, k]`.
    ///
    /// # Errors
    /// `Shape` for another type or other lengths; those of an upload.
    pub fn from_blocks(
        device: &Device,
        dtype: DType,
        (n, k): (usize, usize),
        bytes: &[u8],
    ) -> Result<Self, CudaError> {
        const OP: &str = "packed_gemv";
        let known = matches!(dtype, DType::Q8_0 | DType::Q4_0 | DType::Q4_1);
        ensure(
            known,
            OP,
            "bits of the weights",
            dtype.block_bytes(),
            "Q8_0, Q4_0 or Q4_1",
        )?;
        let row = dtype.bytes_of(k).unwrap_or(0);
        ensure(n > 0 && k > 0 && row > 0, OP, "k", k, "a multiple of 32")?;
        ensure(
            Some(bytes.len()) == row.checked_mul(n),
            OP,
            "bytes of the weights",
            bytes.len(),
            format_args!("{n} x {row}"),
        )?;
        let blocks = bytes.chunks_exact(dtype.block_bytes());
        if dtype == DType::Q8_0 {
            let (mut codes, mut scales) =
                (Vec::with_capacity(n * k), Vec::with_capacity(n * k / 32));
            for block in blocks {
                scales.push(u16::from_le_bytes([block[0], block[1]]));
                codes.extend_from_slice(&block[2..]);
            }
            return Ok(Self {
                kind: Kind::Bits8,
                n,
                k,
                codes: device.upload(&codes)?,
                scales: device.upload(&scales)?,
            });
        }
        let mut nibbles = Vec::with_capacity(n * k);
        let mut scales = Vec::with_capacity(n * k / 32);
        for block in blocks {
            let scale = u16::from_le_bytes([block[0], block[1]]);
            let (least, codes) = match dtype {
                DType::Q4_1 => (u16::from_le_bytes([block[2], block[3]]), &block[4..]),
                // -8 scale is exact: a change of sign and exponent, except where it is beyond a half.
                _ => (
                    f32_to_f16(-8.0 * engine_tensor::f16_to_f32(scale)),
                    &block[2..],
                ),
            };
            scales.push([scale, least]);
            nibbles.extend(codes.iter().map(|code| code & 15));
            nibbles.extend(codes.iter().map(|code| code >> 4));
        }
        Self::from_groups(device, 32, (n, k), &nibbles, &scales)
    }

    /// From nibbles `[n, k]`, one a byte, and a scale and a minimum (f16) for each group of 32 or 64: `[n, k / group]`.
    ///
    /// # Errors
    /// `Shape` for another group or other lengths; those of an upload.
    pub fn from_groups(
        device: &Device,
        group: usize,
        (n, k): (usize, usize),
        nibbles: &[u8],
        scales: &[[u16; 2]],
    ) -> Result<Self, CudaError> {
        const OP: &str = "packed_gemv";
        ensure(matches!(group, 32 | 64), OP, "group", group, "32 or 64")?;
        ensure(
            n > 0 && k > 0 && k.is_multiple_of(group),
            OP,
            "k",
            k,
            format_args!("a multiple of {group}"),
        )?;
        ensure(
            Some(nibbles.len()) == n.checked_mul(k),
            OP,
            "nibbles",
            nibbles.len(),
            format_args!("{n} x {k}"),
        )?;
        ensure(
            scales.len() == n * k / group,
            OP,
            "scales",
            scales.len(),
            n * k / group,
        )?;
        let (tiles, steps) = (n.div_ceil(TILE), k.div_ceil(STEP));
        let mut packed = vec![0u32; tiles * steps * STEP * TILE / 8];
        for (at, nibble) in nibbles.iter().enumerate() {
            let (row, at) = (at / k, at % k);
            let lane = row % 8 * 4 + at % 32 / 8;
            let half = (row / TILE * steps + at / STEP) * 2 + row % TILE / 8;
            let bit = 16 * (at % 2) + 4 * (at % 8 / 2) + 3;
            packed[half * 128 + lane * 4 + at % STEP / 32] |=
                u32::from(*nibble & 15).rotate_left(bit as u32);
        }
        let parts = STEP / group;
        let mut factors = vec![[0u16; 2]; tiles * steps * TILE * parts];
        for (at, scale) in scales.iter().enumerate() {
            let (row, at) = (at / (k / group), at % (k / group));
            let of_row = (row / TILE * steps + at / parts) * 8 + row % 8;
            factors[(of_row * 2 + row % TILE / 8) * parts + at % parts] = *scale;
        }
        Ok(Self {
            kind: Kind::Bits4(group),
            n,
            k,
            codes: device.upload(&packed)?,
            scales: device.upload(factors.as_flattened())?,
        })
    }

    /// Gate and up of a feed-forward layer in one matrix: eight rows of each in turn. Rows as they lie in a file, Q4_0 or
    /// Q4_1, `[n, k]` each; `n` is a multiple of 8.
    ///
    /// # Errors
    /// As [`PackedWeights::from_blocks`].
    pub fn gate_up(
        device: &Device,
        dtype: DType,
        (n, k): (usize, usize),
        gate: &[u8],
        up: &[u8],
    ) -> Result<Self, CudaError> {
        const OP: &str = "packed_gemv";
        let known = matches!(dtype, DType::Q4_0 | DType::Q4_1);
        let bits = dtype.block_bytes();
        ensure(known, OP, "bits of the weights", bits, "Q4_0 or Q4_1")?;
        ensure(n.is_multiple_of(8), OP, "outputs", n, "a multiple of 8")?;
        ensure(
            gate.len() == up.len(),
            OP,
            "bytes of up",
            up.len(),
            gate.len(),
        )?;
        let eight = (8 * dtype.bytes_of(k).unwrap_or(0)).max(1);
        let pairs = gate.chunks(eight).zip(up.chunks(eight));
        let rows: Vec<u8> = pairs.flat_map(|(gate, up)| [gate, up].concat()).collect();
        Self::from_blocks(device, dtype, (2 * n, k), &rows)
    }

    /// Outputs and inputs.
    pub fn shape(&self) -> (usize, usize) {
        (self.n, self.k)
    }

    /// Bytes that a product reads.
    pub fn len_bytes(&self) -> usize {
        self.codes.len_bytes() + self.scales.len_bytes()
    }

    /// Random weights of 4 bits in groups of 64, made on the device: for benches.
    ///
    /// # Errors
    /// Those of an allocation and a launch.
    pub fn random_4_bits(
        device: &Device,
        (n, k): (usize, usize),
        seed: u32,
    ) -> Result<Self, CudaError> {
        const OP: &str = "packed_gemv";
        ensure(
            n > 0 && k > 0 && k.is_multiple_of(128),
            OP,
            "k",
            k,
            "a multiple of 128",
        )?;
        let weights = Self {
            kind: Kind::Bits4(64),
            n,
            k,
            codes: device.alloc(n.next_multiple_of(TILE) * k / 2)?,
            scales: device.alloc(n.next_multiple_of(TILE) * k / 64 * 4)?,
        };
        super::fill_half(device, &weights.codes, seed, 60_000.0)?;
        super::fill_half(device, &weights.scales, seed + 1, 0.05)?;
        Ok(weights)
    }
}

/// One product with packed weights: `out[r, n] = sum_k x[r, k] weights[n, k] + bias[n]`.
#[derive(Debug, Clone, Copy)]
pub struct PackedGemv<'a> {
    /// `[n, k]`.
    pub weights: &'a PackedWeights,
    /// `[rows, k]`, f16.
    pub x: &'a Buffer,
    /// `[n]`, f32.
    pub bias: Option<&'a Buffer>,
    /// `[rows, n]`, f32.
    pub out: &'a Buffer,
    /// 1 to 16.
    pub rows: usize,
}

/// Runs a product. Codes are exact; accumulates in f32. An output's bits depend on its own rows alone.
///
/// # Errors
/// `Shape`; those of a launch.
pub fn packed_gemv(device: &Device, product: &PackedGemv<'_>) -> Result<(), CudaError> {
    const OP: &str = "packed_gemv";
    let (rows, n, k) = (product.rows, product.weights.n, product.weights.k);
    ensure((1..=GEMV_ROWS).contains(&rows), OP, "rows", rows, "1 to 16")?;
    fits(OP, "x", product.x, rows * k, 2)?;
    fits(OP, "out", product.out, rows * n, 4)?;
    if let Some(bias) = product.bias {
        fits(OP, "bias", bias, n, 4)?;
    }
    let (few, many, group) = match product.weights.kind {
        Kind::Bits8 => (["gemv_q8_store"; 3], "gemv_q8_store_16", 32),
        Kind::Bits4(64) => (["gemv_q4_g64_store"; 3], "gemv_q4_g64_store_16", 64),
        Kind::Bits4(_) => (["gemv_q4_g32_store"; 3], "gemv_q4_g32_store_16", 32),
    };
    let places = [
        product.weights.codes.address(),
        product.weights.scales.address(),
        product.x.address(),
        0,
        product.bias.map_or(0, Buffer::address),
        product.out.address(),
        0,
        pair(int(OP, "rows", rows)?, int(OP, "n", n)?),
        pair(int(OP, "k", k)?, 0.0f32),
    ];
    if product.weights.kind == Kind::Bits8 {
        let name = if rows <= 8 { few[0] } else { many };
        return launch(device, (name, 256, 0, None), places, (rows, n, k));
    }
    let which = chosen(device, few, many, (rows, n, k), group)?;
    launch(device, which, places, (rows, n, k))
}

/// Most bytes of rows that a block keeps: three blocks share a processor.
const KEPT_BYTES: usize = 68 << 10;

/// A kernel, how many threads and bytes of shared memory its blocks take, and how many of them share a processor where
/// blocks take outputs in turn.
pub(super) type Chosen = (&'static str, u32, u32, Option<usize>);

/// Which kernels of few rows run: all give the same bits. 0: those to which the copy engine brings the weights, where a
/// processor has room for them; 1: three blocks share a processor and take outputs in turn; 2: a block for each output.
/// A bench asks for each.
pub static PACKED_WAY: AtomicU8 = AtomicU8::new(0);

/// Blocks that share a processor where the copy engine brings the weights, and bytes that each may take. Measured beside
/// three blocks of 66 KiB and two that leave half a processor to the next launch: those are as fast or faster alone, and
/// slower in a whole step.
const RING_BLOCKS: usize = 2;
const RING_BYTES: usize = 104 << 10;

/// Pieces of a warp's ring at most, and tiles in a piece, as the kernel has them.
const DEEPEST: usize = 8;
const PIECE: usize = 2;

/// Of the kernels for few rows, few rows and many outputs, few rows by the copy engine, and many rows.
pub(super) fn chosen(
    device: &Device,
    few: [&'static str; 3],
    many: &'static str,
    (rows, n, k): (usize, usize, usize),
    group: usize,
) -> Result<Chosen, CudaError> {
    let way = PACKED_WAY.load(Ordering::Relaxed);
    let bytes = |kept| int("packed_gemv", "k", kept).map(i32::cast_unsigned);
    let whole = k.next_multiple_of(STEP);
    let kept = rows * (whole + 32) * 2;
    // After the rows the sums of their groups.
    let with_sums = kept + whole / group * 32;
    let in_turn = n.div_ceil(TILE) > 3 * device.info().processors as usize;
    // Elsewhere a processor has too little shared memory for two rings.
    let is_hopper = device.info().capability == (9, 0);
    // One row whose outputs all run at once is done before a ring would help; its sums have no other kernel in turn.
    let is_long = in_turn || rows > 1 || few[1] == few[0];
    if way == 0 && is_hopper && is_long && rows <= 8 && few[2] != few[0] {
        let piece = 8 * PIECE * TILE * (STEP / 2 + STEP / group * 4);
        let depth = (RING_BYTES.saturating_sub(with_sums) / piece).min(DEEPEST);
        if depth >= 2 {
            let taken = bytes(with_sums + depth * piece)?;
            return Ok((few[2], 288, taken, Some(RING_BLOCKS)));
        }
    }
    if rows > 8 || with_sums > KEPT_BYTES {
        return Ok((many, 256, 0, None));
    }
    Ok(match way {
        0 | 1 if in_turn && few[1] != few[0] => (few[1], 288, bytes(with_sums)?, Some(3)),
        _ => (few[0], 256, bytes(kept)?, None),
    })
}

pub(super) fn launch(
    device: &Device,
    (name, threads, shared_bytes, resident): Chosen,
    places: [u64; 9],
    (rows, n, k): (usize, usize, usize),
) -> Result<(), CudaError> {
    let kernel = Kernel {
        source: "gemv",
        name,
    };
    let most = resident.map(|blocks| device.info().processors as usize * blocks);
    let blocks = n.div_ceil(TILE).min(most.unwrap_or(usize::MAX));
    let grid = Grid {
        blocks: (int("packed_gemv", "n", blocks)?.cast_unsigned(), 1, 1),
        threads,
        shared_bytes,
        early: true,
    };
    let args = Args::new().with_struct(&places);
    // SAFETY: callers checked all lengths, those of the weights when they were made.
    unsafe { device.launch(kernel, grid, args, (name, &[rows, n, k])) }
}

/// Blocks with random codes and scales of about 1/16.
pub(super) fn random_blocks(dtype: DType, n: usize, k: usize, seed: u64) -> Vec<u8> {
    let blocks = n * k / dtype.block_elements();
    let mut bytes = Vec::new();
    let scales = numbers(seed, 2 * blocks);
    let mut codes = words(seed + 1, blocks * 4);
    for pair in scales.chunks_exact(2) {
        bytes.extend(f32_to_f16(pair[0] / 16.0).to_le_bytes());
        if dtype == DType::Q4_1 {
            bytes.extend(f32_to_f16(pair[1] / 2.0).to_le_bytes());
        }
        let count = if dtype == DType::Q8_0 { 4 } else { 2 };
        bytes.extend(codes.by_ref().take(count).flat_map(u64::to_le_bytes));
    }
    bytes
}

fn cases() -> Vec<Case> {
    let shapes = [
        (1, 16, 32),
        (3, 160, 64),
        (8, 40, 576),
        (9, 64, 1024),
        (16, 384, 160),
        (1, 96, 4096),
        (5, 48, 14336),
        (2, 8, 3072),
    ];
    let mut cases = Vec::new();
    for (rows, n, k) in shapes {
        for dtype in [DType::Q8_0, DType::Q4_0, DType::Q4_1] {
            let name = format!("{dtype}, {rows} x {k} to {n}");
            cases.push(Case::new(
                name,
                Bound::Relative(1e-5),
                move |device, cpu| {
                    let bytes = random_blocks(dtype, n, k, 7);
                    let weights = PackedWeights::from_blocks(device, dtype, (n, k), &bytes)?;
                    let matrix = PackedMatrix::new("w", dtype, n, k, Bytes::from(bytes))?;
                    compare(device, cpu, (rows, n, k), &weights, &matrix)
                },
            ));
        }
        if k.is_multiple_of(64) {
            let name = format!("4 bits in groups of 64, {rows} x {k} to {n}");
            cases.push(Case::new(
                name,
                Bound::Relative(1e-5),
                move |device, cpu| {
                    let nibbles: Vec<u8> = words(5, n * k).map(|word| (word >> 60) as u8).collect();
                    let scales = numbers(6, n * k / 64 * 2);
                    let scales: Vec<[u16; 2]> = scales
                        .chunks_exact(2)
                        .map(|pair| [f32_to_f16(pair[0] / 16.0), f32_to_f16(pair[1] / 2.0)])
                        .collect();
                    let weights =
                        PackedWeights::from_groups(device, 64, (n, k), &nibbles, &scales)?;
                    let mut plain = Vec::new();
                    for (group, scale) in nibbles.chunks_exact(64).zip(&scales) {
                        let pair = from_half(scale);
                        plain.extend(group.iter().map(|q| f32::from(*q) * pair[0] + pair[1]));
                    }
                    let bytes: Vec<u8> =
                        plain.iter().flat_map(|value| value.to_le_bytes()).collect();
                    let matrix = PackedMatrix::new("w", DType::F32, n, k, Bytes::from(bytes))?;
                    compare(device, cpu, (rows, n, k), &weights, &matrix)
                },
            ));
        }
    }
    cases
}

fn compare(
    device: &Device,
    cpu: &Cpu,
    (rows, n, k): (usize, usize, usize),
    weights: &PackedWeights,
    matrix: &PackedMatrix,
) -> Result<Outcome, CudaError> {
    let x = to_half(&numbers(1, rows * k));
    let bias = numbers(3, n);
    let mut reference = vec![0.0; rows * n];
    let values = from_half(&x);
    let input = Input {
        values: &values,
        quant: None,
    };
    let product = Product {
        weights: matrix,
        bias: Some(&bias),
        out: &mut reference,
    };
    ops::matmul(cpu, input, &mut [product])?;
    let (x, bias) = (device.upload(&x)?, device.upload(&bias)?);
    let out = device.alloc(rows * n * 4)?;
    device.fill(&out, 0xff)?;
    let product = PackedGemv {
        weights,
        x: &x,
        bias: Some(&bias),
        out: &out,
        rows,
    };
    packed_gemv(device, &product)?;
    let fast = device.read(&out, 0, rows * n)?;
    Ok(Outcome { fast, reference })
}
