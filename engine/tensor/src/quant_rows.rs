//! Rows of activations in 8 bits, for products with packed weights.

use crate::error::expect;
use crate::shared::SharedSlice;
use crate::simd::by_simd;
use crate::{Cpu, TensorError};

/// Elements that share a scale.
const BLOCK: usize = 32;

/// Rows of f32 rounded to 8 bits, in blocks of 32 with one f32 scale each.
///
/// `value = scale * code`, `scale = largest magnitude / 127`, codes rounded to nearest, ties to
/// even. Sums are kept because products with packed weights need them.
#[derive(Debug, Clone, Default)]
pub struct QuantRows {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// `[rows, cols]`
    pub(crate) codes: Vec<i8>,
    /// `[rows, cols / 32]`
    pub(crate) scales: Vec<f32>,
    /// Sums of codes of each half block: `[rows, cols / 16]`.
    pub(crate) half_sums: Vec<i32>,
    /// Sums of codes of each block: `[rows, cols / 32]`.
    pub(crate) sums: Vec<i32>,
    /// Sums times scales: `[rows, cols / 32]`.
    pub(crate) weighted: Vec<f32>,
}

impl QuantRows {
    /// Empty; [`QuantRows::fill`] reuses its memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over `values: [rows, cols]`. A value that is no number, or infinite, makes its block
    /// no number.
    ///
    /// # Errors
    /// `Shape` unless `cols` is whole blocks of 32 and `values` whole rows.
    pub fn fill(&mut self, cpu: &Cpu, values: &[f32], cols: usize) -> Result<(), TensorError> {
        const OP: &str = "quantize_rows";
        expect(OP, "cols % 32", cols % BLOCK, 0)?;
        expect(OP, "cols > 0", usize::from(cols > 0), 1)?;
        expect(OP, "values % cols", values.len() % cols, 0)?;
        self.rows = values.len() / cols;
        self.cols = cols;
        self.codes.resize(values.len(), 0);
        self.scales.resize(values.len() / BLOCK, 0.0);
        self.half_sums.resize(values.len() / 16, 0);
        self.sums.resize(values.len() / BLOCK, 0);
        self.weighted.resize(values.len() / BLOCK, 0.0);
        let codes = SharedSlice::new(&mut self.codes);
        let scales = SharedSlice::new(&mut self.scales);
        let half_sums = SharedSlice::new(&mut self.half_sums);
        let sums = SharedSlice::new(&mut self.sums);
        let weighted = SharedSlice::new(&mut self.weighted);
        let blocks = cols / BLOCK;
        let quantize_row = |row: usize| {
            let part = row * blocks..(row + 1) * blocks;
            // SAFETY: rows are disjoint and each task has its own.
            let into = unsafe {
                QuantRow {
                    codes: codes.part(row * cols..(row + 1) * cols),
                    scales: scales.part(part.clone()),
                    half_sums: half_sums.part(2 * part.start..2 * part.end),
                    sums: sums.part(part.clone()),
                    weighted: weighted.part(part),
                }
            };
            quantize(cpu.simd(), &values[row * cols..(row + 1) * cols], into);
        };
        if self.rows < 4 {
            (0..self.rows).for_each(quantize_row);
        } else {
            cpu.threads().run(self.rows, &quantize_row);
        }
        Ok(())
    }

    /// The values of row `row` as they are now, into `out: [cols]`.
    pub fn decode_row(&self, row: usize, out: &mut [f32]) {
        let codes = &self.codes[row * self.cols..(row + 1) * self.cols];
        let scales = &self.scales[row * self.cols / BLOCK..];
        for (at, (out, code)) in out.iter_mut().zip(codes).enumerate() {
            *out = f32::from(*code) * scales[at / BLOCK];
        }
    }
}

/// Where one row goes.
struct QuantRow<'a> {
    codes: &'a mut [i8],
    scales: &'a mut [f32],
    half_sums: &'a mut [i32],
    sums: &'a mut [i32],
    weighted: &'a mut [f32],
}

by_simd! {
    fn quantize(values: &[f32], into: QuantRow<'_>) = loops quantize_body;
}

#[inline(always)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's arguments are passed on"
)]
fn quantize_body(values: &[f32], into: QuantRow<'_>) {
    /// Adding and taking off 1.5 * 2^23 rounds to nearest, ties to even.
    const ROUND: f32 = 12_582_912.0;
    let (values, _) = values.as_chunks::<BLOCK>();
    let (codes, _) = into.codes.as_chunks_mut::<BLOCK>();
    for (block, (values, codes)) in values.iter().zip(codes).enumerate() {
        let mut largest = [0f32; 8];
        for at in 0..BLOCK {
            let magnitude = values[at].abs();
            let lane = &mut largest[at % 8];
            *lane = if magnitude > *lane { magnitude } else { *lane };
        }
        let largest = largest
            .iter()
            .fold(0f32, |a, b| if *b > a { *b } else { a });
        let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        let mut total = 0.0;
        let mut whole = [0i32; BLOCK];
        for at in 0..BLOCK {
            let rounded = values[at] * inverse + ROUND;
            whole[at] = rounded.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
        }
        for value in values {
            total += value * 0.0;
        }
        for at in 0..BLOCK {
            codes[at] = whole[at].clamp(-127, 127) as i8;
        }
        let sum_of =
            |range: std::ops::Range<usize>| codes[range].iter().map(|c| i32::from(*c)).sum();
        let (first, second): (i32, i32) = (sum_of(0..16), sum_of(16..32));
        into.half_sums[2 * block] = first;
        into.half_sums[2 * block + 1] = second;
        into.sums[block] = first + second;
        // `total` is 0, or no number when a value is infinite or none.
        let scale = largest / 127.0 + total;
        into.scales[block] = scale;
        into.weighted[block] = scale * (first + second) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_within_half_a_step_and_the_same_everywhere() {
        let values: Vec<f32> = (0..5 * 96)
            .map(|at| ((at * 7919) % 1000) as f32 * 0.013 - 6.5)
            .collect();
        let cpu = Cpu::new(2).unwrap();
        let mut whole = QuantRows::new();
        whole.fill(&cpu, &values, 96).unwrap();
        let mut back = vec![0.0; 96];
        for row in 0..5 {
            whole.decode_row(row, &mut back);
            for (at, (value, back)) in values[row * 96..].iter().zip(&back).enumerate() {
                let step = whole.scales[row * 3 + at / 32];
                assert!(
                    (value - back).abs() <= step * 0.5001,
                    "{value} {back} {step}"
                );
            }
            let mut alone = QuantRows::new();
            for simd in crate::Simd::available() {
                let threads = std::sync::Arc::new(crate::Threads::new(1).unwrap());
                let cpu = Cpu::with(threads, simd);
                alone
                    .fill(&cpu, &values[row * 96..(row + 1) * 96], 96)
                    .unwrap();
                assert_eq!(alone.codes, whole.codes[row * 96..(row + 1) * 96]);
                assert_eq!(alone.scales, whole.scales[row * 3..(row + 1) * 3]);
            }
        }
    }

    #[test]
    fn zeros_stay_zero_and_no_number_stays_none() {
        let cpu = Cpu::new(1).unwrap();
        let mut rows = QuantRows::new();
        let mut values = vec![0.0; 64];
        values[40] = f32::NAN;
        rows.fill(&cpu, &values, 64).unwrap();
        assert_eq!(rows.codes[..32], [0; 32]);
        assert_eq!(rows.scales[0].to_bits(), 0f32.to_bits());
        assert!(rows.scales[1].is_nan());
        values[40] = f32::INFINITY;
        rows.fill(&cpu, &values, 64).unwrap();
        assert!(rows.scales[1].is_nan());
        assert!(rows.fill(&cpu, &values, 33).is_err());
    }
}
