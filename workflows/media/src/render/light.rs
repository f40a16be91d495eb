//! sRGB transfer by table: coded values (what files hold) to and from linear light.

use std::sync::LazyLock;

/// The light in which a layer's samples are held and filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Light {
    /// Proportional to light. Right for reducing: fine texture keeps its brightness.
    Linear,
    /// sRGB coded. Right for enlarging: overshoot at edges stays even in the eye.
    Coded,
}

fn decode(coded: f64) -> f64 {
    if coded <= 0.04045 {
        coded / 12.92
    } else {
        ((coded + 0.055) / 1.055).powf(2.4)
    }
}

fn encode(linear: f64) -> f64 {
    if linear <= 0.003_130_8 {
        linear * 12.92
    } else {
        1.055 * linear.powf(1.0 / 2.4) - 0.055
    }
}

static LINEAR_OF_8: LazyLock<Vec<f32>> = LazyLock::new(|| {
    (0..256)
        .map(|v| decode(f64::from(v) / 255.0) as f32)
        .collect()
});
static LINEAR_OF_16: LazyLock<Vec<f32>> = LazyLock::new(|| {
    (0..65536)
        .map(|v| decode(f64::from(v) / 65535.0) as f32)
        .collect()
});

/// Linear light of every 8-bit coded value.
pub(crate) fn linear_of_8() -> &'static [f32] {
    &LINEAR_OF_8
}

/// Linear light of every 16-bit coded value.
pub(crate) fn linear_of_16() -> &'static [f32] {
    &LINEAR_OF_16
}

/// Below this the curve is a straight line.
const TABLE_FROM: f32 = 1.0 / 512.0;
const TABLE_FROM_BITS: u32 = TABLE_FROM.to_bits() >> 16;
const ALMOST_ONE: f32 = 1.0 - f32::EPSILON / 2.0;
const TABLE_LEN: usize = ((1.0_f32.to_bits() >> 16) - TABLE_FROM_BITS) as usize;

/// Straight pieces (offset, slope) over 1/128 of each octave; off by less than 2e-6.
static CODED_PIECES: LazyLock<Vec<[f32; 2]>> = LazyLock::new(|| {
    (0..TABLE_LEN as u32)
        .map(|i| {
            let at = |i: u32| f64::from(f32::from_bits((TABLE_FROM_BITS + i) << 16));
            let (x0, x1) = (at(i), at(i + 1));
            let slope = (encode(x1) - encode(x0)) / (x1 - x0);
            [(encode(x0) - slope * x0) as f32, slope as f32]
        })
        .collect()
});

/// Turns linear light into coded values.
#[derive(Clone, Copy)]
pub(crate) struct Coder {
    pieces: &'static [[f32; 2]],
}

impl Coder {
    pub(crate) fn new() -> Self {
        Self {
            pieces: &CODED_PIECES,
        }
    }

    /// Coded value of `linear`, both clamped to 0..1.
    #[inline(always)]
    pub(crate) fn coded(self, linear: f32) -> f32 {
        let x = linear.clamp(0.0, ALMOST_ONE);
        if x < TABLE_FROM {
            return x * 12.92;
        }
        let index = ((x.to_bits() >> 16) - TABLE_FROM_BITS) as usize;
        // The clamp above keeps the index inside; `get` only spares a panic path.
        match self.pieces.get(index) {
            Some([offset, slope]) => offset + slope * x,
            None => 1.0,
        }
    }

    /// [`Self::coded`] over the colour channels of a row.
    #[inline(always)]
    pub(crate) fn coded_row(self, row: &mut [[f32; 4]]) {
        for pixel in row {
            for value in &mut pixel[..3] {
                *value = self.coded(*value);
            }
        }
    }
}

/// Linear light of coded values of a row, by the 16-bit table with interpolation.
pub(crate) fn linear_row(row: &mut [[f32; 4]]) {
    let table = linear_of_16();
    for pixel in row {
        for value in &mut pixel[..3] {
            let place = value.clamp(0.0, 1.0) * 65535.0;
            let index = (place as usize).min(65534);
            let part = place - index as f32;
            *value = table[index] + (table[index + 1] - table[index]) * part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_follow_the_curve() {
        let coder = Coder::new();
        for i in 0..=100_000 {
            let x = f64::from(i) / 100_000.0;
            let error = (f64::from(coder.coded(x as f32)) - encode(x)).abs();
            assert!(error < 4e-6, "at {x} off by {error}");
        }
        for v in 0..=255_u8 {
            let back = coder.coded(linear_of_8()[usize::from(v)]) * 255.0;
            assert!(
                (back - f32::from(v)).abs() < 2e-3,
                "{v} came back as {back}"
            );
        }
        let mut row = [[0.5_f32, 0.25, 1.0, 0.0]];
        linear_row(&mut row);
        coder.coded_row(&mut row);
        assert!((row[0][0] - 0.5).abs() < 1e-5 && (row[0][2] - 1.0).abs() < 1e-5);
        assert!(coder.coded(-1.0).abs() < 1e-9 && coder.coded(7.0) > 0.999_99);
    }
}
