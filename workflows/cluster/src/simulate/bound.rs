//! What no schedule can beat.

use std::collections::BTreeMap;

use super::film::PlannedJob;
use super::machines::Machine;
use crate::job::JobId;

/// Lower bounds of the makespan, in seconds, from what jobs truly take; loading, transfer and
/// handing out count as nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// The longest chain of jobs, on the fastest machine.
    pub critical_path_secs: f64,
    /// All work over the sum of speeds.
    pub work_secs: f64,
    /// The same rounded up to whole jobs, where machines are alike: of the km + 1 longest jobs
    /// one of m machines gets k + 1, at best the shortest of them.
    pub whole_jobs_secs: f64,
}

impl Bound {
    /// The highest of them.
    pub fn secs(&self) -> f64 {
        let work = self.work_secs.max(self.whole_jobs_secs);
        self.critical_path_secs.max(work)
    }
}

/// Bounds for jobs that truly take `secs` (in the order of `jobs`) on a machine of speed 1.
pub fn bound(jobs: &[PlannedJob], secs: &[f64], machines: &[Machine]) -> Bound {
    let speeds = || machines.iter().map(|machine| machine.speed / machine.ails);
    let fastest = speeds().fold(0.0, f64::max);
    let slowest = speeds().fold(f64::INFINITY, f64::min);
    let total: f64 = speeds().sum();
    let work: f64 = secs.iter().sum();
    let mut ends: BTreeMap<JobId, f64> = BTreeMap::new();
    // Jobs of a film come after what they need.
    for (planned, secs) in jobs.iter().zip(secs) {
        let needs = planned.job.needs();
        let start = needs.iter().filter_map(|need| ends.get(need)).copied();
        let start = start.fold(0.0, f64::max);
        ends.insert(planned.job.id, start + secs / fastest);
    }
    let mut longest = secs.to_vec();
    longest.sort_by(|a, b| b.total_cmp(a));
    let alike = fastest <= slowest;
    let mut whole_jobs_secs: f64 = 0.0;
    for rounds in 1.. {
        let last = rounds * machines.len();
        if !alike || last >= longest.len() || machines.is_empty() {
            break;
        }
        let shortest = longest.get(last.saturating_sub(rounds)..=last);
        let sum: f64 = shortest.into_iter().flatten().sum();
        whole_jobs_secs = whole_jobs_secs.max(sum / fastest);
    }
    Bound {
        critical_path_secs: ends.values().copied().fold(0.0, f64::max),
        work_secs: work / total,
        whole_jobs_secs,
    }
}

#[cfg(test)]
mod tests {
    use super::super::film::{FilmShape, film};
    use super::super::shots::{ShotsShape, shots};
    use super::*;

    #[test]
    fn three_equal_jobs_on_two_machines_take_two_rounds() {
        let shape = ShotsShape {
            shots: 3,
            chain: 0.0,
            ..ShotsShape::default()
        };
        let jobs = shots(shape, "x", 1).unwrap();
        let found = bound(&jobs, &[4.0; 3], &Machine::sparks(2));
        assert!((found.work_secs - 6.0).abs() < 1e-9);
        assert!((found.whole_jobs_secs - 8.0).abs() < 1e-9, "{found:?}");
        assert!((found.critical_path_secs - 4.0).abs() < 1e-9);
    }

    #[test]
    fn the_films_longest_way_is_a_chain_its_upscaling_and_the_end() {
        let jobs = film(FilmShape::default(), "film").unwrap();
        let secs: Vec<f64> = jobs.iter().map(|job| job.spark_secs).collect();
        let found = bound(&jobs, &secs, &Machine::sparks(64));
        // 9.5 + 4 * 304 + 121 / 24 * 9 + 724 / 24 / 2 + 20
        assert!(
            (found.critical_path_secs - 1305.96).abs() < 0.1,
            "{found:?}"
        );
    }
}
