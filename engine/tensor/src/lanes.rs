//! Sixteen lanes of f32 and the integer product of packed codes, once for each instruction set.
//!
//! All implementations give the same bits: every operation is either exact or rounded once, as
//! IEEE 754 says, and none adds across lanes.

/// A line of codes: 16 rows of 4 neighbours each.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line(pub(crate) [u8; 64]);

/// 16 values, one for each row of a tile.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Values(pub(crate) [f32; 16]);

impl Values {
    pub(crate) const ZERO: Self = Self([0.0; 16]);
}

/// Operations on 16 lanes.
///
/// # Safety
/// Functions of an implementation may only run where its instruction set is present: they are
/// called from bodies that `by_simd!` compiles.
pub(crate) trait Lanes: Copy {
    /// 16 f32.
    type Floats: Copy;
    /// 16 i32.
    type Ints: Copy;
    /// How many `Floats` fit the registers, less a few.
    const SUMS: usize;

    unsafe fn load(from: &Values) -> Self::Floats;
    unsafe fn load_slice(from: &[f32; 16]) -> Self::Floats;
    /// 16 finite halves.
    unsafe fn load_f16(from: &[u16; 16]) -> Self::Floats;
    unsafe fn store(to: &mut Values, value: Self::Floats);
    unsafe fn store_slice(to: &mut [f32; 16], value: Self::Floats);
    unsafe fn splat(value: f32) -> Self::Floats;
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a * b + c`, rounded once.
    unsafe fn fused(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn sub(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a` where it is greater than `b`, else `b`: so zeros and what is no number come from `b`.
    unsafe fn max(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a` where it is less than `b`, else `b`.
    unsafe fn min(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn splat_int(value: i32) -> Self::Ints;
    /// `sum[row] += codes[row][0..4] . four[0..4]`: unsigned codes, signed bytes in -127..=127.
    /// `WIDE` when codes may exceed 127.
    unsafe fn dot<const WIDE: bool>(sum: Self::Ints, codes: &Line, four: [i8; 4]) -> Self::Ints;
    /// `sum - bias * of`, in whole numbers.
    unsafe fn unbias(sum: Self::Ints, bias: i32, of: i32) -> Self::Ints;
    unsafe fn to_floats(value: Self::Ints) -> Self::Floats;
    /// Asks for the bytes at `at`, wherever that is, to be brought near.
    #[inline(always)]
    fn prefetch(_at: *const u8) {}
    /// Bytes `at..at + 16` of 16 rows, as 4 lines: line `g` holds bytes `4g..4g + 4` of each row.
    ///
    /// # Safety
    /// Also: each row has 16 readable bytes from `at`.
    unsafe fn transpose(rows: &[*const u8; 16], at: usize) -> [Line; 4];
}

/// Plain Rust.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl Lanes for Plain {
    type Floats = [f32; 16];
    type Ints = [i32; 16];
    const SUMS: usize = 6;

    #[inline(always)]
    unsafe fn load(from: &Values) -> [f32; 16] {
        from.0
    }

    #[inline(always)]
    unsafe fn load_slice(from: &[f32; 16]) -> [f32; 16] {
        *from
    }

    #[inline(always)]
    unsafe fn load_f16(from: &[u16; 16]) -> [f32; 16] {
        from.map(crate::half_bits::finite_f16)
    }

    #[inline(always)]
    unsafe fn store(to: &mut Values, value: [f32; 16]) {
        to.0 = value;
    }

    #[inline(always)]
    unsafe fn store_slice(to: &mut [f32; 16], value: [f32; 16]) {
        *to = value;
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> [f32; 16] {
        [value; 16]
    }

    #[inline(always)]
    unsafe fn mul(a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        std::array::from_fn(|lane| a[lane] * b[lane])
    }

    #[inline(always)]
    unsafe fn fused(a: [f32; 16], b: [f32; 16], c: [f32; 16]) -> [f32; 16] {
        std::array::from_fn(|lane| a[lane].mul_add(b[lane], c[lane]))
    }

    #[inline(always)]
    unsafe fn add(a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        std::array::from_fn(|lane| a[lane] + b[lane])
    }

    #[inline(always)]
    unsafe fn sub(a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        std::array::from_fn(|lane| a[lane] - b[lane])
    }

    #[inline(always)]
    unsafe fn max(a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        std::array::from_fn(|lane| if a[lane] > b[lane] { a[lane] } else { b[lane] })
    }

    #[inline(always)]
    unsafe fn min(a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        std::array::from_fn(|lane| if a[lane] < b[lane] { a[lane] } else { b[lane] })
    }

    #[inline(always)]
    unsafe fn splat_int(value: i32) -> [i32; 16] {
        [value; 16]
    }

    #[inline(always)]
    unsafe fn dot<const WIDE: bool>(sum: [i32; 16], codes: &Line, four: [i8; 4]) -> [i32; 16] {
        std::array::from_fn(|row| {
            (0..4).fold(sum[row], |sum, at| {
                sum + i32::from(codes.0[4 * row + at]) * i32::from(four[at])
            })
        })
    }

    #[inline(always)]
    unsafe fn unbias(sum: [i32; 16], bias: i32, of: i32) -> [i32; 16] {
        sum.map(|sum| sum - bias * of)
    }

    #[inline(always)]
    unsafe fn to_floats(value: [i32; 16]) -> [f32; 16] {
        value.map(|value| value as f32)
    }

    #[inline(always)]
    unsafe fn transpose(rows: &[*const u8; 16], at: usize) -> [Line; 4] {
        let mut lines = [Line([0; 64]); 4];
        for (row, start) in rows.iter().enumerate() {
            // SAFETY: the caller promises 16 readable bytes from `at`.
            let bytes: [u8; 16] = unsafe { start.add(at).cast::<[u8; 16]>().read() };
            for (group, line) in lines.iter_mut().enumerate() {
                line.0[4 * row..4 * row + 4].copy_from_slice(&bytes[4 * group..4 * group + 4]);
            }
        }
        lines
    }
}

#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::Neon;
