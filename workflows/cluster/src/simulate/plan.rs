//! What real jobs will take on real workers.

use std::collections::BTreeMap;
use std::time::Duration;

use super::film::PlannedJob;
use super::machines::Machine;
use super::world::{Outcome, Scenario, SimulateError, Unsure, run_with};
use crate::advert::WorkerAdvert;
use crate::cost::{CostModel, Work};
use crate::job::{Job, JobId, Source};
use crate::placement::CriticalPath;

/// Play a project's jobs, each after what it needs, on the workers that are there, every job
/// taking what is predicted for it. The makespan is the prediction; [`Outcome::failures`] are the
/// jobs that no worker can take.
///
/// # Errors
/// As [`super::run`]; also without any worker, and when jobs wait for memory that others use.
pub fn plan(
    jobs: &[Job],
    workers: &[WorkerAdvert],
    costs: &CostModel,
) -> Result<Outcome, SimulateError> {
    let mut classes = BTreeMap::new();
    for device in workers.iter().flat_map(|worker| &worker.devices) {
        classes.insert(device.class.to_string(), device.class.clone());
    }
    // Sizes of outputs, as those who take them expect them.
    let mut sizes: BTreeMap<JobId, Vec<u64>> = BTreeMap::new();
    for input in jobs.iter().flat_map(|job| &job.inputs) {
        let Source::Job { job, port } = input.source else {
            continue;
        };
        let outputs = sizes.entry(job).or_default();
        let port = port as usize;
        if outputs.len() <= port && port < MOST_PORTS {
            outputs.resize(port + 1, 0);
        }
        if let Some(bytes) = outputs.get_mut(port) {
            *bytes = input.bytes.max(*bytes);
        }
    }
    let planned = jobs.iter().map(|job| {
        let work = Work::of(job);
        let on = |class| costs.predict(&work, class).mean_secs();
        let class_secs: BTreeMap<String, f64> = classes
            .iter()
            .map(|(name, class)| (name.clone(), on(class)))
            .collect();
        let least = class_secs.values().copied().fold(f64::INFINITY, f64::min);
        PlannedJob {
            job: job.clone(),
            spark_secs: if least.is_finite() { least } else { 0.0 },
            class_secs,
            output_bytes: sizes.remove(&job.id).unwrap_or_default(),
        }
    });
    let scenario = Scenario {
        name: "plan".to_owned(),
        jobs: planned.collect(),
        machines: workers.iter().flat_map(Machine::of_worker).collect(),
        unsure: Unsure::default(),
        failures: None,
        lease: Duration::from_secs(60),
        overhead: Duration::from_millis(10),
        seed: 0,
    };
    run_with(&scenario, Box::new(CriticalPath), costs.clone())
}

/// More outputs than any node has.
const MOST_PORTS: usize = 1024;
