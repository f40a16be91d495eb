//! What the threads of a run do: prepare nodes, run calls, pass results on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine_base::{Code, ContentHash, Key, Preview, ProgressEvent, ProgressSink};
use flow_graph::{Call, Exactness, Lane, Node, NodeContext, NodeError, NodeSpec, Outcome};
use flow_store::{NewResult, Provenance};

use crate::artifacts::node_error;
use crate::board::{Claim, Fault, Gathered, How, Splice};
use crate::commit::Pending;
use crate::convert::{from_stored, to_stored};
use crate::element::{Inputs, Ports, Step, blocked_ports, ports_of};
use crate::elsewhere::{FarCall, FarMade, device_class, far_call, stays, stored_exactness};
use crate::expand::splice;
use crate::keys;
use crate::observe::RunEvent;
use crate::queue::{Closed, Job, Place, Ready, Role};
use crate::shared::Shared;

/// One thread of a run.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) commits: SyncSender<Pending>,
    pub(crate) role: Role,
}

/// What is left to do for an element that is ready to be called.
enum Asked {
    Call(Ready),
    Blocked(Option<String>),
    Failed(Fault),
}

impl Worker {
    /// Keys asked of the store at a time.
    const LOOKUP: usize = 500;

    pub(crate) fn perform(&self, job: Job) {
        match job {
            Job::Prepare(node) => self.prepare(node),
            Job::Run(ready) => self.run(*ready),
            Job::Close(closed) => self.close(*closed),
        }
    }

    fn prepare(&self, at: usize) {
        let Some(gathered) = self.shared.update(None, |g| g.board.gather(at)) else {
            return;
        };
        let Gathered {
            node,
            feeds,
            lazy,
            mut taken,
        } = gathered;
        let spec = node.spec();
        let inputs = Inputs {
            spec,
            feeds: &feeds,
            lazy: &lazy,
        };
        let steps = elements(&inputs, &node, &mut taken);
        let mut needs: Vec<usize> = Vec::new();
        for step in &steps {
            if let Ok(Step::Needs(inputs)) = step {
                needs.extend(inputs);
            }
        }
        if !needs.is_empty() {
            needs.sort_unstable();
            needs.dedup();
            self.shared
                .update(None, |g| g.board.ask_lazy(at, &needs, taken));
            return;
        }
        let asked: Vec<Asked> = steps
            .into_iter()
            .enumerate()
            .map(|(element, step)| self.asked(&node, Place { node: at, element }, step))
            .collect();
        let mine = self.claim(&node, at, asked);
        let calls = if spec.durable {
            self.look_up(mine)
        } else {
            mine
        };
        let far = shared_takes(&self.shared, spec);
        self.start(if far { Lane::Wait } else { spec.lane }, calls);
    }

    fn asked(&self, node: &Arc<dyn Node>, place: Place, step: Result<Step, NodeError>) -> Asked {
        match step {
            Ok(Step::Ready(call)) => match keys::key(&self.shared.side_data, &**node, &call) {
                Ok(key) => Asked::Call(Ready { place, key, call }),
                Err(error) => Asked::Failed(error.into()),
            },
            Ok(Step::Blocked(message)) => Asked::Blocked(message),
            // All that was needed was asked for before this.
            Ok(Step::Needs(_)) => Asked::Failed(Fault::Stopped),
            Err(error) => Asked::Failed(error.into()),
        }
    }

    /// Those of the calls that nobody else has made or is making.
    fn claim(&self, node: &Arc<dyn Node>, at: usize, asked: Vec<Asked>) -> Vec<Ready> {
        self.shared.update(None, |guarded| {
            let board = &mut guarded.board;
            board.elements(at, asked.len());
            let mut mine = Vec::new();
            for (element, asked) in asked.into_iter().enumerate() {
                let place = Place { node: at, element };
                match asked {
                    Asked::Blocked(message) => {
                        if let Some(message) = message {
                            board.note_error(place, &NodeError::new(Code::Refused, message));
                        }
                        let ports = Arc::new(blocked_ports(node.spec()));
                        board.settle(place, Ok(ports), How::Blocked);
                    }
                    Asked::Failed(fault) => board.settle(place, Err(fault), How::Ran),
                    Asked::Call(ready) => match board.claim(ready.key, place) {
                        Claim::Mine => mine.push(ready),
                        Claim::Wait => {}
                        Claim::There(ports) => board.settle(place, Ok(ports), How::Shared),
                        Claim::Endless(owner) => {
                            board.fail_endless(owner);
                            board.settle(place, Err(Fault::Because(owner.node)), How::Shared);
                        }
                    },
                }
            }
            mine
        })
    }

    /// Those of the calls whose results the store does not have; the others end here.
    fn look_up(&self, mut calls: Vec<Ready>) -> Vec<Ready> {
        let shared = &self.shared;
        let mut missing = Vec::new();
        while !calls.is_empty() {
            let rest = calls.split_off(calls.len().min(Self::LOOKUP));
            let keys: Vec<Key> = calls.iter().map(|ready| ready.key).collect();
            let found = match shared.store.lookup(&keys) {
                Ok(found) => found,
                Err(error) => {
                    let error = node_error(&error);
                    for ready in calls {
                        self.fail(ready.place, ready.key, error.clone());
                    }
                    calls = rest;
                    continue;
                }
            };
            let found: Vec<Option<Ports>> = found
                .into_iter()
                .map(|result| result.map(|result| from_stored(&result.ports)))
                .collect();
            if let Err(error) = shared.artifacts.hold_all(found.iter().flatten()) {
                tracing::warn!(%error, "files of results in use may be pruned during the run");
            }
            let there = found
                .into_iter()
                .map(|found| found.filter(|ports| shared.artifacts.are_there(ports)));
            let mut landed = Vec::new();
            for (ready, found) in calls.into_iter().zip(there) {
                match found {
                    Some(ports) => landed.push((ready, ports)),
                    None => missing.push(ready),
                }
            }
            if !landed.is_empty() {
                shared.update(None, |guarded| {
                    for (ready, ports) in landed {
                        let ports = Ok(Arc::new(ports));
                        guarded
                            .board
                            .land(ready.key, ready.place, ports, How::Reused, false);
                    }
                });
            }
            calls = rest;
        }
        missing
    }

    fn start(&self, lane: Lane, mut calls: Vec<Ready>) {
        let here = self.role == Role::Lane(Lane::Cpu) && lane == Lane::Cpu;
        if here
            && calls.len() == 1
            && let Some(ready) = calls.pop()
        {
            self.run(ready);
            return;
        }
        if !calls.is_empty() {
            self.shared.update(Some(self.role), |guarded| {
                if !guarded.stopping {
                    for ready in calls {
                        guarded.board.queues.push_run(lane, ready);
                    }
                }
            });
        }
    }

    fn fail(&self, place: Place, key: Key, error: NodeError) {
        self.shared.update(Some(self.role), |guarded| {
            guarded
                .board
                .land(key, place, Err(error.into()), How::Ran, false);
        });
    }

    fn run(&self, ready: Ready) {
        let Ready { place, key, call } = ready;
        let shared = &self.shared;
        if shared.cancel.is_cancelled() {
            shared.update(None, |guarded| {
                guarded
                    .board
                    .land(key, place, Err(Fault::Stopped), How::Ran, false);
            });
            return;
        }
        let (node, id, display, of) = {
            let guarded = shared.lock();
            let entry = &guarded.board.entries[place.node];
            (
                Arc::clone(&entry.node),
                Arc::clone(&entry.id),
                Arc::clone(&entry.display),
                entry.count(),
            )
        };
        let spec = node.spec();
        shared.observer.event(&RunEvent::NodeStarted {
            node: Arc::clone(&id),
            display: Arc::clone(&display),
            type_name: spec.type_name,
            element: place.element,
            of,
        });
        let progress = CallProgress {
            shared,
            place,
            id,
            display,
            last: Mutex::new(None),
            last_preview: Mutex::new(None),
        };
        let context = NodeContext {
            artifacts: &shared.artifacts,
            cancel: &shared.cancel,
            progress: &progress,
            threads: match spec.lane {
                Lane::Cpu | Lane::Wait => shared.limits.threads_per_call,
                Lane::Device => shared.limits.workers,
            },
        };
        let far = if shared_takes(shared, spec) && !stays(&call) {
            let far = far_call(key, spec, &progress.id, &call);
            shared.elsewhere.as_ref().zip(far)
        } else {
            None
        };
        if let Some((elsewhere, far)) = far {
            let made = guard(spec.type_name, || {
                elsewhere.run(&far, &shared.cancel, &progress)
            });
            self.far_end(&node, place, &call, &far, made);
            return;
        }
        let start = shared.clock.monotonic();
        let outcome = guard(spec.type_name, || node.run(&context, &call));
        let wall = shared.clock.monotonic().saturating_sub(start);
        let result = outcome.and_then(|outcome| match outcome {
            Outcome::Values(outputs) => ports_of(spec, outputs).map(Some),
            Outcome::Expand(expansion) => {
                let depth = shared.lock().board.entries[place.node].depth;
                let mut spliced =
                    splice(&shared.registry, &shared.limits, spec, depth, *expansion)?;
                spliced.inputs = keys::contents(spec, &call);
                spliced.wall_millis = millis(wall);
                self.expand(place, key, spliced)?;
                Ok(None)
            }
        });
        match result {
            Ok(Some(ports)) => {
                let provenance = here(spec, keys::contents(spec, &call), wall);
                self.deliver(&node, place, key, Arc::new(ports), provenance);
            }
            Ok(None) => {}
            Err(error) if error.code == Code::Cancelled && shared.cancel.is_cancelled() => {
                shared.update(Some(self.role), |guarded| {
                    guarded
                        .board
                        .land(key, place, Err(Fault::Stopped), How::Ran, false);
                });
            }
            Err(error) => self.fail(place, key, error),
        }
    }

    /// A call that ran elsewhere has ended.
    fn far_end(
        &self,
        node: &Arc<dyn Node>,
        place: Place,
        call: &Call,
        far: &FarCall,
        made: Result<FarMade, NodeError>,
    ) {
        let shared = &self.shared;
        match made {
            Ok(made) => {
                let ports = Arc::new(from_stored(&made.ports));
                if let Err(error) = shared.artifacts.hold_all([&*ports].into_iter()) {
                    self.fail(place, far.key, node_error(&error));
                    return;
                }
                let provenance = Provenance {
                    inputs: keys::contents(node.spec(), call),
                    engine_build: made.engine_build,
                    device_class: made.device_class,
                    wall_millis: millis(made.wall),
                };
                self.deliver(node, place, far.key, ports, provenance);
            }
            Err(error) if error.code == Code::Cancelled && shared.cancel.is_cancelled() => {
                shared.update(Some(self.role), |guarded| {
                    let stopped = Err(Fault::Stopped);
                    guarded.board.land(far.key, place, stopped, How::Ran, false);
                });
            }
            Err(error) => self.fail(place, far.key, error),
        }
    }

    fn expand(&self, place: Place, key: Key, spliced: Splice) -> Result<(), NodeError> {
        let most = self.shared.limits.nodes;
        self.shared.update(Some(self.role), |guarded| {
            let nodes = guarded.board.entries.len() + spliced.net.nodes.len();
            if nodes > most {
                return Err(NodeError::new(
                    Code::Refused,
                    format!("cannot expand to {nodes} nodes in all: expected at most {most}"),
                ));
            }
            guarded.board.expand(place, key, spliced);
            Ok(())
        })
    }

    /// The outputs of an expansion are those of the call that gave it.
    fn close(&self, closed: Closed) {
        let node = Arc::clone(&self.shared.lock().board.entries[closed.place.node].node);
        let wall = Duration::from_millis(closed.wall_millis);
        let provenance = here(node.spec(), closed.inputs, wall);
        self.deliver(&node, closed.place, closed.key, closed.ports, provenance);
    }

    /// Pass a result on and commit it if its node is durable. Results of exact nodes go on at
    /// once; others when the store has said which content counts.
    fn deliver(
        &self,
        node: &Arc<dyn Node>,
        place: Place,
        key: Key,
        ports: Arc<Ports>,
        provenance: Provenance,
    ) {
        let spec = node.spec();
        let shared = &self.shared;
        let wall = Duration::from_millis(provenance.wall_millis);
        if !spec.durable {
            shared.update(Some(self.role), |guarded| {
                guarded.board.tally(place.node, |count| {
                    count.called += 1;
                    count.wall_secs += wall.as_secs_f64();
                });
                guarded.board.count(|report| report.called += 1);
                guarded.board.land(key, place, Ok(ports), How::Ran, false);
            });
            return;
        }
        let submitted = to_stored(spec, &ports).and_then(|stored| {
            let result = NewResult {
                key,
                node_type: spec.type_name.to_owned(),
                ports: stored,
                exactness: stored_exactness(spec.exactness),
                provenance,
            };
            shared.store.submit(result).map_err(|e| node_error(&e))
        });
        let commit = match submitted {
            Ok(commit) => commit,
            Err(error) => {
                self.fail(place, key, error);
                return;
            }
        };
        let exact = spec.exactness == Exactness::Exact;
        shared.update(None, |guarded| {
            guarded.commits += 1;
            guarded
                .board
                .tally(place.node, |c| c.wall_secs += wall.as_secs_f64());
            if exact {
                guarded.board.land(key, place, Ok(ports), How::Ran, true);
            }
        });
        let pending = Pending {
            commit,
            place,
            key,
            landed: exact,
        };
        if self.commits.send(pending).is_err() {
            shared.update(Some(self.role), |guarded| {
                guarded.commits -= 1;
                guarded.broken = Some("the thread that waits for commits has ended".to_owned());
                guarded.over = true;
            });
        }
    }
}

/// Whether calls of a type are handed to other machines.
fn shared_takes(shared: &Shared, spec: &NodeSpec) -> bool {
    let elsewhere = shared.elsewhere.as_ref();
    spec.durable && !spec.cheap && elsewhere.is_some_and(|elsewhere| elsewhere.takes(spec))
}

/// Provenance of what was made on this machine.
fn here(spec: &NodeSpec, inputs: Vec<ContentHash>, wall: Duration) -> Provenance {
    Provenance {
        inputs,
        engine_build: env!("CARGO_PKG_VERSION").to_owned(),
        device_class: device_class(spec.lane),
        wall_millis: millis(wall),
    }
}

/// The next step of every element. The count may grow while elements take lazy links.
fn elements(
    inputs: &Inputs<'_>,
    node: &Arc<dyn Node>,
    taken: &mut Vec<crate::element::Taken>,
) -> Vec<Result<Step, NodeError>> {
    let mut steps = Vec::new();
    loop {
        let count = inputs.count(taken);
        if count == 0 {
            return Vec::new();
        }
        if steps.len() >= count {
            return steps;
        }
        for index in steps.len()..count {
            if taken.len() <= index {
                taken.push(inputs.none_taken());
            }
            let taken = &mut taken[index];
            let step = guard(inputs.spec.type_name, || inputs.step(&**node, taken, index));
            steps.push(step);
        }
    }
}

/// Run code of a node type; its panics are errors of ours.
pub(crate) fn guard<T>(
    type_name: &str,
    run: impl FnOnce() -> Result<T, NodeError>,
) -> Result<T, NodeError> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let said = panic_text(&*panic);
        Err(NodeError::new(
            Code::Internal,
            format!("{type_name:?} panicked: {said}"),
        ))
    })
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Passes on how far a call has come, at most ten times a second.
struct CallProgress<'a> {
    shared: &'a Shared,
    place: Place,
    id: Arc<str>,
    display: Arc<str>,
    last: Mutex<Option<Duration>>,
    last_preview: Mutex<Option<Duration>>,
}

/// Shortest time between two previews of a call.
const PREVIEW: Duration = Duration::from_millis(500);

impl ProgressSink for CallProgress<'_> {
    fn report(&self, event: ProgressEvent) {
        let now = self.shared.clock.monotonic();
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let soon = last.is_some_and(|l| now.saturating_sub(l) < Duration::from_millis(100));
            if soon && event.step < event.of {
                return;
            }
            *last = Some(now);
        }
        if event.of > 0 {
            let part = (event.step as f64 / event.of as f64).clamp(0.0, 1.0);
            let mut guarded = self.shared.lock();
            guarded.board.partial.insert(self.place, part);
        }
        self.shared.observer.event(&RunEvent::NodeProgress {
            node: Arc::clone(&self.id),
            display: Arc::clone(&self.display),
            element: self.place.element,
            progress: event,
        });
    }

    fn wants_preview(&self) -> bool {
        let now = self.shared.clock.monotonic();
        let mut last = self
            .last_preview
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| now.saturating_sub(last) >= PREVIEW);
        if due {
            *last = Some(now);
        }
        due
    }

    fn preview(&self, picture: Preview) {
        self.shared.observer.event(&RunEvent::NodePreview {
            display: Arc::clone(&self.display),
            picture: Arc::new(picture),
        });
    }
}
