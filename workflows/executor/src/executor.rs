//! The entry point: an executor with what it runs documents with.

use std::borrow::Cow;
use std::sync::Arc;

use engine_base::{CancelToken, Clock};
use flow_graph::{Document, FlattenOptions, NodeId, Problem, Registry, flatten_runnable};
use flow_store::Store;

use crate::board::Board;
use crate::costs::Costs;
use crate::elsewhere::{Elsewhere, Far};
use crate::error::RunError;
use crate::expand::net_of;
use crate::keys::SideData;
use crate::limits::Limits;
use crate::net::Net;
use crate::observe::{RunEvent, RunObserver};
use crate::plan::{Plan, Planner};
use crate::report::RunReport;
use crate::run::run;
use crate::shared::Setting;

/// What is asked of a run or a plan besides the document.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Nodes whose results are asked for; `None` for the document's own targets, or all its
    /// output nodes when it names none.
    pub targets: Option<Vec<NodeId>>,
    /// What calls took before, for predictions.
    pub costs: Costs,
}

impl Request {
    /// Only these nodes and what they need.
    pub fn of_targets<I: Into<NodeId>>(targets: impl IntoIterator<Item = I>) -> Self {
        Self {
            targets: Some(targets.into_iter().map(Into::into).collect()),
            costs: Costs::new(),
        }
    }
}

/// Runs documents with the node types of a registry and the results of a store.
#[derive(Clone)]
pub struct Executor {
    registry: Arc<Registry>,
    store: Store,
    clock: Arc<dyn Clock>,
    limits: Limits,
    side_data: Arc<SideData>,
    elsewhere: Far,
}

/// The nodes of a document, and which of them are asked for.
struct Begun {
    net: Net,
    targets: Vec<usize>,
    problems: Vec<Problem>,
}

impl Executor {
    /// An executor within the limits of this machine. A node type's side data is read once and
    /// kept as long as the executor or a clone of it.
    pub fn new(registry: Arc<Registry>, store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            registry,
            store,
            clock,
            limits: Limits::of_machine(),
            side_data: Arc::default(),
            elsewhere: None,
        }
    }

    /// The same within other limits.
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The same with calls that travel run elsewhere.
    #[must_use]
    pub fn with_elsewhere(mut self, elsewhere: Arc<dyn Elsewhere>) -> Self {
        self.elsewhere = Some(elsewhere);
        self
    }

    pub(crate) const fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub(crate) fn side_data(&self) -> &SideData {
        &self.side_data
    }

    pub(crate) const fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The store it works against.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    fn begin(&self, document: &Document, request: &Request) -> Result<Begun, RunError> {
        let document = match &request.targets {
            None => Cow::Borrowed(document),
            Some(targets) if targets.is_empty() => return Err(RunError::NoTargets),
            Some(targets) => Cow::Owned(Document {
                targets: targets.clone(),
                ..document.clone()
            }),
        };
        let flattened = flatten_runnable(&document, &self.registry, &FlattenOptions::default());
        let targets: Vec<usize> = flattened
            .graph
            .targets()
            .iter()
            .map(|index| *index as usize)
            .collect();
        if targets.is_empty() {
            return Err(if flattened.problems.is_empty() {
                RunError::NothingAsked
            } else {
                RunError::Invalid(flattened.problems)
            });
        }
        Ok(Begun {
            net: net_of(&flattened.graph, &[]),
            targets,
            problems: flattened.problems,
        })
    }

    /// What a run of `document` would do, with cheap pure nodes evaluated. Takes time linear in
    /// the graph; runs nothing else and commits nothing.
    ///
    /// # Errors
    /// [`RunError`] when nothing can be planned: no targets, an invalid document, a store that
    /// cannot be read, [`RunError::Cancelled`].
    pub fn plan(
        &self,
        document: &Document,
        request: &Request,
        cancel: &CancelToken,
    ) -> Result<Plan, RunError> {
        let begun = self.begin(document, request)?;
        let planner = Planner::new(&self.store, &self.side_data, &begun.net, cancel);
        let mut plan = planner.plan(&begun.targets, &request.costs)?;
        plan.problems = begun.problems;
        Ok(plan)
    }

    /// Run `document`. Node failures stand in the report; so does a request to stop, after which
    /// what was made is kept and running it again goes on from there.
    ///
    /// # Errors
    /// [`RunError`] when there is nothing to run or the executor itself fails.
    pub fn run(
        &self,
        document: &Document,
        request: &Request,
        observer: Arc<dyn RunObserver>,
        cancel: &CancelToken,
    ) -> Result<RunReport, RunError> {
        let begun = self.begin(document, request)?;
        let reached = begun.net.consumers(begun.targets.iter().copied());
        observer.event(&RunEvent::Started {
            nodes: reached.iter().flatten().count(),
        });
        let mut board = Board::new(request.costs.clone());
        board.begin(begun.net, &begun.targets);
        let setting = Setting {
            registry: Arc::clone(&self.registry),
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            side_data: Arc::clone(&self.side_data),
            observer,
            cancel: cancel.child(),
            limits: self.limits,
            elsewhere: self.elsewhere.clone(),
            mark: self.store.mark()?,
        };
        let mut report = run(board, setting)?;
        report.problems = begun.problems;
        Ok(report)
    }
}
