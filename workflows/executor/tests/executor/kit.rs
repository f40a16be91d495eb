//! Stub nodes with a record of what ran, and a store to run them against.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine_base::{CancelToken, Code, ContentHash, Datum, SystemClock};
use flow_executor::{Executor, Limits, NoObserver, Request, RunReport};
use flow_graph::{
    Call, DocNode, Document, Exactness, Expansion, ExpansionOutput, Handle, InputSpec, Lane, Node,
    NodeContext, NodeError, NodeSpec, Outcome, OutputSpec, PortOutput, PortType, Registry, Value,
    Widget,
};
use flow_store::{Faults, Store, StoreOptions};

pub(crate) type Body = dyn Fn(&NodeContext<'_>, &Call) -> Result<Outcome, NodeError> + Send + Sync;
pub(crate) type Lazy = dyn Fn(&Call) -> Result<Vec<String>, NodeError> + Send + Sync;

/// What ran: node type and its inputs, in the order of the calls.
#[derive(Clone, Default)]
pub(crate) struct Record(Arc<Mutex<Vec<String>>>);

impl Record {
    pub(crate) fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }

    /// What ran since the last time, sorted.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut ran = std::mem::take(&mut *self.0.lock().unwrap());
        ran.sort();
        ran
    }
}

pub(crate) struct Stub {
    spec: NodeSpec,
    body: Box<Body>,
    lazy: Option<Box<Lazy>>,
    record: Record,
}

impl Node for Stub {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        self.record
            .note(format!("{} {}", self.spec.type_name, show(call)));
        (self.body)(context, call)
    }

    fn lazy_needed(&self, call: &Call) -> Result<Vec<String>, NodeError> {
        match &self.lazy {
            Some(lazy) => lazy(call),
            None => Ok(self
                .spec
                .inputs
                .iter()
                .filter(|input| input.lazy && call.list(input.name).is_empty())
                .map(|input| input.name.to_owned())
                .collect()),
        }
    }
}

pub(crate) fn show_value(value: &Value) -> String {
    match value {
        Value::Data(datum) => serde_json::to_string(&**datum).unwrap(),
        Value::Blob(blob) => blob.hash.short(),
        Value::Handle(handle) => format!("handle {}", handle.content.short()),
        Value::Blocked(message) => format!("blocked {message:?}"),
    }
}

fn show(call: &Call) -> String {
    let inputs: Vec<String> = call
        .inputs
        .iter()
        .map(|(name, list)| {
            let list: Vec<String> = list.iter().map(show_value).collect();
            format!("{name}={}", list.join(","))
        })
        .collect();
    inputs.join(" ")
}

pub(crate) fn input(name: &'static str) -> InputSpec {
    InputSpec {
        name,
        ty: PortType::ANY,
        widget: None,
        required: false,
        lazy: false,
        whole_list: false,
        help: "",
    }
}

pub(crate) fn int_input(name: &'static str) -> InputSpec {
    InputSpec {
        ty: PortType::INT,
        widget: Some(Widget::Int {
            default: 0,
            min: -1_000_000,
            max: 1_000_000,
        }),
        ..input(name)
    }
}

pub(crate) fn data_input(name: &'static str) -> InputSpec {
    InputSpec {
        ty: PortType::DATA,
        widget: Some(Widget::Data {
            default: Datum::List(vec![]),
        }),
        ..input(name)
    }
}

pub(crate) fn output(name: &'static str) -> OutputSpec {
    OutputSpec {
        name,
        ty: PortType::ANY,
        list: false,
        help: "",
    }
}

pub(crate) fn spec(type_name: &'static str, inputs: Vec<InputSpec>) -> NodeSpec {
    NodeSpec {
        type_name,
        version: 1,
        title: "",
        category: "test",
        help: "",
        inputs,
        outputs: vec![output("out")],
        exactness: Exactness::Exact,
        durable: true,
        cheap: false,
        lane: Lane::Cpu,
        output_node: false,
    }
}

/// A registry, a store and a record.
pub(crate) struct Kit {
    pub(crate) registry: Registry,
    pub(crate) record: Record,
    pub(crate) store: Store,
    pub(crate) limits: Limits,
    /// The store lies in it.
    pub(crate) folder: tempfile::TempDir,
}

pub(crate) fn open_store(folder: &std::path::Path) -> Store {
    Store::open(
        &folder.join("cache"),
        StoreOptions {
            cap_bytes: 1 << 40,
            clock: Arc::new(SystemClock::new()),
            faults: Faults::none(),
        },
    )
    .unwrap()
}

impl Default for Kit {
    fn default() -> Self {
        Self::new()
    }
}

impl Kit {
    /// With the stub nodes that most tests use.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut kit = Self {
            registry: Registry::new(),
            record: Record::default(),
            store: open_store(folder.path()),
            limits: Limits {
                workers: 3,
                ..Limits::of_machine()
            },
            folder,
        };
        kit.add_common();
        kit
    }

    pub(crate) fn add(
        &mut self,
        spec: NodeSpec,
        body: impl Fn(&NodeContext<'_>, &Call) -> Result<Outcome, NodeError> + Send + Sync + 'static,
    ) {
        self.add_stub(spec, None, Box::new(body));
    }

    pub(crate) fn add_lazy(
        &mut self,
        spec: NodeSpec,
        lazy: impl Fn(&Call) -> Result<Vec<String>, NodeError> + Send + Sync + 'static,
        body: impl Fn(&NodeContext<'_>, &Call) -> Result<Outcome, NodeError> + Send + Sync + 'static,
    ) {
        self.add_stub(spec, Some(Box::new(lazy)), Box::new(body));
    }

    fn add_stub(&mut self, spec: NodeSpec, lazy: Option<Box<Lazy>>, body: Box<Body>) {
        let stub = Stub {
            spec,
            body,
            lazy,
            record: self.record.clone(),
        };
        self.registry.add(Arc::new(stub)).unwrap();
    }

    fn add_common(&mut self) {
        self.add(spec("int", vec![int_input("value")]), |_, call| {
            Ok(Outcome::data(call.int("value")?))
        });
        self.add(
            spec("add", vec![int_input("a"), int_input("b")]),
            |_, call| Ok(Outcome::data(call.int("a")? + call.int("b")?)),
        );
        self.add(spec("half", vec![int_input("a")]), |_, call| {
            Ok(Outcome::data(call.int("a")? / 2))
        });
        let list = NodeSpec {
            outputs: vec![OutputSpec {
                list: true,
                ..output("out")
            }],
            ..spec("list", vec![data_input("values")])
        };
        self.add(list, |_, call| {
            let values = call.datum("values")?.as_list().unwrap_or_default();
            let list = values.iter().cloned().map(Value::data).collect();
            Ok(Outcome::Values(vec![PortOutput::Many(list)]))
        });
        let join = spec(
            "sum",
            vec![InputSpec {
                whole_list: true,
                ..input("items")
            }],
        );
        self.add(join, |_, call| {
            let of = |value: &Value| value.as_datum().and_then(Datum::as_i64).unwrap_or(0);
            Ok(Outcome::data(
                call.list("items").iter().map(of).sum::<i64>(),
            ))
        });
        let switch = spec(
            "switch",
            vec![
                int_input("which"),
                InputSpec {
                    lazy: true,
                    ..input("zero")
                },
                InputSpec {
                    lazy: true,
                    ..input("other")
                },
            ],
        );
        let wanted = |call: &Call| -> Result<&'static str, NodeError> {
            Ok(if call.int("which")? == 0 {
                "zero"
            } else {
                "other"
            })
        };
        self.add_lazy(
            switch,
            move |call| {
                let name = wanted(call)?;
                let missing = call.list(name).is_empty();
                Ok(missing.then(|| name.to_owned()).into_iter().collect())
            },
            move |_, call| {
                let value = call.one(wanted(call)?)?.clone();
                Ok(Outcome::Values(vec![PortOutput::One(value)]))
            },
        );
        self.add(spec("fail", vec![input("a")]), |_, _| {
            Err(NodeError::new(
                Code::BadInput,
                "input \"a\": it does not like it",
            ))
        });
        self.add(spec("panic", vec![input("a")]), |_, _| panic!("stub panic"));
    }

    pub(crate) fn executor(&self) -> Executor {
        Executor::new(
            Arc::new(self.registry.clone()),
            self.store.clone(),
            Arc::new(SystemClock::new()),
        )
        .with_limits(self.limits)
    }

    pub(crate) fn run(&self, document: &Document) -> RunReport {
        self.run_request(document, &Request::default())
    }

    pub(crate) fn run_request(&self, document: &Document, request: &Request) -> RunReport {
        self.executor()
            .run(document, request, Arc::new(NoObserver), &CancelToken::new())
            .unwrap()
    }

    pub(crate) fn plan(&self, document: &Document) -> flow_executor::Plan {
        self.executor()
            .plan(document, &Request::default(), &CancelToken::new())
            .unwrap()
    }
}

/// A document with these nodes and targets.
pub(crate) fn doc<const N: usize>(nodes: [(&str, DocNode); N], targets: &[&str]) -> Document {
    let mut document = Document::new();
    for (id, node) in nodes {
        document.add(id, node).unwrap();
    }
    document.targets = targets.iter().map(|t| (*t).to_owned()).collect();
    document
}

pub(crate) fn node(type_name: &str) -> DocNode {
    DocNode::new(type_name, 1)
}

pub(crate) fn ints(values: &[i64]) -> Datum {
    Datum::List(values.iter().copied().map(Datum::from).collect())
}

/// The elements of output `out` of a target, as whole numbers.
#[track_caller]
pub(crate) fn out(report: &RunReport, target: &str) -> Vec<i64> {
    let Some(elements) = report.output(target, "out") else {
        panic!(
            "no output of {target:?}: {:?} {:?}",
            report.errors, report.skips
        );
    };
    elements
        .iter()
        .map(|v| v.as_datum().and_then(Datum::as_i64).unwrap())
        .collect()
}

/// The elements of output `out` of a target, as text, whatever they are.
#[track_caller]
pub(crate) fn shown(report: &RunReport, target: &str) -> Vec<String> {
    report
        .output(target, "out")
        .unwrap()
        .iter()
        .map(show_value)
        .collect()
}

/// Counts how many of the things it gave are alive.
#[derive(Clone, Default)]
pub(crate) struct Living {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

pub(crate) struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Living {
    pub(crate) fn handle(&self, content: &[u8]) -> Value {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        Value::Handle(Handle {
            content: ContentHash::of(content),
            object: Arc::new(Alive(Arc::clone(&self.now))),
        })
    }

    pub(crate) fn now(&self) -> usize {
        self.now.load(Ordering::SeqCst)
    }

    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// Sleep in small pieces, listening to a request to stop.
pub(crate) fn nap(context: &NodeContext<'_>, millis: u64) -> Result<(), NodeError> {
    for _ in 0..millis.div_ceil(5) {
        context.cancel.check()?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// An expansion of these nodes whose one output is `output` of `node`.
pub(crate) fn expansion(
    nodes: Vec<(&str, DocNode)>,
    given: Vec<(&str, &str, Vec<Value>)>,
    from: &str,
) -> Outcome {
    let mut document = Document::new();
    for (id, node) in nodes {
        document.add(id, node).unwrap();
    }
    Outcome::Expand(Box::new(Expansion {
        document,
        given: given
            .into_iter()
            .map(|(node, input, list)| (node.to_owned(), input.to_owned(), list))
            .collect(),
        outputs: vec![ExpansionOutput::Link(from.to_owned(), "out".to_owned())],
    }))
}

pub(crate) fn counts(lines: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        let name = line.split(' ').next().unwrap_or_default();
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    counts
}
