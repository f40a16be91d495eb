//! Sixteen rows of a matrix, turned so that vector lanes are rows.
//!
//! A product adds up each output in its own lane: no sum across lanes, hence the same bits for any
//! number of input rows and any instruction set.

use crate::DType;
use crate::half_bits::{bf16_to_f32, finite_f16, le16};
use crate::lanes::{Lanes, Line, Values};
use crate::packed::decode::{IQ4_LEVELS, six_bit_pair, six_bit_scale};

/// Rows of a tile.
pub(crate) const TILE: usize = 16;

/// Where the rows of a tile start. Rows beyond the matrix repeat its last.
#[derive(Clone, Copy)]
pub(crate) struct TileRows {
    pub(crate) starts: [*const u8; TILE],
}

// Loops below are written out: `array::map` and `array::from_fn` are calls here, which cost more
// than their bodies.
impl TileRows {
    /// The same rows, `bytes` further on.
    ///
    /// # Safety
    /// Each row has at least `bytes` more bytes.
    #[inline(always)]
    pub(crate) unsafe fn skip(&self, bytes: usize) -> Self {
        let mut starts = self.starts;
        for start in &mut starts {
            // SAFETY: the caller's promise.
            *start = unsafe { start.add(bytes) };
        }
        Self { starts }
    }

    /// Two bytes at `at` of each row, as a half.
    ///
    /// # Safety
    /// Each row has at least `at + 2` bytes.
    #[inline(always)]
    unsafe fn halves(&self, at: usize) -> Values {
        let mut halves = Values::ZERO;
        for (half, start) in halves.0.iter_mut().zip(&self.starts) {
            // SAFETY: the caller's promise; any alignment.
            let bits = unsafe { start.add(at).cast::<u16>().read_unaligned() };
            *half = finite_f16(u16::from_le(bits));
        }
        halves
    }

    /// Four bytes at `at` of each row, as two halves.
    ///
    /// # Safety
    /// Each row has at least `at + 4` bytes.
    #[inline(always)]
    unsafe fn half_pairs(&self, at: usize) -> (Values, Values) {
        let mut words = [0u32; TILE];
        for (word, start) in words.iter_mut().zip(&self.starts) {
            // SAFETY: the caller's promise; any alignment.
            *word = u32::from_le(unsafe { start.add(at).cast::<u32>().read_unaligned() });
        }
        let (mut first, mut second) = (Values::ZERO, Values::ZERO);
        for (row, word) in words.iter().enumerate() {
            first.0[row] = finite_f16((word & 0xffff) as u16);
            second.0[row] = finite_f16((word >> 16) as u16);
        }
        (first, second)
    }

    /// `len` bytes at `at` of row `row`.
    ///
    /// # Safety
    /// Each row has at least `at + len` bytes that outlive the use of the slice.
    #[inline(always)]
    unsafe fn bytes<'a>(&self, row: usize, at: usize, len: usize) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.starts[row].add(at), len) }
    }
}

/// Codes of a tile: lines of 16 rows x 4 columns, and a scale and offset of each row for each group
/// of columns.
pub(crate) struct CodeTile<'a> {
    /// `[cols / 4]`
    pub(crate) lines: &'a mut [Line],
    /// `[cols / group]`
    pub(crate) scales: &'a mut [Values],
    /// `[cols / group]`; unused by types with a bias.
    pub(crate) offsets: &'a mut [Values],
}

#[inline(always)]
fn each(line: &Line, with: impl Fn(u8) -> u8) -> Line {
    let mut out = Line([0; 64]);
    for (out, code) in out.0.iter_mut().zip(&line.0) {
        *out = with(*code);
    }
    out
}

#[inline(always)]
fn both(first: &Line, second: &Line, with: impl Fn(u8, u8) -> u8) -> Line {
    let mut out = Line([0; 64]);
    for at in 0..64 {
        out.0[at] = with(first.0[at], second.0[at]);
    }
    out
}

/// Unpacks `blocks` blocks of `dtype` of each row into `tile`, and asks for as many bytes from
/// `next`, where the next tile lies: rows of a tile are too far apart for the processor to see that
/// they are one long run.
///
/// # Safety
/// Rows have that many blocks; the instruction set of `L` is present.
#[inline(always)]
pub(crate) unsafe fn unpack<L: Lanes>(
    dtype: DType,
    rows: &TileRows,
    blocks: usize,
    next: *const u8,
    tile: &mut CodeTile<'_>,
) {
    let lines_per_block = dtype.block_elements() / 4;
    let group = if matches!(dtype, DType::Q2_K | DType::Q3_K | DType::Q6_K) {
        16
    } else {
        32
    };
    let groups = dtype.block_elements() / group;
    macro_rules! blocks {
        ($one:path) => {
            for block in 0..blocks {
                let block_bytes = TILE * dtype.block_bytes();
                for line in 0..block_bytes / 64 {
                    L::prefetch(next.wrapping_add(block * block_bytes + 64 * line));
                }
                // SAFETY: the block is inside the rows by the caller's promise.
                unsafe {
                    let rows = rows.skip(block * dtype.block_bytes());
                    let mut part = CodeTile {
                        lines: &mut tile.lines[block * lines_per_block..][..lines_per_block],
                        scales: &mut tile.scales[block * groups..][..groups],
                        offsets: &mut tile.offsets[block * groups..][..groups],
                    };
                    $one(&rows, &mut part);
                }
            }
        };
    }
    match dtype {
        DType::Q4_0 => blocks!(q4_0::<L>),
        DType::Q4_1 => blocks!(q4_1::<L>),
        DType::Q5_0 => blocks!(q5_0::<L>),
        DType::Q5_1 => blocks!(q5_1::<L>),
        DType::Q8_0 => blocks!(q8_0::<L>),
        DType::IQ4_NL => blocks!(iq4_nl::<L>),
        DType::Q2_K => blocks!(q2_k::<L>),
        DType::Q3_K => blocks!(q3_k::<L>),
        DType::Q4_K => blocks!(q4_k::<L>),
        DType::Q5_K => blocks!(q5_k::<L>),
        DType::Q6_K => blocks!(q6_k::<L>),
        _ => {}
    }
}

/// Nibbles of 16 bytes at `at`: columns 0..16 low, 16..32 high.
#[inline(always)]
unsafe fn nibbles<L: Lanes>(rows: &TileRows, at: usize, lines: &mut [Line]) {
    // SAFETY: the caller's promise.
    let packed = unsafe { L::transpose(&rows.starts, at) };
    for (group, packed) in packed.iter().enumerate() {
        lines[group] = each(packed, |code| code & 15);
        lines[group + 4] = each(packed, |code| code >> 4);
    }
}

#[inline(always)]
unsafe fn q4_0<L: Lanes>(rows: &TileRows, tile: &mut CodeTile<'_>) {
    // SAFETY: a block is 18 bytes, which the caller promises.
    unsafe {
        tile.scales[0] = rows.halves(0);
        nibbles::<L>(rows, 2, tile.lines);
    }
}

#[inline(always)]
unsafe fn q4_1<L: Lanes>(rows: &TileRows, tile: &mut CodeTile<'_>) {
    // SAFETY: a block is 20 bytes, which the caller promises.
    unsafe {
        (tile.scales[0], tile.offsets[0]) = rows.half_pairs(0);
        nibbles::<L>(rows, 4, tile.lines);
    }
}

/// Sets bit 4 of the codes whose bit in the four bytes at `at` is set.
#[inline(always)]
unsafe fn fifth_bits(rows: &TileRows, at: usize, lines: &mut [Line]) {
    for row in 0..TILE {
        // SAFETY: the caller's promise.
        let bits = unsafe { rows.bytes(row, at, 4) };
        let bits = u32::from(le16(bits, 0)) | (u32::from(le16(bits, 2)) << 16);
        for column in 0..32 {
            let bit = ((bits >> column) & 1) as u8;
            lines[column / 4].0[4 * row + column % 4] |= bit << 4;
        }
    }
}

#[inline(always)]
unsafe fn q5_0<L: Lanes>(rows: &TileRows, tile: &mut CodeTile<'_>) {
    // SAFETY: a block is 22 bytes, which the caller promises.
    unsafe {
        tile.scales[0] = rows.halves(0);
        nibbles::<L>(rows, 6, tile.lines);
        fifth_bits(rows, 2, tile.lines);
    }
}

#[inline(always)]
unsafe fn q5_1<L: Lanes>(rows: &TileRows, tile: &mut CodeTile<'_>) {
    // SAFETY: a block is 24 bytes, which the caller promises.
    unsafe {
        (tile.scales[0], tile.offsets[0]) = rows.half_pairs(0);
        nibbles::<L>(rows, 8, tile.lines);
        fifth_bits(rows, 4, tile.lines);
    }
}

#[inline(always)]
unsafe fn q8_0<L: Lanes>(rows: &TileRows, tile: &mut CodeTile<'_>) {
    // SAFETY: a block is 34 bytes, which the caller promises.
    unsafe {
        tile.scales[0] = rows.halves(0);
        for part in 0..2 {
            let codes = L::transpose(&rows.starts, 2 + 16 * part);
            for (group, codes) in codes.iter().enumerate() {
                tile.lines[4 * part + group] = each(codes, |code| code ^ 128);
            }
        }
    }
}

#[inline(always)]
unsafe fn iq4_nl<L: Lanes>(rows: &TileRows, tile: &mut CodeTile<'_>) {
    // SAFETY: a block is 18 bytes, which the caller promises.
    unsafe { q4_0::<L>(rows, tile) };
    for line in tile.lines.iter_mut() {
        *line = each(line, |code| {
            (IQ4_LEVELS[usize::from(code & 15)] as u8) ^ 128
        });
    }
}

/// Scales and offsets of the groups of a superblock: `scale * part`, `-(minimum * least)`.
#[inline(always)]
fn group_scales(
    tile: &mut CodeTile<'_>,
    scale: &Values,
    minimum: Option<&Values>,
    pair: impl Fn(usize, usize) -> (i32, u8),
) {
    for group in 0..tile.scales.len() {
        for row in 0..TILE {
            let (part, least) = pair(row, group);
            tile.scales[group].0[row] = scale.0[row] * part as f32;
            if let Some(minimum) = minimum {
                tile.offsets[group].0[row] = -(minimum.0[row] * f32::from(least));
            }
        }
    }
}

#[inline(always)]
unsafe fn q2_k<L: Lanes>(rows: &TileRows, tile: &mut CodeTile<'_>) {
    // SAFETY: a block is 84 bytes, which the caller promises.
    unsafe {
        let (scale, minimum) = rows.half_pairs(80);
        group_scales(tile, &scale, Some(&minimum), |row, group| {
            let pair = rows.bytes(row, group, 1)[0];
            (i32::from(pair & 15), pair >> 4)
        });
        for piece in 0..4 {
            let packed = L::transpose(&rows.starts, 16 + 16 * piece);
            for plane in 0..4 {
                let first = 32 * (piece / 2) + 8 * plane + 4 * (piece % 2);
                for (group, packed) in packed.iter().enumerate() {
                    tile.lines[first + group] = each(packed, |code| (code >> (2 * plane)) & 3);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn q3_k<L: Lanes>(rows: &TileRows, tile: &mut CodeTile<'_>) {
    // SAFETY: a block is 110 bytes, which the caller promises.
    unsafe {
        let scale = rows.halves(108);
        group_scales(tile, &scale, None, |row, group| {
            let packed = rows.bytes(row, 96, 12);
            (i32::from(six_bit_scale(packed, group)) - 32, 0)
        });
        for piece in 0..4 {
            let packed = L::transpose(&rows.starts, 32 + 16 * piece);
            let thirds = L::transpose(&rows.starts, 16 * (piece % 2));
            for plane in 0..4 {
                let first = 32 * (piece / 2) + 8 * plane + 4 * (piece % 2);
                let bit = 4 * (piece / 2) + plane;
                for group in 0..4 {
                    tile.lines[first + group] =
                        both(&packed[group], &thirds[group], |low, third| {
                            ((low >> (2 * plane)) & 3) | (((third >> bit) & 1) << 2)
                        });
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn q4_k<L: Lanes>(rows: &TileRows, tile: &mut CodeTile<'_>) {
    // SAFETY: a block is 144 bytes, which the caller promises.
    unsafe {
        let (scale, minimum) = rows.half_pairs(0);
        group_scales(tile, &scale, Some(&minimum), |row, group| {
            let (part, least) = six_bit_pair(rows.bytes(row, 4, 12), group);
            (i32::from(part), least)
        });
        for piece in 0..8 {
            let packed = L::transpose(&rows.starts, 16 + 16 * piece);
            let first = 16 * (piece / 2) + 4 * (piece % 2);
            for (group, packed) in packed.iter().enumerate() {
                tile.lines[first + group] = each(packed, |code| code & 15);
                tile.lines[first + 8 + group] = each(packed, |code| code >> 4);
            }
        }
    }
}

#[inline(always)]
unsafe fn q5_k<L: Lanes>(rows: &TileRows, tile: &mut CodeTile<'_>) {
    // SAFETY: a block is 176 bytes, which the caller promises.
    unsafe {
        let (scale, minimum) = rows.half_pairs(0);
        group_scales(tile, &scale, Some(&minimum), |row, group| {
            let (part, least) = six_bit_pair(rows.bytes(row, 4, 12), group);
            (i32::from(part), least)
        });
        for piece in 0..8 {
            let packed = L::transpose(&rows.starts, 48 + 16 * piece);
            let fifths = L::transpose(&rows.starts, 16 + 16 * (piece % 2));
            let first = 16 * (piece / 2) + 4 * (piece % 2);
            let bit = 2 * (piece / 2);
            for group in 0..4 {
                let (packed, fifths) = (&packed[group], &fifths[group]);
                tile.lines[first + group] = both(packed, fifths, |code, fifth| {
                    (code & 15) | (((fifth >> bit) & 1) << 4)
                });
                tile.lines[first + 8 + group] = both(packed, fifths, |code, fifth| {
                    (code >> 4) | (((fifth >> (bit + 1)) & 1) << 4)
                });
            }
        }
    }
}

#[inline(always)]
unsafe fn q6_k<L: Lanes>(rows: &TileRows, tile: &mut CodeTile<'_>) {
    // SAFETY: a block is 210 bytes, which the caller promises.
    unsafe {
        let scale = rows.halves(208);
        group_scales(tile, &scale, None, |row, group| {
            (i32::from(rows.bytes(row, 192 + group, 1)[0] as i8), 0)
        });
        for part in 0..2 {
            for side in 0..2 {
                let near = L::transpose(&rows.starts, 64 * part + 16 * side);
                let far = L::transpose(&rows.starts, 64 * part + 32 + 16 * side);
                let high = L::transpose(&rows.starts, 128 + 32 * part + 16 * side);
                for group in 0..4 {
                    let first = 32 * part + 4 * side + group;
                    let (near, far, high) = (&near[group], &far[group], &high[group]);
                    tile.lines[first] =
                        both(near, high, |low, high| (low & 15) | ((high & 3) << 4));
                    tile.lines[first + 8] =
                        both(far, high, |low, high| (low & 15) | (((high >> 2) & 3) << 4));
                    tile.lines[first + 16] = both(near, high, |low, high| {
                        (low >> 4) | (((high >> 4) & 3) << 4)
                    });
                    tile.lines[first + 24] =
                        both(far, high, |low, high| (low >> 4) | ((high >> 6) << 4));
                }
            }
        }
    }
}

/// Turns `cols` plain floats of each row into `out: [cols]`, from column `start`.
///
/// # Safety
/// Rows have `start + cols` elements of `dtype`, which is F32, F16 or BF16; the instruction set of
/// `L` is present.
#[inline(always)]
pub(crate) unsafe fn turn_floats<L: Lanes>(
    dtype: DType,
    rows: &TileRows,
    start: usize,
    out: &mut [Values],
) {
    let (chunks, rest) = out.as_chunks_mut::<4>();
    let done = 4 * chunks.len();
    // SAFETY: columns are inside the rows by the caller's promise.
    unsafe {
        match dtype {
            DType::F32 => {
                for (chunk, out) in chunks.iter_mut().enumerate() {
                    let lines = L::transpose(&rows.starts, 4 * (start + 4 * chunk));
                    for (out, line) in out.iter_mut().zip(&lines) {
                        for row in 0..TILE {
                            let b = &line.0[4 * row..4 * row + 4];
                            out.0[row] = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                        }
                    }
                }
                for (at, out) in rest.iter_mut().enumerate() {
                    let at = 4 * (start + done + at);
                    for (out, row) in out.0.iter_mut().zip(&rows.starts) {
                        let bits = row.add(at).cast::<u32>().read_unaligned();
                        *out = f32::from_bits(u32::from_le(bits));
                    }
                }
            }
            DType::F16 => turn_16::<L>(rows, start, out, finite_f16),
            _ => turn_16::<L>(rows, start, out, bf16_to_f32),
        }
    }
}

/// As `turn_floats`, for elements of two bytes.
#[inline(always)]
unsafe fn turn_16<L: Lanes>(
    rows: &TileRows,
    start: usize,
    out: &mut [Values],
    widen: impl Fn(u16) -> f32,
) {
    let (chunks, rest) = out.as_chunks_mut::<8>();
    let done = 8 * chunks.len();
    // SAFETY: columns are inside the rows by the caller's promise.
    unsafe {
        for (chunk, out) in chunks.iter_mut().enumerate() {
            let lines = L::transpose(&rows.starts, 2 * (start + 8 * chunk));
            for (pair, line) in lines.iter().enumerate() {
                for row in 0..TILE {
                    out[2 * pair].0[row] = widen(le16(&line.0, 4 * row));
                    out[2 * pair + 1].0[row] = widen(le16(&line.0, 4 * row + 2));
                }
            }
        }
        for (at, out) in rest.iter_mut().enumerate() {
            let at = 2 * (start + done + at);
            for (out, row) in out.0.iter_mut().zip(&rows.starts) {
                *out = widen(u16::from_le(row.add(at).cast::<u16>().read_unaligned()));
            }
        }
    }
}
