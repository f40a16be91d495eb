//! The cases that are shown, and the table.

use std::time::Duration;

use super::film::{FilmShape, film};
use super::machines::Machine;
use super::random::P95_OVER_P50_4;
use super::shots::{ShotsShape, shots};
use super::world::{Failures, Outcome, Scenario, SimulateError, Unsure, run};
use crate::placement::{CriticalPath, FirstCome, RoundRobin};

/// A case under our policy and under the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name of the case.
    pub name: String,
    /// How many machines.
    pub machines: usize,
    /// Whether it has to end within 10 % of the bound: no faults, every cost known, machines
    /// alike.
    pub is_bounded: bool,
    /// Critical path first.
    pub ours: Outcome,
    /// Round robin.
    pub round_robin: Outcome,
    /// First come, first served.
    pub first_come: Outcome,
}

impl Row {
    /// Play a case under both.
    ///
    /// # Errors
    /// As [`run`].
    pub fn of(scenario: &Scenario) -> Result<Self, SimulateError> {
        Ok(Self {
            name: scenario.name.clone(),
            machines: scenario.machines.len(),
            is_bounded: scenario.is_bounded(),
            ours: run(scenario, Box::new(CriticalPath))?,
            round_robin: run(scenario, Box::new(RoundRobin::default()))?,
            first_come: run(scenario, Box::new(FirstCome))?,
        })
    }
}

impl Scenario {
    /// Whether nothing in it is a surprise: then a schedule near the bound can be asked for.
    pub fn is_bounded(&self) -> bool {
        let alike = |machine: &Machine| {
            let first = self.machines.first();
            first.is_some_and(|first| first.class == machine.class) && machine.ails <= 1.0
        };
        let is_film = self.jobs.iter().any(|job| job.job.model.is_some());
        self.failures.is_none()
            && self.unsure == Unsure::default()
            && self.machines.iter().all(alike)
            && is_film
    }

    /// A half-hour film without faults, every cost known.
    ///
    /// # Errors
    /// Never for the names that are used here; see [`film`].
    pub fn half_hour_film(
        name: &str,
        machines: Vec<Machine>,
        seed: u64,
    ) -> Result<Self, SimulateError> {
        Ok(Self {
            name: name.to_owned(),
            machines,
            jobs: film(FilmShape::default(), "film")?,
            unsure: Unsure::default(),
            failures: None,
            lease: Duration::from_secs(60),
            overhead: Duration::from_millis(10),
            seed,
        })
    }
}

/// All cases, in the order of the table.
///
/// # Errors
/// As [`film`].
pub fn all(seed: u64) -> Result<Vec<Scenario>, SimulateError> {
    let film = |name: &str, machines| Scenario::half_hour_film(name, machines, seed);
    let mut cases = Vec::new();
    for count in [1, 2, 4, 8, 16, 32, 64] {
        cases.push(film("film", Machine::sparks(count))?);
    }
    for (sparks, others) in [(3, 1), (12, 4)] {
        let mut machines = Machine::sparks(sparks);
        machines.extend((0..others).map(Machine::rtx_pro));
        cases.push(film("film, unlike machines", machines)?);
    }
    for count in [4, 16] {
        cases.push(Scenario {
            failures: Some(Failures {
                first: Duration::from_secs(600),
                every: Duration::from_secs(3600),
                away: Duration::from_secs(600),
            }),
            ..film("film, one fails every hour", Machine::sparks(count))?
        });
    }
    for count in [4, 16] {
        let mut machines = Machine::sparks(count);
        if let Some(machine) = machines.first_mut() {
            machine.ails = 5.0;
        }
        cases.push(film("film, one is 5 times slower", machines)?);
    }
    for count in [4, 16, 64] {
        cases.push(Scenario {
            unsure: Unsure {
                luck_sigma: P95_OVER_P50_4,
                belief_sigma: 0.5,
                ..Unsure::default()
            },
            ..film("film, log-normal, misjudged", Machine::sparks(count))?
        });
    }
    for count in [4, 16] {
        cases.push(Scenario {
            unsure: Unsure {
                measured: false,
                ..Unsure::default()
            },
            ..film("film, nothing measured", Machine::sparks(count))?
        });
    }
    for (told, name) in [
        (true, "200 log-normal shots"),
        (false, "200 shots, length unknown"),
    ] {
        let shape = ShotsShape {
            told,
            ..ShotsShape::default()
        };
        for count in [4, 16] {
            cases.push(Scenario {
                name: name.to_owned(),
                jobs: shots(shape, "shots", seed)?,
                ..film("", Machine::sparks(count))?
            });
        }
    }
    Ok(cases)
}

/// Rows as text: makespans in minutes, of our policy, the bound and the two baselines.
pub fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<28} {:>3} {:>8} {:>8} {:>6} {:>11} {:>10} {:>5} {:>4} {:>4} {:>5} {:>4}\n",
        "case",
        "of",
        "minutes",
        "bound",
        "over",
        "round robin",
        "first come",
        "busy",
        "dup",
        "lost",
        "loads",
        "late"
    );
    for row in rows {
        let ours = &row.ours;
        let times = |other: &Outcome| other.makespan_secs / ours.makespan_secs;
        text += &format!(
            "{:<28} {:>3} {:>8.2} {:>8.2} {:>6.3} {:>10.2}x {:>9.2}x {:>4.0}% {:>4} {:>4} {:>5} {:>4}\n",
            row.name,
            row.machines,
            ours.makespan_secs / 60.0,
            ours.bound.secs() / 60.0,
            ours.over_bound(),
            times(&row.round_robin),
            times(&row.first_come),
            ours.busy * 100.0,
            ours.duplicates,
            ours.lost,
            ours.loads,
            ours.late,
        );
    }
    text
}
