//! What packed blocks mean, one block at a time: the plain reference.
//!
//! Layouts are GGUF v3's. In every format a value is `scale * (code - bias) + offset`, with one
//! scale for each 16 or 32 neighbours.

use crate::DType;
use crate::half_bits::{bf16_to_f32, f16_to_f32, le16};

/// Levels of `IQ4_NL`.
pub(crate) const IQ4_LEVELS: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

/// How the codes of a packed type are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coding {
    /// Neighbours that share a scale: 16 or 32.
    pub(crate) group: usize,
    /// What is taken off codes kept as 0..=255; those with a bias have no offset.
    pub(crate) bias: i32,
}

/// The coding of a packed type; `None` for plain floats.
pub(crate) fn coding(dtype: DType) -> Option<Coding> {
    let (group, bias) = match dtype {
        DType::Q4_0 => (32, 8),
        DType::Q5_0 => (32, 16),
        DType::Q8_0 | DType::IQ4_NL => (32, 128),
        DType::Q4_1 | DType::Q5_1 | DType::Q4_K | DType::Q5_K => (32, 0),
        DType::Q2_K => (16, 0),
        DType::Q3_K => (16, 4),
        DType::Q6_K => (16, 32),
        _ => return None,
    };
    Some(Coding { group, bias })
}

fn half(block: &[u8], at: usize) -> f32 {
    f16_to_f32(le16(block, at))
}

/// Scale and minimum of group `group` of a `Q4_K` or `Q5_K` block: 8 pairs of 6 bits in 12 bytes.
pub(crate) fn six_bit_pair(packed: &[u8], group: usize) -> (u8, u8) {
    if group < 4 {
        (packed[group] & 63, packed[group + 4] & 63)
    } else {
        let (low, high) = (packed[group + 4], packed[group - 4]);
        let high_minimum = packed[group];
        (
            (low & 15) | ((high >> 6) << 4),
            (low >> 4) | ((high_minimum >> 6) << 4),
        )
    }
}

/// Scale of group `group` of a `Q3_K` block, 0..=63: 16 of 6 bits in 12 bytes.
pub(crate) fn six_bit_scale(packed: &[u8], group: usize) -> u8 {
    let low = (packed[group % 8] >> (4 * (group / 8))) & 15;
    let high = (packed[8 + group % 4] >> (2 * (group / 4))) & 3;
    low | (high << 4)
}

/// Whether the values or scales of one block are finite.
pub(crate) fn finite_check(dtype: DType) -> fn(&[u8]) -> bool {
    fn half_finite(block: &[u8], at: usize) -> bool {
        le16(block, at) & 0x7c00 != 0x7c00
    }
    match dtype {
        DType::F32 => |value| {
            let bytes = value.first_chunk().copied().unwrap_or_default();
            f32::from_le_bytes(bytes).is_finite()
        },
        DType::BF16 => |value| bf16_to_f32(le16(value, 0)).is_finite(),
        DType::Q4_1 | DType::Q5_1 | DType::Q4_K | DType::Q5_K => {
            |block| half_finite(block, 0) && half_finite(block, 2)
        }
        DType::Q2_K => |block| half_finite(block, 80) && half_finite(block, 82),
        DType::Q3_K => |block| half_finite(block, 108),
        DType::Q6_K => |block| half_finite(block, 208),
        _ => |block| half_finite(block, 0),
    }
}

/// All values of a row, which is whole blocks of `dtype`.
pub(crate) fn row(dtype: DType, bytes: &[u8], out: &mut [f32]) {
    let decode = match dtype {
        DType::F32 => |block: &[u8], out: &mut [f32]| {
            out[0] = f32::from_le_bytes(block.first_chunk().copied().unwrap_or_default());
        },
        DType::F16 => |block: &[u8], out: &mut [f32]| out[0] = half(block, 0),
        DType::BF16 => |block: &[u8], out: &mut [f32]| out[0] = bf16_to_f32(le16(block, 0)),
        DType::Q4_0 => q4_0,
        DType::Q4_1 => q4_1,
        DType::Q5_0 => q5_0,
        DType::Q5_1 => q5_1,
        DType::Q8_0 => q8_0,
        DType::Q2_K => q2_k,
        DType::Q3_K => q3_k,
        DType::Q4_K => q4_k,
        DType::Q5_K => q5_k,
        DType::Q6_K => q6_k,
        DType::IQ4_NL => iq4_nl,
        _ => |_: &[u8], _: &mut [f32]| unreachable!("refused by PackedMatrix::new"),
    };
    let blocks = bytes.chunks_exact(dtype.block_bytes());
    for (block, out) in blocks.zip(out.chunks_exact_mut(dtype.block_elements())) {
        decode(block, out);
    }
}

fn q4_0(block: &[u8], out: &mut [f32]) {
    let scale = half(block, 0);
    for at in 0..16 {
        out[at] = (i32::from(block[2 + at] & 15) - 8) as f32 * scale;
        out[at + 16] = (i32::from(block[2 + at] >> 4) - 8) as f32 * scale;
    }
}

fn q4_1(block: &[u8], out: &mut [f32]) {
    let (scale, minimum) = (half(block, 0), half(block, 2));
    for at in 0..16 {
        out[at] = f32::from(block[4 + at] & 15) * scale + minimum;
        out[at + 16] = f32::from(block[4 + at] >> 4) * scale + minimum;
    }
}

/// The fifth bits of 32 codes.
fn fifth_bits(block: &[u8], at: usize) -> u32 {
    u32::from(le16(block, at)) | (u32::from(le16(block, at + 2)) << 16)
}

fn five_bits(low: u8, fifth: u32, at: usize) -> u8 {
    low | ((((fifth >> at) & 1) as u8) << 4)
}

fn q5_0(block: &[u8], out: &mut [f32]) {
    let (scale, fifth) = (half(block, 0), fifth_bits(block, 2));
    for at in 0..16 {
        let low = five_bits(block[6 + at] & 15, fifth, at);
        let high = five_bits(block[6 + at] >> 4, fifth, at + 16);
        out[at] = (i32::from(low) - 16) as f32 * scale;
        out[at + 16] = (i32::from(high) - 16) as f32 * scale;
    }
}

fn q5_1(block: &[u8], out: &mut [f32]) {
    let (scale, minimum) = (half(block, 0), half(block, 2));
    let fifth = fifth_bits(block, 4);
    for at in 0..16 {
        let low = five_bits(block[8 + at] & 15, fifth, at);
        let high = five_bits(block[8 + at] >> 4, fifth, at + 16);
        out[at] = f32::from(low) * scale + minimum;
        out[at + 16] = f32::from(high) * scale + minimum;
    }
}

fn q8_0(block: &[u8], out: &mut [f32]) {
    let scale = half(block, 0);
    for (out, code) in out.iter_mut().zip(&block[2..]) {
        *out = f32::from(*code as i8) * scale;
    }
}

fn iq4_nl(block: &[u8], out: &mut [f32]) {
    let scale = half(block, 0);
    for at in 0..16 {
        out[at] = scale * f32::from(IQ4_LEVELS[usize::from(block[2 + at] & 15)]);
        out[at + 16] = scale * f32::from(IQ4_LEVELS[usize::from(block[2 + at] >> 4)]);
    }
}

/// `Q2_K`: 16 bytes of scale and minimum (4 bits each), 64 of codes, two halves.
fn q2_k(block: &[u8], out: &mut [f32]) {
    let (scale, minimum) = (half(block, 80), half(block, 82));
    for (at, out) in out.iter_mut().enumerate() {
        let (part, plane, column) = (at / 128, at % 128 / 32, at % 32);
        let code = (block[16 + 32 * part + column] >> (2 * plane)) & 3;
        let pair = block[at / 16];
        *out = scale * f32::from(pair & 15) * f32::from(code) - minimum * f32::from(pair >> 4);
    }
}

/// `Q3_K`: 32 bytes of third bits, 64 of low bits, 12 of scales, one half.
fn q3_k(block: &[u8], out: &mut [f32]) {
    let scale = half(block, 108);
    for (at, out) in out.iter_mut().enumerate() {
        let (part, plane, column) = (at / 128, at % 128 / 32, at % 32);
        let low = (block[32 + 32 * part + column] >> (2 * plane)) & 3;
        let third = (block[column] >> (4 * part + plane)) & 1;
        let code = i32::from(low | (third << 2)) - 4;
        let of_group = i32::from(six_bit_scale(&block[96..108], at / 16)) - 32;
        *out = scale * of_group as f32 * code as f32;
    }
}

/// `Q4_K`: two halves, 12 bytes of scales and minima, 128 of codes.
fn q4_k(block: &[u8], out: &mut [f32]) {
    let (scale, minimum) = (half(block, 0), half(block, 2));
    for (at, out) in out.iter_mut().enumerate() {
        let (pair, high, column) = (at / 64, at % 64 / 32, at % 32);
        let code = (block[16 + 32 * pair + column] >> (4 * high)) & 15;
        let (of_group, least) = six_bit_pair(&block[4..16], at / 32);
        *out = scale * f32::from(of_group) * f32::from(code) - minimum * f32::from(least);
    }
}

/// `Q5_K`: as `Q4_K`, with 32 bytes of fifth bits before the codes.
fn q5_k(block: &[u8], out: &mut [f32]) {
    let (scale, minimum) = (half(block, 0), half(block, 2));
    for (at, out) in out.iter_mut().enumerate() {
        let (pair, high, column) = (at / 64, at % 64 / 32, at % 32);
        let low = (block[48 + 32 * pair + column] >> (4 * high)) & 15;
        let fifth = (block[16 + column] >> (2 * pair + high)) & 1;
        let (of_group, least) = six_bit_pair(&block[4..16], at / 32);
        let code = low | (fifth << 4);
        *out = scale * f32::from(of_group) * f32::from(code) - minimum * f32::from(least);
    }
}

/// `Q6_K`: 128 bytes of low bits, 64 of high bits, 16 scales of 8 bits, one half.
fn q6_k(block: &[u8], out: &mut [f32]) {
    let scale = half(block, 208);
    for (at, out) in out.iter_mut().enumerate() {
        let (part, plane, column) = (at / 128, at % 128 / 32, at % 32);
        let low = block[64 * part + 32 * (plane % 2) + column] >> (4 * (plane / 2)) & 15;
        let high = (block[128 + 32 * part + column] >> (2 * plane)) & 3;
        let code = i32::from(low | (high << 4)) - 32;
        *out = scale * f32::from(block[192 + at / 16] as i8) * code as f32;
    }
}
