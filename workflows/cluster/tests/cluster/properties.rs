//! Random graphs under random events: nothing lost, nothing counted twice, every run ends.

use std::collections::{BTreeMap, BTreeSet};

use engine_base::Code;
use flow_cluster::placement::{CriticalPath, RoundRobin};
use flow_cluster::simulate::{Failures, Machine, Scenario, ShotsShape, Unsure, run, shots};
use flow_cluster::{DoneOutcome, Failure, Job, JobId, JobState, Lease, LeaseId, Settings};
use proptest::prelude::*;

use crate::support::{GB, Owner, at, job, model, output, spark, worker};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone)]
enum Event {
    Join(usize),
    Restart(usize),
    Gone(usize),
    Ask(usize),
    Done(usize),
    Progress(usize, f64),
    Lost(usize),
    NodeFails(usize),
    DiskFull(usize),
    InputGone(usize),
    Cancel(u64),
    Pause(bool),
    Tick,
}

fn events() -> impl Strategy<Value = Vec<(f64, Event)>> {
    let who = 0..NAMES.len();
    let event = prop_oneof![
        2 => who.clone().prop_map(Event::Join),
        1 => who.clone().prop_map(Event::Restart),
        1 => who.clone().prop_map(Event::Gone),
        10 => who.prop_map(Event::Ask),
        8 => (0..64_usize).prop_map(Event::Done),
        3 => (0..64_usize, 0.0..1.2).prop_map(|(at, done)| Event::Progress(at, done)),
        2 => (0..64_usize).prop_map(Event::Lost),
        1 => (0..64_usize).prop_map(Event::NodeFails),
        1 => (0..64_usize).prop_map(Event::DiskFull),
        1 => (0..64_usize).prop_map(Event::InputGone),
        1 => (0..20_u64).prop_map(Event::Cancel),
        1 => any::<bool>().prop_map(Event::Pause),
        1 => Just(Event::Tick),
    ];
    proptest::collection::vec((0.0_f64..40.0, event), 0..120)
}

/// Up to 16 jobs; each needs some of the earlier ones. Some have the key of another one.
fn graph() -> impl Strategy<Value = Vec<Job>> {
    let one = (any::<u16>(), 0..3_usize, any::<u8>());
    proptest::collection::vec(one, 1..16).prop_map(|shape| {
        let mut jobs: Vec<Job> = Vec::new();
        for (id, (bits, kind, twin)) in (0_u64..).zip(shape) {
            let needs: Vec<u64> = (0..id).filter(|need| bits >> need & 3 == 3).collect();
            let node_type = ["clip", "still", "upscale"][kind];
            let mut job = job(id, node_type, &needs);
            job.model = [
                Some(model("h3", 60 * GB)),
                Some(model("qwen", 50 * GB)),
                None,
            ][kind];
            let roots = jobs.iter().filter(|job| job.key.is_some()).count();
            if needs.is_empty() && twin < 40 && roots > 0 {
                let place = usize::from(twin) % roots;
                job.key = jobs.iter().filter_map(|job| job.key).nth(place);
            }
            jobs.push(job);
        }
        jobs
    })
}

struct Checked {
    owner: Owner,
    leases: Vec<Lease>,
    firsts: BTreeMap<JobId, usize>,
    /// Jobs whose results were said to be gone.
    reopened: BTreeSet<JobId>,
    done: BTreeSet<JobId>,
    starts: u64,
}

impl Checked {
    fn picked(&self, at: usize) -> Option<Lease> {
        let place = at.checked_rem(self.leases.len())?;
        self.leases.get(place).cloned()
    }

    fn joins(&mut self, who: usize, restart: bool, secs: f64) {
        self.starts += u64::from(restart);
        let mut advert = spark(NAMES[who]);
        advert.start = self.starts;
        self.owner.join(advert, secs);
    }

    fn asks(&mut self, who: usize, secs: f64) -> bool {
        let Some(lease) = self.owner.ask(NAMES[who], secs) else {
            return false;
        };
        let dispatcher = &self.owner.dispatcher;
        let job = dispatcher.job(lease.job).unwrap();
        for need in job.needs() {
            let state = dispatcher.state(need).unwrap();
            assert_eq!(
                state,
                JobState::Done,
                "job {} was handed out too early",
                lease.job
            );
        }
        let known = dispatcher.inputs(lease.job).unwrap();
        assert!(known.iter().all(|input| input.content.is_some()));
        assert_eq!(Some(lease.key), job.key);
        let JobState::Running { leases } = dispatcher.state(lease.job).unwrap() else {
            panic!("a leased job does not run");
        };
        assert_eq!(leases.len(), 1 + usize::from(lease.duplicate));
        self.leases.push(lease);
        true
    }

    fn finishes(&mut self, lease: &Lease, secs: f64) {
        if self.owner.done(lease, 5.0, secs) == DoneOutcome::First {
            *self.firsts.entry(lease.job).or_default() += 1;
        }
    }

    fn play(&mut self, event: &Event, secs: f64) {
        let dispatcher = &mut self.owner.dispatcher;
        let effects = match *event {
            Event::Join(who) => return self.joins(who, false, secs),
            Event::Restart(who) => return self.joins(who, true, secs),
            Event::Ask(who) => {
                self.asks(who, secs);
                return;
            }
            Event::Gone(who) => dispatcher.worker_gone(&worker(NAMES[who]), at(secs)),
            Event::Cancel(id) => dispatcher.cancel(JobId(id), at(secs)),
            Event::Pause(paused) => {
                return dispatcher.pause(&"film".parse().unwrap(), paused);
            }
            Event::Tick => dispatcher.tick(at(secs)),
            Event::Done(at)
            | Event::Progress(at, _)
            | Event::Lost(at)
            | Event::NodeFails(at)
            | Event::DiskFull(at)
            | Event::InputGone(at) => {
                if let Some(lease) = self.picked(at) {
                    self.play_lease(event, &lease, secs);
                }
                return;
            }
        };
        self.owner.heed(effects, secs);
    }

    fn play_lease(&mut self, event: &Event, lease: &Lease, secs: f64) {
        let failure = match event {
            Event::Done(_) => return self.finishes(lease, secs),
            Event::Progress(_, done) => {
                self.owner.dispatcher.progress(lease.id, *done, at(secs));
                return;
            }
            Event::NodeFails(_) => Failure::Node {
                code: Code::Internal,
                text: String::new(),
            },
            Event::DiskFull(_) => Failure::DiskFull {
                needed_bytes: 2,
                free_bytes: 1,
            },
            Event::InputGone(_) => {
                let job = self.owner.dispatcher.job(lease.job).unwrap();
                let Some(need) = job.needs().first().copied() else {
                    return;
                };
                self.reopened.insert(need);
                // Twins of one key were done by one result.
                let key = self.owner.dispatcher.job(need).unwrap().key;
                let maker = self.leases.iter().find(|lease| Some(lease.key) == key);
                let content = output(maker.map_or(need, |lease| lease.job)).content;
                Failure::InputGone { content }
            }
            _ => {
                let effects = self.owner.dispatcher.lease_lost(lease.id, at(secs));
                self.owner.heed(effects, secs);
                return;
            }
        };
        self.owner.fails(lease, failure, secs);
    }

    fn check(&mut self, jobs: usize) {
        let counts = self.owner.dispatcher.counts();
        let ended = counts.done + counts.failed + counts.cancelled;
        assert_eq!(counts.open() + ended, jobs, "a job was lost");
        for id in (0..jobs as u64).map(JobId) {
            let state = self.owner.dispatcher.state(id).unwrap();
            let again = self.reopened.contains(&id);
            if state == JobState::Done {
                self.done.insert(id);
            } else {
                assert!(
                    again || !self.done.contains(&id),
                    "done goes back: {id} {state:?}"
                );
            }
            let firsts = self.firsts.get(&id).copied().unwrap_or_default();
            assert!(again || firsts <= 1, "{id} was counted {firsts} times");
            let ended = self.owner.ended.get(&id).copied().unwrap_or_default();
            assert!(again || ended <= 1, "{id} ended {ended} times");
        }
        let mut busy: BTreeSet<(String, usize)> = BTreeSet::new();
        let live = |lease: &LeaseId| {
            let dispatcher = &self.owner.dispatcher;
            dispatcher.remaining_secs(*lease, at(1e6)).is_some()
        };
        for lease in self.leases.iter().filter(|lease| live(&lease.id)) {
            let place = (lease.worker.to_string(), lease.device);
            assert!(busy.insert(place), "two jobs on one device");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_every_run_ends(jobs in graph(), events in events()) {
        let count = jobs.len();
        let mut checked = Checked {
            owner: Owner::new(Settings::default()),
            leases: Vec::new(),
            firsts: BTreeMap::new(),
            reopened: BTreeSet::new(),
            done: BTreeSet::new(),
            starts: 1,
        };
        checked.owner.add(jobs, 0.0);
        checked.check(count);
        let mut secs = 0.0;
        for (later, event) in &events {
            secs += later;
            checked.play(event, secs);
            checked.check(count);
        }
        // From here on everything works: it has to end, in as many rounds as there are jobs and
        // deliveries at most.
        checked.owner.dispatcher.pause(&"film".parse().unwrap(), false);
        for who in 0..NAMES.len() {
            checked.joins(who, true, secs);
        }
        for _ in 0..count * 6 + 10 {
            secs += 700.0;
            for who in 0..NAMES.len() {
                checked.asks(who, secs);
            }
            for lease in checked.leases.clone() {
                checked.finishes(&lease, secs + 5.0);
            }
            let effects = checked.owner.dispatcher.tick(at(secs + 6.0));
            checked.owner.heed(effects, secs + 6.0);
            checked.check(count);
            if checked.owner.dispatcher.counts().open() == 0 {
                break;
            }
        }
        let counts = checked.owner.dispatcher.counts();
        prop_assert_eq!(counts.open(), 0, "{:?}", counts);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        max_shrink_iters: 40,
        ..ProptestConfig::default()
    })]

    #[test]
    fn simulated_work_ends_whatever_fails(
        seed in any::<u64>(),
        machines in 1_usize..9,
        every_secs in 5_u32..1500,
        ails in 1.0_f64..6.0,
    ) {
        let shape = ShotsShape { shots: 60, median_secs: 8.0, chain: 0.1, told: seed % 3 == 0 };
        let jobs = shots(shape, "random", seed).unwrap();
        let longest = ails * jobs.iter().map(|job| job.spark_secs).fold(0.0, f64::max);
        let mut machines = Machine::sparks(machines);
        machines[0].ails = ails;
        // The time away is no multiple of it: also a lone machine is up for half a second.
        let every = f64::from(every_secs);
        let scenario = Scenario {
            name: "random".to_owned(),
            machines,
            jobs,
            unsure: Unsure { measured: seed % 2 == 0, luck_sigma: 0.0, belief_sigma: 0.5 },
            failures: Some(Failures { first: at(5.0), every: at(every), away: at(61.5) }),
            lease: at(30.0),
            overhead: at(0.01),
            seed,
        };
        for placement in 0..2 {
            let outcome = match placement {
                0 => run(&scenario, Box::new(CriticalPath)),
                _ => run(&scenario, Box::new(RoundRobin::default())),
            }
            .unwrap();
            prop_assert_eq!(outcome.done + outcome.failed, 60);
            // Where the longest job fits between two failures, none uses up its deliveries.
            let calm = every > 62.0 + 2.0 * longest;
            prop_assert!(!calm || outcome.failed == 0, "{:?}", outcome);
            let whole = outcome.failed == 0;
            prop_assert!(!whole || outcome.over_bound() >= 1.0 - 1e-9, "{:?}", outcome);
        }
    }
}
