//! What packed blocks mean: the reference decode of every element type to f32.
//!
//! Layouts (GGUF v3, little endian; `f16` = 2 bytes; `[n]` = bytes). Value of element `i`:
//!
//! Blocks of 32 elements; `q(i)` is the low nibble of `qs[i]` for `i < 16`, the high nibble of
//! `qs[i - 16]` otherwise; `h(i)` is bit `i` of `qh` read as a u32:
//!
//! | type | bytes | fields in order | value |
//! | --- | --- | --- | --- |
//! | Q4_0 | 18 | `d: f16, qs: [16]` | `d * (q - 8)` |
//! | Q4_1 | 20 | `d: f16, m: f16, qs: [16]` | `d * q + m` |
//! | Q5_0 | 22 | `d: f16, qh: [4], qs: [16]` | `d * ((q \| h << 4) - 16)` |
//! | Q5_1 | 24 | `d: f16, m: f16, qh: [4], qs: [16]` | `d * (q \| h << 4) + m` |
//! | Q8_0 | 34 | `d: f16, qs: [32] i8` | `d * qs[i]` |
//! | IQ4_NL | 18 | `d: f16, qs: [16]` | `d * IQ4_NL_LEVELS[q]` |
//!
//! Superblocks of 256 elements:
//!
//! | type | bytes | fields in order | value |
//! | --- | --- | --- | --- |
//! | Q2_K | 84 | `scales: [16], qs: [64], d: f16, dmin: f16` | `(d * low(scales[i/16])) * q - dmin * high(scales[i/16])` |
//! | Q3_K | 110 | `hmask: [32], qs: [64], scales: [12], d: f16` | `(d * (sc(i/16) - 32)) * (q - 4 * !h)` |
//! | Q4_K | 144 | `d: f16, dmin: f16, scales: [12], qs: [128]` | `(d * sc(i/32)) * q - dmin * m(i/32)` |
//! | Q5_K | 176 | `d: f16, dmin: f16, scales: [12], qh: [32], qs: [128]` | as Q4_K with `q \| h << 4` |
//! | Q6_K | 210 | `ql: [128], qh: [64], scales: [16] i8, d: f16` | `(d * scales[i/16]) * (q - 32)` |
//!
//! - Q2_K, Q3_K: 2-bit `q` of element `i = 128 a + 32 s + b` is `qs[32 a + b] >> 2 s & 3`; the high
//!   bit of Q3_K is `hmask[b] >> (4 a + s) & 1`.
//! - Q3_K scales: 4 low bits of scale `j < 8` in the low nibble of `scales[j]`, of `j >= 8` in the
//!   high nibble of `scales[j - 8]`; 2 high bits in `scales[8 + j % 4] >> 2 (j / 4) & 3`.
//! - Q4_K, Q5_K: 4-bit `q` of element `i = 64 a + 32 s + b` is `qs[32 a + b] >> 4 s & 15`; the high
//!   bit of Q5_K is `qh[b] >> (2 a + s) & 1`. Scales and minima (6 bits): see [`scale_min`].
//! - Q6_K: for element `i = 128 a + 64 s + 32 t + b` the low bits are
//!   `ql[64 a + 32 t + b] >> 4 s & 15`, the high bits `qh[32 a + b] >> (4 s + 2 t) & 3`.
//!
//! Each product and sum is rounded to f32 on its own (no fused multiply-add), in the order
//! written; that is also the order of the `gguf` package, whose values are the test vectors.

use engine_tensor::DType;
use half::{bf16, f16};

/// Levels of [`DType::IQ4_NL`].
pub const IQ4_NL_LEVELS: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

/// Why bytes cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantError {
    /// The output does not fit the input.
    #[error("cannot decode {got_bytes} bytes of {dtype} into {elements} values")]
    Length {
        /// The type.
        dtype: DType,
        /// Length of the input.
        got_bytes: usize,
        /// Length of the output.
        elements: usize,
    },
    /// A type that holds whole numbers.
    #[error("cannot decode {dtype} to floats: it holds whole numbers")]
    NotFloats {
        /// The type.
        dtype: DType,
    },
}

/// Decode `bytes` into as many values as `out` holds; `out` must be exactly the elements of
/// `bytes`.
///
/// # Errors
/// [`QuantError`]; `out` is then unchanged.
pub fn dequantize(dtype: DType, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
    if dtype.bytes_of(out.len()) != Some(bytes.len()) {
        return Err(QuantError::Length {
            dtype,
            got_bytes: bytes.len(),
            elements: out.len(),
        });
    }
    match dtype {
        DType::F32 => plain(bytes, out, f32::from_le_bytes),
        DType::F16 => plain(bytes, out, |b| f16::from_le_bytes(b).to_f32()),
        DType::BF16 => plain(bytes, out, |b| bf16::from_le_bytes(b).to_f32()),
        DType::F64 => plain(bytes, out, |b| f64::from_le_bytes(b) as f32),
        DType::F8_E4M3 => plain(bytes, out, |[b]| f8_e4m3(b)),
        DType::Q4_0 => blocks(bytes, out, q4_0),
        DType::Q4_1 => blocks(bytes, out, q4_1),
        DType::Q5_0 => blocks(bytes, out, q5_0),
        DType::Q5_1 => blocks(bytes, out, q5_1),
        DType::Q8_0 => blocks(bytes, out, q8_0),
        DType::IQ4_NL => blocks(bytes, out, iq4_nl),
        DType::Q2_K => blocks(bytes, out, q2_k),
        DType::Q3_K => blocks(bytes, out, q3_k),
        DType::Q4_K => blocks(bytes, out, q4_k),
        DType::Q5_K => blocks(bytes, out, q5_k),
        DType::Q6_K => blocks(bytes, out, q6_k),
        _ => return Err(QuantError::NotFloats { dtype }),
    }
    Ok(())
}

/// A byte of [`DType::F8_E4M3`] (Micikevicius et al., "FP8 formats for deep learning", arXiv 2209.05433).
fn f8_e4m3(byte: u8) -> f32 {
    let (exponent, fraction) = (i32::from(byte >> 3 & 15), f32::from(byte & 7));
    let size = match (exponent, byte & 7) {
        (15, 7) => f32::NAN,
        (0, _) => fraction / 512.0,
        _ => (1.0 + fraction / 8.0) * f32::from_bits(((exponent + 120) as u32) << 23),
    };
    if byte & 0x80 == 0 { size } else { -size }
}

fn plain<const N: usize>(bytes: &[u8], out: &mut [f32], decode: impl Fn([u8; N]) -> f32) {
    for (value, stored) in out.iter_mut().zip(bytes.as_chunks::<N>().0) {
        *value = decode(*stored);
    }
}

fn blocks<const BYTES: usize, const ELEMENTS: usize>(
    bytes: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; BYTES], &mut [f32; ELEMENTS]),
) {
    let stored = bytes.as_chunks::<BYTES>().0;
    for (values, block) in out.as_chunks_mut::<ELEMENTS>().0.iter_mut().zip(stored) {
        decode(block, values);
    }
}

/// The f16 at byte `at` of a block.
fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// 4-bit number of element `at` of a block of 32 packed as 16 bytes.
fn nibble(qs: &[u8], at: usize) -> u8 {
    if at < 16 {
        qs[at] & 15
    } else {
        qs[at - 16] >> 4
    }
}

/// Bit of element `at`, moved to bit 4.
fn fifth_bit(qh: &[u8], at: usize) -> u8 {
    (qh[at / 8] >> (at % 8) & 1) << 4
}

fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    for (at, value) in out.iter_mut().enumerate() {
        *value = d * (f32::from(nibble(&block[2..], at)) - 8.0);
    }
}

fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (half_at(block, 0), half_at(block, 2));
    for (at, value) in out.iter_mut().enumerate() {
        *value = d * f32::from(nibble(&block[4..], at)) + m;
    }
}

fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    for (at, value) in out.iter_mut().enumerate() {
        let q = nibble(&block[6..], at) | fifth_bit(&block[2..6], at);
        *value = d * (f32::from(q) - 16.0);
    }
}

fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m) = (half_at(block, 0), half_at(block, 2));
    for (at, value) in out.iter_mut().enumerate() {
        let q = nibble(&block[8..], at) | fifth_bit(&block[4..8], at);
        *value = d * f32::from(q) + m;
    }
}

fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    for (value, stored) in out.iter_mut().zip(&block[2..]) {
        *value = d * f32::from(stored.cast_signed());
    }
}

fn iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    for (at, value) in out.iter_mut().enumerate() {
        *value = d * f32::from(IQ4_NL_LEVELS[usize::from(nibble(&block[2..], at))]);
    }
}

fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let (scales, qs) = (&block[..16], &block[16..80]);
    let (d, dmin) = (half_at(block, 80), half_at(block, 82));
    for (at, value) in out.iter_mut().enumerate() {
        let scale = scales[at / 16];
        let q = qs[at / 128 * 32 + at % 32] >> (at / 32 % 4 * 2) & 3;
        *value = (d * f32::from(scale & 15)) * f32::from(q) - dmin * f32::from(scale >> 4);
    }
}

fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let (hmask, qs, scales) = (&block[..32], &block[32..96], &block[96..108]);
    let d = half_at(block, 108);
    for (at, value) in out.iter_mut().enumerate() {
        let j = at / 16;
        let low = scales[j % 8] >> (j / 8 * 4) & 15;
        let high = scales[8 + j % 4] >> (j / 4 * 2) & 3;
        let scale = f32::from(low | high << 4) - 32.0;
        let q = qs[at / 128 * 32 + at % 32] >> (at / 32 % 4 * 2) & 3;
        let high = hmask[at % 32] >> (at / 32) & 1;
        *value = (d * scale) * (f32::from(q | high << 2) - 4.0);
    }
}

/// Scale and minimum (6 bits each) of group `j < 8` of Q4_K and Q5_K.
///
/// For `j < 4` they are the low 6 bits of `scales[j]` and `scales[j + 4]`; for the others the low
/// 4 bits are the nibbles of `scales[j + 4]` and the high 2 bits lie above those of group `j - 4`.
///
/// # Panics
/// When `j` is 8 or more.
pub const fn scale_min(scales: &[u8; 12], j: usize) -> (u8, u8) {
    if j < 4 {
        (scales[j] & 63, scales[j + 4] & 63)
    } else {
        (
            scales[j + 4] & 15 | scales[j - 4] >> 6 << 4,
            scales[j + 4] >> 4 | scales[j] >> 6 << 4,
        )
    }
}

fn k_scales(block: &[u8]) -> [(f32, f32); 8] {
    let (d, dmin) = (half_at(block, 0), half_at(block, 2));
    let mut scales = [0; 12];
    scales.copy_from_slice(&block[4..16]);
    std::array::from_fn(|j| {
        let (scale, min) = scale_min(&scales, j);
        (d * f32::from(scale), dmin * f32::from(min))
    })
}

fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (scales, qs) = (k_scales(block), &block[16..]);
    for (at, value) in out.iter_mut().enumerate() {
        let (scale, min) = scales[at / 32];
        let q = qs[at / 64 * 32 + at % 32] >> (at / 32 % 2 * 4) & 15;
        *value = scale * f32::from(q) - min;
    }
}

fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (scales, qh, qs) = (k_scales(block), &block[16..48], &block[48..]);
    for (at, value) in out.iter_mut().enumerate() {
        let (scale, min) = scales[at / 32];
        let low = qs[at / 64 * 32 + at % 32] >> (at / 32 % 2 * 4) & 15;
        let high = qh[at % 32] >> (at / 32) & 1;
        *value = scale * f32::from(low | high << 4) - min;
    }
}

fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let (ql, qh, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let d = half_at(block, 208);
    for (at, value) in out.iter_mut().enumerate() {
        let low = ql[at / 128 * 64 + at % 64] >> (at / 64 % 2 * 4) & 15;
        let high = qh[at / 128 * 32 + at % 32] >> (at / 32 % 4 * 2) & 3;
        let scale = f32::from(scales[at / 16].cast_signed());
        *value = (d * scale) * (f32::from(low | high << 4) - 32.0);
    }
}
