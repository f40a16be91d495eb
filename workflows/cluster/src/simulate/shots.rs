//! Work of known shape without models: independent shots and one chain, log-normal costs.

use std::collections::BTreeMap;

use engine_base::{ContentHash, Key};

use super::film::PlannedJob;
use super::random::{Draws, P95_OVER_P50_4};
use crate::job::{Input, Job, JobId, NodeType, Priority, Source};
use crate::names::{NameError, RunId};

/// What the work is like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShotsShape {
    /// Shots in all.
    pub shots: u64,
    /// Median cost of one, in seconds.
    pub median_secs: f64,
    /// Part of the work that is one chain.
    pub chain: f64,
    /// Whether sizes tell costs, so that the long ones are known beforehand.
    pub told: bool,
}

impl Default for ShotsShape {
    /// 200 shots of 2 s, a twentieth of the work one chain.
    fn default() -> Self {
        Self {
            shots: 200,
            median_secs: 2.0,
            chain: 0.05,
            told: false,
        }
    }
}

/// The jobs. Costs are drawn with a 95th percentile of 4 times the median.
///
/// # Errors
/// When `run` is no name.
pub fn shots(shape: ShotsShape, run: &str, seed: u64) -> Result<Vec<PlannedJob>, NameError> {
    let run = RunId::new(run)?;
    let draws = Draws::new(seed);
    let secs: Vec<f64> = (0..shape.shots)
        .map(|at| shape.median_secs * draws.log_normal(11, at, P95_OVER_P50_4))
        .collect();
    let chain_secs = shape.chain * secs.iter().sum::<f64>();
    let mut chained = 0.0;
    let mut before: Option<JobId> = None;
    let mut jobs = Vec::new();
    for (id, secs) in (0..).map(JobId).zip(secs) {
        let joins = chained + secs / 2.0 <= chain_secs;
        if joins {
            chained += secs;
        }
        let source = match before.filter(|_| joins) {
            Some(job) => Source::Job { job, port: 0 },
            None => Source::Content(ContentHash::of(&id.0.to_le_bytes())),
        };
        let name = format!("shot {id}");
        let first = matches!(source, Source::Content(_));
        jobs.push(PlannedJob {
            job: Job {
                id,
                run: run.clone(),
                key: first.then(|| Key::of_canonical(name.as_bytes())),
                subgraph: ContentHash::of(name.as_bytes()),
                node_types: vec![NodeType {
                    name: "shot".to_owned(),
                    version: 1,
                }],
                inputs: vec![Input {
                    source,
                    bytes: 1_000_000,
                }],
                model: None,
                size: if shape.told { (1e3 * secs) as u64 } else { 1 },
                working_bytes: 0,
                priority: Priority::Normal,
                device_class: None,
                engine_build: None,
            },
            spark_secs: secs,
            class_secs: BTreeMap::new(),
            output_bytes: vec![1_000_000],
        });
        if joins {
            before = Some(id);
        }
    }
    Ok(jobs)
}
