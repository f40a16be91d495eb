//! The state of a run, changed under one lock: which nodes are where, who waits for whom, which
//! work is in flight, and what is let go.

use std::collections::HashMap;
use std::sync::Arc;

use engine_base::{Code, ContentHash, Key};
use flow_graph::{Node, NodeError, Value};

use crate::costs::Costs;
use crate::element::{self, Feed, Ports, Taken};
use crate::memo::Memo;
use crate::net::{Net, Source};
use crate::observe::{Ending, RunEvent};
use crate::queue::{Closed, Job, Place, Queues};
use crate::report::{NodeFailure, RunReport, SkippedNode};

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

    /// Ask for a node and for everything it needs for certain.
    fn ask(&mut self, node: usize) {
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            if self.entries[at].state != State::Idle {
                continue;
            }
            self.entries[at].state = State::Waiting;
            self.open += 1;
            self.work += self.weight(at);
            let sources = Arc::clone(&self.entries[at].sources);
            let mut fault = None;
            for source in sources.iter() {
                let Source::Link { node, lazy, .. } = source else {
                    continue;
                };
                if !lazy && let Err(root) = self.depend(at, *node, &mut open) {
                    fault = Some(root);
                }
            }
            self.ready_or_skip(at, fault);
        }
    }

    /// Make `at` wait for `source`; the failed node when that cannot be had.
    fn depend(&mut self, at: usize, source: usize, open: &mut Vec<usize>) -> Result<(), usize> {
        match self.entries[source].state {
            State::Done => return Ok(()),
            State::Failed => return Err(source),
            State::Skipped(root) => return Err(root),
            State::Idle => open.push(source),
            State::Waiting | State::Active | State::Stopped | State::Unused => {}
        }
        self.entries[source].dependents.push(Dependent::Node(at));
        self.entries[at].waiting += 1;
        Ok(())
    }

    fn ready_or_skip(&mut self, at: usize, fault: Option<usize>) {
        if let Some(root) = fault {
            self.changes.push(Change::Close(at, State::Skipped(root)));
        } else if self.entries[at].waiting == 0 {
            self.queues.push(Job::Prepare(at));
        }
    }

    /// The inputs of `at`, all of which are there. `None` when it was skipped instead.
    pub(crate) fn gather(&mut self, at: usize) -> Option<Gathered> {
        let sources = Arc::clone(&self.entries[at].sources);
        let mut feeds = Vec::with_capacity(sources.len());
        let mut lazy = Vec::with_capacity(sources.len());
        let mut fault = None;
        for (input, source) in sources.iter().enumerate() {
            lazy.push(matches!(source, Source::Link { lazy: true, .. }));
            feeds.push(match source {
                Source::Absent => Feed::Absent,
                Source::Fixed(list) => Feed::Fixed(Arc::clone(list)),
                Source::Link { node, output, lazy } => {
                    let asked = self.entries[at].asked.get(input).copied().unwrap_or(false);
                    let source = &self.entries[*node];
                    match &source.outputs {
                        _ if *lazy && !asked => Feed::Unasked,
                        Some(ports) if source.state == State::Done => {
                            Feed::Port(Arc::clone(ports), *output)
                        }
                        _ => {
                            fault = Some(*node);
                            Feed::Absent
                        }
                    }
                }
            });
        }
        if let Some(root) = fault {
            self.changes.push(Change::Close(at, State::Skipped(root)));
            self.apply();
            return None;
        }
        let entry = &mut self.entries[at];
        entry.state = State::Active;
        Some(Gathered {
            node: Arc::clone(&entry.node),
            feeds,
            lazy,
            taken: std::mem::take(&mut entry.taken),
        })
    }

    /// `at` needs these lazy links before it can go on.
    pub(crate) fn ask_lazy(&mut self, at: usize, inputs: &[usize], taken: Vec<Taken>) {
        let sources = Arc::clone(&self.entries[at].sources);
        let entry = &mut self.entries[at];
        entry.taken = taken;
        entry.state = State::Waiting;
        entry.asked.resize(sources.len(), false);
        let mut fault = None;
        let mut open = Vec::new();
        for input in inputs {
            self.entries[at].asked[*input] = true;
            if let Source::Link { node, .. } = sources[*input]
                && let Err(root) = self.depend(at, node, &mut open)
            {
                fault = Some(root);
            }
        }
        for source in open {
            self.ask(source);
        }
        self.ready_or_skip(at, fault);
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

    /// The commit failed after the result was passed on.
    pub(crate) fn fail_late(&mut self, place: Place, error: &NodeError) {
        self.note_failure(place, error);
        let entry = &mut self.entries[place.node];
        entry.failed = Some(place.node);
        if entry.state == State::Done {
            entry.state = State::Failed;
            self.tainted.push(place.node);
            self.event_finished(place.node, Ending::Failed);
        }
    }

    /// Predicted seconds of one call of a node; for a type never measured, an arbitrary twentieth.
    fn weight(&self, node: usize) -> f64 {
        let type_name = self.entries[node].node.spec().type_name;
        self.costs.secs_per_call(type_name).unwrap_or(0.05)
    }

    /// Predicted seconds of what is done, running calls with the part that is done.
    pub(crate) fn work_so_far(&self) -> f64 {
        let mut partial: Vec<(Place, f64)> = self.partial.iter().map(|(p, f)| (*p, *f)).collect();
        partial.sort_unstable_by_key(|(place, _)| *place);
        let running = partial.iter().map(|(place, f)| f * self.weight(place.node));
        self.work_done + running.sum::<f64>()
    }

    fn report_mut(&mut self) -> &mut RunReport {
        self.report
            .get_or_insert_with(|| Box::new(RunReport::empty()))
    }

    pub(crate) fn tally(&mut self, node: usize, tally: impl FnOnce(&mut crate::report::TypeCount)) {
        let type_name = self.entries[node].node.spec().type_name;
        tally(self.report_mut().by_type.entry(type_name).or_default());
    }

    pub(crate) fn count(&mut self, count: impl FnOnce(&mut RunReport)) {
        count(self.report_mut());
    }

    fn note_failure(&mut self, place: Place, error: &NodeError) {
        self.count(|report| report.failed += 1);
        self.tally(place.node, |count| count.failed += 1);
        self.note_error(place, error);
    }

    pub(crate) fn note_error(&mut self, place: Place, error: &NodeError) {
        let entry = &self.entries[place.node];
        let spec = entry.node.spec();
        // Texts about an input begin with `input "name"`; where one does, the shell can point.
        let named = |name: &str| error.message.starts_with(&format!("input {name:?}"));
        let input = spec.inputs.iter().find(|input| named(input.name));
        let failure = NodeFailure {
            node: entry.id.to_string(),
            display: entry.display.to_string(),
            type_name: spec.type_name.to_owned(),
            input: input.map(|input| input.name.to_owned()),
            element: (entry.results.len() > 1).then_some(place.element),
            code: error.code,
            message: error.message.clone(),
        };
        self.report_mut().add_error(failure);
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
            Err(Fault::Stopped) => entry.stopped = true,
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

    fn note_skip(&mut self, node: usize, root: usize) {
        let (entry, root) = (&self.entries[node], &self.entries[root]);
        let skip = SkippedNode {
            node: entry.id.to_string(),
            display: entry.display.to_string(),
            because: root.id.to_string(),
        };
        self.report_mut().add_skip(skip);
    }

    fn event_finished(&mut self, node: usize, ending: Ending) {
        let entry = &self.entries[node];
        self.events.push(RunEvent::NodeFinished {
            node: Arc::clone(&entry.id),
            display: Arc::clone(&entry.display),
            type_name: entry.node.spec().type_name,
            ending,
        });
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

    /// Put a graph in the place of a call.
    pub(crate) fn expand(&mut self, place: Place, key: Key, splice: Splice) {
        let links = splice.outputs.iter().filter_map(|output| match output {
            OutputOf::Link(node, _) => Some(*node),
            OutputOf::Known(_) => None,
        });
        let linked: Vec<usize> = links.collect();
        let roots = linked.iter().chain(&splice.roots).copied();
        let first = self.add(splice.net, roots.collect::<Vec<_>>(), Some(place));
        self.await_last += 1;
        let id = self.await_last;
        let outputs = splice.outputs.into_iter().map(|output| match output {
            OutputOf::Known(list) => PartOfOutput::Known(list),
            OutputOf::Link(node, output) => PartOfOutput::Link(first + node, output),
        });
        let waiting = Await {
            place,
            key,
            left: linked.len(),
            outputs: outputs.collect(),
            inputs: splice.inputs,
            wall_millis: splice.wall_millis,
        };
        self.awaits.insert(id, waiting);
        for node in &linked {
            let entry = &mut self.entries[first + node];
            entry.consumers += 1;
            entry.dependents.push(Dependent::Expansion(id));
        }
        if linked.is_empty() {
            self.close_expansion(id);
        }
        for node in splice.roots.iter().chain(&linked) {
            self.ask(first + node);
        }
        self.apply();
    }

    fn close_expansion(&mut self, id: u64) {
        let Some(done) = self.awaits.remove(&id) else {
            return;
        };
        let mut ports: Ports = Vec::with_capacity(done.outputs.len());
        for output in done.outputs {
            ports.push(match output {
                PartOfOutput::Known(list) => list,
                PartOfOutput::Link(node, output) => {
                    let list = self.entries[node].outputs.as_ref();
                    let list = list.and_then(|ports| ports.get(output)).cloned();
                    self.release(node);
                    list.unwrap_or_default()
                }
            });
        }
        self.queues.push(Job::Close(Box::new(Closed {
            place: done.place,
            key: done.key,
            ports: Arc::new(ports),
            inputs: done.inputs,
            wall_millis: done.wall_millis,
        })));
    }

    fn fail_expansion(&mut self, id: u64, fault: &Fault) {
        let Some(failed) = self.awaits.remove(&id) else {
            return;
        };
        for output in &failed.outputs {
            if let PartOfOutput::Link(node, _) = output {
                self.release(*node);
            }
        }
        let flight = self.flights.remove(&failed.key);
        if let Some(Flight::Running { waiters, .. }) = flight {
            for waiter in waiters {
                self.changes
                    .push(Change::Settle(waiter, Err(fault.clone()), How::Shared));
            }
        }
        self.changes
            .push(Change::Settle(failed.place, Err(fault.clone()), How::Ran));
    }

    /// The expansion of `owner` needs its own result: that is `owner`'s fault.
    pub(crate) fn fail_endless(&mut self, owner: Place) {
        let ids = self
            .awaits
            .iter()
            .filter(|(_, waiting)| waiting.place == owner);
        if let Some(id) = ids.map(|(id, _)| *id).min() {
            self.fail_expansion(id, &Fault::Error(endless()));
            self.apply();
        }
    }

    /// Nothing is ready or running and yet nodes wait: expansions that need each other's results.
    /// They fail, and so the run ends.
    pub(crate) fn break_knot(&mut self) {
        let mut ids: Vec<u64> = self.awaits.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.fail_expansion(id, &Fault::Error(endless()));
            self.apply();
        }
    }

    /// Complete the report: outputs of the targets, and what failed late taken out.
    pub(crate) fn finish(&mut self) -> Box<RunReport> {
        self.skip_tainted();
        let mut report = self
            .report
            .take()
            .unwrap_or_else(|| Box::new(RunReport::empty()));
        report.nodes = self.done as u64;
        for target in &self.pinned {
            let entry = &self.entries[*target];
            if let (State::Done, Some(ports)) = (entry.state, &entry.outputs) {
                let outputs = entry.node.spec().outputs.iter().zip(ports.iter());
                let outputs = outputs.map(|(output, elements)| crate::report::TargetPort {
                    name: output.name,
                    elements: elements.clone(),
                });
                report
                    .outputs
                    .insert(entry.id.to_string(), outputs.collect());
            }
        }
        report
    }

    /// What went on with a result whose commit failed later is not complete either.
    fn skip_tainted(&mut self) {
        if self.tainted.is_empty() {
            return;
        }
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); self.entries.len()];
        for (at, entry) in self.entries.iter().enumerate() {
            for (input, source) in entry.sources.iter().enumerate() {
                if let Source::Link { node, lazy, .. } = source
                    && (!lazy || entry.asked.get(input).copied().unwrap_or(false))
                {
                    below[*node].push(at);
                }
            }
            // An expansion's results are its parent's.
            if let Some(parent) = entry.parent {
                below[at].push(parent.node);
            }
        }
        let mut open: Vec<(usize, usize)> = std::mem::take(&mut self.tainted)
            .into_iter()
            .map(|root| (root, root))
            .collect();
        while let Some((at, root)) = open.pop() {
            for next in &below[at] {
                if self.entries[*next].state == State::Done {
                    self.entries[*next].state = State::Skipped(root);
                    self.note_skip(*next, root);
                    open.push((*next, root));
                }
            }
        }
    }
}

/// The error of a node whose expansion needs the node's own result.
pub(crate) fn endless() -> NodeError {
    NodeError::new(
        Code::BadInput,
        "the graph it expands to needs its own result: expected one that comes to an end",
    )
}
