//! The owner of a run: hands an executor's calls to workers and takes their results in.
//!
//! Each call is a job: a connected part of the graph that gives one stored result. The
//! [`Dispatcher`] decides who gets it; its message goes to that worker's queue; the result's files
//! are fetched and verified before the dispatcher is told. What is out at workers stands in the
//! owner's database first, so that a lost stream is filled again and an owner that was started
//! again goes on: results that came meanwhile are taken in before anything is handed out, and jobs
//! that are still running are adopted.

mod hear;
mod send;
mod settle;
mod state;
mod tend;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine_base::{CancelToken, Clock, Code, ContentHash, ProgressSink};
use flow_executor::{Elsewhere, FarCall, FarMade};
use flow_graph::{NodeError, NodeSpec};
use flow_http::{Token, serve_artifacts};
use flow_store::Store;
use flow_store::cluster::ClusterDb;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use self::state::{State, Waiting};
use crate::artifacts::{ArtifactOptions, Artifacts, Holder, StoreArtifacts};
use crate::cost::{CostModel, CostRow};
use crate::dispatch::{self, Dispatcher};
use crate::job::{Input, Job, ModelNeed, NodeType, Priority, Source};
use crate::join::JoinLine;
use crate::lease::LeaseId;
use crate::names::{RunId, WorkerId};
use crate::placement::CriticalPath;
use crate::transport::{BUCKET, ClusterError, Link, Settings, ensure};
use crate::version::PROTOCOL;
use crate::worker::listen;

/// What the owner's user knows of calls: which travel, and what they cost.
pub trait Travels: Send + Sync {
    /// Whether calls of this type run on workers.
    fn takes(&self, spec: &NodeSpec) -> bool;

    /// How much there is to do, in the node type's own unit.
    fn size(&self, call: &FarCall) -> u64;

    /// The model it runs, if one is known.
    fn model(&self, call: &FarCall) -> Option<ModelNeed>;

    /// First guesses: node type, seconds and the size they are for.
    fn guesses(&self) -> Vec<(&'static str, f64, u64)>;
}

/// What an owner is started with.
pub struct OwnerOptions {
    /// What lets it in.
    pub line: JoinLine,
    /// Its store.
    pub store: Store,
    /// What it knows of calls.
    pub travels: Arc<dyn Travels>,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
    /// Name of the run, for people and for turns among runs.
    pub run: RunId,
    /// Wait this long for a first worker before saying that there is none.
    pub patience: Duration,
}

/// What the owner's threads share.
struct Shared {
    link: Link,
    db: ClusterDb,
    store: Store,
    artifacts: Artifacts,
    travels: Arc<dyn Travels>,
    clock: Arc<dyn Clock>,
    run: RunId,
    /// The owner's name in subjects: the same whenever it is started on this store.
    id: String,
    /// Us, as somebody who has artifacts.
    own: Holder,
    lease: Duration,
    state: Mutex<State>,
    changed: Condvar,
    over: CancelToken,
}

/// Runs calls on the workers of a cluster.
pub struct Owner {
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
    serving: Arc<Notify>,
    _alone: File,
}

impl std::fmt::Debug for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owner")
            .field("id", &self.shared.id)
            .finish_non_exhaustive()
    }
}

/// How often a waiting call looks whether it was asked to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Leases that one start of an owner may give.
const LEASES_A_START: u64 = 1 << 24;

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.clock.monotonic()
    }
}

/// One owner for each store of this machine.
fn alone(store: &Store) -> Result<File, ClusterError> {
    let path = store.dir().join("cluster.lock");
    let failed = |error: std::io::Error| ClusterError::file("open the owner's lock", &path, &error);
    let mut options = std::fs::OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(ClusterError::Busy {
            owner: format!("another film of this machine, {path:?}"),
        }),
        Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn text_note(db: &ClusterDb, name: &str) -> Result<Option<String>, ClusterError> {
    let note = db.note(name)?;
    Ok(note.and_then(|value| value.as_str().map(str::to_owned)))
}

/// The owner's name, drawn once for each store.
fn id_of(db: &ClusterDb) -> Result<String, ClusterError> {
    if let Some(id) = text_note(db, "owner")? {
        return Ok(id);
    }
    let token = Token::random().map_err(|why| ClusterError::System {
        what: "draw a name",
        why,
    })?;
    let id: String = token.as_str().chars().take(16).collect();
    db.set_note("owner", &serde_json::Value::from(id.as_str()))?;
    Ok(id)
}

/// What is known of costs, with first guesses for the rest.
///
/// # Errors
/// [`ClusterError::Store`].
pub fn costs_of(db: &ClusterDb, travels: &dyn Travels) -> Result<CostModel, ClusterError> {
    let rows = db.costs()?;
    let rows: Vec<CostRow> = rows
        .into_iter()
        .filter_map(|row| serde_json::from_value(row).ok())
        .collect();
    let mut costs = CostModel::of_rows(&rows);
    for (node_type, secs, size) in travels.guesses() {
        costs.declare(node_type, secs, size);
    }
    Ok(costs)
}

impl Owner {
    /// Connect and take in what happened while nobody was there. Afterwards calls may be run.
    ///
    /// # Errors
    /// As [`Link::connect`]; [`ClusterError::Busy`] while somebody else owns a run;
    /// [`ClusterError::Store`].
    #[allow(
        clippy::large_stack_frames,
        reason = "the client's futures are large, and this runs once, on a stack of its own"
    )]
    pub fn start(options: OwnerOptions) -> Result<Self, ClusterError> {
        let alone = alone(&options.store)?;
        let system = |what: &'static str, why: String| ClusterError::System { what, why };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("owner-net")
            .enable_all()
            .build()
            .map_err(|error| system("start the owner's threads", error.to_string()))?;
        let db = ClusterDb::open(options.store.dir())?;
        let id = id_of(&db)?;
        let link = runtime.block_on(Link::connect(&options.line, "owner"))?;
        runtime.block_on(ensure(&link))?;
        let settings = runtime.block_on(link.get::<Settings>(BUCKET, "settings"))?;
        let lease_secs = match &settings {
            Some(settings) => {
                let peer = format!("the cluster (longtake {})", settings.release);
                PROTOCOL.common(settings.protocol, &peer)?;
                settings.lease_secs
            }
            None => 30.0,
        };
        let (listener, url) = listen(&link.address, None, None)?;
        let token = Token::random().map_err(|why| system("draw a token", why))?;
        let holder_id = WorkerId::new(&format!("owner-{id}"));
        let holder_id = holder_id.map_err(|error| system("name the owner", error.to_string()))?;
        let own = Holder {
            id: holder_id,
            url,
            token: token.clone(),
        };
        let first = db.note("next_lease")?.and_then(|v| v.as_u64()).unwrap_or(1);
        db.set_note(
            "next_lease",
            &serde_json::Value::from(first + LEASES_A_START),
        )?;
        let costs = costs_of(&db, &*options.travels)?;
        let patience = dispatch::Settings {
            no_worker_patience: options.patience,
            ..dispatch::Settings::default()
        };
        let dispatcher = Dispatcher::new(patience, Box::new(CriticalPath), costs)
            .with_first_lease(LeaseId(first));
        let now = options.clock.monotonic();
        let store = Arc::new(options.store.clone());
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(dispatcher, &db.jobs()?, now)),
            artifacts: Artifacts::new(Arc::clone(&store), ArtifactOptions::default()),
            store: options.store,
            travels: options.travels,
            clock: options.clock,
            run: options.run,
            lease: Duration::from_secs_f64(lease_secs.clamp(0.5, 3600.0)),
            changed: Condvar::new(),
            over: CancelToken::new(),
            link,
            db,
            id,
            own,
        });
        let serving = Arc::new(Notify::new());
        {
            let over = Arc::clone(&serving);
            let source = Arc::new(StoreArtifacts(store));
            runtime.spawn(serve_artifacts(listener, source, token, async move {
                over.notified().await;
            }));
        }
        shared.lock().paused = settings.is_some_and(|settings| settings.paused);
        runtime.block_on(tend::claim(&shared))?;
        runtime.block_on(hear::catch_up(&shared))?;
        runtime.block_on(tend::read_cards(&shared))?;
        if shared.lock().cards.is_empty() {
            tracing::warn!("no worker has joined the cluster yet; the film waits for one");
        }
        runtime.spawn(hear::beats(Arc::clone(&shared)));
        runtime.spawn(hear::results(Arc::clone(&shared)));
        runtime.spawn(hear::advisories(Arc::clone(&shared)));
        runtime.spawn(tend::tend(Arc::clone(&shared)));
        runtime.spawn(tend::tend_server(Arc::clone(&shared)));
        Ok(Self {
            shared,
            runtime: Some(runtime),
            serving,
            _alone: alone,
        })
    }

    /// Workers that are there, by name, with what they say of themselves.
    pub fn workers(&self) -> Vec<crate::advert::WorkerAdvert> {
        let state = self.shared.lock();
        state
            .cards
            .values()
            .map(|card| card.advert.clone())
            .collect()
    }

    fn job_of(&self, state: &mut State, call: &FarCall) -> Job {
        let shared = &self.shared;
        let inputs = call.files().map(|blob| Input {
            source: Source::Content(blob.hash),
            bytes: blob.bytes,
        });
        Job {
            id: state.next_id(),
            run: shared.run.clone(),
            key: Some(call.key),
            subgraph: ContentHash::of(call.key.as_bytes()),
            node_types: vec![NodeType {
                name: call.node_type.clone(),
                version: call.version,
            }],
            inputs: inputs.collect(),
            model: shared.travels.model(call),
            size: shared.travels.size(call),
            working_bytes: 0,
            priority: Priority::Normal,
            device_class: None,
            engine_build: None,
        }
    }
}

impl Elsewhere for Owner {
    fn takes(&self, spec: &NodeSpec) -> bool {
        self.shared.travels.takes(spec)
    }

    fn run(
        &self,
        call: &FarCall,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<FarMade, NodeError> {
        let shared = &self.shared;
        let internal = |why: String| NodeError::new(Code::Internal, why);
        let handle = self
            .runtime
            .as_ref()
            .map(|runtime| runtime.handle().clone());
        let handle = handle.ok_or_else(|| internal("the owner has ended".to_owned()))?;
        let _inside = handle.enter();
        let id = {
            let mut state = shared.lock();
            let job = self.job_of(&mut state, call);
            let id = job.id;
            state.calls.insert(id, Waiting::new(call.clone()));
            let added = state.dispatcher.add(vec![job], shared.now());
            let effects = added.map_err(|error| internal(error.to_string()))?;
            shared.carry_out(&mut state, &effects);
            shared.adopt(&mut state, id, call);
            shared.assign(&mut state);
            id
        };
        let mut told = (0, 0);
        let mut state = shared.lock();
        loop {
            let Some(waiting) = state.calls.get_mut(&id) else {
                return Err(internal("a job was lost".to_owned()));
            };
            if let Some(end) = waiting.end.take() {
                state.calls.remove(&id);
                return end;
            }
            if let Some(event) = waiting.progress.take()
                && (event.step, event.of) != told
            {
                told = (event.step, event.of);
                drop(state);
                progress.report(event);
                state = shared.lock();
                continue;
            }
            if cancel.is_cancelled() {
                let effects = state.dispatcher.cancel(id, shared.now());
                shared.carry_out(&mut state, &effects);
                state.calls.remove(&id);
                return Err(NodeError::new(Code::Cancelled, "cancelled"));
            }
            let (next, _timeout) = shared
                .changed
                .wait_timeout(state, LOOK)
                .unwrap_or_else(PoisonError::into_inner);
            state = next;
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.over.cancel();
        self.serving.notify_waiters();
        if let Some(runtime) = self.runtime.take() {
            runtime.block_on(tend::give_up(&self.shared));
            runtime.shutdown_timeout(Duration::from_secs(2));
        }
    }
}

/// Values by worker.
type ByWorker<T> = BTreeMap<WorkerId, T>;
