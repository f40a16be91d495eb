//! One case under way.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use engine_base::{Clock as _, ContentHash, Key, ManualClock};

use super::{Failures, Scenario, SimulateError, VICTIM, equipment};
use crate::dispatch::{Dispatcher, Done, DoneOutcome, Effects};
use crate::job::{JobId, Output};
use crate::lease::{Lease, LeaseId};
use crate::names::WorkerId;
use crate::simulate::film::PlannedJob;
use crate::simulate::machines::Machine;
use crate::simulate::random::Draws;

/// Idle machines ask this often when nothing wakes them.
const ASK_MICROS: u64 = 10_000_000;
/// Busy machines tell their progress this often.
const TELL_MICROS: u64 = 20_000_000;
/// A stopped machine needs this long until it can take something else.
const STOP_MICROS: u64 = 2_000_000;
/// The owner looks for jobs that no machine can take this often.
const LOOK_MICROS: u64 = 60_000_000;
/// When nothing at all has run for this long, nothing will.
const STILL_MICROS: u64 = 86_400_000_000;
/// More events than any case that comes to its end has.
const MOST_EVENTS: u64 = 20_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A machine asks for work; outdated unless it is the machine's last intention.
    Ask {
        machine: usize,
        intent: u64,
    },
    Done {
        machine: usize,
        lease: LeaseId,
    },
    Tell {
        machine: usize,
        lease: LeaseId,
    },
    Fail {
        count: u64,
    },
    /// The owner notices that a machine is gone.
    Missed {
        machine: usize,
        start: u64,
    },
    Back {
        machine: usize,
    },
    /// The owner looks for jobs that no machine can take.
    Look,
}

struct Running {
    lease: LeaseId,
    job: usize,
    began_micros: u64,
    load_secs: Option<f64>,
    run_secs: f64,
    total_micros: u64,
}

struct Host<'s> {
    about: &'s Machine,
    id: WorkerId,
    up: bool,
    start: u64,
    intent: u64,
    running: Option<Running>,
    /// Until when it is still stopping its last job.
    stops_until: u64,
    /// Models in memory with their bytes.
    loaded: Vec<(ContentHash, u64)>,
    has: BTreeSet<ContentHash>,
}

pub(super) struct Play<'s> {
    scenario: &'s Scenario,
    secs: &'s [f64],
    pub(super) dispatcher: Dispatcher,
    clock: ManualClock,
    now_micros: u64,
    hosts: Vec<Host<'s>>,
    planned: BTreeMap<JobId, usize>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    pushed: u64,
    ended: usize,
    /// When a job was last begun.
    last_began: u64,
    pub(super) late: usize,
    pub(super) duplicates: usize,
    pub(super) leases: usize,
    pub(super) lost: usize,
    pub(super) loads: usize,
    pub(super) useful_secs: f64,
}

fn micros(secs: f64) -> u64 {
    (secs * 1e6).round().max(0.0) as u64
}

/// What a job makes: the same bytes whoever makes it.
fn outputs(planned: &PlannedJob) -> Vec<Output> {
    let id = planned.job.id;
    (0..)
        .zip(&planned.output_bytes)
        .map(|(port, bytes)| Output {
            port,
            content: ContentHash::of(format!("output {port} of job {id}").as_bytes()),
            bytes: *bytes,
        })
        .collect()
}

impl<'s> Play<'s> {
    pub(super) fn new(
        scenario: &'s Scenario,
        dispatcher: Dispatcher,
        secs: &'s [f64],
    ) -> Result<Self, SimulateError> {
        let mut hosts = Vec::new();
        for about in &scenario.machines {
            hosts.push(Host {
                about,
                id: about.id()?,
                up: true,
                start: 0,
                intent: 0,
                running: None,
                stops_until: 0,
                loaded: about.loaded(),
                has: BTreeSet::new(),
            });
        }
        let jobs = scenario.jobs.iter().enumerate();
        let mut play = Self {
            scenario,
            secs,
            dispatcher,
            clock: ManualClock::at(0),
            now_micros: 0,
            hosts,
            planned: jobs.map(|(at, planned)| (planned.job.id, at)).collect(),
            events: BinaryHeap::new(),
            pushed: 0,
            ended: 0,
            last_began: 0,
            late: 0,
            duplicates: 0,
            leases: 0,
            lost: 0,
            loads: 0,
            useful_secs: 0.0,
        };
        for machine in 0..play.hosts.len() {
            play.join(machine)?;
        }
        let jobs = scenario.jobs.iter().map(|planned| planned.job.clone());
        let now = play.clock.monotonic();
        let effects = play.dispatcher.add(jobs.collect(), now)?;
        play.heed(effects)?;
        play.push(LOOK_MICROS, Event::Look);
        if let Some(Failures { first, .. }) = scenario.failures {
            let at = u64::try_from(first.as_micros()).unwrap_or(u64::MAX);
            play.push(at, Event::Fail { count: 0 });
        }
        Ok(play)
    }

    fn push(&mut self, at_micros: u64, event: Event) {
        self.pushed += 1;
        self.events.push(Reverse((at_micros, self.pushed, event)));
    }

    fn ask_at(&mut self, machine: usize, at_micros: u64) {
        if let Some(host) = self.hosts.get_mut(machine) {
            host.intent += 1;
            let intent = host.intent;
            let at_micros = at_micros.max(host.stops_until);
            self.push(at_micros, Event::Ask { machine, intent });
        }
    }

    /// Idle machines wait at the queue: whatever changes, they ask at once.
    fn wake_idle(&mut self) {
        for machine in 0..self.hosts.len() {
            let host = self.hosts.get(machine);
            if host.is_some_and(|host| host.up && host.running.is_none()) {
                self.ask_at(machine, self.now_micros);
            }
        }
    }

    fn join(&mut self, machine: usize) -> Result<(), SimulateError> {
        let (node_types, on_disk) = equipment(self.scenario);
        let Some(host) = self.hosts.get(machine) else {
            return Ok(());
        };
        let advert = host
            .about
            .advert(host.start, &node_types, &on_disk, &host.loaded)?;
        let now = self.clock.monotonic();
        let effects = self.dispatcher.worker_joined(advert, now);
        self.heed(effects)?;
        self.ask_at(machine, self.now_micros);
        Ok(())
    }

    /// Do what the dispatcher says has to be done.
    fn heed(&mut self, effects: Effects) -> Result<(), SimulateError> {
        self.ended += effects.ended.len();
        for lease in effects.stop {
            let at = |host: &Host<'_>| host.running.as_ref().map(|running| running.lease);
            let stopped = self.hosts.iter().position(|host| at(host) == Some(lease));
            if let Some(machine) = stopped {
                if let Some(host) = self.hosts.get_mut(machine) {
                    host.running = None;
                    host.stops_until = self.now_micros + STOP_MICROS;
                }
                self.ask_at(machine, self.now_micros);
            }
        }
        let now = self.clock.monotonic();
        for job in effects.to_key {
            let inputs = self.dispatcher.inputs(job).unwrap_or_default();
            let made: Option<Vec<String>> = inputs
                .iter()
                .map(|input| input.content.map(|content| content.to_hex()))
                .collect();
            let made = made.ok_or(SimulateError::TooEarly { job: job.0 })?;
            let key = Key::of_canonical(format!("{job} of {}", made.join(",")).as_bytes());
            let effects = self.dispatcher.set_key(job, key, now)?;
            self.heed(effects)?;
        }
        Ok(())
    }

    pub(super) fn play_out(&mut self) -> Result<u64, SimulateError> {
        let mut played = 0;
        while self.ended < self.scenario.jobs.len() {
            let still = self.now_micros.saturating_sub(self.last_began) > STILL_MICROS
                && self.hosts.iter().all(|host| host.running.is_none());
            let goes_on = played < MOST_EVENTS && !still;
            let next = self.events.pop().filter(|_| goes_on);
            let Some(Reverse((at, _, event))) = next else {
                return Err(SimulateError::Stuck {
                    events: played,
                    at_secs: self.now_micros as f64 / 1e6,
                    open: self.dispatcher.counts().open(),
                    jobs: self.scenario.jobs.len(),
                });
            };
            played += 1;
            self.clock
                .advance(Duration::from_micros(at.saturating_sub(self.now_micros)));
            self.now_micros = at;
            self.play(event)?;
        }
        Ok(self.now_micros)
    }

    fn play(&mut self, event: Event) -> Result<(), SimulateError> {
        match event {
            Event::Ask { machine, intent } => self.ask(machine, intent),
            Event::Done { machine, lease } => self.done(machine, lease),
            Event::Tell { machine, lease } => {
                self.tell(machine, lease);
                Ok(())
            }
            Event::Fail { count } => {
                self.fail(count);
                Ok(())
            }
            Event::Missed { machine, start } => {
                let host = self.hosts.get(machine);
                let gone = host.filter(|host| !host.up && host.start == start);
                if let Some(id) = gone.map(|host| host.id.clone()) {
                    let now = self.clock.monotonic();
                    let effects = self.dispatcher.worker_gone(&id, now);
                    self.heed(effects)?;
                    self.wake_idle();
                }
                Ok(())
            }
            Event::Look => {
                let effects = self.dispatcher.tick(self.clock.monotonic());
                self.heed(effects)?;
                self.push(self.now_micros + LOOK_MICROS, Event::Look);
                Ok(())
            }
            Event::Back { machine } => {
                if let Some(host) = self.hosts.get_mut(machine) {
                    host.up = true;
                    host.start += 1;
                }
                self.join(machine)?;
                self.wake_idle();
                Ok(())
            }
        }
    }

    fn ask(&mut self, machine: usize, intent: u64) -> Result<(), SimulateError> {
        let Some(host) = self.hosts.get(machine) else {
            return Ok(());
        };
        if host.intent != intent || !host.up || host.running.is_some() {
            return Ok(());
        }
        let id = host.id.clone();
        match self.dispatcher.next_job(&id, self.clock.monotonic()) {
            Some(lease) => self.begin(machine, &lease),
            None => {
                self.ask_at(machine, self.now_micros + ASK_MICROS);
                Ok(())
            }
        }
    }

    fn begin(&mut self, machine: usize, lease: &Lease) -> Result<(), SimulateError> {
        self.leases += 1;
        self.last_began = self.now_micros;
        self.duplicates += usize::from(lease.duplicate);
        let inputs = self.dispatcher.inputs(lease.job).unwrap_or_default();
        let (Some(job), Some(host)) = (
            self.planned.get(&lease.job).copied(),
            self.hosts.get_mut(machine),
        ) else {
            return Ok(());
        };
        let (Some(planned), Some(secs)) = (self.scenario.jobs.get(job), self.secs.get(job)) else {
            return Ok(());
        };
        let mut transfer_secs = 0.0;
        for input in inputs {
            let Some(content) = input.content else {
                let job = lease.job.0;
                return Err(SimulateError::TooEarly { job });
            };
            if host.has.insert(content) {
                transfer_secs += 0.005 + input.bytes as f64 / host.about.link_rate();
            }
        }
        host.loaded
            .retain(|(model, _)| !lease.evict.contains(model));
        let mut load_secs = None;
        if let Some(need) = planned.job.model {
            let known = host.loaded.iter().any(|(model, _)| *model == need.model);
            host.loaded.retain(|(model, _)| *model != need.model);
            host.loaded.push((need.model, need.bytes));
            if !known {
                let secs = host.about.load_secs(need.model, need.bytes);
                load_secs = Some(secs);
                self.loads += 1;
            }
        }
        let models: u64 = host.loaded.iter().map(|(_, bytes)| bytes).sum();
        let used_bytes = models + planned.job.working_bytes;
        if used_bytes > host.about.memory_bytes {
            return Err(SimulateError::Memory {
                machine: host.about.name.clone(),
                used_bytes,
                memory_bytes: host.about.memory_bytes,
            });
        }
        let known = planned.class_secs.get(&host.about.class).copied();
        let run_secs = known.unwrap_or(secs / host.about.speed) * host.about.ails;
        let overhead_secs = self.scenario.overhead.as_secs_f64();
        let total = overhead_secs + transfer_secs + load_secs.unwrap_or_default() + run_secs;
        let total_micros = micros(total);
        let id = lease.id;
        host.running = Some(Running {
            lease: id,
            job,
            began_micros: self.now_micros,
            load_secs,
            run_secs,
            total_micros,
        });
        let done = Event::Done { machine, lease: id };
        self.push(self.now_micros + total_micros, done);
        let tell = Event::Tell { machine, lease: id };
        self.push(self.now_micros + TELL_MICROS, tell);
        Ok(())
    }

    fn done(&mut self, machine: usize, lease: LeaseId) -> Result<(), SimulateError> {
        let Some(host) = self.hosts.get_mut(machine).filter(|host| host.up) else {
            return Ok(());
        };
        let Some(running) = host.running.take_if(|running| running.lease == lease) else {
            return Ok(());
        };
        let Some(planned) = self.scenario.jobs.get(running.job) else {
            return Ok(());
        };
        let made = outputs(planned);
        host.has.extend(made.iter().map(|output| output.content));
        let done = Done {
            outputs: made,
            run_secs: running.run_secs,
            load_secs: running.load_secs,
        };
        let now = self.clock.monotonic();
        let (outcome, effects) = self.dispatcher.job_done(lease, &done, now);
        match outcome {
            DoneOutcome::First => self.useful_secs += running.run_secs,
            DoneOutcome::Late | DoneOutcome::Refused => self.late += 1,
        }
        self.heed(effects)?;
        self.ask_at(machine, self.now_micros);
        self.wake_idle();
        Ok(())
    }

    fn tell(&mut self, machine: usize, lease: LeaseId) {
        let Some(host) = self.hosts.get(machine).filter(|host| host.up) else {
            return;
        };
        let running = host.running.as_ref();
        let Some(running) = running.filter(|running| running.lease == lease) else {
            return;
        };
        let passed = self.now_micros.saturating_sub(running.began_micros) as f64;
        let done = passed / running.total_micros.max(1) as f64;
        self.dispatcher
            .progress(lease, done, self.clock.monotonic());
        let at = self.now_micros + TELL_MICROS;
        self.push(at, Event::Tell { machine, lease });
    }

    /// A machine falls silent. What it has on disk stays; its work and its memory are lost.
    fn fail(&mut self, count: u64) {
        let Some(failures) = self.scenario.failures else {
            return;
        };
        let up: Vec<usize> = (0..self.hosts.len())
            .filter(|at| self.hosts.get(*at).is_some_and(|host| host.up))
            .collect();
        let draw = Draws::new(self.scenario.seed).whole(VICTIM, count);
        let place = draw.checked_rem(up.len() as u64).unwrap_or_default();
        let victim = usize::try_from(place).ok().and_then(|place| up.get(place));
        let span = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        if let Some(machine) = victim.copied()
            && let Some(host) = self.hosts.get_mut(machine)
        {
            host.up = false;
            self.lost += usize::from(host.running.take().is_some());
            host.loaded.clear();
            let start = host.start;
            let missed = self.now_micros.saturating_add(span(self.scenario.lease));
            self.push(missed, Event::Missed { machine, start });
            let back = self.now_micros.saturating_add(span(failures.away));
            self.push(back, Event::Back { machine });
        }
        let next = self.now_micros.saturating_add(span(failures.every));
        self.push(next, Event::Fail { count: count + 1 });
    }
}
