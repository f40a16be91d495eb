//! What the executor itself costs: prints microseconds for each node of trivial graphs, one JSON
//! line. Run it optimized: `cargo run --release -p flow-executor --example overhead`.
#![allow(clippy::print_stdout, reason = "its output is its purpose")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use engine_base::{CancelToken, Clock, SystemClock};
use flow_executor::{Executor, NoObserver, Request};
use flow_graph::{
    Call, DocNode, Document, Exactness, InputSpec, Lane, Node, NodeContext, NodeError, NodeSpec,
    Outcome, OutputSpec, PortType, Registry, Widget,
};
use flow_store::{Faults, Store, StoreOptions};

struct Add(NodeSpec);

impl Add {
    fn new(type_name: &'static str, durable: bool) -> Self {
        let input = |name| InputSpec {
            name,
            ty: PortType::INT,
            widget: Some(Widget::Int {
                default: 0,
                min: -1_000_000,
                max: 1_000_000,
            }),
            required: false,
            lazy: false,
            whole_list: false,
            help: "",
        };
        Self(NodeSpec {
            type_name,
            version: 1,
            title: "",
            category: "bench",
            help: "",
            inputs: vec![input("a"), input("b")],
            outputs: vec![OutputSpec {
                name: "sum",
                ty: PortType::INT,
                list: false,
                help: "",
            }],
            exactness: Exactness::Exact,
            durable,
            cheap: !durable,
            lane: Lane::Cpu,
            output_node: false,
        })
    }
}

impl Node for Add {
    fn spec(&self) -> &NodeSpec {
        &self.0
    }

    fn run(&self, _context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        Ok(Outcome::data(call.int("a")? + call.int("b")?))
    }
}

fn chain(type_name: &str, count: i64) -> Result<Document, Box<dyn Error>> {
    let mut document = Document::new();
    let mut last = document.add("n000000", DocNode::new(type_name, 1).set("b", 1))?;
    for at in 1..count {
        let node = DocNode::new(type_name, 1)
            .link("a", &last, "sum")
            .set("b", 1);
        last = document.add(format!("n{at:06}"), node)?;
    }
    document.targets.push(last);
    Ok(document)
}

fn wide(type_name: &str, count: i64) -> Result<Document, Box<dyn Error>> {
    let mut document = Document::new();
    for at in 0..count {
        let id = document.add(format!("n{at:06}"), DocNode::new(type_name, 1).set("a", at))?;
        document.targets.push(id);
    }
    Ok(document)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("target/overhead-store"), PathBuf::from);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let mut registry = Registry::new();
    registry.add(Arc::new(Add::new("memory", false)))?;
    registry.add(Arc::new(Add::new("durable", true)))?;
    let options = StoreOptions {
        cap_bytes: 1 << 40,
        clock: Arc::clone(&clock),
        faults: Faults::none(),
    };
    let store = Store::open(&folder, options)?;
    let executor = Executor::new(Arc::new(registry), store.clone(), Arc::clone(&clock));
    let mut rows = Vec::new();
    let mut row = |name: String, micros: f64| {
        rows.push(serde_json::json!({"name": name, "value": micros, "unit": "us/node"}));
    };
    let run = |document: &Document| -> Result<f64, Box<dyn Error>> {
        let start = clock.monotonic();
        let cancel = CancelToken::new();
        let report = executor.run(document, &Request::default(), Arc::new(NoObserver), &cancel)?;
        let secs = (clock.monotonic() - start).as_secs_f64();
        if report.is_complete() {
            Ok(secs * 1e6 / document.nodes.len() as f64)
        } else {
            Err(format!("a run failed: {:?}", report.errors.first()).into())
        }
    };
    for (shape, make) in [("chain", chain as fn(_, _) -> _), ("wide", wide)] {
        row(
            format!("memory {shape} 10000"),
            run(&make("memory", 10_000)?)?,
        );
        let document = make("durable", 10_000)?;
        row(format!("durable {shape} 10000 made"), run(&document)?);
        row(format!("durable {shape} 10000 reused"), run(&document)?);
        store.prune(0, false)?;
    }
    for count in [10_000, 20_000] {
        let document = chain("memory", count)?;
        let start = clock.monotonic();
        executor.plan(&document, &Request::default(), &CancelToken::new())?;
        let secs = (clock.monotonic() - start).as_secs_f64();
        row(format!("plan chain {count}"), secs * 1e6 / count as f64);
    }
    println!("{}", serde_json::json!({ "rows": rows }));
    Ok(())
}
