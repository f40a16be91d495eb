//! Graphs of nodes that do next to nothing, so that what is measured is the executor itself.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use engine_base::{CancelToken, Clock, SystemClock};
use flow_executor::{Executor, NoObserver, Request, RunReport};
use flow_graph::{
    Call, DocNode, Document, Exactness, InputSpec, Lane, Node, NodeContext, NodeError, NodeSpec,
    Outcome, OutputSpec, PortType, Registry, Widget,
};
use flow_store::{Faults, Store, StoreOptions};

use crate::load::thread_secs;

/// What becomes of a trivial node's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Held in memory, never stored.
    Memory,
    /// As [`Kept::Memory`], and evaluated while planning.
    Cheap,
    /// Committed to the store.
    Durable,
}

impl Kept {
    const ALL: [Self; 3] = [Self::Memory, Self::Cheap, Self::Durable];

    const fn type_name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cheap => "cheap",
            Self::Durable => "durable",
        }
    }
}

/// How the nodes hang together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Each takes the one before.
    Chain,
    /// None takes another.
    Wide,
}

/// Adds two numbers.
struct Add(NodeSpec);

impl Add {
    fn new(kept: Kept) -> Self {
        let input = |name| InputSpec {
            name,
            ty: PortType::INT,
            widget: Some(Widget::Int {
                default: 0,
                min: i64::MIN,
                max: i64::MAX,
            }),
            required: false,
            lazy: false,
            whole_list: false,
            help: "",
        };
        Self(NodeSpec {
            type_name: kept.type_name(),
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
            durable: kept == Kept::Durable,
            cheap: kept == Kept::Cheap,
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
        Ok(Outcome::data(call.int("a")?.wrapping_add(call.int("b")?)))
    }
}

/// A document of `count` nodes. Documents of different shape or `salt` share no result.
///
/// # Errors
/// None is expected: the names are all different.
pub fn document(kept: Kept, shape: Shape, count: usize, salt: u32) -> Result<Document> {
    let mut document = Document::new();
    let first = (2 * i64::from(salt) + i64::from(shape == Shape::Wide)) << 32;
    let mut last: Option<String> = None;
    for at in 0..count {
        let node = DocNode::new(kept.type_name(), 1);
        let node = match (shape, &last) {
            (Shape::Chain, Some(last)) => node.link("a", last, "sum").set("b", 1),
            _ => node.set("a", first + i64::try_from(at)?),
        };
        let id = document.add(format!("n{at:06}"), node)?;
        if shape == Shape::Wide {
            document.targets.push(id.clone());
        }
        last = Some(id);
    }
    if shape == Shape::Chain {
        document.targets.extend(last);
    }
    Ok(document)
}

/// An executor of trivial nodes over a store on disk.
pub struct Trivial {
    executor: Executor,
    clock: Arc<dyn Clock>,
}

impl Trivial {
    /// With its store in `folder`.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub fn open(folder: &Path) -> Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let mut registry = Registry::new();
        for kept in Kept::ALL {
            registry.add(Arc::new(Add::new(kept)))?;
        }
        let options = StoreOptions {
            cap_bytes: u64::MAX,
            clock: Arc::clone(&clock),
            faults: Faults::none(),
        };
        let store = Store::open(folder, options).context("open the store of trivial results")?;
        Ok(Self {
            executor: Executor::new(Arc::new(registry), store, Arc::clone(&clock)),
            clock,
        })
    }

    /// Run all of `document`; gives the report and the wall seconds.
    ///
    /// # Errors
    /// Something failed or was left out.
    pub fn run(&self, document: &Document) -> Result<(RunReport, f64)> {
        let (request, cancel) = (Request::default(), CancelToken::new());
        let start = self.clock.monotonic();
        let report = self
            .executor
            .run(document, &request, Arc::new(NoObserver), &cancel)?;
        let secs = (self.clock.monotonic() - start).as_secs_f64();
        ensure!(
            report.is_complete(),
            "a run of trivial nodes failed: {:?}",
            report.errors.first()
        );
        Ok((report, secs))
    }

    /// Plan `document`; gives the seconds of this thread, in which a plan of cheap nodes is made,
    /// on the processor: a long plan is not taken for a slow one because other work came between.
    /// Wall seconds where the system does not tell them.
    ///
    /// # Errors
    /// It cannot be planned, or not all of its nodes are in the plan.
    pub fn plan(&self, document: &Document) -> Result<f64> {
        let (request, cancel) = (Request::default(), CancelToken::new());
        let (start, before) = (self.clock.monotonic(), thread_secs());
        let plan = self.executor.plan(document, &request, &cancel)?;
        let secs = match before.zip(thread_secs()) {
            Some((before, after)) => after - before,
            None => (self.clock.monotonic() - start).as_secs_f64(),
        };
        ensure!(
            plan.nodes.len() == document.nodes.len(),
            "planned {} nodes of {}",
            plan.nodes.len(),
            document.nodes.len()
        );
        Ok(secs)
    }
}
