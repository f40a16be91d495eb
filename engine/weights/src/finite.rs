//! Search for weights that are no numbers.

use engine_tensor::DType;

use crate::TensorRef;

/// Index (row-major) of the first element that is NaN or infinite; `None` when all are numbers or
/// the type holds whole numbers.
///
/// Packed blocks are judged by their scales: a value is a product of a scale and small whole
/// numbers, far below the largest f32, so a block has such an element exactly when one of its
/// scales is one, and then every element is (infinity times 0 is NaN).
pub fn first_non_finite(tensor: &TensorRef) -> Option<usize> {
    let bytes: &[u8] = &tensor.bytes;
    // Where the f16 scales of a block lie.
    let scales: &[usize] = match tensor.dtype {
        DType::F32 => {
            return first(bytes, |b| f32::from_le_bytes(b).is_finite());
        }
        DType::F64 => {
            return first(bytes, |b| f64::from_le_bytes(b).is_finite());
        }
        DType::F8_E4M3 => return first(bytes, |[b]: [u8; 1]| b & 0x7f != 0x7f),
        DType::F16 => return first(bytes, finite_half),
        DType::BF16 => return first(bytes, |b| u16::from_le_bytes(b) & 0x7f80 != 0x7f80),
        DType::Q4_0 | DType::Q5_0 | DType::Q8_0 | DType::IQ4_NL => &[0],
        DType::Q4_1 | DType::Q5_1 | DType::Q4_K | DType::Q5_K => &[0, 2],
        DType::Q2_K => &[80, 82],
        DType::Q3_K => &[108],
        DType::Q6_K => &[208],
        _ => return None,
    };
    let block = bytes
        .chunks_exact(tensor.dtype.block_bytes())
        .position(|block| {
            scales
                .iter()
                .any(|&at| !finite_half([block[at], block[at + 1]]))
        })?;
    Some(block * tensor.dtype.block_elements())
}

const fn finite_half(bytes: [u8; 2]) -> bool {
    u16::from_le_bytes(bytes) & 0x7c00 != 0x7c00
}

fn first<const N: usize>(bytes: &[u8], finite: impl Fn([u8; N]) -> bool) -> Option<usize> {
    bytes
        .as_chunks::<N>()
        .0
        .iter()
        .position(|stored| !finite(*stored))
}
