//! A server, workers and owners in one process, with stub nodes and a record of what ran.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine_base::{CancelToken, Clock, Code, ContentHash, Datum, SystemClock};
use flow_cluster::owner::{Owner, OwnerOptions, Travels};
use flow_cluster::server::{Server, ServerOptions};
use flow_cluster::transport::{ClusterError, Link};
use flow_cluster::worker::{Worker, WorkerOptions};
use flow_cluster::{Device, DeviceClass, JoinLine, ModelNeed, RunId, WorkerAdvert, WorkerId};
use flow_executor::{Executor, FarCall, NoObserver, Request, RunReport};
use flow_graph::{
    Call, DocNode, Document, Exactness, InputSpec, Lane, Node, NodeContext, NodeError, NodeSpec,
    Outcome, OutputSpec, PortOutput, PortType, Registry, Value, Widget,
};
use flow_store::{Faults, Store, StoreOptions};

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

/// What ran in one executor.
#[derive(Clone, Default)]
pub(crate) struct Record {
    /// Calls that came to an end of their own.
    ended: Arc<AtomicUsize>,
    under_way: Arc<AtomicUsize>,
    /// Calls that gave something, with their times.
    made: Arc<Mutex<Vec<Made>>>,
    habits: Habits,
}

/// In what a worker differs from others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Habits {
    /// What its model is, as its keys have it.
    pub(crate) model: &'static str,
}

impl Default for Habits {
    fn default() -> Self {
        Self { model: "model" }
    }
}

/// A call that came to its end.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    /// Type and number of the piece.
    pub(crate) what: String,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
}

/// Pieces that somebody began after somebody had ended them, and what is known of each.
pub(crate) fn made_again(workers: &[&TestWorker]) -> Vec<Vec<Made>> {
    let mut by_piece: BTreeMap<String, Vec<Made>> = BTreeMap::new();
    for worker in workers {
        for made in worker.record.made.lock().unwrap().iter() {
            let of_piece = by_piece.entry(made.what.clone()).or_default();
            of_piece.push(made.clone());
        }
    }
    let again = |made: &Vec<Made>| {
        let first = made.iter().map(|made| made.ended).min();
        made.iter()
            .any(|made| first.is_some_and(|first| made.began > first))
    };
    by_piece.into_values().filter(again).collect()
}

struct Stub {
    spec: NodeSpec,
    record: Record,
}

fn input(name: &'static str, ty: PortType, widget: Option<Widget>) -> InputSpec {
    InputSpec {
        name,
        ty,
        widget,
        required: false,
        lazy: false,
        whole_list: false,
        help: "",
    }
}

fn stub(type_name: &'static str, record: &Record) -> Arc<dyn Node> {
    let number = Widget::Int {
        default: 0,
        min: 0,
        max: 1_000_000,
    };
    let data = Widget::Data {
        default: Datum::List(vec![]),
    };
    let mut inputs = vec![
        input("number", PortType::INT, Some(number.clone())),
        input("millis", PortType::INT, Some(number)),
        input("words", PortType::DATA, Some(data)),
    ];
    let mut pieces = input("pieces", PortType::ANY, None);
    pieces.whole_list = true;
    inputs.push(pieces);
    Arc::new(Stub {
        spec: NodeSpec {
            type_name,
            version: 1,
            title: "",
            category: "test",
            help: "",
            inputs,
            outputs: vec![OutputSpec {
                name: "out",
                ty: PortType::ANY,
                list: type_name == "words",
                help: "",
            }],
            exactness: Exactness::Exact,
            durable: true,
            cheap: false,
            lane: Lane::Cpu,
            output_node: false,
        },
        record: record.clone(),
    })
}

impl Node for Stub {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn side_data(&self) -> Datum {
        Datum::from(self.record.habits.model)
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        self.record.under_way.fetch_add(1, Ordering::SeqCst);
        let began = Instant::now();
        let made = self.make(context, call);
        self.record.under_way.fetch_sub(1, Ordering::SeqCst);
        if !matches!(&made, Err(error) if error.code == Code::Cancelled) {
            self.record.ended.fetch_add(1, Ordering::SeqCst);
        }
        if made.is_ok() {
            let number = call.int("number").unwrap_or_default();
            self.record.made.lock().unwrap().push(Made {
                what: format!("{} {number} {:?}", self.spec.type_name, call.inputs),
                began,
                ended: Instant::now(),
            });
        }
        made
    }
}

impl Stub {
    fn make(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let millis = call.int("millis")?;
        for _ in 0..millis / 10 {
            context.cancel.check()?;
            std::thread::sleep(Duration::from_millis(10));
        }
        match self.spec.type_name {
            "piece" => {
                let number = call.int("number")?;
                let mut words = serde_json::to_vec(call.datum("words")?).unwrap();
                for piece in call.list("pieces").iter().filter_map(Value::as_datum) {
                    words.extend_from_slice(piece.as_str().unwrap().as_bytes());
                }
                let file = context.artifacts.temp("txt")?;
                let text = format!("piece {number} {}", ContentHash::of(&words).short());
                std::fs::write(file.path(), text.repeat(1000)).unwrap();
                Ok(Outcome::blob(context.artifacts.adopt(file, "text/plain")?))
            }
            "join" => {
                let mut all = String::new();
                for piece in call.list("pieces") {
                    let blob = piece.as_blob().unwrap();
                    let path = context.artifacts.path(&blob.hash)?;
                    let text = std::fs::read_to_string(path).unwrap();
                    all.push_str(&ContentHash::of(text.as_bytes()).short());
                }
                let value = Value::data(Datum::from(all));
                Ok(Outcome::Values(vec![PortOutput::One(value)]))
            }
            "words" => {
                let text = |nth: i64| Value::data(format!("{nth} ").repeat(20_000));
                let list = (0..call.int("number")?).map(text).collect();
                Ok(Outcome::Values(vec![PortOutput::Many(list)]))
            }
            "broken" => Err(NodeError::new(Code::BadInput, "there is no such colour")),
            _ => Err(NodeError::new(Code::Io, "it went up in smoke")),
        }
    }
}

fn executor(store: &Store, record: &Record) -> Executor {
    let mut registry = Registry::new();
    for name in ["piece", "join", "words", "broken", "flaky"] {
        registry.add(stub(name, record)).unwrap();
    }
    Executor::new(Arc::new(registry), store.clone(), clock())
}

fn store_at(folder: &std::path::Path) -> Store {
    let options = StoreOptions {
        cap_bytes: u64::MAX,
        clock: clock(),
        faults: Faults::none(),
    };
    Store::open(folder, options).unwrap()
}

/// A document of `count` pieces, numbered from `first`, that are joined.
pub(crate) fn document(count: i64, millis: i64, first: i64) -> Document {
    let mut document = Document::new();
    let mut gather = DocNode::new("join", 1);
    // A list is made of pieces one after the other: each joins what was before.
    let mut last: Option<String> = None;
    for number in 0..count {
        let id = format!("piece_{number}");
        let piece = DocNode::new("piece", 1)
            .set("number", first + number)
            .set("millis", millis);
        document.add(id.as_str(), piece).unwrap();
        last = Some(id);
    }
    if let Some(last) = last {
        gather = gather.link("pieces", last.as_str(), "out");
    }
    document.add("join", gather).unwrap();
    document.targets = (0..count).map(|number| format!("piece_{number}")).collect();
    document.targets.push("join".into());
    document
}

fn single(type_name: &str) -> Document {
    let mut document = Document::new();
    document.add("only", DocNode::new(type_name, 1)).unwrap();
    document.targets = vec!["only".into()];
    document
}

/// A node that refuses its input.
pub(crate) fn broken() -> Document {
    single("broken")
}

/// A node that fails whatever it gets.
pub(crate) fn flaky() -> Document {
    single("flaky")
}

/// A piece that takes so many texts of 40,000 bytes each.
pub(crate) fn wordy(count: i64) -> Document {
    let mut document = Document::new();
    let words = DocNode::new("words", 1).set("number", count);
    document.add("words", words).unwrap();
    let piece = DocNode::new("piece", 1).link("pieces", "words", "out");
    document.add("piece_0", piece).unwrap();
    document.targets = vec!["piece_0".into()];
    document
}

/// What the targets gave.
pub(crate) fn text(report: &RunReport) -> BTreeMap<String, String> {
    let shown = |value: &Value| match value {
        Value::Blob(blob) => blob.hash.to_hex(),
        Value::Data(datum) => datum.as_str().unwrap_or_default().to_owned(),
        other => format!("{other:?}"),
    };
    let outputs = report.outputs.iter();
    outputs
        .map(|(node, ports)| {
            let elements = ports.iter().flat_map(|port| &port.elements);
            (
                node.clone(),
                elements.map(shown).collect::<Vec<_>>().join(","),
            )
        })
        .collect()
}

/// The document run by one executor alone, without waiting.
pub(crate) fn alone(document: &Document) -> RunReport {
    let folder = tempfile::tempdir().unwrap();
    let store = store_at(folder.path());
    let executor = executor(&store, &Record::default());
    let request = Request::default();
    let report = executor.run(
        document,
        &request,
        Arc::new(NoObserver),
        &CancelToken::new(),
    );
    report.unwrap()
}

struct All;

impl Travels for All {
    fn takes(&self, _spec: &NodeSpec) -> bool {
        true
    }

    fn size(&self, _call: &FarCall) -> u64 {
        1
    }

    fn model(&self, _call: &FarCall) -> Option<ModelNeed> {
        None
    }

    fn guesses(&self) -> Vec<(&'static str, f64, u64)> {
        vec![("piece", 0.1, 1), ("join", 0.01, 1)]
    }
}

/// A server in a folder of its own.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    server: Arc<Mutex<Option<Server>>>,
    pid: Arc<AtomicUsize>,
    owner_line: JoinLine,
    worker_line: JoinLine,
    named: BTreeMap<String, JoinLine>,
    stop: CancelToken,
    keeping: Option<JoinHandle<()>>,
}

impl Place {
    pub(crate) fn new(lease_secs: f64) -> Self {
        Self::at(IpAddr::from([127, 0, 0, 1]), None, lease_secs)
    }

    /// As reached from other machines, under this machine's name.
    pub(crate) fn beyond(lease_secs: f64) -> Self {
        Self::at(
            IpAddr::from([0, 0, 0, 0]),
            Some("localhost".into()),
            lease_secs,
        )
    }

    fn at(bind: IpAddr, advertise: Option<String>, lease_secs: f64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/nats/bin");
        let server = Server::start(ServerOptions {
            dir: folder.path().join("server"),
            bind,
            tcp_port: 0,
            advertise,
            lease_secs,
            workers: vec![WorkerId::new("w9").unwrap()],
            release: "0.0.0".into(),
            program_folders: vec![target],
            program: None,
        })
        .expect("the server: cargo xtask setup fetches it");
        let named = server.named_lines().into_iter();
        let mut place = Self {
            owner_line: server.owner_line(),
            worker_line: server.worker_line(),
            named: named.map(|(name, line)| (name.to_string(), line)).collect(),
            pid: Arc::new(AtomicUsize::new(server.pid() as usize)),
            server: Arc::new(Mutex::new(None)),
            stop: CancelToken::new(),
            keeping: None,
            folder,
        };
        place.keep(server);
        place
    }

    fn keep(&mut self, mut server: Server) {
        let (ready, is_ready) = sync_channel(1);
        let stop = self.stop.clone();
        let kept = Arc::clone(&self.server);
        let keeping = std::thread::Builder::new().name("keep".into());
        let thread = keeping.spawn(move || {
            let runtime = runtime();
            let link = runtime.block_on(server.prepare()).unwrap();
            ready.send(()).unwrap();
            runtime.block_on(server.keep(&link, &stop)).unwrap();
            *kept.lock().unwrap() = Some(server);
        });
        self.keeping = Some(thread.unwrap());
        is_ready.recv().unwrap();
    }

    /// End the server as a loss of power would; whoever keeps it starts it again.
    pub(crate) fn kill_server(&mut self) {
        let pid = i32::try_from(self.pid.load(Ordering::SeqCst)).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }

    pub(crate) fn worker_line(&self) -> JoinLine {
        self.worker_line.clone()
    }

    pub(crate) fn named_line(&self, name: &str) -> JoinLine {
        self.named[name].clone()
    }

    pub(crate) fn worker(&self, name: &str) -> TestWorker {
        self.worker_with(&self.worker_line, name)
    }

    pub(crate) fn worker_with(&self, line: &JoinLine, name: &str) -> TestWorker {
        self.try_worker(line, name).unwrap()
    }

    /// A worker that differs from others.
    pub(crate) fn odd_worker(&self, name: &str, habits: Habits) -> TestWorker {
        self.join(&self.worker_line, name, habits).unwrap()
    }

    pub(crate) fn try_worker(
        &self,
        line: &JoinLine,
        name: &str,
    ) -> Result<TestWorker, ClusterError> {
        self.join(line, name, Habits::default())
    }

    /// Where somebody has his store.
    pub(crate) fn store_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn join(
        &self,
        line: &JoinLine,
        name: &str,
        habits: Habits,
    ) -> Result<TestWorker, ClusterError> {
        let record = Record {
            habits,
            ..Record::default()
        };
        let store = store_at(&self.folder.path().join(name));
        let options = WorkerOptions {
            line: line.clone(),
            advert: advert(name, &executor(&store, &record)),
            executor: executor(&store, &record),
            listen: None,
            advertise: None,
            threads: 1,
            cap_bytes: u64::MAX,
            clock: clock(),
            release: "0.0.0".into(),
        };
        let stop = CancelToken::new();
        let (ready, is_ready) = sync_channel(1);
        let thread = {
            let stop = stop.clone();
            std::thread::Builder::new()
                .name(name.into())
                .spawn(move || {
                    let told = ready.clone();
                    let ended = Worker::run(options, &stop, |_| told.send(Ok(())).unwrap());
                    // Nobody listens once it has joined.
                    drop(ready.try_send(ended));
                })
        };
        is_ready.recv().unwrap()?;
        Ok(TestWorker {
            record,
            stop,
            thread: Mutex::new(Some(thread.unwrap())),
        })
    }

    pub(crate) fn owner(&self, name: &str) -> TestOwner {
        self.try_owner(name).unwrap()
    }

    pub(crate) fn try_owner(&self, name: &str) -> Result<TestOwner, ClusterError> {
        self.start_owner(store_at(&self.folder.path().join(name)))
    }

    fn start_owner(&self, store: Store) -> Result<TestOwner, ClusterError> {
        let owner = Owner::start(OwnerOptions {
            line: self.owner_line.clone(),
            store: store.clone(),
            travels: Arc::new(All),
            clock: clock(),
            run: RunId::new("film").unwrap(),
            patience: Duration::from_secs(60),
        })?;
        Ok(TestOwner {
            owner: Some(Arc::new(owner)),
            store,
            record: Record::default(),
            cancel: CancelToken::new(),
        })
    }

    pub(crate) fn block_on(&self, work: impl AsyncFnOnce(Link)) {
        connect(&self.owner_line, work);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(keeping) = self.keeping.take() {
            drop(keeping.join());
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

/// Do something over a connection with this line.
pub(crate) fn connect(line: &JoinLine, work: impl AsyncFnOnce(Link)) {
    runtime().block_on(async {
        let link = Link::connect(line, "test").await.unwrap();
        work(link).await;
    });
}

/// Try to join.
pub(crate) fn join(place: &Place, line: &JoinLine, name: &str) -> Result<TestWorker, ClusterError> {
    let other = Place {
        folder: tempfile::tempdir().unwrap(),
        server: Arc::default(),
        pid: Arc::default(),
        owner_line: place.owner_line.clone(),
        worker_line: place.worker_line.clone(),
        named: BTreeMap::new(),
        stop: CancelToken::new(),
        keeping: None,
    };
    other.try_worker(line, name)
}

fn advert(name: &str, executor: &Executor) -> WorkerAdvert {
    WorkerAdvert {
        worker: WorkerId::new(name).unwrap(),
        start: 0,
        engine_build: ContentHash::of(b"build"),
        node_types: executor.node_types(),
        devices: vec![Device {
            name: "cpu:0".into(),
            class: DeviceClass::new("cpu").unwrap(),
            memory_total_bytes: 1 << 30,
            memory_free_bytes: 1 << 30,
        }],
        models_on_disk: std::collections::BTreeSet::new(),
        models_loaded: Vec::new(),
        link_bytes_per_sec: 0,
        disk_bytes_per_sec: 0,
    }
}

/// A worker on threads of its own.
pub(crate) struct TestWorker {
    record: Record,
    stop: CancelToken,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for TestWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TestWorker")
    }
}

impl TestWorker {
    /// Calls that it ran to their end.
    pub(crate) fn ran(&self) -> usize {
        self.record.ended.load(Ordering::SeqCst)
    }

    /// Calls it is at.
    pub(crate) fn under_way(&self) -> usize {
        self.record.under_way.load(Ordering::SeqCst)
    }

    /// Ask it to leave, and wait until it has.
    pub(crate) fn leave(&self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.lock().unwrap().take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for TestWorker {
    fn drop(&mut self) {
        self.leave();
    }
}

/// An owner and its executor.
pub(crate) struct TestOwner {
    owner: Option<Arc<Owner>>,
    store: Store,
    record: Record,
    cancel: CancelToken,
}

impl std::fmt::Debug for TestOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TestOwner")
    }
}

impl TestOwner {
    pub(crate) fn run(&mut self, document: &Document) -> RunReport {
        self.start(document).join().unwrap()
    }

    /// Run a document on a thread of its own.
    pub(crate) fn start(&mut self, document: &Document) -> JoinHandle<RunReport> {
        self.cancel = CancelToken::new();
        let owner = self.owner.clone().unwrap();
        let executor = executor(&self.store, &self.record).with_elsewhere(owner);
        let (document, cancel) = (document.clone(), self.cancel.clone());
        let thread = std::thread::Builder::new().name("run".into());
        let run = move || {
            let request = Request::default();
            executor
                .run(&document, &request, Arc::new(NoObserver), &cancel)
                .unwrap()
        };
        thread.spawn(run).unwrap()
    }

    /// Ask the run to stop.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Calls that ran here.
    pub(crate) fn ran(&self) -> usize {
        self.record.ended.load(Ordering::SeqCst)
    }
}
