//! Several machines as one: the server, the worker and the owner of a film, with the studio's node
//! types.

mod costs;
mod doctor;
mod join;
mod plan;
mod status;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use engine_base::{CancelToken, Code};
use flow_cluster::owner::{Owner, OwnerOptions};
use flow_cluster::server::{Server as NatsServer, ServerOptions};
use flow_cluster::transport::ClusterError;
use flow_cluster::worker::{Joined, Worker, WorkerOptions};
use flow_cluster::{Device, JoinLine, RunId, WorkerAdvert, WorkerId};
use flow_executor::Elsewhere;
use serde::Serialize;

pub(crate) use self::costs::Costs;
pub use self::doctor::{Finding, Severity, cluster_doctor};
pub(crate) use self::join::write_line;
pub use self::join::{Kind as LineKind, line_of};
pub use self::plan::{ClusterPlan, PlannedWorker};
pub use self::status::{
    ClusterStatus, DrainOrder, JobRow, WorkerRow, cluster_drain, cluster_pause, cluster_status,
};
use crate::config;
use crate::error::StudioError;
use crate::studio::Studio;

/// Longest name of a run in the cluster, in bytes.
const RUN_NAME_BYTES: usize = 40;

/// How long calls wait for a worker that can take them before they fail.
const NO_WORKER: Duration = Duration::from_secs(600);

fn refused(error: &ClusterError) -> StudioError {
    StudioError::new(error.code(), error.to_string())
}

/// How to start a cluster.
#[derive(Debug, Clone)]
pub struct ClusterUp {
    /// Folder of the server; absent means the machine's own.
    pub dir: Option<PathBuf>,
    /// Where the server listens.
    pub bind: IpAddr,
    /// Its port; 0 takes the one of last time, else a free one.
    pub tcp_port: u16,
    /// Host by which other machines reach it.
    pub advertise: Option<String>,
    /// Seconds without a sign of life after which a lease is lost.
    pub lease_secs: f64,
    /// Workers that get lines of their own.
    pub workers: Vec<String>,
}

/// A cluster that runs.
#[derive(Debug, Clone, Serialize)]
pub struct ClusterIsUp {
    /// What lets any worker in.
    pub join: String,
    /// What lets the named workers in.
    pub workers: std::collections::BTreeMap<String, String>,
    /// File with what lets an owner of films in.
    pub owner: PathBuf,
    /// Where the server listens.
    pub address: SocketAddr,
    /// Its process.
    pub nats_pid: u32,
    /// Our process.
    pub pid: u32,
    /// Its folder.
    pub dir: PathBuf,
    /// Its version.
    pub nats_version: String,
}

fn worker_id(name: &str) -> Result<WorkerId, StudioError> {
    WorkerId::new(name).map_err(|error| StudioError::new(Code::BadInput, error.to_string()))
}

/// A name that fits into subjects.
fn plain_name(text: &str) -> String {
    let kept = text.chars().filter_map(|c| match c {
        c if c.is_ascii_alphanumeric() => Some(c),
        '-' | '_' => Some(c),
        ' ' | '.' => Some('-'),
        _ => None,
    });
    kept.take(RUN_NAME_BYTES).collect()
}

fn encoded(line: &JoinLine) -> Result<String, StudioError> {
    line.encode()
        .map_err(|error| StudioError::new(Code::Internal, error.to_string()))
}

/// Start a cluster's server, tell `ready`, and keep it running until `cancel` asks to stop.
///
/// # Errors
/// No server program, a port that is taken, a folder that cannot be written.
pub fn cluster_up(
    options: &ClusterUp,
    cancel: &CancelToken,
    ready: impl FnOnce(&ClusterIsUp),
) -> Result<(), StudioError> {
    let dir = match &options.dir {
        Some(dir) => std::path::absolute(dir)
            .map_err(|error| StudioError::io("find the folder", dir, &error))?,
        None => config::cluster_folder()?,
    };
    if !(0.5..=3600.0).contains(&options.lease_secs) {
        let got = options.lease_secs;
        let message = format!("--lease-secs: expected 0.5 to 3600, got {got}");
        return Err(StudioError::new(Code::BadInput, message));
    }
    let names: Result<Vec<WorkerId>, StudioError> =
        options.workers.iter().map(|name| worker_id(name)).collect();
    let mut server = NatsServer::start(ServerOptions {
        dir: dir.clone(),
        bind: options.bind,
        tcp_port: options.tcp_port,
        advertise: options.advertise.clone(),
        lease_secs: options.lease_secs,
        workers: names?,
        release: env!("CARGO_PKG_VERSION").to_owned(),
        program_folders: config::program_folders(),
        program: config::nats_server(),
    })
    .map_err(|error| refused(&error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("cluster")
        .enable_all()
        .build()
        .map_err(|error| StudioError::new(Code::Io, format!("cannot start a thread: {error}")))?;
    let link = runtime
        .block_on(server.prepare())
        .map_err(|e| refused(&e))?;
    let join = encoded(&server.worker_line())?;
    let owner = dir.join(join::OWNER_LINE);
    join::write_line(&owner, &encoded(&server.owner_line())?)?;
    join::write_line(&dir.join(join::WORKER_LINE), &join)?;
    let mut workers = std::collections::BTreeMap::new();
    for (name, line) in server.named_lines() {
        workers.insert(name.to_string(), encoded(&line)?);
    }
    ready(&ClusterIsUp {
        join,
        workers,
        owner,
        address: server.address(),
        nats_pid: server.pid(),
        pid: std::process::id(),
        dir,
        nats_version: server.program().version.to_string(),
    });
    let kept = runtime.block_on(server.keep(&link, cancel));
    kept.map_err(|error| refused(&error))
}

/// How to start a worker.
#[derive(Debug, Clone, Default)]
pub struct WorkerRequest {
    /// The line that joins, or a file with it.
    pub join: String,
    /// Its name; absent means the machine's.
    pub name: Option<String>,
    /// Where it serves its store.
    pub listen: Option<SocketAddr>,
    /// Host, or whole URL, by which others reach it.
    pub advertise: Option<String>,
    /// Memory that its jobs may take; absent means the machine's.
    pub memory_bytes: Option<u64>,
    /// Jobs at a time; absent means one.
    pub jobs: Option<usize>,
}

/// What a worker tells once it has joined.
#[derive(Debug, Clone, Serialize)]
pub struct WorkerJoined {
    /// Its name.
    pub worker: String,
    /// Where it serves its store.
    pub url: String,
    /// Its process.
    pub pid: u32,
    /// The server's version.
    pub nats_version: String,
    /// Node types it runs.
    pub node_types: usize,
    /// Models it has on disk.
    pub models: usize,
}

impl Studio {
    fn advert(&self, request: &WorkerRequest) -> Result<WorkerAdvert, StudioError> {
        let name = match &request.name {
            Some(name) => name.clone(),
            None => plain_name(&config::host_name()),
        };
        let (total, free) = crate::memory::machine_bytes();
        let total = request.memory_bytes.unwrap_or(total).min(total.max(1));
        let class = plan::own_class()?;
        let jobs = request.jobs.unwrap_or(1).max(1);
        let each = |bytes: u64| bytes / jobs as u64;
        let device = |at: usize| Device {
            name: format!("cpu:{at}"),
            class: class.clone(),
            memory_total_bytes: each(total),
            memory_free_bytes: each(free.min(total)),
        };
        Ok(WorkerAdvert {
            worker: worker_id(&name)?,
            start: 0,
            engine_build: engine_base::ContentHash::of(env!("CARGO_PKG_VERSION").as_bytes()),
            node_types: self.executor().node_types(),
            devices: (0..jobs).map(device).collect(),
            models_on_disk: costs::models_on_disk(),
            models_loaded: Vec::new(),
            link_bytes_per_sec: 0,
            disk_bytes_per_sec: 0,
        })
    }

    /// Join a cluster and take jobs until `stop`; what is held then is finished first.
    ///
    /// # Errors
    /// A line that is none, a wrong token, versions that do not work together, a server that
    /// cannot be reached.
    pub fn work(
        &self,
        request: &WorkerRequest,
        stop: &CancelToken,
        joined: impl FnOnce(&WorkerJoined),
    ) -> Result<(), StudioError> {
        let line = line_of(&request.join, join::Kind::Worker)?;
        let advert = self.advert(request)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let options = WorkerOptions {
            line,
            threads: (cores / advert.devices.len().max(1)).max(1),
            advert,
            executor: self.executor(),
            listen: request.listen,
            advertise: request.advertise.clone(),
            cap_bytes: self.cap_bytes,
            clock: Arc::clone(&self.clock),
            release: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let told = |joined_now: &Joined| {
            let card = &joined_now.card;
            joined(&WorkerJoined {
                worker: card.advert.worker.to_string(),
                url: card.url.clone(),
                pid: card.pid,
                nats_version: joined_now.server.clone(),
                node_types: card.advert.node_types.len(),
                models: card.advert.models_on_disk.len(),
            });
        };
        Worker::run(options, stop, told).map_err(|error| refused(&error))
    }

    /// From now on have calls that travel run on the workers of a cluster. `cluster` is the owner's
    /// line, a file with it, or the folder of `longtake cluster up`.
    ///
    /// # Errors
    /// As [`Studio::work`]; somebody else owns a run there.
    pub fn use_cluster(&mut self, cluster: &str, run: &str) -> Result<(), StudioError> {
        self.elsewhere = Some(self.owner_in(cluster, run)?);
        Ok(())
    }

    /// From now on have calls that travel run by `owner`, as long as somebody else holds it.
    pub(crate) fn lend(&self, owner: &Arc<Owner>) {
        let owner: Weak<Owner> = Arc::downgrade(owner);
        *crate::desk::lock(&self.lent) = Some(owner);
    }

    /// Whoever runs calls on other machines now.
    pub(crate) fn elsewhere(&self) -> Option<Arc<dyn Elsewhere>> {
        if let Some(elsewhere) = &self.elsewhere {
            return Some(Arc::clone(elsewhere));
        }
        let lent = crate::desk::lock(&self.lent);
        let owner = lent.as_ref().and_then(Weak::upgrade)?;
        Some(owner)
    }

    /// Become the owner of the run `run` in a cluster.
    pub(crate) fn owner_in(&self, cluster: &str, run: &str) -> Result<Arc<Owner>, StudioError> {
        let line = line_of(cluster, join::Kind::Owner)?;
        let name = plain_name(run);
        let name = if name.is_empty() { "film" } else { &name };
        let run = RunId::new(name)
            .map_err(|error| StudioError::new(Code::Internal, error.to_string()))?;
        let owner = Owner::start(OwnerOptions {
            line,
            store: self.store.clone(),
            travels: Arc::new(Costs),
            clock: Arc::clone(&self.clock),
            run,
            patience: NO_WORKER,
        })
        .map_err(|error| refused(&error))?;
        Ok(Arc::new(owner))
    }
}
