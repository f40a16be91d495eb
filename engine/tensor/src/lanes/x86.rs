//! AVX2 with FMA, and AVX-512 with VNNI.

use std::arch::x86_64::*;

use super::{Lanes, Line, Values};

/// AVX2 and FMA: two halves of 8 lanes.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// AVX-512 with VNNI.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// Four 16-byte rows as 4 x 4 lanes, within each 128-bit lane: rows become columns.
macro_rules! transpose_4x4 {
    ($z:expr, $lo32:ident, $hi32:ident, $lo64:ident, $hi64:ident) => {{
        let z = $z;
        let low_01 = $lo32(z[0], z[1]);
        let high_01 = $hi32(z[0], z[1]);
        let low_23 = $lo32(z[2], z[3]);
        let high_23 = $hi32(z[2], z[3]);
        [
            $lo64(low_01, low_23),
            $hi64(low_01, low_23),
            $lo64(high_01, high_23),
            $hi64(high_01, high_23),
        ]
    }};
}

#[inline(always)]
fn four_bytes(four: [i8; 4]) -> i32 {
    i32::from_le_bytes([four[0] as u8, four[1] as u8, four[2] as u8, four[3] as u8])
}

impl Lanes for Avx2 {
    type Floats = [__m256; 2];
    type Ints = [__m256i; 2];
    const SUMS: usize = 6;

    #[inline(always)]
    fn prefetch(at: *const u8) {
        // SAFETY: SSE is part of x86-64, and a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }

    #[inline(always)]
    unsafe fn load(from: &Values) -> Self::Floats {
        // SAFETY: features by the trait's contract; 16 floats are readable.
        unsafe { Self::load_slice(&from.0) }
    }

    #[inline(always)]
    unsafe fn load_slice(from: &[f32; 16]) -> Self::Floats {
        // SAFETY: as above.
        unsafe {
            [
                _mm256_loadu_ps(from.as_ptr()),
                _mm256_loadu_ps(from.as_ptr().add(8)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn load_f16(from: &[u16; 16]) -> Self::Floats {
        // SAFETY: features by the trait's contract; 16 halves are readable.
        unsafe {
            [
                _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast())),
                _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().add(8).cast())),
            ]
        }
    }

    #[inline(always)]
    unsafe fn store(to: &mut Values, value: Self::Floats) {
        // SAFETY: as above.
        unsafe { Self::store_slice(&mut to.0, value) };
    }

    #[inline(always)]
    unsafe fn store_slice(to: &mut [f32; 16], value: Self::Floats) {
        // SAFETY: features by the trait's contract; 16 floats are writable.
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), value[0]);
            _mm256_storeu_ps(to.as_mut_ptr().add(8), value[1]);
        }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { [_mm256_set1_ps(value); 2] }
    }

    #[inline(always)]
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn fused(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe {
            [
                _mm256_fmadd_ps(a[0], b[0], c[0]),
                _mm256_fmadd_ps(a[1], b[1], c[1]),
            ]
        }
    }

    #[inline(always)]
    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn sub(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn max(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { [_mm256_max_ps(a[0], b[0]), _mm256_max_ps(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn min(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { [_mm256_min_ps(a[0], b[0]), _mm256_min_ps(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn splat_int(value: i32) -> Self::Ints {
        // SAFETY: features by the trait's contract.
        unsafe { [_mm256_set1_epi32(value); 2] }
    }

    #[inline(always)]
    unsafe fn dot<const WIDE: bool>(sum: Self::Ints, codes: &Line, four: [i8; 4]) -> Self::Ints {
        // SAFETY: features by the trait's contract; a line is 64 readable bytes.
        unsafe {
            let four = _mm256_set1_epi32(four_bytes(four));
            let ones = _mm256_set1_epi16(1);
            let mut sums = sum;
            for (half, sum) in sums.iter_mut().enumerate() {
                let codes = _mm256_load_si256(codes.0.as_ptr().add(32 * half).cast());
                let pairs = if WIDE {
                    // Two products of 255 * 127 overflow 16 bits: take 128 off the codes and
                    // give it back below.
                    let signed = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
                    let magnitude = _mm256_abs_epi8(signed);
                    _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(four, signed))
                } else {
                    _mm256_maddubs_epi16(codes, four)
                };
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, ones));
                if WIDE {
                    let all = _mm256_maddubs_epi16(_mm256_set1_epi8(64), four);
                    let all = _mm256_slli_epi32::<1>(_mm256_madd_epi16(all, ones));
                    *sum = _mm256_add_epi32(*sum, all);
                }
            }
            sums
        }
    }

    #[inline(always)]
    unsafe fn unbias(sum: Self::Ints, bias: i32, of: i32) -> Self::Ints {
        // SAFETY: features by the trait's contract.
        unsafe {
            let less = _mm256_set1_epi32(bias * of);
            [
                _mm256_sub_epi32(sum[0], less),
                _mm256_sub_epi32(sum[1], less),
            ]
        }
    }

    #[inline(always)]
    unsafe fn to_floats(value: Self::Ints) -> Self::Floats {
        // SAFETY: features by the trait's contract.
        unsafe { [_mm256_cvtepi32_ps(value[0]), _mm256_cvtepi32_ps(value[1])] }
    }

    #[inline(always)]
    unsafe fn transpose(rows: &[*const u8; 16], at: usize) -> [Line; 4] {
        // SAFETY: features by the trait's contract; rows are readable by the caller's promise.
        unsafe {
            let mut lines = [Line([0; 64]); 4];
            for half in 0..2 {
                let mut z = [_mm256_setzero_si256(); 4];
                for (row, z) in z.iter_mut().enumerate() {
                    let row = 8 * half + row;
                    *z = _mm256_inserti128_si256::<1>(
                        _mm256_castsi128_si256(_mm_loadu_si128(rows[row].add(at).cast())),
                        _mm_loadu_si128(rows[row + 4].add(at).cast()),
                    );
                }
                let columns = transpose_4x4!(
                    z,
                    _mm256_unpacklo_epi32,
                    _mm256_unpackhi_epi32,
                    _mm256_unpacklo_epi64,
                    _mm256_unpackhi_epi64
                );
                for (line, column) in lines.iter_mut().zip(columns) {
                    _mm256_store_si256(line.0.as_mut_ptr().add(32 * half).cast(), column);
                }
            }
            lines
        }
    }
}

impl Lanes for Avx512 {
    type Floats = __m512;
    type Ints = __m512i;
    const SUMS: usize = 24;

    #[inline(always)]
    fn prefetch(at: *const u8) {
        // SAFETY: SSE is part of x86-64, and a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }

    #[inline(always)]
    unsafe fn load(from: &Values) -> __m512 {
        // SAFETY: features by the trait's contract; 16 aligned floats are readable.
        unsafe { _mm512_load_ps(from.0.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn load_slice(from: &[f32; 16]) -> __m512 {
        // SAFETY: features by the trait's contract; 16 floats are readable.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: &[u16; 16]) -> __m512 {
        // SAFETY: features by the trait's contract; 16 halves are readable.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn store(to: &mut Values, value: __m512) {
        // SAFETY: features by the trait's contract; 16 aligned floats are writable.
        unsafe { _mm512_store_ps(to.0.as_mut_ptr(), value) };
    }

    #[inline(always)]
    unsafe fn store_slice(to: &mut [f32; 16], value: __m512) {
        // SAFETY: features by the trait's contract; 16 floats are writable.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), value) };
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        // SAFETY: features by the trait's contract.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        // SAFETY: features by the trait's contract.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn fused(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: features by the trait's contract.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: features by the trait's contract.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m512, b: __m512) -> __m512 {
        // SAFETY: features by the trait's contract.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn max(a: __m512, b: __m512) -> __m512 {
        // SAFETY: features by the trait's contract.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: __m512, b: __m512) -> __m512 {
        // SAFETY: features by the trait's contract.
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn splat_int(value: i32) -> __m512i {
        // SAFETY: features by the trait's contract.
        unsafe { _mm512_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn dot<const WIDE: bool>(sum: __m512i, codes: &Line, four: [i8; 4]) -> __m512i {
        // SAFETY: features by the trait's contract; a line is 64 aligned readable bytes.
        unsafe {
            let four = _mm512_set1_epi32(four_bytes(four));
            _mm512_dpbusd_epi32(sum, _mm512_load_si512(codes.0.as_ptr().cast()), four)
        }
    }

    #[inline(always)]
    unsafe fn unbias(sum: __m512i, bias: i32, of: i32) -> __m512i {
        // SAFETY: features by the trait's contract.
        unsafe {
            let less = _mm512_mullo_epi32(_mm512_set1_epi32(of), _mm512_set1_epi32(bias));
            _mm512_sub_epi32(sum, less)
        }
    }

    #[inline(always)]
    unsafe fn to_floats(value: __m512i) -> __m512 {
        // SAFETY: features by the trait's contract.
        unsafe { _mm512_cvtepi32_ps(value) }
    }

    #[inline(always)]
    unsafe fn transpose(rows: &[*const u8; 16], at: usize) -> [Line; 4] {
        // SAFETY: features by the trait's contract; rows are readable by the caller's promise.
        unsafe {
            let mut z = [_mm512_setzero_si512(); 4];
            for (row, z) in z.iter_mut().enumerate() {
                let first = _mm_loadu_si128(rows[row].add(at).cast());
                let second = _mm_loadu_si128(rows[row + 4].add(at).cast());
                let third = _mm_loadu_si128(rows[row + 8].add(at).cast());
                let fourth = _mm_loadu_si128(rows[row + 12].add(at).cast());
                let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(first), second);
                let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(third), fourth);
                *z = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            }
            let columns = transpose_4x4!(
                z,
                _mm512_unpacklo_epi32,
                _mm512_unpackhi_epi32,
                _mm512_unpacklo_epi64,
                _mm512_unpackhi_epi64
            );
            let mut lines = [Line([0; 64]); 4];
            for (line, column) in lines.iter_mut().zip(columns) {
                _mm512_store_si512(line.0.as_mut_ptr().cast(), column);
            }
            lines
        }
    }
}
