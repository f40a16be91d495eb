//! What workers, leases and people tell the dispatcher.

use std::collections::BTreeMap;
use std::time::Duration;

use super::table::{HeldLease, Lane, Slowness, State, Worker};
use super::{Dispatcher, Done, DoneOutcome, Effects};
use crate::advert::WorkerAdvert;
use crate::cost::Work;
use crate::job::JobId;
use crate::lease::{Attempt, Failure, Lease, LeaseId, Remedy};
use crate::names::{RunId, WorkerId};
use crate::placement::{Asker, Choice, Terms, View, terms};

/// Node type under which times of loading models are kept, with the model's bytes as size.
pub(crate) const LOADING: &str = "model.load";

impl Dispatcher {
    /// A worker joined, or its advert changed. One that was started again has lost its leases.
    pub fn worker_joined(&mut self, advert: WorkerAdvert, now: Duration) -> Effects {
        let id = advert.worker.clone();
        let known = self.tables.workers.get(&id);
        let again = known.is_some_and(|known| known.advert.start != advert.start);
        let mut effects = Effects::default();
        if again {
            effects = self.worker_gone(&id, now);
        }
        let lanes: Vec<Lane> = advert
            .devices
            .iter()
            .enumerate()
            .map(|(device, about)| {
                let loaded = advert.models_loaded.iter();
                Lane {
                    class: self.tables.intern_class(&about.class),
                    lease: None,
                    models: loaded
                        .filter(|loaded| loaded.device == device)
                        .map(|loaded| (loaded.model, loaded.bytes))
                        .collect(),
                }
            })
            .collect();
        match self.tables.workers.get_mut(&id) {
            Some(worker) => {
                let leases: Vec<Option<LeaseId>> =
                    worker.lanes.iter().map(|lane| lane.lease).collect();
                worker.advert = advert;
                worker.last_seen = now;
                worker.lanes = lanes;
                for (lane, lease) in worker.lanes.iter_mut().zip(leases) {
                    lane.lease = lease;
                }
            }
            None => {
                let worker = Worker {
                    advert,
                    lanes,
                    draining: false,
                    quarantined: self.tables.quarantine.get(&id).cloned(),
                    last_seen: now,
                    slowness: Slowness::default(),
                };
                self.tables.workers.insert(id, worker);
            }
        }
        self.tables.fresh_at = None;
        effects
    }

    /// A worker left or died: its jobs are free again.
    pub fn worker_gone(&mut self, worker: &WorkerId, now: Duration) -> Effects {
        let mut effects = Effects::default();
        if !self.tables.workers.contains_key(worker) {
            return effects;
        }
        for lease in self.live_of(worker) {
            let failure = Failure::WorkerGone {
                worker: worker.clone(),
            };
            self.end_attempt(lease, failure, now, &mut effects);
        }
        self.tables.workers.remove(worker);
        self.tables.fresh_at = None;
        effects
    }

    /// Leases that a worker has, also those whose device is free again.
    fn live_of(&self, worker: &WorkerId) -> Vec<LeaseId> {
        let leases = self.tables.leases.iter();
        leases
            .filter(|(_, held)| held.live && held.worker == *worker)
            .map(|(lease, _)| *lease)
            .collect()
    }

    /// A worker has ended a job, and its result is on its way: its device may have the next one
    /// meanwhile. The job itself is done when the result is here.
    pub fn free_device(&mut self, lease: LeaseId) {
        let Some(held) = self.tables.leases.get_mut(&lease) else {
            return;
        };
        held.held_back = true;
        let worker = self.tables.workers.get_mut(&held.worker);
        let lane = worker.and_then(|worker| worker.lanes.get_mut(held.device));
        if let Some(lane) = lane
            && lane.lease == Some(lease)
        {
            lane.lease = None;
        }
    }

    /// A worker shall take nothing more (or again something); what it is at it finishes. Taking
    /// work again also ends a quarantine.
    pub fn drain(&mut self, worker: &WorkerId, draining: bool) {
        if !draining {
            self.tables.quarantine.remove(worker);
        }
        if let Some(worker) = self.tables.workers.get_mut(worker) {
            worker.draining = draining;
            if !draining {
                worker.quarantined = None;
            }
            self.tables.fresh_at = None;
        }
    }

    /// A worker asks for work: at most one job for each of its idle devices, one a call.
    pub fn next_job(&mut self, worker: &WorkerId, now: Duration) -> Option<Lease> {
        self.tables.refresh();
        let known = self.tables.workers.get_mut(worker)?;
        known.last_seen = now;
        if !known.takes_work() {
            return None;
        }
        let lanes = known.lanes.iter().enumerate();
        let idle: Vec<usize> = lanes
            .filter(|(_, lane)| lane.lease.is_none())
            .map(|(device, _)| device)
            .collect();
        for device in idle {
            let asker = Asker {
                worker: worker.clone(),
                device,
            };
            let view = View::new(&self.tables, now);
            let Some(choice) = self.placement.choose(&view, &asker) else {
                continue;
            };
            if let Some(lease) = self.grant(&asker, choice, now) {
                return Some(lease);
            }
        }
        None
    }

    /// Hand a job out. A policy that names a job which cannot be taken gets nothing.
    fn grant(&mut self, asker: &Asker, choice: Choice, now: Duration) -> Option<Lease> {
        let (id, duplicate) = match choice {
            Choice::Start(id) => (id, false),
            Choice::Duplicate(id) => (id, true),
        };
        let (at, entry) = self.tables.entry(id)?;
        let key = entry.job.key?;
        let fits_state = match duplicate {
            false => entry.state == State::Ready && !self.tables.is_paused(entry),
            // An input that is being made again has to come back first.
            true => entry.state == State::Running && entry.missing == 0,
        };
        let Ok(terms) = terms(&self.tables, at, asker) else {
            return None;
        };
        if !fits_state {
            return None;
        }
        let id_of_lease = LeaseId(self.tables.next_lease);
        self.tables.next_lease += 1;
        let entry = self.tables.entries.get_mut(at)?;
        entry.deliveries += u32::from(!duplicate);
        let lease = Lease {
            id: id_of_lease,
            job: id,
            key,
            worker: asker.worker.clone(),
            device: asker.device,
            delivery: entry.deliveries,
            duplicate,
            evict: terms.evict.clone(),
        };
        self.book(at, &lease, &terms, now);
        Some(lease)
    }

    /// Write down that a lease is held.
    pub(super) fn book(&mut self, at: usize, lease: &Lease, terms: &Terms, now: Duration) {
        let Some(entry) = self.tables.entries.get_mut(at) else {
            return;
        };
        entry.live.push(lease.id);
        let (run, model) = (entry.run, entry.job.model);
        self.tables.set_state(at, State::Running, now);
        if let Some(run) = self.tables.runs.get_mut(run) {
            run.served = now;
        }
        let worker = self.tables.workers.get_mut(&lease.worker);
        if let Some(lane) = worker.and_then(|worker| worker.lanes.get_mut(lease.device)) {
            lane.lease = Some(lease.id);
            lane.models
                .retain(|(loaded, _)| !terms.evict.contains(loaded));
            if let Some(need) = model {
                lane.models.retain(|(loaded, _)| *loaded != need.model);
                lane.models.push((need.model, need.bytes));
            }
        }
        let held = HeldLease {
            entry: at,
            key: lease.key,
            worker: lease.worker.clone(),
            device: lease.device,
            live: true,
            started: now,
            predicted_secs: terms.total_secs(),
            prediction: terms.prediction,
            progress: None,
            held_back: false,
        };
        self.tables.leases.insert(lease.id, held);
    }

    /// A worker says how much of its job is done, from 0 to 1. Says whether it shall go on: a
    /// lease that was lost or stopped shall not.
    pub fn progress(&mut self, lease: LeaseId, done: f64, now: Duration) -> bool {
        match self.tables.leases.get_mut(&lease) {
            Some(held) if held.live => {
                if done.is_finite() {
                    held.progress = Some((done.clamp(0.0, 1.0), now));
                }
                if let Some(worker) = self.tables.workers.get_mut(&held.worker) {
                    worker.last_seen = now;
                }
                true
            }
            _ => false,
        }
    }

    /// Say whether the result of a lease may be on its way: then its job is not begun a second
    /// time for being slow.
    pub fn hold_back(&mut self, lease: LeaseId, held_back: bool) {
        if let Some(held) = self.tables.leases.get_mut(&lease) {
            held.held_back = held_back;
        }
    }

    /// Whether a worker gets nothing more for what it did.
    pub fn is_quarantined(&self, worker: &WorkerId) -> bool {
        self.tables.quarantine.contains_key(worker)
    }

    /// A result came. The first one counts, also from a lease that was lost in between; all
    /// others are late.
    pub fn job_done(
        &mut self,
        lease: LeaseId,
        done: &Done,
        now: Duration,
    ) -> (DoneOutcome, Effects) {
        let mut effects = Effects::default();
        let Some(held) = self.tables.leases.get(&lease).cloned() else {
            return (DoneOutcome::Late, effects);
        };
        if let Some(worker) = self.tables.workers.get_mut(&held.worker) {
            worker.last_seen = now;
            if worker.quarantined.is_some() {
                return (DoneOutcome::Refused, effects);
            }
        }
        self.release(lease);
        self.tables.leases.remove(&lease);
        // A job that waits again does so for inputs that may come back with other content; a
        // result from the old ones is the result of another key.
        let open = self.tables.entries.get(held.entry).is_some_and(|entry| {
            matches!(entry.state, State::Ready | State::Running) && entry.job.key == Some(held.key)
        });
        if !open {
            return (DoneOutcome::Late, effects);
        }
        self.note_costs(&held, done, &mut effects);
        self.note_holder(&held, done);
        self.finish(held.entry, &done.outputs, now, &mut effects);
        (DoneOutcome::First, effects)
    }

    fn note_costs(&mut self, held: &HeldLease, done: &Done, effects: &mut Effects) {
        let Some(entry) = self.tables.entries.get(held.entry) else {
            return;
        };
        let Some(worker) = self.tables.workers.get_mut(&held.worker) else {
            return;
        };
        let Some(device) = worker.advert.devices.get(held.device) else {
            return;
        };
        let class = device.class.clone();
        if done.run_secs.is_finite() && done.run_secs >= 0.0 {
            worker.slowness.note(&held.prediction, done.run_secs);
        }
        let work = Work::of(&entry.job);
        effects
            .measured
            .extend(self.tables.costs.note(&work, &class, done.run_secs));
        if let (Some(need), Some(secs)) = (entry.job.model, done.load_secs) {
            let loading = Work {
                node_type: LOADING.to_owned(),
                model: Some(need.model),
                size: need.bytes,
            };
            effects
                .measured
                .extend(self.tables.costs.note(&loading, &class, secs));
        }
    }

    /// The worker has what it made and what it fetched for it.
    fn note_holder(&mut self, held: &HeldLease, done: &Done) {
        let Some(entry) = self.tables.entries.get(held.entry) else {
            return;
        };
        let fetched = self.tables.inputs(entry);
        let made = done.outputs.iter().map(|output| output.content);
        let all = made.chain(fetched.into_iter().filter_map(|input| input.content));
        for content in all.collect::<Vec<_>>() {
            let holders = self.tables.holders.entry(content).or_default();
            holders.insert(held.worker.clone());
        }
    }

    /// No progress came within the lease.
    pub fn lease_lost(&mut self, lease: LeaseId, now: Duration) -> Effects {
        let mut effects = Effects::default();
        if let Some(held) = self.tables.leases.get(&lease) {
            let worker = held.worker.clone();
            self.end_attempt(lease, Failure::LeaseLost { worker }, now, &mut effects);
        }
        effects
    }

    /// An attempt failed.
    pub fn failed(&mut self, lease: LeaseId, failure: Failure, now: Duration) -> Effects {
        let mut effects = Effects::default();
        self.end_attempt(lease, failure, now, &mut effects);
        effects
    }

    fn end_attempt(
        &mut self,
        lease: LeaseId,
        failure: Failure,
        now: Duration,
        effects: &mut Effects,
    ) {
        let Some(held) = self
            .tables
            .leases
            .get(&lease)
            .filter(|held| held.live)
            .cloned()
        else {
            return;
        };
        self.release(lease);
        // A result that comes after all is taken while the job is open, except from a worker
        // that failed: it has nothing to send.
        let may_return = matches!(
            failure,
            Failure::LeaseLost { .. } | Failure::WorkerGone { .. }
        );
        if !may_return {
            self.tables.leases.remove(&lease);
        }
        let at = held.entry;
        let max = self.tables.settings.max_deliveries;
        let Some(entry) = self.tables.entries.get_mut(at) else {
            return;
        };
        entry.attempts.push(Attempt {
            lease,
            worker: held.worker.clone(),
            failure: failure.clone(),
            wall_millis: u64::try_from(now.saturating_sub(held.started).as_millis())
                .unwrap_or(u64::MAX),
        });
        let remedy = failure.remedy();
        if matches!(remedy, Remedy::RetryElsewhere | Remedy::Quarantine) {
            entry.avoid.insert(held.worker.clone());
        }
        let deliveries = entry.deliveries;
        match remedy {
            Remedy::Quarantine => self.quarantine(&held.worker, &failure, now, effects),
            Remedy::Remake(content) => {
                if !self.remake(at, content, now, effects) {
                    self.fail(at, &failure, now, effects);
                    return;
                }
            }
            Remedy::GiveUp => {
                self.fail(at, &failure, now, effects);
                return;
            }
            Remedy::Retry | Remedy::RetryElsewhere => {}
        }
        let Some(entry) = self.tables.entries.get(at) else {
            return;
        };
        if entry.state != State::Running || !entry.live.is_empty() {
            return;
        }
        if deliveries >= max {
            let last = Box::new(failure);
            let failure = Failure::MaxDeliveries { deliveries, last };
            self.fail(at, &failure, now, effects);
        } else if entry.missing > 0 {
            self.set_back(at, now, effects);
        } else {
            self.tables.set_state(at, State::Ready, now);
        }
    }

    /// Give a worker nothing more, and take back what it has.
    fn quarantine(
        &mut self,
        id: &WorkerId,
        failure: &Failure,
        now: Duration,
        effects: &mut Effects,
    ) {
        let Some(worker) = self.tables.workers.get_mut(id) else {
            return;
        };
        worker.quarantined = Some(failure.clone());
        // Being started again does not end it.
        self.tables.quarantine.insert(id.clone(), failure.clone());
        let leases = self.live_of(id);
        self.tables.fresh_at = None;
        for holders in self.tables.holders.values_mut() {
            holders.remove(id);
        }
        for lease in leases {
            effects.stop.push(lease);
            let worker = id.clone();
            self.end_attempt(lease, Failure::WorkerGone { worker }, now, effects);
        }
    }

    /// A worker's bytes are not what they are said to be: it gets nothing more, and what it is at
    /// is taken back.
    pub fn distrust(&mut self, worker: &WorkerId, failure: &Failure, now: Duration) -> Effects {
        let mut effects = Effects::default();
        self.quarantine(worker, failure, now, &mut effects);
        effects
    }

    /// As [`Dispatcher::drain`], of what a worker says itself: a quarantine stays.
    pub fn drain_only(&mut self, worker: &WorkerId, draining: bool) {
        if let Some(worker) = self.tables.workers.get_mut(worker) {
            worker.draining = draining;
            self.tables.fresh_at = None;
        }
    }

    /// Cancel a job and all that need it. What is done stays done.
    pub fn cancel(&mut self, job: JobId, now: Duration) -> Effects {
        let mut effects = Effects::default();
        if let Some((at, _)) = self.tables.entry(job) {
            self.cancel_from(vec![at], now, &mut effects);
        }
        effects
    }

    /// Cancel every job of a run.
    pub fn cancel_run(&mut self, run: &RunId, now: Duration) -> Effects {
        let mut effects = Effects::default();
        let entries = self.tables.entries.iter().enumerate();
        let list: Vec<usize> = entries
            .filter(|(_, entry)| entry.job.run == *run)
            .map(|(at, _)| at)
            .collect();
        self.cancel_from(list, now, &mut effects);
        effects
    }

    /// Hand out no more jobs of a run, or again some. What runs goes on to its end.
    pub fn pause(&mut self, run: &RunId, paused: bool) {
        let at = self.tables.run_index.get(run).copied();
        if let Some(run) = at.and_then(|at| self.tables.runs.get_mut(at)) {
            run.paused = paused;
        }
    }

    /// To be called every few seconds: jobs that no worker can take fail once that has lasted.
    /// While no worker is there at all, nothing fails.
    pub fn tick(&mut self, now: Duration) -> Effects {
        let mut effects = Effects::default();
        if self.tables.workers.is_empty() {
            return effects;
        }
        self.tables.refresh();
        let patience = self.tables.settings.no_worker_patience;
        let stuck: BTreeMap<JobId, String> = self
            .waits()
            .into_iter()
            .filter(|waits| waits.lasting)
            .map(|waits| (waits.job, waits.refusal.to_string()))
            .collect();
        for at in self.tables.ready.clone() {
            let Some(entry) = self.tables.entries.get_mut(at) else {
                continue;
            };
            let Some(reason) = stuck.get(&entry.job.id).cloned() else {
                entry.unplaced_since = None;
                continue;
            };
            let since = *entry.unplaced_since.get_or_insert(now);
            if now.saturating_sub(since) >= patience {
                let failure = Failure::NoWorker { reason };
                self.fail(at, &failure, now, &mut effects);
            }
        }
        effects
    }
}
