//! Whether frames come evenly, and at which rate.

use engine_base::Rational;

/// Rates that films are made at.
const USUAL: [(i64, i64); 9] = [
    (24000, 1001),
    (24, 1),
    (25, 1),
    (30000, 1001),
    (30, 1),
    (48, 1),
    (50, 1),
    (60000, 1001),
    (60, 1),
];

/// Distances of the frames of a stretch.
#[derive(Debug, PartialEq)]
pub(super) struct Pace {
    pub(super) is_vfr: bool,
    /// Shortest distance in ticks.
    pub(super) shortest: i64,
    /// First to last time stamp in ticks, and the number of distances between.
    pub(super) span: (i64, i64),
}

/// The pace of frames at `times` (ticks, any order); nothing for fewer than three.
pub(super) fn pace(mut times: Vec<i64>) -> Option<Pace> {
    times.sort_unstable();
    times.dedup();
    if times.len() < 3 {
        return None;
    }
    let distances: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let shortest = distances.iter().copied().min()?;
    let span = times.last()? - times.first()?;
    let count = distances.len() as i64;
    // Containers round to ticks: each distance is off by up to one. A tenth covers the jitter of
    // clocks that pretend to be constant.
    let mean = span as f64 / count as f64;
    let slack = (mean / 10.0).max(1.5);
    let is_vfr = distances
        .iter()
        .any(|distance| (*distance as f64 - mean).abs() > slack);
    Some(Pace {
        is_vfr,
        shortest,
        span: (span, count),
    })
}

/// The usual rate for a clip.
pub(super) fn suggested(average: Option<Rational>, is_vfr: bool) -> Rational {
    let usual = || {
        USUAL
            .iter()
            .filter_map(|(num, den)| Rational::new(*num, *den).ok())
    };
    let fallback = Rational::whole(24);
    let Some(average) = average.map(Rational::as_f64).filter(|rate| *rate > 0.0) else {
        return fallback;
    };
    if is_vfr {
        // A little under a rate is that rate with a few frames lost.
        return usual()
            .filter(|rate| rate.den() == 1)
            .find(|rate| rate.as_f64() >= average * 0.98)
            .unwrap_or(Rational::whole(60));
    }
    // A clip of 12 or 15 frames a second is held two or more film frames each.
    for times in 1..=4 {
        let wanted = average * f64::from(times);
        if let Some(rate) = usual().find(|rate| (rate.as_f64() / wanted - 1.0).abs() < 0.0004) {
            return rate;
        }
    }
    usual()
        .min_by(|a, b| {
            let far = |rate: &Rational| (rate.as_f64() / average).ln().abs();
            far(a).total_cmp(&far(b))
        })
        .unwrap_or(fallback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_not_variable_but_gaps_are() {
        let milli = |fps: f64| (0..100).map(move |n| (f64::from(n) * 1000.0 / fps).round() as i64);
        assert!(!pace(milli(23.976).collect()).unwrap().is_vfr);
        assert!(!pace(milli(60.0).collect()).unwrap().is_vfr);
        let gap: Vec<i64> = milli(25.0).filter(|time| *time != 400).collect();
        assert!(pace(gap).unwrap().is_vfr);
        assert_eq!(pace(vec![0, 10]), None);
    }

    #[test]
    fn suggestions_are_rates_of_films() {
        let rate = |num, den| Rational::new(num, den).ok();
        let whole = Rational::whole;
        assert_eq!(suggested(rate(5160, 247), true), whole(24));
        assert_eq!(suggested(rate(297, 10), true), whole(30));
        assert_eq!(
            suggested(rate(24000, 1001), false),
            Rational::new(24000, 1001).unwrap()
        );
        assert_eq!(suggested(rate(25, 1), false), whole(25));
        assert_eq!(suggested(rate(120, 1), false), whole(60));
        assert_eq!(suggested(rate(15, 1), false), whole(30));
        assert_eq!(
            suggested(rate(23, 1), false),
            Rational::new(24000, 1001).unwrap()
        );
        assert_eq!(suggested(None, true), whole(24));
    }
}
