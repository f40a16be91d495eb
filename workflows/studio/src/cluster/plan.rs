//! What a film will take on a cluster, by the code that places its jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine_base::{CancelToken, Code, ContentHash, Key};
use flow_cluster::owner::{Travels as _, costs_of};
use flow_cluster::simulate::plan;
use flow_cluster::split::{Carries, Joint, Piece, jobs};
use flow_cluster::transport::{CARDS, Card, Link};
use flow_cluster::{
    CostBasis, DeviceClass, Input, Job, JobId, NodeType, Priority, RunId, Source, WorkerAdvert,
    WorkerId,
};
use flow_executor::{FarCall, PlanNode, PlanState};
use flow_graph::Document;
use flow_store::StoredValue;
use flow_store::cluster::ClusterDb;
use serde::Serialize;

use super::costs::Costs;
use super::join::{Kind, line_of};
use super::status::block_on;
use crate::error::StudioError;
use crate::events::Watcher;
use crate::film::FilmRequest;
use crate::studio::Studio;

/// Bytes assumed of a result that is not made yet.
const RESULT_BYTES: u64 = 4 << 20;

/// A worker of a plan.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedWorker {
    /// Its name.
    pub worker: String,
    /// Its devices' classes.
    pub devices: Vec<String>,
}

/// What a film will take.
#[derive(Debug, Clone, Serialize)]
pub struct ClusterPlan {
    /// Jobs that run on workers.
    pub jobs: usize,
    /// Jobs whose results are there already.
    pub reused: usize,
    /// Predicted time from the first job to the last, in seconds.
    pub makespan_secs: f64,
    /// What no schedule can beat, in seconds.
    pub bound_secs: f64,
    /// All work on one of these workers alone, in seconds.
    pub one_worker_secs: f64,
    /// Part of the workers' time that goes into work.
    pub busy: f64,
    /// Jobs whose cost was measured; the others are guesses.
    pub measured: usize,
    /// The workers it was played on.
    pub workers: Vec<PlannedWorker>,
    /// Jobs that no worker can take, and why.
    pub refused: Vec<String>,
}

/// A node's call as far as it is known before its inputs are made: for its size.
fn known_call(document: &Document, node: &PlanNode) -> FarCall {
    let widgets = document.nodes.get(&node.id).map(|found| &found.widgets);
    let inputs = widgets.into_iter().flatten().map(|(name, datum)| {
        let value = StoredValue::Small(datum.clone());
        (name.clone(), vec![value])
    });
    FarCall {
        key: Key::of_canonical(node.id.as_bytes()),
        node_type: node.type_name.to_owned(),
        version: 0,
        node: node.id.clone(),
        inputs: inputs.collect(),
    }
}

/// Nodes that run, and the links between them.
fn pieces<'p>(
    studio: &Studio,
    document: &Document,
    nodes: &'p [PlanNode],
) -> (Vec<&'p PlanNode>, Vec<Piece>, Vec<Joint>) {
    let runs =
        |node: &&PlanNode| matches!(node.state, PlanState::WillRun | PlanState::Unknown { .. });
    let kept: Vec<&PlanNode> = nodes.iter().filter(runs).collect();
    let at: BTreeMap<&str, usize> = kept
        .iter()
        .enumerate()
        .map(|(at, node)| (node.id.as_str(), at))
        .collect();
    let mut joints = Vec::new();
    let mut fed = vec![false; kept.len()];
    for (to, node) in kept.iter().enumerate() {
        let links = document.nodes.get(&node.id).map(|found| &found.links);
        for link in links.into_iter().flatten() {
            let Some(from) = at.get(link.1.node.as_str()).copied() else {
                continue;
            };
            let spec = studio
                .registry
                .get(kept.get(from).map_or("", |n| n.type_name));
            let is_stored = spec.is_some_and(|node| node.spec().durable);
            let carries = if is_stored {
                Carries::Stored
            } else {
                Carries::Passing
            };
            if let Some(fed) = fed.get_mut(from) {
                *fed = true;
            }
            joints.push(Joint { from, to, carries });
        }
    }
    let pieces = fed.iter().map(|fed| Piece {
        secs: 1.0,
        wanted: !fed,
    });
    (kept, pieces.collect(), joints)
}

impl Studio {
    fn planned_jobs(
        &self,
        document: &Document,
        nodes: &[PlanNode],
    ) -> Result<Vec<Job>, StudioError> {
        let internal = |why: String| StudioError::new(Code::Internal, why);
        let (kept, pieces, joints) = pieces(self, document, nodes);
        let cut = jobs(&pieces, &joints, 0.0).map_err(|error| internal(error.to_string()))?;
        let run = RunId::new("plan").map_err(|error| internal(error.to_string()))?;
        let mut planned = Vec::with_capacity(cut.len());
        for (at, job) in cut.iter().enumerate() {
            let main = job.stores.last().and_then(|stored| kept.get(*stored));
            let Some(main) = main else { continue };
            let call = known_call(document, main);
            let inputs = job.needs.iter().map(|need| Input {
                source: Source::Job {
                    job: JobId(*need as u64),
                    port: 0,
                },
                bytes: RESULT_BYTES,
            });
            planned.push(Job {
                id: JobId(at as u64),
                run: run.clone(),
                key: None,
                subgraph: ContentHash::of(main.id.as_bytes()),
                node_types: vec![NodeType {
                    name: main.type_name.to_owned(),
                    version: self
                        .registry
                        .get(main.type_name)
                        .map_or(0, |node| node.spec().version),
                }],
                inputs: inputs.collect(),
                model: Costs.model(&call),
                size: Costs.size(&call),
                working_bytes: 0,
                priority: Priority::Normal,
                device_class: None,
                engine_build: None,
            });
        }
        Ok(planned)
    }

    /// Predict what a project's film will take on a cluster's workers, or on `count` workers like
    /// this machine. Makes nothing.
    ///
    /// # Errors
    /// As [`Studio::film_plan`]; a cluster that cannot be reached, or that has no worker.
    pub fn cluster_plan(
        &self,
        request: &FilmRequest,
        cluster: Option<&str>,
        count: usize,
        watcher: &Arc<dyn Watcher>,
    ) -> Result<ClusterPlan, StudioError> {
        let internal = |why: String| StudioError::new(Code::Internal, why);
        let (document, targets) = self.film_document_of(request, watcher)?;
        let wanted = self.request(&targets);
        let plan_of = self
            .executor()
            .plan(&document, &wanted, &CancelToken::new())?;
        let workers = match cluster {
            Some(cluster) => adverts(cluster)?,
            None => self.workers_like_this(count)?,
        };
        if workers.is_empty() {
            let message = "the cluster has no worker: start one with longtake worker --join LINE, \
                           or plan for machines like this one with --workers N";
            return Err(StudioError::new(Code::NotFound, message));
        }
        let planned = self.planned_jobs(&document, &plan_of.nodes)?;
        let db = ClusterDb::open(self.store.dir())?;
        let costs = costs_of(&db, &Costs).map_err(|error| super::refused(&error))?;
        let played = |workers: &[WorkerAdvert]| {
            plan(&planned, workers, &costs).map_err(|error| internal(error.to_string()))
        };
        let outcome = played(&workers)?;
        let alone = played(workers.get(..1).unwrap_or_default())?;
        let class = workers.first().and_then(|worker| worker.devices.first());
        let is_measured = |job: &&Job| {
            let work = flow_cluster::Work::of(job);
            let basis = class.map(|device| costs.predict(&work, &device.class).basis);
            matches!(basis, Some(CostBasis::Measured | CostBasis::OtherSize))
        };
        let row = |worker: &WorkerAdvert| PlannedWorker {
            worker: worker.worker.to_string(),
            devices: worker.devices.iter().map(|d| d.class.to_string()).collect(),
        };
        Ok(ClusterPlan {
            jobs: planned.len(),
            reused: usize::try_from(plan_of.reused).unwrap_or(usize::MAX),
            makespan_secs: outcome.makespan_secs,
            bound_secs: outcome.bound.secs(),
            one_worker_secs: alone.makespan_secs,
            busy: outcome.busy,
            measured: planned.iter().filter(is_measured).count(),
            workers: workers.iter().map(row).collect(),
            refused: outcome
                .failures
                .iter()
                .map(|(_, failure)| failure.to_string())
                .collect(),
        })
    }

    fn workers_like_this(&self, count: usize) -> Result<Vec<WorkerAdvert>, StudioError> {
        let like = self.advert(&super::WorkerRequest {
            name: Some("worker".to_owned()),
            ..super::WorkerRequest::default()
        })?;
        let named = (1..=count.clamp(1, 1024)).map(|number| {
            let worker = WorkerId::new(&format!("worker-{number}"));
            let worker = worker.map_err(|e| StudioError::new(Code::Internal, e.to_string()))?;
            Ok(WorkerAdvert {
                worker,
                ..like.clone()
            })
        });
        named.collect()
    }
}

/// Workers that are registered with a cluster.
fn adverts(cluster: &str) -> Result<Vec<WorkerAdvert>, StudioError> {
    let line = line_of(cluster, Kind::Owner)?;
    let cards = block_on(async {
        let link = Link::connect(&line, "cluster plan").await?;
        link.all::<Card>(CARDS).await
    })?;
    Ok(cards.into_iter().map(|(_, card)| card.advert).collect())
}

/// Name of a class of processors like this machine's.
pub(super) fn own_class() -> Result<DeviceClass, StudioError> {
    let class = format!("cpu-{}", std::env::consts::ARCH).replace('_', "-");
    DeviceClass::new(&class).map_err(|error| StudioError::new(Code::Internal, error.to_string()))
}
