//! What calls of a node type took before, to predict what they will take.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Wall times of one node type.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Calls measured.
    pub calls: u64,
    /// Wall time of all of them, in seconds.
    pub secs: f64,
}

/// Wall times by node type. Never part of a key: it decides only what is told to people.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Costs {
    by_type: BTreeMap<String, Cost>,
}

impl Costs {
    /// Past this many calls old times fade, so that a faster machine is noticed.
    const FADE_CALLS: u64 = 200;

    /// Nothing measured.
    pub fn new() -> Self {
        Self::default()
    }

    /// Note `calls` of a type that took `secs` together.
    pub fn note(&mut self, type_name: &str, calls: u64, secs: f64) {
        if calls == 0 || !secs.is_finite() || secs < 0.0 {
            return;
        }
        let cost = self.by_type.entry(type_name.to_owned()).or_default();
        cost.calls += calls;
        cost.secs += secs;
        if cost.calls > Self::FADE_CALLS {
            let kept = cost.calls / 2;
            cost.secs *= kept as f64 / cost.calls as f64;
            cost.calls = kept;
        }
    }

    /// Mean seconds of one call of this type, if it was measured.
    pub fn secs_per_call(&self, type_name: &str) -> Option<f64> {
        let cost = self.by_type.get(type_name)?;
        (cost.calls > 0).then(|| cost.secs / cost.calls as f64)
    }

    /// What is known, by node type.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Cost)> {
        self.by_type
            .iter()
            .map(|(name, cost)| (name.as_str(), *cost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_follow_a_change_of_speed() {
        let mut costs = Costs::new();
        assert_eq!(costs.secs_per_call("film.segment"), None);
        for _ in 0..1000 {
            costs.note("film.segment", 1, 4.0);
        }
        let before = costs.secs_per_call("film.segment").unwrap();
        assert!((before - 4.0).abs() < 1e-9, "expected 4 s, got {before}");
        for _ in 0..1000 {
            costs.note("film.segment", 1, 1.0);
        }
        let now = costs.secs_per_call("film.segment").unwrap();
        assert!(now < 1.2, "expected about 1 s, got {now}");
        costs.note("film.segment", 1, f64::NAN);
        assert_eq!(costs.secs_per_call("film.segment"), Some(now));
    }
}
