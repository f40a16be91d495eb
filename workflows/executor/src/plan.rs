//! What a run would do, found out without running anything that takes long.

mod outline;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use engine_base::{CancelToken, Key, NoProgress};
use flow_graph::{Node, NodeContext, NodeError, Outcome, Value};
use flow_store::Store;

pub use outline::{Plan, PlanNode, PlanState};

use crate::artifacts::StoreArtifacts;
use crate::convert::from_stored;
use crate::costs::Costs;
use crate::element::{Feed, Inputs, Ports, Step, Taken, blocked_ports, ports_of};
use crate::error::RunError;
use crate::keys::{self, SideData};
use crate::net::{Net, Source};
use crate::perform::guard;

/// An element of an output while planning.
#[derive(Clone)]
enum Slot {
    Known(Value),
    /// Not before this node gives its result.
    Unknown(usize),
}

/// An output while planning.
#[derive(Clone)]
enum PlanPort {
    List(Vec<Slot>),
    /// Not even its length is known before this node gives its result.
    Unknown(usize),
}

/// What is known of a call with some key.
#[derive(Clone)]
enum Known {
    Ports(Arc<Ports>),
    /// This node makes it.
    MadeBy(usize),
}

#[derive(Default)]
struct Tally {
    reused: usize,
    evaluated: usize,
    will_run: usize,
    unknown: usize,
    until: Option<usize>,
    /// Which lazy links it takes depends on what is not known yet.
    undecided: bool,
    failure: Option<String>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Idle,
    Asked,
    Done,
}

#[derive(Default)]
struct Work {
    stage: Stage,
    waiting: usize,
    dependents: Vec<usize>,
    asked: Vec<bool>,
    taken: Vec<Taken>,
    outputs: Option<Arc<Vec<PlanPort>>>,
    tally: Tally,
}

/// An element of the frontier.
enum Element {
    Call(Key, flow_graph::Call),
    Blocked,
    Unknown { cause: usize, undecided: bool },
    Failed(String),
}

pub(crate) struct Planner<'a> {
    store: &'a Store,
    artifacts: StoreArtifacts,
    side_data: &'a SideData,
    net: &'a Net,
    cancel: &'a CancelToken,
    work: Vec<Work>,
    frontier: Vec<usize>,
    known: HashMap<Key, Known>,
}

impl<'a> Planner<'a> {
    /// Keys asked of the store at a time.
    const LOOKUP: usize = 500;

    pub(crate) fn new(
        store: &'a Store,
        side_data: &'a SideData,
        net: &'a Net,
        cancel: &'a CancelToken,
    ) -> Self {
        let mut work = Vec::new();
        work.resize_with(net.nodes.len(), Work::default);
        Self {
            store,
            artifacts: StoreArtifacts::new(store.clone()),
            side_data,
            net,
            cancel,
            work,
            frontier: Vec::new(),
            known: HashMap::new(),
        }
    }

    pub(crate) fn plan(mut self, targets: &[usize], costs: &Costs) -> Result<Plan, RunError> {
        for target in targets {
            self.ask(*target);
        }
        while !self.frontier.is_empty() {
            if self.cancel.is_cancelled() {
                return Err(RunError::Cancelled);
            }
            let frontier = std::mem::take(&mut self.frontier);
            let mut ready = Vec::new();
            for at in frontier {
                if let Some(elements) = self.elements(at) {
                    ready.push((at, elements));
                }
            }
            self.look_up(&ready)?;
            for (at, elements) in ready {
                self.decide(at, elements);
            }
        }
        self.note_unasked();
        Ok(self.summary(costs))
    }

    fn ask(&mut self, node: usize) {
        let net = self.net;
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            if self.work[at].stage != Stage::Idle {
                continue;
            }
            self.work[at].stage = Stage::Asked;
            for source in &net.nodes[at].sources {
                if let Source::Link { node, lazy, .. } = source
                    && !lazy
                {
                    self.depend(at, *node, &mut open);
                }
            }
            if self.work[at].waiting == 0 {
                self.frontier.push(at);
            }
        }
    }

    fn depend(&mut self, at: usize, source: usize, open: &mut Vec<usize>) {
        match self.work[source].stage {
            Stage::Done => return,
            Stage::Idle => open.push(source),
            Stage::Asked => {}
        }
        self.work[source].dependents.push(at);
        self.work[at].waiting += 1;
    }

    /// The elements of a node of the frontier; `None` when it is done or has to wait again.
    fn elements(&mut self, at: usize) -> Option<Vec<Element>> {
        let net = self.net;
        let planned = &net.nodes[at];
        let spec = planned.node.spec();
        let mut feeds = Vec::with_capacity(planned.sources.len());
        let mut lazy = Vec::with_capacity(planned.sources.len());
        // By input, the causes of elements that are not known.
        let mut gaps: Vec<Option<Vec<Option<usize>>>> = Vec::with_capacity(planned.sources.len());
        let mut wholly = None;
        for (input, source) in planned.sources.iter().enumerate() {
            lazy.push(matches!(source, Source::Link { lazy: true, .. }));
            let asked = self.work[at].asked.get(input).copied().unwrap_or(false);
            let (feed, gap) = match source {
                Source::Absent => (Feed::Absent, None),
                Source::Fixed(list) => (Feed::Fixed(Arc::clone(list)), None),
                Source::Link { lazy: true, .. } if !asked => (Feed::Unasked, None),
                Source::Link { node, output, .. } => {
                    let ports = self.work[*node].outputs.as_ref();
                    match ports.and_then(|ports| ports.get(*output)) {
                        Some(PlanPort::List(slots)) => feed_of(slots),
                        Some(PlanPort::Unknown(cause)) => {
                            wholly = Some((*cause, input));
                            (Feed::Absent, None)
                        }
                        None => {
                            wholly = Some((*node, input));
                            (Feed::Absent, None)
                        }
                    }
                }
            };
            feeds.push(feed);
            gaps.push(gap);
        }
        if let Some((cause, input)) = wholly {
            let work = &mut self.work[at];
            work.tally.undecided = !lazy[input];
            work.tally.unknown = 1;
            work.tally.until = Some(cause);
            let ports = vec![PlanPort::Unknown(cause); spec.outputs.len()];
            self.done(at, ports);
            return None;
        }
        let inputs = Inputs {
            spec,
            feeds: &feeds,
            lazy: &lazy,
        };
        let mut taken = std::mem::take(&mut self.work[at].taken);
        let mut elements = Vec::new();
        let mut needs: Vec<usize> = Vec::new();
        while elements.len() < inputs.count(&taken) {
            let index = elements.len();
            if taken.len() <= index {
                taken.push(inputs.none_taken());
            }
            let element = self.element(&planned.node, &inputs, &gaps, &mut taken[index], index);
            elements.push(element.unwrap_or_else(|mut asked| {
                needs.append(&mut asked);
                Element::Blocked
            }));
        }
        if needs.is_empty() {
            elements.truncate(inputs.count(&taken));
            return Some(elements);
        }
        self.work[at].taken = taken;
        self.work[at].asked.resize(planned.sources.len(), false);
        let mut open = Vec::new();
        needs.sort_unstable();
        needs.dedup();
        for input in needs {
            self.work[at].asked[input] = true;
            if let Source::Link { node, .. } = planned.sources[input] {
                self.depend(at, node, &mut open);
            }
        }
        for source in open {
            self.ask(source);
        }
        if self.work[at].waiting == 0 {
            self.frontier.push(at);
        }
        None
    }

    /// One element, or the lazy links it needs first.
    fn element(
        &self,
        node: &Arc<dyn Node>,
        inputs: &Inputs<'_>,
        gaps: &[Option<Vec<Option<usize>>>],
        taken: &mut Taken,
        index: usize,
    ) -> Result<Element, Vec<usize>> {
        let step = guard(inputs.spec.type_name, || inputs.step(&**node, taken, index));
        // A gap stands in the call as a blocked element, so that the node is not asked about it.
        let cause = gaps.iter().enumerate().find_map(|(input, gap)| {
            if inputs.lazy[input] && !taken.get(input).copied().unwrap_or(false) {
                return None;
            }
            let gap = gap.as_ref()?;
            let cause = if inputs.spec.inputs[input].whole_list {
                gap.iter().flatten().next().copied()
            } else {
                let place = index.min(gap.len().saturating_sub(1));
                gap.get(place).copied().flatten()
            };
            Some((cause?, !inputs.lazy[input]))
        });
        if let Some((cause, undecided)) = cause {
            return Ok(Element::Unknown { cause, undecided });
        }
        match step {
            Ok(Step::Ready(call)) => Ok(match keys::key(self.side_data, &**node, &call) {
                Ok(key) => Element::Call(key, call),
                Err(error) => Element::Failed(error.message),
            }),
            Ok(Step::Blocked(_)) => Ok(Element::Blocked),
            Ok(Step::Needs(inputs)) => Err(inputs),
            Err(error) => Ok(Element::Failed(error.message)),
        }
    }

    /// Ask the store for what the frontier needs, all at once.
    fn look_up(&mut self, ready: &[(usize, Vec<Element>)]) -> Result<(), RunError> {
        let mut keys = Vec::new();
        for (at, elements) in ready {
            if !self.net.nodes[*at].node.spec().durable {
                continue;
            }
            for element in elements {
                if let Element::Call(key, _) = element
                    && !self.known.contains_key(key)
                {
                    keys.push(*key);
                }
            }
        }
        for keys in keys.chunks(Self::LOOKUP) {
            for (key, found) in keys.iter().zip(self.store.lookup(keys)?) {
                if let Some(result) = found {
                    let ports = Arc::new(from_stored(&result.ports));
                    self.known.insert(*key, Known::Ports(ports));
                }
            }
        }
        Ok(())
    }

    fn decide(&mut self, at: usize, elements: Vec<Element>) {
        let node = Arc::clone(&self.net.nodes[at].node);
        let spec = node.spec();
        let mut ports = vec![PlanPort::List(Vec::new()); spec.outputs.len()];
        let mut tally = Tally::default();
        for element in elements {
            let known = match element {
                Element::Call(key, call) => self.call(at, &node, key, &call, &mut tally),
                Element::Blocked => Known::Ports(Arc::new(blocked_ports(spec))),
                Element::Unknown { cause, undecided } => {
                    tally.unknown += 1;
                    tally.undecided |= undecided;
                    tally.until.get_or_insert(cause);
                    Known::MadeBy(cause)
                }
                Element::Failed(message) => {
                    tally.failure.get_or_insert(message);
                    Known::MadeBy(at)
                }
            };
            for ((port, output), place) in ports.iter_mut().zip(&spec.outputs).zip(0..) {
                let PlanPort::List(slots) = port else {
                    continue;
                };
                match &known {
                    Known::Ports(ports) => {
                        let given: &[Value] = ports.get(place).map_or(&[], Vec::as_slice);
                        slots.extend(given.iter().cloned().map(Slot::Known));
                    }
                    Known::MadeBy(cause) if output.list => *port = PlanPort::Unknown(*cause),
                    Known::MadeBy(cause) => slots.push(Slot::Unknown(*cause)),
                }
            }
        }
        self.work[at].tally = tally;
        self.done(at, ports);
    }

    fn call(
        &mut self,
        at: usize,
        node: &Arc<dyn Node>,
        key: Key,
        call: &flow_graph::Call,
        tally: &mut Tally,
    ) -> Known {
        if let Some(known) = self.known.get(&key) {
            tally.reused += 1;
            return known.clone();
        }
        let known = if node.spec().cheap {
            match self.evaluate(node, call) {
                Ok(Some(ports)) => {
                    tally.evaluated += 1;
                    Known::Ports(Arc::new(ports))
                }
                // It expands: that is for the run to do.
                Ok(None) => {
                    tally.will_run += 1;
                    Known::MadeBy(at)
                }
                Err(error) => {
                    tally.failure.get_or_insert(error.message);
                    Known::MadeBy(at)
                }
            }
        } else {
            tally.will_run += 1;
            Known::MadeBy(at)
        };
        self.known.insert(key, known.clone());
        known
    }

    fn evaluate(
        &self,
        node: &Arc<dyn Node>,
        call: &flow_graph::Call,
    ) -> Result<Option<Ports>, NodeError> {
        let context = NodeContext {
            artifacts: &self.artifacts,
            cancel: self.cancel,
            progress: &NoProgress,
            threads: 1,
        };
        let spec = node.spec();
        match guard(spec.type_name, || node.run(&context, call))? {
            Outcome::Values(outputs) => ports_of(spec, outputs).map(Some),
            Outcome::Expand(_) => Ok(None),
        }
    }

    fn done(&mut self, at: usize, ports: Vec<PlanPort>) {
        let work = &mut self.work[at];
        work.stage = Stage::Done;
        work.outputs = Some(Arc::new(ports));
        for dependent in std::mem::take(&mut work.dependents) {
            let waiting = &mut self.work[dependent].waiting;
            *waiting -= 1;
            if *waiting == 0 {
                self.frontier.push(dependent);
            }
        }
    }

    /// Lazy links of nodes about which nothing is known may still be asked for, and then what
    /// they lead to runs.
    fn note_unasked(&mut self) {
        let mut open = Vec::new();
        for (at, work) in self.work.iter().enumerate() {
            if let (Stage::Done, true, Some(until)) =
                (work.stage, work.tally.undecided, work.tally.until)
            {
                open.push((at, until));
            }
        }
        while let Some((at, until)) = open.pop() {
            for source in &self.net.nodes[at].sources {
                let Source::Link { node, .. } = source else {
                    continue;
                };
                let work = &mut self.work[*node];
                if work.stage == Stage::Idle {
                    work.stage = Stage::Done;
                    work.tally.unknown = 1;
                    work.tally.until = Some(until);
                    open.push((*node, until));
                }
            }
        }
    }

    fn summary(&self, costs: &Costs) -> Plan {
        let mut plan = Plan {
            nodes: Vec::new(),
            reused: 0,
            will_run: 0,
            unknown: 0,
            secs: 0.0,
            unmeasured: 0,
            problems: Vec::new(),
        };
        let mut per_call: BTreeMap<&str, Option<f64>> = BTreeMap::new();
        for (work, planned) in self.work.iter().zip(&self.net.nodes) {
            if work.stage != Stage::Done {
                continue;
            }
            let tally = &work.tally;
            let type_name = planned.node.spec().type_name;
            let secs = *per_call
                .entry(type_name)
                .or_insert_with(|| costs.secs_per_call(type_name));
            let may_run = tally.will_run + tally.unknown;
            let secs = secs.map(|secs| secs * may_run as f64);
            plan.reused += tally.reused as u64;
            plan.will_run += tally.will_run as u64;
            plan.unknown += tally.unknown as u64;
            match secs {
                Some(secs) => plan.secs += secs,
                None => plan.unmeasured += may_run as u64,
            }
            plan.nodes.push(PlanNode {
                id: planned.id.clone(),
                display: planned.origin.clone(),
                type_name,
                state: self.state(tally),
                reused: tally.reused,
                will_run: tally.will_run,
                unknown: tally.unknown,
                secs,
            });
        }
        plan
    }

    fn state(&self, tally: &Tally) -> PlanState {
        match (tally, tally.until) {
            (
                Tally {
                    failure: Some(message),
                    ..
                },
                _,
            ) => PlanState::WillFail {
                message: message.clone(),
            },
            (Tally { will_run: 1.., .. }, _) => PlanState::WillRun,
            (_, Some(until)) => PlanState::Unknown {
                until: self.net.nodes[until].id.clone(),
            },
            (Tally { evaluated: 1.., .. }, _) => PlanState::Evaluated,
            _ => PlanState::Reused,
        }
    }
}

/// A list with its gaps filled by blocked elements, and the causes of the gaps.
fn feed_of(slots: &[Slot]) -> (Feed, Option<Vec<Option<usize>>>) {
    let values = slots.iter().map(|slot| match slot {
        Slot::Known(value) => value.clone(),
        Slot::Unknown(_) => Value::Blocked(None),
    });
    let feed = Feed::Fixed(Arc::new(values.collect()));
    let causes: Vec<Option<usize>> = slots
        .iter()
        .map(|slot| match slot {
            Slot::Known(_) => None,
            Slot::Unknown(cause) => Some(*cause),
        })
        .collect();
    let gap = causes.iter().any(Option::is_some).then_some(causes);
    (feed, gap)
}
