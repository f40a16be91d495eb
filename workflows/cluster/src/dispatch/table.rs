//! What the dispatcher knows, as tables.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine_base::{ContentHash, Key};

use super::Settings;
use crate::advert::WorkerAdvert;
use crate::cost::{CostModel, Prediction, Rates, Work};
use crate::job::{Held, Job, JobId, Output, Source};
use crate::lease::{Attempt, Failure, LeaseId};
use crate::names::{DeviceClass, RunId, WorkerId};

/// Where a job stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State {
    /// Needs jobs that are not done.
    Waiting,
    /// Its inputs are made; the owner has to say its key.
    Unkeyed,
    /// A worker may take it.
    Ready,
    /// Workers are at it.
    Running,
    /// Another job has the same key: whatever becomes of that one becomes of it.
    Follows(usize),
    Done,
    Failed(Failure),
    Cancelled,
}

impl State {
    pub(crate) const fn is_terminal(&self) -> bool {
        matches!(self, Self::Done | Self::Failed(_) | Self::Cancelled)
    }
}

/// A job with everything known of it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) job: Job,
    pub(crate) needs: Vec<usize>,
    pub(crate) feeds: Vec<usize>,
    /// How many of `needs` are not done.
    pub(crate) missing: usize,
    pub(crate) state: State,
    /// Leases under which it runs.
    pub(crate) live: Vec<LeaseId>,
    /// Deliveries so far, duplicates not counted.
    pub(crate) deliveries: u32,
    pub(crate) attempts: Vec<Attempt>,
    /// Workers on which it failed by their fault.
    pub(crate) avoid: BTreeSet<WorkerId>,
    pub(crate) outputs: Vec<Output>,
    /// Index of its run.
    pub(crate) run: usize,
    /// Index of its kind of work.
    pub(crate) work: usize,
    /// Longest way from its start to the end of the run, by predictions.
    pub(crate) rank_secs: f64,
    pub(crate) ready_since: Duration,
    /// Since when no worker at all can take it.
    pub(crate) unplaced_since: Option<Duration>,
}

/// One device of a worker.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    pub(crate) class: usize,
    pub(crate) lease: Option<LeaseId>,
    /// Models believed in its memory with their bytes, least recently used first.
    pub(crate) models: Vec<(ContentHash, u64)>,
}

/// How much slower a worker is than its class, from its own results.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slowness {
    weighted_ln: f64,
    weight: f64,
}

impl Slowness {
    /// Workers of one class are taken to differ by this much (deviation of the logarithm) until
    /// they show otherwise.
    const PRIOR_SIGMA: f64 = 0.3;
    /// A single result says at most this much, however sure the prediction was: what was measured
    /// may be of another kind of content.
    const LEAST_SIGMA: f64 = 0.5;
    /// Old results fade, so that a worker that was throttled for an hour is trusted again.
    const FADES: f64 = 0.9;

    pub(crate) fn note(&mut self, predicted: &Prediction, secs: f64) {
        let ln = (secs.max(1e-4) / predicted.median_secs.max(1e-4)).ln();
        let sigma = predicted.sigma.max(Self::LEAST_SIGMA);
        let weight = 1.0 / (sigma * sigma);
        self.weighted_ln = self.weighted_ln * Self::FADES + ln.clamp(-4.0, 4.0) * weight;
        self.weight = self.weight * Self::FADES + weight;
    }

    /// Factor on predicted times: the posterior median under the prior.
    pub(crate) fn factor(self) -> f64 {
        (self.weighted_ln * self.variance()).exp()
    }

    /// Posterior variance of the factor's logarithm.
    pub(crate) fn variance(self) -> f64 {
        let prior = 1.0 / (Self::PRIOR_SIGMA * Self::PRIOR_SIGMA);
        1.0 / (self.weight + prior)
    }
}

/// A worker that joined.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    pub(crate) advert: WorkerAdvert,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) draining: bool,
    pub(crate) quarantined: Option<Failure>,
    /// When it last asked, told or joined.
    pub(crate) last_seen: Duration,
    pub(crate) slowness: Slowness,
}

impl Worker {
    pub(crate) const fn takes_work(&self) -> bool {
        !self.draining && self.quarantined.is_none()
    }
}

/// A lease as the owner sees it.
#[derive(Debug, Clone)]
pub(crate) struct HeldLease {
    pub(crate) entry: usize,
    pub(crate) key: Key,
    pub(crate) worker: WorkerId,
    pub(crate) device: usize,
    pub(crate) live: bool,
    pub(crate) started: Duration,
    /// Predicted time with transfer and loading, in seconds.
    pub(crate) predicted_secs: f64,
    /// Prediction of the work alone.
    pub(crate) prediction: Prediction,
    /// Part of the work that was done, and when that was said.
    pub(crate) progress: Option<(f64, Duration)>,
    /// Its result may be on its way: the job is not begun a second time.
    pub(crate) held_back: bool,
}

/// A run with jobs here.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) paused: bool,
    /// When it last got a worker.
    pub(crate) served: Duration,
}

/// Everything but the policy.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) settings: Settings,
    pub(crate) costs: CostModel,
    pub(crate) rates: Rates,
    pub(crate) entries: Vec<Entry>,
    pub(crate) index: BTreeMap<JobId, usize>,
    pub(crate) ready: BTreeSet<usize>,
    pub(crate) running: BTreeSet<usize>,
    pub(crate) runs: Vec<Run>,
    pub(crate) run_index: BTreeMap<RunId, usize>,
    pub(crate) keys: BTreeMap<Key, usize>,
    pub(crate) workers: BTreeMap<WorkerId, Worker>,
    pub(crate) quarantine: BTreeMap<WorkerId, Failure>,
    pub(crate) leases: BTreeMap<LeaseId, HeldLease>,
    pub(crate) next_lease: u64,
    pub(crate) holders: BTreeMap<ContentHash, BTreeSet<WorkerId>>,
    pub(crate) works: Vec<Work>,
    pub(crate) work_index: BTreeMap<Work, usize>,
    pub(crate) classes: Vec<DeviceClass>,
    /// `[work][class]`.
    pub(crate) predictions: Vec<Vec<Prediction>>,
    /// How many jobs follow another one.
    pub(crate) following: usize,
    /// Unfinished jobs by model.
    pub(crate) demand: BTreeMap<ContentHash, usize>,
    /// State of costs, works, classes and workers for which predictions and ranks hold.
    pub(crate) fresh_at: Option<u64>,
}

impl Tables {
    pub(crate) fn new(settings: Settings, costs: CostModel, rates: Rates) -> Self {
        Self {
            settings,
            costs,
            rates,
            entries: Vec::new(),
            index: BTreeMap::new(),
            ready: BTreeSet::new(),
            running: BTreeSet::new(),
            runs: Vec::new(),
            run_index: BTreeMap::new(),
            keys: BTreeMap::new(),
            workers: BTreeMap::new(),
            quarantine: BTreeMap::new(),
            leases: BTreeMap::new(),
            next_lease: 1,
            holders: BTreeMap::new(),
            works: Vec::new(),
            work_index: BTreeMap::new(),
            classes: Vec::new(),
            predictions: Vec::new(),
            following: 0,
            demand: BTreeMap::new(),
            fresh_at: None,
        }
    }

    pub(crate) fn entry(&self, id: JobId) -> Option<(usize, &Entry)> {
        let at = *self.index.get(&id)?;
        Some((at, self.entries.get(at)?))
    }

    /// Move an entry to another state and keep the sets of ready and running jobs and the demand
    /// for models in step.
    pub(crate) fn set_state(&mut self, at: usize, state: State, now: Duration) {
        let Some(entry) = self.entries.get_mut(at) else {
            return;
        };
        let was_open = !entry.state.is_terminal();
        let is_open = !state.is_terminal();
        if state == State::Ready {
            self.ready.insert(at);
            if entry.state != State::Ready {
                entry.ready_since = now;
                entry.unplaced_since = None;
            }
        } else {
            self.ready.remove(&at);
        }
        if state == State::Running {
            self.running.insert(at);
        } else {
            self.running.remove(&at);
        }
        if matches!(entry.state, State::Follows(_)) {
            self.following = self.following.saturating_sub(1);
        }
        if matches!(state, State::Follows(_)) {
            self.following += 1;
        }
        if let Some(need) = entry.job.model {
            let count = self.demand.entry(need.model).or_default();
            match (was_open, is_open) {
                (true, false) => *count = count.saturating_sub(1),
                (false, true) => *count += 1,
                _ => {}
            }
        }
        entry.state = state;
    }

    /// Index of a kind of work. Sizes less than an eighth of an octave apart are one kind, so
    /// that a run of thousands of sizes does not need thousands of predictions after each result.
    pub(crate) fn intern_work(&mut self, job: &Job) -> usize {
        let eighths = (8.0 * (job.size.max(1) as f64).log2()).round();
        let work = Work {
            size: (eighths / 8.0).exp2().round() as u64,
            ..Work::of(job)
        };
        if let Some(at) = self.work_index.get(&work) {
            return *at;
        }
        let at = self.works.len();
        self.works.push(work.clone());
        self.work_index.insert(work, at);
        self.fresh_at = None;
        at
    }

    /// Index of a run.
    pub(crate) fn intern_run(&mut self, run: &RunId, now: Duration) -> usize {
        if let Some(at) = self.run_index.get(run) {
            return *at;
        }
        let at = self.runs.len();
        self.runs.push(Run {
            paused: false,
            served: now,
        });
        self.run_index.insert(run.clone(), at);
        at
    }

    /// Whether an entry's run is paused.
    pub(crate) fn is_paused(&self, entry: &Entry) -> bool {
        self.runs.get(entry.run).is_some_and(|run| run.paused)
    }

    /// Index of a class of device.
    pub(crate) fn intern_class(&mut self, class: &DeviceClass) -> usize {
        if let Some(at) = self.classes.iter().position(|known| known == class) {
            return at;
        }
        self.classes.push(class.clone());
        self.fresh_at = None;
        self.classes.len() - 1
    }

    /// Bring predictions and ranks up to date with what was measured and who is there.
    pub(crate) fn refresh(&mut self) {
        if self.fresh_at == Some(self.costs.changes()) {
            return;
        }
        self.predictions = self
            .works
            .iter()
            .map(|work| {
                let on = |class| self.costs.predict(work, class);
                self.classes.iter().map(on).collect()
            })
            .collect();
        let mut weights = vec![0.0_f64; self.classes.len()];
        let open = self.workers.values().filter(|worker| worker.takes_work());
        for lane in open.flat_map(|worker| &worker.lanes) {
            if let Some(weight) = weights.get_mut(lane.class) {
                *weight += 1.0;
            }
        }
        let total: f64 = weights.iter().sum();
        let mean_secs: Vec<f64> = self
            .predictions
            .iter()
            .map(|row| {
                let weighted = row.iter().zip(&weights).map(|(p, w)| p.mean_secs() * w);
                if total > 0.0 {
                    weighted.sum::<f64>() / total
                } else {
                    0.0
                }
            })
            .collect();
        // Entries come after all that they need, so backwards everything they feed is ranked.
        for at in (0..self.entries.len()).rev() {
            let Some(entry) = self.entries.get(at) else {
                continue;
            };
            let after = entry
                .feeds
                .iter()
                .filter_map(|feed| self.entries.get(*feed))
                .map(|feed| feed.rank_secs)
                .fold(0.0, f64::max);
            let own = mean_secs.get(entry.work).copied().unwrap_or_default();
            if let Some(entry) = self.entries.get_mut(at) {
                entry.rank_secs = own + after;
            }
        }
        self.fresh_at = Some(self.costs.changes());
    }

    pub(crate) fn prediction(&self, work: usize, class: usize) -> Option<&Prediction> {
        self.predictions.get(work)?.get(class)
    }

    /// The inputs of an entry as they stand.
    pub(crate) fn inputs(&self, entry: &Entry) -> Vec<Held> {
        let held = |source: &Source, bytes: u64| match source {
            Source::Content(content) => Held {
                content: Some(*content),
                bytes,
            },
            Source::Job { job, port } => {
                let made = self.entry(*job).and_then(|(_, maker)| {
                    let done = maker.state == State::Done;
                    let mut outputs = maker.outputs.iter().filter(|_| done);
                    outputs.find(|output| output.port == *port)
                });
                Held {
                    content: made.map(|output| output.content),
                    bytes: made.map_or(bytes, |output| output.bytes),
                }
            }
        };
        let inputs = entry.job.inputs.iter();
        inputs
            .map(|input| held(&input.source, input.bytes))
            .collect()
    }

    /// By how much a running job is longer than predicted on account of itself, not of its
    /// worker: the surprise so far, shared between the spread of such jobs and what is not known
    /// of the worker. Beginning it elsewhere takes that much longer, too.
    pub(crate) fn stretch(&self, held: &HeldLease, now: Duration) -> f64 {
        let elapsed = now.saturating_sub(held.started).as_secs_f64();
        let total = elapsed + self.remaining_secs(held, now);
        let surprise = (total / held.predicted_secs.max(1e-4)).max(1.0).ln();
        let worker = self.workers.get(&held.worker);
        let unsure = worker.map_or(0.0, |worker| worker.slowness.variance());
        let spread = held.prediction.sigma * held.prediction.sigma;
        (surprise * spread / (spread + unsure).max(1e-9)).exp()
    }

    /// Seconds that a lease still takes: by its progress where it told any, else by prediction,
    /// and once it is well overdue as long again as it took so far.
    pub(crate) fn remaining_secs(&self, held: &HeldLease, now: Duration) -> f64 {
        let elapsed = now.saturating_sub(held.started).as_secs_f64();
        if let Some((done, said)) = held.progress
            && done >= 0.05
        {
            let until = said.saturating_sub(held.started).as_secs_f64();
            return (until / done.min(1.0) - elapsed).max(0.0);
        }
        let median = held.predicted_secs;
        if elapsed > 1.5 * median {
            elapsed
        } else {
            let sigma = held.prediction.sigma.min(1.5);
            let mean = median * (sigma * sigma / 2.0).exp();
            (mean - elapsed).max(0.1 * median)
        }
    }
}
