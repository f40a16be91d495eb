//! Functions whose bits must not depend on the system's mathematics library.

/// `e^x` within 2 units in the last place; 0 below -87.3, infinity above 88.7, NaN stays.
///
/// Cody and Waite's reduction to `|r| <= ln 2 / 2`, then the series to the seventh power.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let clamped = if x > -87.3 { x } else { -87.3 };
    let clamped = if clamped < 88.7 { clamped } else { 88.7 };
    let shifted = clamped.mul_add(std::f32::consts::LOG2_E, ROUND);
    let whole = shifted - ROUND;
    let rest = whole.mul_add(-LN2_HIGH, clamped);
    let rest = whole.mul_add(-LN2_LOW, rest);
    let mut series = 1.0 / 5040.0;
    for factor in [
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        series = rest.mul_add(series, factor);
    }
    let power = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    // Two factors: 2^128 is no f32, but the product may be one.
    let half = power >> 1;
    let scale = |power: i32| f32::from_bits(((power + 127) << 23) as u32);
    let value = series * scale(half) * scale(power - half);
    let value = if x < -87.3 { 0.0 } else { value };
    let value = if x > 88.7 { f32::INFINITY } else { value };
    if x.is_nan() { x } else { value }
}

/// The sum of `values` in a fixed order: 16 partial sums by index, then pairs of them.
#[inline(always)]
pub(crate) fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0f32; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += of(*value);
        }
    }
    for (sum, value) in sums.iter_mut().zip(rest) {
        *sum += of(*value);
    }
    for width in [8, 4, 2, 1] {
        for at in 0..width {
            sums[at] += sums[at + width];
        }
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_everywhere() {
        let mut worst = 0f64;
        for step in -87_000..88_700 {
            let x = step as f32 * 1e-3;
            let expected = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) / expected - 1.0).abs());
        }
        assert!(worst < 2.0 * f64::from(f32::EPSILON), "{worst:e}");
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-200.0), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(200.0), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn sums_take_every_value_once() {
        let values: Vec<f32> = (0..37).map(|at| at as f32).collect();
        assert_eq!(sum(&values, |value| value), 666.0);
    }
}
