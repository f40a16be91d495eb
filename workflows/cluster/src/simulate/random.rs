//! Draws that follow from a seed and a place, not from the order in which they are made: the
//! same job has the same luck under every policy.

/// Deviation of the logarithm of a log-normal value whose 95th percentile is 4 times its median:
/// ln 4 over the normal distribution's 95th percentile, 1.6449.
pub const P95_OVER_P50_4: f64 = 0.842_8;

/// A source of draws.
#[derive(Debug, Clone, Copy)]
pub struct Draws {
    seed: u64,
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014).
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Draws {
    /// Draws of this seed.
    pub const fn new(seed: u64) -> Self {
        Self {
            seed: mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)),
        }
    }

    /// Whole number at a place: `what` tells kinds of draws apart, `at` counts within one.
    pub const fn whole(self, what: u64, at: u64) -> u64 {
        let stream = mix(self.seed ^ what.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mix(stream.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// From 0 up to but not 1.
    pub fn unit(self, what: u64, at: u64) -> f64 {
        (self.whole(what, at) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller).
    pub fn normal(self, what: u64, at: u64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit(what, at.wrapping_mul(2))).ln()).sqrt();
        let angle = std::f64::consts::TAU * self.unit(what, at.wrapping_mul(2).wrapping_add(1));
        radius * angle.cos()
    }

    /// Log-normal with median 1 and this deviation of the logarithm.
    pub fn log_normal(self, what: u64, at: u64, sigma: f64) -> f64 {
        if sigma <= 0.0 {
            1.0
        } else {
            (sigma * self.normal(what, at)).exp()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_95th_percentile_is_four_times_the_median() {
        let draws = Draws::new(1);
        let mut values: Vec<f64> = (0..20_000)
            .map(|at| draws.log_normal(7, at, P95_OVER_P50_4))
            .collect();
        values.sort_by(f64::total_cmp);
        let (median, high) = (values[10_000], values[19_000]);
        assert!((median - 1.0).abs() < 0.03, "median {median}");
        assert!(
            (high / median - 4.0).abs() < 0.25,
            "ratio {}",
            high / median
        );
        assert!(draws.whole(1, 5) != draws.whole(2, 5) && draws.whole(1, 5) != draws.whole(1, 6));
    }
}
