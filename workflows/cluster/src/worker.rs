//! The process that takes jobs: says what it has, runs one job on each device at a time, gives
//! signs of life from threads that a busy device does not block, and serves what it has.

mod hold;
mod perform;

use std::collections::{BTreeMap, VecDeque};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use engine_base::{CancelToken, Clock};
use flow_executor::Executor;
use flow_http::{Token, serve_artifacts};
use flow_store::Store;
use futures_util::StreamExt as _;
use tokio::sync::Notify;

use self::hold::Held;
use crate::advert::WorkerAdvert;
use crate::artifacts::{ArtifactOptions, Artifacts, StoreArtifacts};
use crate::join::JoinLine;
use crate::transport::{
    BUCKET, Beat, CARDS, Card, ClusterError, JOBS, Link, ResultMessage, Settings, Stop,
    beat_subject, consumer_of_worker, control_subject, job_filter, stop_subject,
};
use crate::version::{NATS_AT_LEAST, PROTOCOL, Protocol};

/// Between signs of life.
const BEAT: Duration = Duration::from_millis(500);

/// Between renewals of the card in the registry.
const CARD: Duration = Duration::from_secs(10);

/// Results that are kept for whoever asks again.
const RECENT: usize = 64;

/// Before the server is asked again after a failure.
const AGAIN: Duration = Duration::from_millis(300);

/// What a worker is started with.
pub struct WorkerOptions {
    /// What lets it in.
    pub line: JoinLine,
    /// What it has. Its start is drawn here.
    pub advert: WorkerAdvert,
    /// Runs calls, against the worker's own store.
    pub executor: Executor,
    /// Where it serves its store; absent means this machine's address towards the server, any port.
    pub listen: Option<SocketAddr>,
    /// Host, or whole URL, by which others reach it; absent means the address it listens on.
    pub advertise: Option<String>,
    /// Threads that one job may use.
    pub threads: usize,
    /// Bytes of files it keeps.
    pub cap_bytes: u64,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
    /// Release of the program.
    pub release: String,
}

/// What a worker tells once it has joined.
#[derive(Debug, Clone)]
pub struct Joined {
    /// Its card.
    pub card: Card,
    /// The server's version.
    pub server: String,
}

/// What its parts share.
pub(super) struct Shared {
    pub(super) link: Link,
    pub(super) executor: Executor,
    pub(super) store: Store,
    pub(super) artifacts: Artifacts,
    pub(super) threads: usize,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) lease: Duration,
    pub(super) card: Mutex<Card>,
    held: Mutex<BTreeMap<(String, u64), Held>>,
    /// Leases that were taken, so that a message delivered again is not run again.
    taken: Mutex<VecDeque<(String, u64)>>,
    /// Results of late, by lease: a server that lost its store may have lost them.
    recent: Mutex<VecDeque<((String, u64), ResultMessage)>>,
    done: std::sync::atomic::AtomicU64,
    changed: Notify,
    /// Take nothing more; end when nothing is held.
    leave: CancelToken,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, BTreeMap<(String, u64), Held>> {
        locked(&self.held)
    }

    fn beat(&self) -> Beat {
        let card = locked(&self.card);
        let now = self.clock.monotonic();
        Beat {
            worker: card.advert.worker.clone(),
            start: card.advert.start,
            unix_millis: self.clock.unix_millis(),
            draining: card.draining,
            jobs: self.held().values().map(|held| held.at(now)).collect(),
            done: self.done.load(std::sync::atomic::Ordering::Relaxed),
        }
    }
}

/// A worker.
pub struct Worker;

impl Worker {
    /// Join, tell `joined`, and take jobs until `stop` asks to leave: then what is held is
    /// finished first.
    ///
    /// # Errors
    /// As [`Link::connect`]; versions that do not work together; a name that is taken; an address
    /// that cannot be listened on.
    pub fn run(
        options: WorkerOptions,
        stop: &CancelToken,
        joined: impl FnOnce(&Joined),
    ) -> Result<(), ClusterError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("worker-net")
            .enable_all()
            .build()
            .map_err(|error| ClusterError::System {
                what: "start the worker's threads",
                why: error.to_string(),
            })?;
        let ended = runtime.block_on(run(options, stop, joined));
        runtime.shutdown_timeout(Duration::from_secs(2));
        ended
    }
}

/// The settings, waited for while the cluster is being made.
async fn settings(link: &Link) -> Result<Settings, ClusterError> {
    let mut tries = 0;
    loop {
        let got = link.get::<Settings>(BUCKET, "settings").await;
        match got {
            Ok(Some(settings)) => return Ok(settings),
            Ok(None) | Err(_) if tries < 20 => tries += 1,
            Ok(None) => {
                let why = "the cluster has no settings; run `longtake cluster up` there";
                return Err(ClusterError::stream("join", &why));
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// This machine's address towards the server.
fn address_towards(server: &str) -> std::net::IpAddr {
    let loopback = std::net::Ipv4Addr::LOCALHOST.into();
    let first = server.split(',').next().unwrap_or_default();
    let found = std::net::UdpSocket::bind(("0.0.0.0", 0)).and_then(|socket| {
        socket.connect(first)?;
        socket.local_addr()
    });
    found.map_or(loopback, |address| address.ip())
}

/// A listener for artifacts, and the URL by which others reach it.
pub(crate) fn listen(
    server: &str,
    listen: Option<SocketAddr>,
    advertise: Option<&str>,
) -> Result<(TcpListener, String), ClusterError> {
    let at = listen.unwrap_or_else(|| SocketAddr::new(address_towards(server), 0));
    let taken = |error: std::io::Error| ClusterError::PortTaken {
        address: at.to_string(),
        why: error.to_string(),
    };
    let listener = TcpListener::bind(at).map_err(taken)?;
    let mut address = listener.local_addr().map_err(taken)?;
    if address.ip().is_unspecified() {
        address.set_ip(address_towards(server));
    }
    let url = match advertise {
        Some(url) if url.starts_with("http://") || url.starts_with("https://") => {
            url.trim_end_matches('/').to_owned()
        }
        Some(host) => format!("http://{host}:{}", address.port()),
        None => format!("http://{address}"),
    };
    Ok((listener, url))
}

#[allow(
    clippy::large_stack_frames,
    reason = "the client's futures are large, and this runs once, on a stack of its own"
)]
async fn run(
    options: WorkerOptions,
    stop: &CancelToken,
    joined: impl FnOnce(&Joined),
) -> Result<(), ClusterError> {
    let name = options.advert.worker.clone();
    let link = Link::connect(&options.line, name.as_str()).await?;
    let settings = settings(&link).await?;
    PROTOCOL.common(
        settings.protocol,
        &format!("the cluster (longtake {})", settings.release),
    )?;
    if is_taken(&link, &name).await? {
        let name = name.to_string();
        return Err(ClusterError::NameTaken { name });
    }
    let (listener, url) = listen(&link.address, options.listen, options.advertise.as_deref())?;
    let system = |what: &'static str, why: String| ClusterError::System { what, why };
    let token = Token::random().map_err(|why| system("draw a token", why))?;
    let mut advert = options.advert;
    let mut start = [0u8; 8];
    getrandom::fill(&mut start).map_err(|e| system("draw a number", e.to_string()))?;
    // Whole numbers of other programs' JSON end at 2^53.
    advert.start = u64::from_le_bytes(start) >> 12;
    let card = Card {
        protocol: PROTOCOL,
        release: options.release,
        advert,
        url,
        token: token.as_str().to_owned(),
        draining: false,
        unix_millis: options.clock.unix_millis(),
        pid: std::process::id(),
    };
    let store = options.executor.store().clone();
    let artifact_options = ArtifactOptions {
        cap_bytes: options.cap_bytes,
        ..ArtifactOptions::default()
    };
    let shared = Arc::new(Shared {
        artifacts: Artifacts::new(Arc::new(store.clone()), artifact_options),
        executor: options.executor,
        store,
        threads: options.threads,
        clock: options.clock,
        lease: Duration::from_secs_f64(settings.lease_secs.clamp(0.5, 3600.0)),
        card: Mutex::new(card.clone()),
        held: Mutex::default(),
        taken: Mutex::default(),
        recent: Mutex::default(),
        done: std::sync::atomic::AtomicU64::new(0),
        changed: Notify::new(),
        leave: stop.child(),
        link,
    });
    let source = Arc::new(StoreArtifacts(Arc::new(shared.store.clone())));
    let over = Arc::new(Notify::new());
    let serving = {
        let over = Arc::clone(&over);
        serve_artifacts(
            listener,
            source,
            token,
            async move { over.notified().await },
        )
    };
    let serving = tokio::spawn(serving);
    tokio::spawn(stops(Arc::clone(&shared)));
    tokio::spawn(controls(Arc::clone(&shared)));
    put_card(&shared).await?;
    tokio::spawn(beats(Arc::clone(&shared)));
    tokio::spawn(cards(Arc::clone(&shared)));
    tokio::spawn(jobs(Arc::clone(&shared)));
    joined(&Joined {
        card,
        server: shared.link.version.to_string(),
    });
    leave(&shared).await;
    over.notify_waiters();
    // Whoever fetches from us gets a moment.
    drop(tokio::time::timeout(Duration::from_secs(1), serving).await);
    Ok(())
}

/// Wait until asked to leave, then until nothing is held; take the card out of the registry.
async fn leave(shared: &Arc<Shared>) {
    let look = Duration::from_millis(50);
    while !shared.leave.is_cancelled() {
        tokio::time::sleep(look).await;
    }
    locked(&shared.card).draining = true;
    shared.changed.notify_one();
    drop(put_card(shared).await);
    shared
        .link
        .tell(beat_subject(shared.name().as_str()), &shared.beat())
        .await;
    while !shared.held().is_empty() {
        tokio::time::sleep(look).await;
    }
    let name = shared.name();
    if let Err(error) = shared.link.remove(CARDS, name.as_str()).await {
        tracing::warn!("{error}");
    }
    drop(shared.link.client.flush().await);
}

impl Shared {
    /// Remember that a lease was taken, or is not to be. Says whether it was new.
    pub(super) fn take(&self, name: (String, u64)) -> bool {
        let mut taken = locked(&self.taken);
        if taken.contains(&name) {
            return false;
        }
        if taken.len() >= perform::REMEMBERED {
            taken.pop_front();
        }
        taken.push_back(name);
        true
    }

    /// Keep a result for whoever asks again.
    pub(super) fn keep_result(&self, name: (String, u64), result: ResultMessage) {
        let mut recent = locked(&self.recent);
        if recent.len() >= RECENT {
            recent.pop_front();
        }
        recent.push_back((name, result));
    }

    fn recent_result(&self, name: &(String, u64)) -> Option<ResultMessage> {
        let recent = locked(&self.recent);
        let mut found = recent.iter().filter(|(of, _)| of == name);
        found.next().map(|(_, result)| result.clone())
    }

    pub(super) fn name(&self) -> crate::names::WorkerId {
        locked(&self.card).advert.worker.clone()
    }
}

async fn put_card(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    let card = {
        let mut card = locked(&shared.card);
        card.unix_millis = shared.clock.unix_millis();
        card.clone()
    };
    shared
        .link
        .put(CARDS, card.advert.worker.as_str(), &card)
        .await
}

/// The card again from time to time. Apart from the signs of life: a server that is slow to write
/// must not make this worker look dead.
async fn cards(shared: Arc<Shared>) {
    while !shared.leave.is_cancelled() {
        tokio::time::sleep(CARD).await;
        if shared.link.is_connected()
            && !shared.leave.is_cancelled()
            && let Err(error) = put_card(&shared).await
        {
            tracing::debug!(%error, "the card was not renewed");
        }
    }
}

/// Signs of life.
async fn beats(shared: Arc<Shared>) {
    let subject = beat_subject(shared.name().as_str());
    loop {
        let now = shared.clock.monotonic();
        if shared.link.is_connected() {
            shared.link.tell(subject.clone(), &shared.beat()).await;
            shared
                .held()
                .values_mut()
                .for_each(|held| held.reached(now));
        } else {
            // Who cannot be reached has lost its leases after this long: the owner thinks so too.
            for held in shared.held().values() {
                if now.saturating_sub(held.reached) > shared.lease && !held.cancel.is_cancelled() {
                    tracing::warn!("a lease was lost: the server was away too long");
                    held.cancel.cancel();
                }
            }
        }
        let next = tokio::time::sleep(BEAT);
        tokio::select! {
            () = next => {}
            () = shared.changed.notified() => {}
        }
    }
}

/// Leases that are no more.
async fn stops(shared: Arc<Shared>) {
    let subject = stop_subject(&shared.name());
    loop {
        if let Ok(mut messages) = shared.link.client.subscribe(subject.clone()).await {
            while let Some(message) = messages.next().await {
                let Ok(stop) = serde_json::from_slice::<Stop>(&message.payload) else {
                    continue;
                };
                let name = (stop.owner, stop.lease.0);
                if let Some(held) = shared.held().get(&name) {
                    held.cancel.cancel();
                    continue;
                }
                match shared.recent_result(&name) {
                    // Who asks does not know that it is made.
                    Some(result) => {
                        let (shared, owner) = (Arc::clone(&shared), name.0);
                        tokio::spawn(
                            async move { perform::tell_again(&shared, &owner, &result).await },
                        );
                    }
                    // Its message may be under way still: it is not to begin any more.
                    None => drop(shared.take(name)),
                }
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Draining on request: `"drain"`, `"undrain"`, `"leave"`.
async fn controls(shared: Arc<Shared>) {
    let subject = control_subject(&shared.name());
    loop {
        if let Ok(mut messages) = shared.link.client.subscribe(subject.clone()).await {
            while let Some(message) = messages.next().await {
                match serde_json::from_slice::<String>(&message.payload).as_deref() {
                    Ok("drain") => locked(&shared.card).draining = true,
                    Ok("undrain") => locked(&shared.card).draining = false,
                    Ok("leave") => shared.leave.cancel(),
                    _ => continue,
                }
                drop(put_card(&shared).await);
                shared.changed.notify_one();
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Whether a worker of this name gives signs of life. One that was killed and is started again is
/// let in after a moment of silence.
async fn is_taken(link: &Link, name: &crate::names::WorkerId) -> Result<bool, ClusterError> {
    if link.get::<Card>(CARDS, name.as_str()).await?.is_none() {
        return Ok(false);
    }
    let heard = link.client.subscribe(beat_subject(name.as_str())).await;
    let mut heard = heard.map_err(|error| ClusterError::stream("listen to workers", &error))?;
    let first = tokio::time::timeout(BEAT * 3, heard.next()).await;
    Ok(matches!(first, Ok(Some(_))))
}

/// Take jobs from the worker's consumer, which is made again when it is gone.
async fn jobs(shared: Arc<Shared>) {
    loop {
        if let Err(error) = take(&shared).await {
            tracing::debug!(%error, "the queue of jobs is away");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn take(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    let name = shared.name();
    let failed = |error: &dyn std::fmt::Display| ClusterError::stream("take jobs", error);
    let lanes = locked(&shared.card).advert.devices.len().max(1);
    let config = pull::Config {
        durable_name: Some(consumer_of_worker(&name)),
        filter_subject: job_filter(&name),
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::Explicit,
        ack_wait: shared.lease,
        max_deliver: 10,
        // One for each device; nothing is fetched before it can be run.
        max_ack_pending: i64::try_from(lanes).unwrap_or(1).saturating_mul(2),
        ..pull::Config::default()
    };
    let consumer: async_nats::jetstream::consumer::Consumer<pull::Config> = shared
        .link
        .streams
        .create_consumer_on_stream(config, JOBS)
        .await
        .map_err(|error| failed(&error))?;
    let mut messages = consumer
        .stream()
        .max_messages_per_batch(1)
        .expires(Duration::from_secs(10))
        .heartbeat(Duration::from_secs(1))
        .messages()
        .await
        .map_err(|error| failed(&error))?;
    while let Some(message) = messages.next().await {
        let message = message.map_err(|error| failed(&error))?;
        let shared = Arc::clone(shared);
        tokio::spawn(perform::perform(shared, message));
    }
    Ok(())
}

/// Oldest nats-server and message versions that this program works with, for people.
pub fn works_with() -> (String, Protocol) {
    (NATS_AT_LEAST.to_string(), PROTOCOL)
}
