//! The noise a picture begins with: a function of the seed and the place alone.

use std::f64::consts::TAU;

/// `count` standard normal values of `seed`: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom
/// number generators", 2014) by Box and Muller, two by two.
pub(super) fn noise(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed ^ 0x5069_6374_7572_6573;
    let mut next = move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let mixed = mixed ^ (mixed >> 31);
        // Over 0, at most 1.
        ((mixed >> 11) + 1) as f64 / (1u64 << 53) as f64
    };
    // Neighbouring seeds begin far apart.
    next();
    let mut values = Vec::with_capacity(count + 1);
    while values.len() < count {
        let radius = (-2.0 * next().ln()).sqrt();
        let (sin, cos) = (TAU * next()).sin_cos();
        values.push((radius * cos) as f32);
        values.push((radius * sin) as f32);
    }
    values.truncate(count);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_normal_and_of_its_seed() {
        let values = noise(7, 40_001);
        let count = values.len() as f64;
        let mean = values.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
        let spread = values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / count;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((spread - 1.0).abs() < 0.03, "{spread}");
        assert_eq!(values[..100], noise(7, 100));
        for seed in [0, 6, 8, u64::MAX] {
            let other = noise(seed, 40_001);
            let pairs = values.iter().zip(&other);
            let product: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            assert!((product / count).abs() < 0.02, "{seed}");
        }
    }
}
