//! NEON: four quarters of 4 lanes.

use std::arch::aarch64::*;

use super::{Lanes, Line, Values};

/// NEON without the dot product extension, which not every machine has.
#[derive(Clone, Copy)]
pub(crate) struct Neon;

impl Lanes for Neon {
    type Floats = [float32x4_t; 4];
    type Ints = [int32x4_t; 4];
    const SUMS: usize = 6;

    #[inline(always)]
    unsafe fn load(from: &Values) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { Self::load_slice(&from.0) }
    }

    #[inline(always)]
    unsafe fn load_slice(from: &[f32; 16]) -> Self::Floats {
        // SAFETY: features by the trait's contract; 16 floats are readable.
        unsafe { std::array::from_fn(|part| vld1q_f32(from.as_ptr().add(4 * part))) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: &[u16; 16]) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { Self::load_slice(&from.map(crate::half_bits::finite_f16)) }
    }

    #[inline(always)]
    unsafe fn store(to: &mut Values, value: Self::Floats) {
        // SAFETY: features by the trait's contract.
        unsafe { Self::store_slice(&mut to.0, value) };
    }

    #[inline(always)]
    unsafe fn store_slice(to: &mut [f32; 16], value: Self::Floats) {
        for (part, value) in value.into_iter().enumerate() {
            // SAFETY: features by the trait's contract; 16 floats are writable.
            unsafe { vst1q_f32(to.as_mut_ptr().add(4 * part), value) };
        }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { [vdupq_n_f32(value); 4] }
    }

    #[inline(always)]
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { std::array::from_fn(|part| vmulq_f32(a[part], b[part])) }
    }

    #[inline(always)]
    unsafe fn fused(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { std::array::from_fn(|part| vfmaq_f32(c[part], a[part], b[part])) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { std::array::from_fn(|part| vaddq_f32(a[part], b[part])) }
    }

    #[inline(always)]
    unsafe fn sub(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { std::array::from_fn(|part| vsubq_f32(a[part], b[part])) }
    }

    #[inline(always)]
    unsafe fn max(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe {
            std::array::from_fn(|part| vbslq_f32(vcgtq_f32(a[part], b[part]), a[part], b[part]))
        }
    }

    #[inline(always)]
    unsafe fn min(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe {
            std::array::from_fn(|part| vbslq_f32(vcltq_f32(a[part], b[part]), a[part], b[part]))
        }
    }

    #[inline(always)]
    unsafe fn splat_int(value: i32) -> Self::Ints {
        // SAFETY: features by the trait's contract.
        unsafe { [vdupq_n_s32(value); 4] }
    }

    #[inline(always)]
    unsafe fn dot<const WIDE: bool>(sum: Self::Ints, codes: &Line, four: [i8; 4]) -> Self::Ints {
        // SAFETY: features by the trait's contract; a line is 64 readable bytes.
        unsafe {
            let four = vdup_n_s32(i32::from_le_bytes(four.map(|byte| byte as u8)));
            let four = vmovl_s8(vreinterpret_s8_s32(four));
            std::array::from_fn(|part| {
                let codes = vld1q_u8(codes.0.as_ptr().add(16 * part));
                let low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(codes)));
                let high = vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(codes)));
                // 255 * 127 fits 16 bits; sums of pairs are taken in 32.
                let low = vpaddlq_s16(vmulq_s16(low, four));
                let high = vpaddlq_s16(vmulq_s16(high, four));
                vaddq_s32(sum[part], vpaddq_s32(low, high))
            })
        }
    }

    #[inline(always)]
    unsafe fn unbias(sum: Self::Ints, bias: i32, of: i32) -> Self::Ints {
        // SAFETY: features by the trait's contract.
        unsafe { std::array::from_fn(|part| vsubq_s32(sum[part], vdupq_n_s32(bias * of))) }
    }

    #[inline(always)]
    unsafe fn to_floats(value: Self::Ints) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { std::array::from_fn(|part| vcvtq_f32_s32(value[part])) }
    }

    #[inline(always)]
    unsafe fn transpose(rows: &[*const u8; 16], at: usize) -> [Line; 4] {
        // SAFETY: the caller promises 16 readable bytes from `at` in each row.
        unsafe { super::Plain::transpose(rows, at) }
    }
}
