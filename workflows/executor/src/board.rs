//! The state of a run, changed under one lock: which nodes are where, who waits for whom, which
//! work is in flight, and what is let go.

mod asking;
mod expansions;
mod outcome;

use std::collections::HashMap;
use std::sync::Arc;

use engine_base::{ContentHash, Key};
use flow_graph::{Node, NodeError, Value};

use crate::costs::Costs;
use crate::element::{self, Feed, Ports, Taken};
use crate::memo::Memo;
use crate::net::{Net, Source};
use crate::observe::{Ending, RunEvent};
use crate::queue::{Job, Place, Queues};
use crate::report::RunReport;

/// Why an element has no result.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// Its call failed.
    Error(NodeError),
    /// It needs the result of this node, which failed.
    Because(usize),
    /// The run was asked to stop.
    Stopped,
}

impl From<NodeError> for Fault {
    fn from(error: NodeError) -> Self {
        Self::Error(error)
    }
}

/// Where the result of an element came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// A call ran.
    Ran,
    /// The store had it.
    Reused,
    /// An equal call of this run gave it.
    Shared,
    /// It was blocked.
    Blocked,
}

/// Where a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody has asked for it.
    Idle,
    /// Waits for its inputs.
    Waiting,
    /// Its elements are being worked on.
    Active,
    Done,
    Failed,
    /// This node's failure is the reason.
    Skipped(usize),
    /// The run stopped before it was done.
    Stopped,
    /// Nobody can ask for it any more.
    Unused,
}

#[derive(Debug, Clone, Copy)]
enum Dependent {
    Node(usize),
    Expansion(u64),
}

/// A node of the run.
pub(crate) struct Entry {
    pub(crate) id: Arc<str>,
    pub(crate) display: Arc<str>,
    pub(crate) node: Arc<dyn Node>,
    pub(crate) sources: Arc<[Source]>,
    /// The element whose expansion it is part of.
    pub(crate) parent: Option<Place>,
    pub(crate) depth: u32,
    pub(crate) state: State,
    /// Links that are not there yet.
    waiting: usize,
    dependents: Vec<Dependent>,
    /// Links to it that may still be read; at 0 its outputs are let go.
    consumers: usize,
    outputs: Option<Arc<Ports>>,
    /// Lazy links asked for, by input; empty when none was.
    asked: Vec<bool>,
    pub(crate) taken: Vec<Taken>,
    results: Vec<Option<Arc<Ports>>>,
    left: usize,
    failed: Option<usize>,
    stopped: bool,
    ran: bool,
}

impl Entry {
    /// How many elements it has, once that is known and until it is done.
    pub(crate) fn count(&self) -> usize {
        self.results.len()
    }
}

/// Work on a key.
enum Flight {
    /// A call runs; these elements wait for the same result.
    Running { owner: Place, waiters: Vec<Place> },
    /// Its result is known and on its way to the store.
    Committing(Arc<Ports>),
}

/// What to do about a key.
pub(crate) enum Claim {
    /// Nobody else works on it: look it up and run it.
    Mine,
    /// The result will be delivered.
    Wait,
    /// The result.
    There(Arc<Ports>),
    /// The expansion of this element needs the element's own result.
    Endless(Place),
}

enum PartOfOutput {
    Known(Vec<Value>),
    Link(usize, usize),
}

/// A call that waits for the graph it gave.
struct Await {
    place: Place,
    key: Key,
    left: usize,
    outputs: Vec<PartOfOutput>,
    inputs: Vec<ContentHash>,
    wall_millis: u64,
}

/// An output of an expansion by index within it.
pub(crate) enum OutputOf {
    Known(Vec<Value>),
    Link(usize, usize),
}

/// A graph to put in the place of a call.
pub(crate) struct Splice {
    pub(crate) net: Net,
    /// Nodes that run even when no output needs them.
    pub(crate) roots: Vec<usize>,
    pub(crate) outputs: Vec<OutputOf>,
    pub(crate) inputs: Vec<ContentHash>,
    pub(crate) wall_millis: u64,
}

enum Change {
    Settle(Place, Result<Arc<Ports>, Fault>, How),
    Close(usize, State),
}

/// The inputs of a node that is ready to be prepared.
pub(crate) struct Gathered {
    pub(crate) node: Arc<dyn Node>,
    pub(crate) feeds: Vec<Feed>,
    pub(crate) lazy: Vec<bool>,
    pub(crate) taken: Vec<Taken>,
}

#[derive(Default)]
pub(crate) struct Board {
    pub(crate) entries: Vec<Entry>,
    pub(crate) queues: Queues,
    pub(crate) memo: Memo,
    pub(crate) report: Option<Box<RunReport>>,
    pub(crate) events: Vec<RunEvent>,
    /// Nodes asked for and not done.
    pub(crate) open: usize,
    pub(crate) done: usize,
    /// A call was not begun, or gave up, because the run was asked to stop.
    pub(crate) stopped: bool,
    /// What is to be done and what is done, in predicted seconds.
    pub(crate) work: f64,
    work_done: f64,
    /// How far running calls have come, from 0 to 1.
    pub(crate) partial: HashMap<Place, f64>,
    costs: Costs,
    flights: HashMap<Key, Flight>,
    awaits: HashMap<u64, Await>,
    await_last: u64,
    changes: Vec<Change>,
    /// Nodes whose results were used before their commit failed.
    tainted: Vec<usize>,
    pinned: Vec<usize>,
}

impl Board {
    pub(crate) fn new(costs: Costs) -> Self {
        Self {
            costs,
            report: Some(Box::new(RunReport::empty())),
            ..Self::default()
        }
    }

    /// Put nodes into the run; gives the index of the first. Those out of reach of `roots` are
    /// never asked for.
    fn add(
        &mut self,
        net: Net,
        roots: impl IntoIterator<Item = usize>,
        parent: Option<Place>,
    ) -> usize {
        let first = self.entries.len();
        let consumers = net.consumers(roots);
        let above = parent.map(|place| {
            let entry = &self.entries[place.node];
            (entry.id.clone(), entry.display.clone(), entry.depth, place)
        });
        for (node, consumers) in net.nodes.into_iter().zip(consumers) {
            let (id, display, depth): (Arc<str>, Arc<str>, u32) = match &above {
                Some((above, display, depth, place)) => (
                    format!("{above}.{}.{}", place.element, node.id).into(),
                    Arc::clone(display),
                    depth + 1,
                ),
                None if node.id == node.origin => {
                    let id: Arc<str> = node.id.into();
                    (Arc::clone(&id), id, 0)
                }
                None => (node.id.into(), node.origin.into(), 0),
            };
            let sources = node.sources.into_iter().map(|source| match source {
                Source::Link { node, output, lazy } => Source::Link {
                    node: first + node,
                    output,
                    lazy,
                },
                other => other,
            });
            self.entries.push(Entry {
                id,
                display,
                node: node.node,
                sources: sources.collect(),
                parent,
                depth,
                state: State::Idle,
                waiting: 0,
                dependents: Vec::new(),
                consumers: consumers.unwrap_or(0),
                outputs: None,
                asked: Vec::new(),
                taken: Vec::new(),
                results: Vec::new(),
                left: 0,
                failed: None,
                stopped: false,
                ran: false,
            });
        }
        first
    }

    /// Begin: put the document's nodes into the run and ask for the targets.
    pub(crate) fn begin(&mut self, net: Net, targets: &[usize]) {
        self.add(net, targets.iter().copied(), None);
        for target in targets {
            self.entries[*target].consumers += 1;
            self.pinned.push(*target);
        }
        for target in targets {
            self.ask(*target);
        }
        self.apply();
    }

    /// `at` has this many elements.
    pub(crate) fn elements(&mut self, at: usize, count: usize) {
        let entry = &mut self.entries[at];
        entry.results = vec![None; count];
        entry.left = count;
        self.work += self.weight(at) * (count as f64 - 1.0);
        if count == 0 {
            self.changes.push(Change::Close(at, State::Done));
            self.apply();
        }
    }

    /// What to do about the key of `place`.
    pub(crate) fn claim(&mut self, key: Key, place: Place) -> Claim {
        match self.flights.get_mut(&key) {
            Some(Flight::Committing(ports)) => return Claim::There(Arc::clone(ports)),
            Some(Flight::Running { owner, waiters }) => {
                let owner = *owner;
                let mut above = self.entries[place.node].parent;
                while let Some(parent) = above {
                    if parent == owner {
                        return Claim::Endless(owner);
                    }
                    above = self.entries[parent.node].parent;
                }
                waiters.push(place);
                return Claim::Wait;
            }
            None => {}
        }
        if let Some(ports) = self.memo.get(&key) {
            return Claim::There(ports);
        }
        let flight = Flight::Running {
            owner: place,
            waiters: Vec::new(),
        };
        self.flights.insert(key, flight);
        Claim::Mine
    }

    /// The work on `key` has ended for `place` and for all that wait for it. While `committing`,
    /// later elements with the same key get the result from here.
    pub(crate) fn land(
        &mut self,
        key: Key,
        place: Place,
        result: Result<Arc<Ports>, Fault>,
        how: How,
        committing: bool,
    ) {
        let flight = match &result {
            Ok(ports) if committing => self
                .flights
                .insert(key, Flight::Committing(Arc::clone(ports))),
            _ => self.flights.remove(&key),
        };
        if let Ok(ports) = &result
            && !self.entries[place.node].node.spec().durable
        {
            self.memo.put(key, ports);
        }
        if let Some(Flight::Running { waiters, .. }) = flight {
            for waiter in waiters {
                self.changes
                    .push(Change::Settle(waiter, result.clone(), How::Shared));
            }
        }
        self.changes.push(Change::Settle(place, result, how));
        self.apply();
    }

    /// The commit of `key` is durable or has failed.
    pub(crate) fn committed(&mut self, key: &Key) {
        if matches!(self.flights.get(key), Some(Flight::Committing(_))) {
            self.flights.remove(key);
        }
    }

    /// An element without a key of its own in flight has ended.
    pub(crate) fn settle(&mut self, place: Place, result: Result<Arc<Ports>, Fault>, how: How) {
        self.changes.push(Change::Settle(place, result, how));
        self.apply();
    }

    /// Carry out all changes, and those that follow from them.
    fn apply(&mut self) {
        while let Some(change) = self.changes.pop() {
            match change {
                Change::Settle(place, result, how) => self.settle_one(place, result, how),
                Change::Close(node, state) => self.close(node, state),
            }
        }
    }

    fn settle_one(&mut self, place: Place, result: Result<Arc<Ports>, Fault>, how: How) {
        match (&result, how) {
            (Err(Fault::Error(error)), _) => {
                let error = error.clone();
                self.note_failure(place, &error);
            }
            (Ok(_), How::Reused) => {
                self.count(|report| report.reused += 1);
                self.tally(place.node, |count| count.reused += 1);
            }
            (Ok(_), How::Shared) => {
                self.count(|report| report.shared += 1);
                self.tally(place.node, |count| count.shared += 1);
            }
            (Ok(_), How::Blocked) => self.count(|report| report.blocked += 1),
            (Ok(_), How::Ran) | (Err(_), _) => {}
        }
        self.partial.remove(&place);
        if how == How::Ran && result.is_ok() {
            self.work_done += self.weight(place.node);
        } else {
            self.work -= self.weight(place.node);
        }
        let entry = &mut self.entries[place.node];
        entry.ran |= how == How::Ran;
        entry.left = entry.left.saturating_sub(1);
        match result {
            Ok(ports) => {
                if let Some(slot) = entry.results.get_mut(place.element) {
                    *slot = Some(ports);
                }
            }
            Err(Fault::Error(_)) => entry.failed = Some(place.node),
            Err(Fault::Because(root)) => {
                entry.failed.get_or_insert(root);
            }
            Err(Fault::Stopped) => {
                entry.stopped = true;
                self.stopped = true;
            }
        }
        if entry.left > 0 {
            return;
        }
        let state = match entry.failed {
            Some(root) if root == place.node => State::Failed,
            Some(root) => State::Skipped(root),
            None if entry.stopped => State::Stopped,
            None => State::Done,
        };
        self.close(place.node, state);
    }

    fn close(&mut self, node: usize, state: State) {
        let entry = &mut self.entries[node];
        if matches!(
            entry.state,
            State::Done | State::Failed | State::Skipped(_) | State::Stopped
        ) {
            return;
        }
        entry.state = state;
        let ran = entry.ran;
        let had_elements = !entry.results.is_empty();
        let results: Vec<Arc<Ports>> = std::mem::take(&mut entry.results)
            .into_iter()
            .flatten()
            .collect();
        if state == State::Done && entry.consumers > 0 {
            entry.outputs = Some(element::join(entry.node.spec(), results));
        }
        entry.taken = Vec::new();
        let dependents = std::mem::take(&mut entry.dependents);
        self.open -= 1;
        self.done += 1;
        let (ending, root) = match state {
            State::Failed => (Ending::Failed, Some(node)),
            State::Skipped(root) => {
                if !had_elements {
                    self.work -= self.weight(node);
                }
                self.note_skip(node, root);
                (Ending::Skipped, Some(root))
            }
            _ if ran => (Ending::Made, None),
            _ => (Ending::Reused, None),
        };
        if state != State::Stopped {
            self.event_finished(node, ending);
            for dependent in dependents {
                match root {
                    None => self.wake(dependent),
                    Some(root) => self.block(dependent, root),
                }
            }
        }
        let sources = Arc::clone(&self.entries[node].sources);
        for source in sources.iter() {
            if let Source::Link { node, .. } = source {
                self.release(*node);
            }
        }
    }

    fn wake(&mut self, dependent: Dependent) {
        match dependent {
            Dependent::Node(node) => {
                let entry = &mut self.entries[node];
                if entry.state == State::Waiting {
                    entry.waiting -= 1;
                    if entry.waiting == 0 {
                        self.queues.push(Job::Prepare(node));
                    }
                }
            }
            Dependent::Expansion(id) => {
                if let Some(waiting) = self.awaits.get_mut(&id) {
                    waiting.left -= 1;
                    if waiting.left == 0 {
                        self.close_expansion(id);
                    }
                }
            }
        }
    }

    fn block(&mut self, dependent: Dependent, root: usize) {
        match dependent {
            Dependent::Node(node) => {
                if self.entries[node].state == State::Waiting {
                    self.changes.push(Change::Close(node, State::Skipped(root)));
                }
            }
            Dependent::Expansion(id) => self.fail_expansion(id, &Fault::Because(root)),
        }
    }

    /// One reader of `node`'s outputs less. What nobody can read any more is let go, and with it
    /// what only it could have read.
    fn release(&mut self, node: usize) {
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            let entry = &mut self.entries[at];
            entry.consumers = entry.consumers.saturating_sub(1);
            if entry.consumers > 0 {
                continue;
            }
            entry.outputs = None;
            if entry.state == State::Idle {
                entry.state = State::Unused;
                for source in entry.sources.iter() {
                    if let Source::Link { node, .. } = source {
                        open.push(*node);
                    }
                }
            }
        }
    }
}
