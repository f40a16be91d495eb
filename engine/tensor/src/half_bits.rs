//! 16-bit floats as bits, written so that compilers turn loops over them into vector code.

/// A half as f32; exact for every finite one. Infinities and NaN are refused at load and come out
/// as large numbers here.
#[inline(always)]
pub(crate) fn finite_f16(bits: u16) -> f32 {
    // The exponent's bias differs by 112: multiplying corrects it, subnormals included.
    let scale = f32::from_bits((254 - 15) << 23);
    let magnitude = f32::from_bits(u32::from(bits & 0x7fff) << 13) * scale;
    f32::from_bits(magnitude.to_bits() | (u32::from(bits & 0x8000) << 16))
}

/// A half as f32; exact.
pub fn f16_to_f32(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32()
}

/// A bfloat16 as f32; exact.
#[inline(always)]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The nearest half, ties to even; beyond the range, infinity.
pub fn f32_to_f16(value: f32) -> u16 {
    half::f16::from_f32(value).to_bits()
}

/// Two bytes, least first.
#[inline(always)]
pub(crate) fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_half_converts_exactly() {
        for bits in 0..=u16::MAX {
            let expected = half::f16::from_bits(bits);
            if expected.is_finite() {
                assert_eq!(finite_f16(bits).to_bits(), expected.to_f32().to_bits());
            }
        }
    }
}
