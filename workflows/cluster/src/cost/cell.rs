//! A running robust estimate of one kind of work.

use engine_base::ContentHash;
use serde::{Deserialize, Serialize};

use crate::names::DeviceClass;

/// Measurements that an estimate looks back on: enough for a steady median, few enough that a
/// new driver or a faster engine shows after eight of them.
pub(super) const LOOKS_BACK: usize = 15;

/// Spread of the logarithm that is assumed before anything is measured, and its weight in
/// measurements.
const PRIOR_SIGMA: f64 = 0.3;
const PRIOR_WEIGHT: f64 = 2.0;

/// Turns the median of absolute differences into a standard deviation, for normal values.
const MAD_TO_SIGMA: f64 = 1.4826;

/// Shortest wall time that is told apart from nothing, in seconds.
const SHORTEST_SECS: f64 = 1e-4;

/// What is kept of one kind of work, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostRow {
    /// Node type.
    pub node_type: String,
    /// Content hash of the model, if one is run.
    pub model: Option<ContentHash>,
    /// Where it was measured.
    pub class: DeviceClass,
    /// Size class: half octaves, twice the binary logarithm of the size, rounded.
    pub size_class: i32,
    /// How often it was measured.
    pub count: u64,
    /// Natural logarithms of the last wall times in seconds, brought to the size class's centre,
    /// oldest first; at most 15.
    pub recent_ln_secs: Vec<f64>,
}

/// Measurements of one kind of work in one size class.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Cell {
    count: u64,
    recent_ln_secs: Vec<f64>,
}

/// Median of unordered values; `None` of none.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(sorted.len() / 2 - 1)?;
    Some((lower + upper) / 2.0)
}

/// Natural logarithm of a wall time, if it is one.
pub(super) fn ln_secs(secs: f64) -> Option<f64> {
    (secs.is_finite() && secs >= 0.0).then(|| secs.max(SHORTEST_SECS).ln())
}

impl Cell {
    /// The cell of a stored row; rows that hold no number are refused with `None`.
    pub(super) fn of_row(row: &CostRow) -> Option<Self> {
        let skip = row.recent_ln_secs.len().saturating_sub(LOOKS_BACK);
        let recent_ln_secs: Vec<f64> = row.recent_ln_secs.iter().skip(skip).copied().collect();
        let usable = !recent_ln_secs.is_empty() && recent_ln_secs.iter().all(|ln| ln.is_finite());
        usable.then(|| Self {
            count: row.count.max(recent_ln_secs.len() as u64),
            recent_ln_secs,
        })
    }

    /// Take in one measurement.
    pub(super) fn note(&mut self, ln: f64) {
        if self.recent_ln_secs.len() >= LOOKS_BACK {
            self.recent_ln_secs.remove(0);
        }
        self.recent_ln_secs.push(ln);
        self.count = self.count.saturating_add(1);
    }

    /// How often it was measured.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// The last measurements, oldest first.
    pub(super) fn recent(&self) -> &[f64] {
        &self.recent_ln_secs
    }

    /// Logarithm of the median wall time in seconds, at the size class's centre.
    pub(super) fn centre(&self) -> f64 {
        median(&self.recent_ln_secs).unwrap_or_default()
    }

    /// Standard deviation of the logarithm; a single odd value does not move it.
    pub(super) fn sigma(&self) -> f64 {
        let centre = self.centre();
        let off: Vec<f64> = self
            .recent_ln_secs
            .iter()
            .map(|ln| (ln - centre).abs())
            .collect();
        let seen = MAD_TO_SIGMA * median(&off).unwrap_or_default();
        // With one or two values the median of differences says nothing.
        let weight = (self.recent_ln_secs.len() as f64 - 2.0).max(0.0);
        let sum = weight * seen * seen + PRIOR_WEIGHT * PRIOR_SIGMA * PRIOR_SIGMA;
        (sum / (weight + PRIOR_WEIGHT)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_odd_value_moves_neither_median_nor_spread() {
        let mut cell = Cell::default();
        for _ in 0..9 {
            cell.note(1.0);
        }
        let before = cell.sigma();
        cell.note(9.0);
        assert!((cell.centre() - 1.0).abs() < 1e-12);
        assert!(cell.sigma() <= before);
    }

    #[test]
    fn old_values_are_forgotten() {
        let mut cell = Cell::default();
        for _ in 0..100 {
            cell.note(3.0);
        }
        for _ in 0..8 {
            cell.note(1.0);
        }
        assert!((cell.centre() - 1.0).abs() < 1e-12, "{}", cell.centre());
        assert_eq!(cell.count(), 108);
        assert_eq!(cell.recent().len(), LOOKS_BACK);
    }

    #[test]
    fn spread_of_log_normal_values_is_found() {
        let mut cell = Cell::default();
        // Quantiles of a normal distribution with deviation 0.84.
        for z in [-1.5, -1.0, -0.67, -0.3, 0.0, 0.3, 0.67, 1.0, 1.5] {
            cell.note(2.0 + 0.84 * z);
        }
        assert!((cell.sigma() - 0.84).abs() < 0.2, "{}", cell.sigma());
    }
}
