//! What a policy sees.

use std::time::Duration;

use super::terms::{Refusal, Terms, model_secs, terms};
use super::{Asker, Choice};
use crate::dispatch::table::Tables;
use crate::job::{Job, JobId};
use crate::names::WorkerId;

/// What a second start has to win besides its cost, in seconds: a message, notes on disk of two
/// machines and fetching take a part of that, and within it the first result may be on its way.
const HAND_OVER_SECS: f64 = 0.5;

/// A job that could start now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadyJob {
    /// Which.
    pub id: JobId,
    /// Its priority, raised by how long its run got no worker.
    pub level: f64,
    /// The longest predicted way from its start to the end of the run, in seconds.
    pub rank_secs: f64,
}

/// A device that takes work.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneView {
    /// Its worker and place.
    pub at: Asker,
    /// Seconds until it is predicted to be free; 0 when it is idle.
    pub free_in_secs: f64,
}

/// A job that a worker is at.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningJob {
    /// Which.
    pub id: JobId,
    /// Who is at it.
    pub workers: Vec<WorkerId>,
    /// Seconds until the first of them is predicted to be done.
    pub remaining_secs: f64,
    /// How many times longer than predicted it is by itself, as far as it shows: it would be
    /// that much longer elsewhere, too.
    pub stretch: f64,
    /// The longest predicted way from its start to the end of the run, in seconds.
    pub rank_secs: f64,
}

/// The dispatcher's state, read only, at one moment.
#[derive(Debug, Clone, Copy)]
pub struct View<'t> {
    tables: &'t Tables,
    now: Duration,
}

impl<'t> View<'t> {
    pub(crate) const fn new(tables: &'t Tables, now: Duration) -> Self {
        Self { tables, now }
    }

    /// The moment, monotonic.
    pub const fn now(&self) -> Duration {
        self.now
    }

    /// The setting of the same name.
    pub const fn steal_ratio(&self) -> f64 {
        self.tables.settings.steal_ratio
    }

    /// Jobs that could start, in order of id; those of paused runs are left out.
    pub fn ready(&self) -> Vec<ReadyJob> {
        let entries = || {
            let ready = self.tables.ready.iter();
            ready.filter_map(|at| self.tables.entries.get(*at))
        };
        // A run waits from when it was last served, but not before it had something to do.
        let mut since: Vec<Option<Duration>> = vec![None; self.tables.runs.len()];
        for entry in entries() {
            if let Some(oldest) = since.get_mut(entry.run) {
                let known = oldest.unwrap_or(entry.ready_since);
                *oldest = Some(known.min(entry.ready_since));
            }
        }
        let aging_secs = self.tables.settings.aging_secs.max(1e-3);
        let raised: Vec<f64> = since
            .iter()
            .zip(&self.tables.runs)
            .map(|(since, run)| {
                let since = since.unwrap_or(self.now).max(run.served);
                self.now.saturating_sub(since).as_secs_f64() / aging_secs
            })
            .collect();
        let mut jobs: Vec<ReadyJob> = entries()
            .filter(|entry| !self.tables.is_paused(entry))
            .map(|entry| ReadyJob {
                id: entry.job.id,
                level: f64::from(entry.job.priority.level())
                    + raised.get(entry.run).copied().unwrap_or_default(),
                rank_secs: entry.rank_secs,
            })
            .collect();
        jobs.sort_by_key(|job| job.id);
        jobs
    }

    /// Whether any job could start.
    pub fn has_ready(&self) -> bool {
        let mut ready = self.tables.ready.iter();
        ready.any(|at| {
            let entry = self.tables.entries.get(*at);
            entry.is_some_and(|entry| !self.tables.is_paused(entry))
        })
    }

    /// Devices that take work, in order of their workers' names. An idle one whose worker has
    /// long given no sign is left out: it may hang.
    pub fn lanes(&self) -> Vec<LaneView> {
        let mut lanes = Vec::new();
        for (id, worker) in &self.tables.workers {
            if !worker.takes_work() {
                continue;
            }
            let silent = self.now.saturating_sub(worker.last_seen);
            let asks = silent <= self.tables.settings.ask_patience;
            for (device, lane) in worker.lanes.iter().enumerate() {
                let lease = lane.lease.and_then(|lease| self.tables.leases.get(&lease));
                let free_in_secs = match lease {
                    Some(held) => self.tables.remaining_secs(held, self.now),
                    None if asks => 0.0,
                    None => continue,
                };
                let worker = id.clone();
                lanes.push(LaneView {
                    at: Asker { worker, device },
                    free_in_secs,
                });
            }
        }
        lanes
    }

    /// Jobs that workers are at, in order of id; those of paused runs are left out, those of
    /// which an input was lost since and is being made again, and those whose result may be on
    /// its way.
    pub fn running(&self) -> Vec<RunningJob> {
        let running = self.tables.running.iter();
        let entries = running.filter_map(|at| self.tables.entries.get(*at));
        let mut jobs: Vec<RunningJob> = entries
            .filter(|entry| !self.tables.is_paused(entry) && entry.missing == 0)
            .filter(|entry| {
                let leases = entry.live.iter();
                let mut held = leases.filter_map(|lease| self.tables.leases.get(lease));
                !held.any(|held| held.held_back)
            })
            .map(|entry| {
                let leases = entry.live.iter();
                let held = || {
                    leases
                        .clone()
                        .filter_map(|lease| self.tables.leases.get(lease))
                };
                RunningJob {
                    id: entry.job.id,
                    workers: held().map(|held| held.worker.clone()).collect(),
                    remaining_secs: held()
                        .map(|held| self.tables.remaining_secs(held, self.now))
                        .fold(f64::INFINITY, f64::min),
                    stretch: held()
                        .map(|held| self.tables.stretch(held, self.now))
                        .fold(1.0, f64::max),
                    rank_secs: entry.rank_secs,
                }
            })
            .collect();
        jobs.sort_by_key(|job| job.id);
        jobs
    }

    /// A job.
    pub fn job(&self, job: JobId) -> Option<&'t Job> {
        self.tables.entry(job).map(|(_, entry)| &entry.job)
    }

    /// Seconds that go into models if a device takes a job: loading its own, and later loading
    /// again those that make room. 0 where the device cannot take it.
    pub fn model_secs(&self, job: JobId, at: &Asker) -> f64 {
        let index = self.tables.entry(job).map(|(index, _)| index);
        index.map_or(0.0, |index| model_secs(self.tables, index, at))
    }

    /// What a job takes on a device.
    ///
    /// # Errors
    /// Why the device cannot take it.
    pub fn terms(&self, job: JobId, at: &Asker) -> Result<Terms, Refusal> {
        let gone = || Refusal::NoDevice {
            worker: at.worker.clone(),
        };
        let (index, _) = self.tables.entry(job).ok_or_else(gone)?;
        terms(self.tables, index, at)
    }

    /// The running job whose second start on `at` wins most, if any wins more than it costs:
    /// the time by which its result comes earlier against the time it takes here and what it
    /// takes to hand it over. Short jobs are over before that: they are never begun twice.
    pub fn best_duplicate(&self, at: &Asker) -> Option<Choice> {
        let mut best: Option<(f64, JobId)> = None;
        for job in self.running() {
            if job.workers.len() != 1 || job.workers.contains(&at.worker) {
                continue;
            }
            let Ok(terms) = self.terms(job.id, at) else {
                continue;
            };
            let cost = terms.total_secs() + terms.run_secs * (job.stretch - 1.0);
            let gain = job.remaining_secs - cost;
            let wins = gain > self.steal_ratio() * cost + HAND_OVER_SECS;
            if wins && best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, job.id));
            }
        }
        best.map(|(_, id)| Choice::Duplicate(id))
    }
}
