//! Random numbers that depend on what is said only.

use std::f64::consts::TAU;

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
pub(super) struct Noise(u64);

impl Noise {
    /// Seeded by tokens.
    pub(super) fn of(tokens: &[i64]) -> Self {
        let mut noise = Self(0x4C6F_6E67_7461_6B65);
        for token in tokens {
            noise.0 ^= token.cast_unsigned();
            noise.0 = noise.next();
        }
        noise
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Above 0, at most 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Two independent standard normal values (Box and Muller).
    pub(super) fn pair(&mut self) -> (f32, f32) {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        let (sin, cos) = (TAU * self.unit()).sin_cos();
        ((radius * cos) as f32, (radius * sin) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_normal_and_its_own() {
        let mut noise = Noise::of(&[1, 2]);
        let (mut sum, mut squares, count) = (0.0f64, 0.0f64, 40_000);
        for _ in 0..count / 2 {
            let (a, b) = noise.pair();
            sum += f64::from(a + b);
            squares += f64::from(a * a + b * b);
        }
        let (mean, spread) = (sum / f64::from(count), squares / f64::from(count));
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((spread - 1.0).abs() < 0.03, "{spread}");
        assert_eq!(Noise::of(&[1, 2]).pair(), Noise::of(&[1, 2]).pair());
        assert_ne!(Noise::of(&[1, 2]).pair(), Noise::of(&[2, 1]).pair());
    }
}
