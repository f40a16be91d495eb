//! How work that sleeps and copies grows with the workers: 200 shots of log-normal length (95 of a
//! hundred are under four medians), a twentieth of the work in one chain, over a real server.
//!
//! `cargo run -p flow-cluster --example scaling [-- --median-millis N] [--server PATH]`. The last
//! line is JSON: how many times faster 4 and 16 workers are than one, and the milliseconds that a
//! job takes besides its work.
#![allow(clippy::print_stdout, reason = "its output is its purpose")]

use std::error::Error;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine_base::{CancelToken, Clock, Code, ContentHash, SystemClock};
use flow_cluster::owner::{Owner, OwnerOptions, Travels};
use flow_cluster::server::{Server, ServerOptions};
use flow_cluster::worker::{Worker, WorkerOptions};
use flow_cluster::{Device, DeviceClass, JoinLine, ModelNeed, RunId, WorkerAdvert, WorkerId};
use flow_executor::{Executor, FarCall, NoObserver, Request};
use flow_graph::{
    Call, DocNode, Document, Exactness, InputSpec, Lane, Node, NodeContext, NodeError, NodeSpec,
    Outcome, OutputSpec, PortType, Registry, Widget,
};
use flow_store::{Faults, Store, StoreOptions, StoredValue};
use serde_json::json;

type Outcomes<T> = Result<T, Box<dyn Error + Send + Sync>>;

const SHOTS: usize = 200;

/// Spread of the logarithm: p95 / p50 = exp(1.645 sigma) = 4.
const SIGMA: f64 = 0.8427;

/// Part of the work that is one chain.
const CHAIN: f64 = 0.05;

/// What each shot writes.
const SHOT_BYTES: usize = 256 << 10;

/// Sleeps, then copies what came before, or bytes of its own.
struct Shot(NodeSpec);

impl Shot {
    fn new() -> Self {
        let input = |name, ty, widget| InputSpec {
            name,
            ty,
            widget,
            required: false,
            lazy: false,
            whole_list: false,
            help: "",
        };
        let number = Widget::Int {
            default: 0,
            min: 0,
            max: i64::MAX,
        };
        Self(NodeSpec {
            type_name: "shot",
            version: 1,
            title: "",
            category: "bench",
            help: "",
            inputs: vec![
                input("number", PortType::INT, Some(number.clone())),
                input("micros", PortType::INT, Some(number)),
                input("before", PortType::ANY, None),
            ],
            outputs: vec![OutputSpec {
                name: "out",
                ty: PortType::ANY,
                list: false,
                help: "",
            }],
            exactness: Exactness::Exact,
            durable: true,
            cheap: false,
            lane: Lane::Cpu,
            output_node: false,
        })
    }
}

fn io(error: &std::io::Error) -> NodeError {
    NodeError::new(Code::of_io(error), error.to_string())
}

impl Node for Shot {
    fn spec(&self) -> &NodeSpec {
        &self.0
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let until = Instant::now() + Duration::from_micros(call.int("micros")?.unsigned_abs());
        loop {
            context.cancel.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        let mut bytes = match call.list("before") {
            [] => vec![0; SHOT_BYTES],
            _ => {
                let path = context.artifacts.path(&call.blob("before")?.hash)?;
                std::fs::read(path).map_err(|error| io(&error))?
            }
        };
        let number = call.int("number")?.to_le_bytes();
        for (to, from) in bytes.iter_mut().zip(number) {
            *to = from;
        }
        let file = context.artifacts.temp("bin")?;
        std::fs::write(file.path(), bytes).map_err(|error| io(&error))?;
        let blob = context.artifacts.adopt(file, "application/octet-stream")?;
        Ok(Outcome::blob(blob))
    }
}

/// Everything travels, and what it takes is known.
struct Known;

impl Travels for Known {
    fn takes(&self, _spec: &NodeSpec) -> bool {
        true
    }

    fn size(&self, call: &FarCall) -> u64 {
        match call.inputs.get("micros").map(Vec::as_slice) {
            Some([StoredValue::Small(micros)]) => micros.as_i64().unwrap_or(1).unsigned_abs(),
            _ => 1,
        }
    }

    fn model(&self, _call: &FarCall) -> Option<ModelNeed> {
        None
    }

    fn guesses(&self) -> Vec<(&'static str, f64, u64)> {
        vec![("shot", 1.0, 1_000_000)]
    }
}

/// Microseconds of each shot; always the same.
fn costs(median_millis: f64) -> Vec<i64> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let normal = |a: f64, b: f64| (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
    (0..SHOTS)
        .map(|_| (median_millis * 1000.0 * (SIGMA * normal(uniform(), uniform())).exp()) as i64)
        .collect()
}

/// The shots, the first of them in one chain of a twentieth of the work.
fn document(costs: &[i64], salt: i64) -> Outcomes<Document> {
    let mut document = Document::new();
    let chain = costs.iter().sum::<i64>() as f64 * CHAIN;
    let (mut chained, mut last) = (0_i64, None::<String>);
    for (at, micros) in (0_i64..).zip(costs) {
        let id = format!("shot_{at}");
        let node = DocNode::new("shot", 1)
            .set("number", salt * 1_000_000 + at)
            .set("micros", *micros);
        let node = match &last {
            Some(last) => node.link("before", last.as_str(), "out"),
            None => node,
        };
        document.add(id.as_str(), node)?;
        chained += micros;
        last = ((chained as f64) < chain).then_some(id);
    }
    document.targets = (0..costs.len()).map(|at| format!("shot_{at}")).collect();
    Ok(document)
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

fn store(folder: &Path) -> Outcomes<Store> {
    let options = StoreOptions {
        cap_bytes: u64::MAX,
        clock: clock(),
        faults: Faults::none(),
    };
    Ok(Store::open(folder, options)?)
}

fn executor(store: &Store) -> Outcomes<Executor> {
    let mut registry = Registry::new();
    registry.add(Arc::new(Shot::new()))?;
    Ok(Executor::new(Arc::new(registry), store.clone(), clock()))
}

fn advert(name: &str, executor: &Executor) -> Outcomes<WorkerAdvert> {
    Ok(WorkerAdvert {
        worker: WorkerId::new(name)?,
        start: 0,
        engine_build: ContentHash::of(b"scaling"),
        node_types: executor.node_types(),
        devices: vec![Device {
            name: "cpu:0".into(),
            class: DeviceClass::new("cpu")?,
            memory_total_bytes: 1 << 30,
            memory_free_bytes: 1 << 30,
        }],
        models_on_disk: std::collections::BTreeSet::new(),
        models_loaded: Vec::new(),
        link_bytes_per_sec: 0,
        disk_bytes_per_sec: 0,
    })
}

fn named(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned())
}

/// A worker on threads of its own, which leaves when asked to.
fn worker(
    folder: &Path,
    name: &str,
    line: JoinLine,
    stop: CancelToken,
) -> Outcomes<JoinHandle<()>> {
    let executor = executor(&store(&folder.join(name))?)?;
    let options = WorkerOptions {
        line,
        advert: advert(name, &executor)?,
        executor,
        listen: None,
        advertise: None,
        threads: 1,
        cap_bytes: u64::MAX,
        clock: clock(),
        release: "0.0.0".into(),
    };
    let (ready, is_ready) = sync_channel(2);
    let thread = named(name).spawn(move || {
        let joined = ready.clone();
        let ended = Worker::run(options, &stop, |_| drop(joined.send(Ok(()))));
        drop(ready.send(ended));
    })?;
    is_ready.recv()??;
    Ok(thread)
}

/// Seconds that the document takes with so many workers.
fn run(program: Option<&Path>, folder: &Path, count: usize, costs: &[i64]) -> Outcomes<f64> {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/nats/bin");
    let mut server = Server::start(ServerOptions {
        dir: folder.join("server"),
        bind: IpAddr::from([127, 0, 0, 1]),
        tcp_port: 0,
        advertise: None,
        lease_secs: 30.0,
        workers: Vec::new(),
        release: "0.0.0".into(),
        program_folders: vec![target],
        program: program.map(Path::to_owned),
    })?;
    let (owner_line, worker_line) = (server.owner_line(), server.worker_line());
    let stop = CancelToken::new();
    let (ready, is_ready) = sync_channel(1);
    let kept = stop.child();
    let keeping = named("keep").spawn(move || -> Outcomes<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let link = runtime.block_on(server.prepare())?;
        ready.send(())?;
        runtime.block_on(server.keep(&link, &kept))?;
        Ok(())
    })?;
    is_ready.recv()?;
    let leave = CancelToken::new();
    let mut workers = Vec::new();
    for nth in 0..count {
        let name = format!("w{nth}");
        workers.push(worker(folder, &name, worker_line.clone(), leave.clone())?);
    }
    let own = store(&folder.join("owner"))?;
    let owner = Owner::start(OwnerOptions {
        line: owner_line,
        store: own.clone(),
        travels: Arc::new(Known),
        clock: clock(),
        run: RunId::new("scaling")?,
        patience: Duration::from_secs(60),
    })?;
    let executor = executor(&own)?.with_elsewhere(Arc::new(owner));
    let salt = i64::try_from(count)?;
    let document = document(costs, salt)?;
    let begun = Instant::now();
    let observer = Arc::new(NoObserver);
    let report = executor.run(
        &document,
        &Request::default(),
        observer,
        &CancelToken::new(),
    )?;
    let secs = begun.elapsed().as_secs_f64();
    drop(executor);
    leave.cancel();
    for worker in workers {
        drop(worker.join());
    }
    stop.cancel();
    drop(keeping.join());
    if !report.is_complete() {
        return Err(format!("the run failed: {:?}", report.errors.first()).into());
    }
    Ok(secs)
}

fn main() -> Outcomes<()> {
    let (mut median_millis, mut program) = (100.0, None::<PathBuf>);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match name.as_str() {
            "--median-millis" => median_millis = value.parse()?,
            "--server" => program = Some(value.into()),
            _ => {
                return Err(
                    format!("expected --median-millis N or --server PATH, got {name:?}").into(),
                );
            }
        }
    }
    let costs = costs(median_millis);
    let work = costs.iter().sum::<i64>() as f64 / 1e6;
    println!("{SHOTS} shots, {work:.1} s of work");
    let mut took = Vec::new();
    for count in [1, 4, 16] {
        let folder = tempfile::tempdir()?;
        let secs = run(program.as_deref(), folder.path(), count, &costs)?;
        println!(
            "{count} workers: {secs:.2} s, {:.2} times one",
            took.first().unwrap_or(&secs) / secs
        );
        took.push(secs);
    }
    let [one, four, sixteen] = took.as_slice() else {
        return Err("expected three runs".into());
    };
    let overhead = (one - work) * 1000.0 / SHOTS as f64;
    let row = |name: &str, value: f64, unit: &str, floor: f64| json!({ "name": name, "value": value, "unit": unit, "floor": floor });
    let rows = [
        row("4 workers", one / four, "times one", 3.7),
        row("16 workers", one / sixteen, "times one", 13.0),
        row("overhead per job", overhead, "ms", 10.0),
    ];
    println!("{}", json!({ "rows": rows }));
    Ok(())
}
