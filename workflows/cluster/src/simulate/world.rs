//! The event loop: machines that take jobs from a dispatcher, work, fail and come back.

mod play;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::bound::{Bound, bound};
use super::film::PlannedJob;
use super::machines::Machine;
use super::random::Draws;
use crate::cost::{CostModel, Work};
use crate::dispatch::{AddError, Dispatcher, JobState, KeyError, Settings};
use crate::job::JobId;
use crate::lease::Failure;
use crate::names::{DeviceClass, NameError};
use crate::placement::Placement;
use play::Play;

/// What is not known beforehand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unsure {
    /// Whether each kind of work was measured on each class of machine before. Else everything
    /// is guessed and learned on the way.
    pub measured: bool,
    /// Deviation of the logarithm by which jobs of one kind differ from their median.
    pub luck_sigma: f64,
    /// Deviation of the logarithm by which what was measured is off, for each kind of work.
    pub belief_sigma: f64,
}

impl Default for Unsure {
    /// Every job takes what was measured.
    fn default() -> Self {
        Self {
            measured: true,
            luck_sigma: 0.0,
            belief_sigma: 0.0,
        }
    }
}

/// Machines that fail, one at a time, chosen by the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failures {
    /// When the first one does.
    pub first: Duration,
    /// How long after that each next one.
    pub every: Duration,
    /// How long it is away.
    pub away: Duration,
}

/// A case to be played.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name in tables.
    pub name: String,
    /// The machines.
    pub machines: Vec<Machine>,
    /// The jobs, each after what it needs.
    pub jobs: Vec<PlannedJob>,
    /// What is not known.
    pub unsure: Unsure,
    /// Failing machines.
    pub failures: Option<Failures>,
    /// Time after the last progress at which a lease is lost.
    pub lease: Duration,
    /// What handing out one job costs.
    pub overhead: Duration,
    /// Seed of all draws.
    pub seed: u64,
}

/// How it went.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// From the first job handed out to the last one done, in seconds.
    pub makespan_secs: f64,
    /// What no schedule can beat.
    pub bound: Bound,
    /// All work on one machine of speed 1, in seconds.
    pub work_secs: f64,
    /// Jobs done.
    pub done: usize,
    /// Jobs that failed.
    pub failed: usize,
    /// Why each of them did.
    pub failures: Vec<(JobId, Failure)>,
    /// Results that came after another one of the same job.
    pub late: usize,
    /// Jobs begun a second time beside a slow worker.
    pub duplicates: usize,
    /// Jobs handed out, duplicates included.
    pub leases: usize,
    /// Leases lost with their machines.
    pub lost: usize,
    /// Times a model was loaded.
    pub loads: usize,
    /// Part of all machines' time that went into work whose result counted.
    pub busy: f64,
}

impl Outcome {
    /// Makespan over bound; 1 cannot be beaten.
    pub fn over_bound(&self) -> f64 {
        self.makespan_secs / self.bound.secs()
    }
}

/// Why a case could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// A name of a machine or class.
    #[error("cannot simulate: {0}")]
    Name(#[from] NameError),
    /// The jobs.
    #[error("cannot simulate: {0}")]
    Add(#[from] AddError),
    /// A key.
    #[error("cannot simulate: {0}")]
    Key(#[from] KeyError),
    /// Nobody to do the work.
    #[error("cannot simulate {jobs} jobs on no machine")]
    NoMachine {
        /// How many there are.
        jobs: usize,
    },
    /// The dispatcher let jobs lie.
    #[error(
        "the simulation came to nothing after {events} events at {at_secs} s: {open} of {jobs} jobs have not ended"
    )]
    Stuck {
        /// Events played.
        events: u64,
        /// Time in the simulation, in seconds.
        at_secs: f64,
        /// Jobs left.
        open: usize,
        /// Jobs in all.
        jobs: usize,
    },
    /// The dispatcher put more on a device than it holds.
    #[error(
        "a job was placed on {machine:?} that does not fit: {used_bytes} of {memory_bytes} bytes"
    )]
    Memory {
        /// Which machine.
        machine: String,
        /// What it would hold.
        used_bytes: u64,
        /// What it can hold.
        memory_bytes: u64,
    },
    /// The dispatcher handed out a job whose inputs are not made.
    #[error("job {job} was handed out before its inputs were made")]
    TooEarly {
        /// Which.
        job: u64,
    },
}

/// What kinds of draws are for.
pub(super) const LUCK: u64 = 1;
const BELIEF: u64 = 2;
const SAMPLES: u64 = 3;
pub(super) const VICTIM: u64 = 4;

/// What each job truly takes on a machine of speed 1, in seconds.
fn true_secs(scenario: &Scenario) -> Vec<f64> {
    let draws = Draws::new(scenario.seed);
    let luck = |job: &PlannedJob| draws.log_normal(LUCK, job.job.id.0, scenario.unsure.luck_sigma);
    let jobs = scenario.jobs.iter();
    jobs.map(|job| job.spark_secs * luck(job)).collect()
}

/// What was measured before: fifteen jobs of each kind on each class.
fn measured(scenario: &Scenario) -> Result<CostModel, NameError> {
    let mut costs = CostModel::new();
    if !scenario.unsure.measured {
        return Ok(costs);
    }
    let draws = Draws::new(scenario.seed);
    let mut kinds: BTreeMap<Work, Vec<f64>> = BTreeMap::new();
    for planned in &scenario.jobs {
        let work = Work::of(&planned.job);
        kinds.entry(work).or_default().push(planned.spark_secs);
    }
    let classes: BTreeMap<&str, f64> = scenario
        .machines
        .iter()
        .map(|machine| (machine.class.as_str(), machine.speed))
        .collect();
    let mut sample = 0;
    for (at, (work, secs)) in (0_u64..).zip(&kinds) {
        let off = draws.log_normal(BELIEF, at, scenario.unsure.belief_sigma);
        for (name, speed) in &classes {
            let class = DeviceClass::new(name)?;
            for secs in secs.iter().cycle().take(15) {
                let luck = draws.log_normal(SAMPLES, sample, scenario.unsure.luck_sigma);
                costs.note(work, &class, secs * off * luck / speed);
                sample += 1;
            }
        }
    }
    Ok(costs)
}

/// Play a case.
///
/// # Errors
/// When the case is malformed, or the dispatcher breaks one of its promises.
pub fn run(scenario: &Scenario, placement: Box<dyn Placement>) -> Result<Outcome, SimulateError> {
    run_with(scenario, placement, measured(scenario)?)
}

/// Play a case with what is known of costs.
///
/// # Errors
/// As [`run`].
pub(super) fn run_with(
    scenario: &Scenario,
    placement: Box<dyn Placement>,
    costs: CostModel,
) -> Result<Outcome, SimulateError> {
    if scenario.machines.is_empty() {
        let jobs = scenario.jobs.len();
        return Err(SimulateError::NoMachine { jobs });
    }
    let secs = true_secs(scenario);
    let dispatcher = Dispatcher::new(Settings::default(), placement, costs);
    let mut play = Play::new(scenario, dispatcher, &secs)?;
    let end = play.play_out()?;
    let makespan_secs = Duration::from_micros(end).as_secs_f64();
    let counts = play.dispatcher.counts();
    let jobs = scenario.jobs.iter().map(|planned| planned.job.id);
    let failures = jobs.filter_map(|id| match play.dispatcher.state(id) {
        Some(JobState::Failed { reason }) => Some((id, reason)),
        _ => None,
    });
    Ok(Outcome {
        failures: failures.collect(),
        makespan_secs,
        bound: bound(&scenario.jobs, &secs, &scenario.machines),
        work_secs: secs.iter().sum(),
        done: counts.done,
        failed: counts.failed,
        late: play.late,
        duplicates: play.duplicates,
        leases: play.leases,
        lost: play.lost,
        loads: play.loads,
        busy: play.useful_secs / (makespan_secs * scenario.machines.len() as f64),
    })
}

/// Node types and models of a case: every machine has them all.
fn equipment(scenario: &Scenario) -> (BTreeMap<String, u32>, BTreeSet<engine_base::ContentHash>) {
    let jobs = || scenario.jobs.iter().map(|planned| &planned.job);
    let node_types = jobs().flat_map(|job| &job.node_types);
    (
        node_types
            .map(|one| (one.name.clone(), one.version))
            .collect(),
        jobs()
            .filter_map(|job| job.model)
            .map(|need| need.model)
            .collect(),
    )
}
