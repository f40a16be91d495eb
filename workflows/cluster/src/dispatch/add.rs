//! Taking jobs in and giving them their keys.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine_base::Key;

use super::table::{Entry, State};
use super::{Dispatcher, Effects};
use crate::cost::{Prediction, Work};
use crate::job::{Job, JobId, Output};

/// Why jobs were not taken in; none of them was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// An id is there already.
    #[error("cannot add job {job}: a job with this id is there already")]
    Twice {
        /// Which.
        job: JobId,
    },
    /// A job needs one that is not there.
    #[error("cannot add job {job}: it needs job {need}, which is not there")]
    NoSuchNeed {
        /// Which.
        job: JobId,
        /// What it needs.
        need: JobId,
    },
    /// Jobs need each other.
    #[error("cannot add job {job}: it needs itself, by way of others")]
    Circle {
        /// One of them.
        job: JobId,
    },
    /// A job without a node.
    #[error("cannot add job {job}: it has no node type, expected one at least")]
    Empty {
        /// Which.
        job: JobId,
    },
}

/// Why a key was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No such job.
    #[error("cannot give job {job} its key: no such job")]
    NoSuchJob {
        /// Which.
        job: JobId,
    },
    /// Its inputs are not made.
    #[error("cannot give job {job} its key: {missing} of its inputs are not made")]
    TooEarly {
        /// Which.
        job: JobId,
        /// Jobs it waits for.
        missing: usize,
    },
    /// It has another one.
    #[error("cannot give job {job} another key: it has {has}, got {got}")]
    Other {
        /// Which.
        job: JobId,
        /// Its key.
        has: Key,
        /// The other one.
        got: Key,
    },
}

/// The new jobs in an order in which each comes after what it needs.
fn ordered(jobs: Vec<Job>, known: &BTreeMap<JobId, usize>) -> Result<Vec<Job>, AddError> {
    let mut left: BTreeMap<JobId, Job> = BTreeMap::new();
    for job in jobs {
        let id = job.id;
        if known.contains_key(&id) || left.contains_key(&id) {
            return Err(AddError::Twice { job: id });
        }
        if job.main_type().is_empty() {
            return Err(AddError::Empty { job: id });
        }
        left.insert(id, job);
    }
    let mut waits: BTreeMap<JobId, usize> = BTreeMap::new();
    let mut feeds: BTreeMap<JobId, Vec<JobId>> = BTreeMap::new();
    for job in left.values() {
        let mut open = 0;
        for need in job.needs() {
            if left.contains_key(&need) {
                open += 1;
                feeds.entry(need).or_default().push(job.id);
            } else if !known.contains_key(&need) {
                return Err(AddError::NoSuchNeed { job: job.id, need });
            }
        }
        waits.insert(job.id, open);
    }
    let free = waits.iter().filter(|(_, open)| **open == 0);
    let mut next: BTreeSet<JobId> = free.map(|(id, _)| *id).collect();
    let mut order = Vec::with_capacity(left.len());
    while let Some(id) = next.pop_first() {
        order.extend(left.remove(&id));
        for feed in feeds.get(&id).into_iter().flatten() {
            if let Some(open) = waits.get_mut(feed) {
                *open -= 1;
                if *open == 0 {
                    next.insert(*feed);
                }
            }
        }
    }
    match left.keys().next() {
        Some(job) => Err(AddError::Circle { job: *job }),
        None => Ok(order),
    }
}

impl Dispatcher {
    /// Take in jobs of one or several runs. Each may need others of the same call or earlier
    /// ones. Jobs that need nothing and have no key are in [`Effects::to_key`].
    ///
    /// # Errors
    /// See [`AddError`]; then nothing was taken in.
    pub fn add(&mut self, jobs: Vec<Job>, now: Duration) -> Result<Effects, AddError> {
        let order = ordered(jobs, &self.tables.index)?;
        let mut effects = Effects::default();
        for job in order {
            self.add_one(job, now, &mut effects);
        }
        self.tables.fresh_at = None;
        Ok(effects)
    }

    fn add_one(&mut self, job: Job, now: Duration, effects: &mut Effects) {
        let tables = &mut self.tables;
        let at = tables.entries.len();
        let ids = job.needs();
        let needs: Vec<usize> = ids
            .iter()
            .filter_map(|id| tables.index.get(id).copied())
            .collect();
        let work = tables.intern_work(&job);
        let run = tables.intern_run(&job.run, now);
        let mut missing = 0;
        let mut lost = None;
        for need in &needs {
            let Some(entry) = tables.entries.get_mut(*need) else {
                continue;
            };
            entry.feeds.push(at);
            match &entry.state {
                State::Done => {}
                State::Failed(_) | State::Cancelled => lost = lost.or(Some(*need)),
                _ => missing += 1,
            }
        }
        if let Some(need) = job.model {
            *tables.demand.entry(need.model).or_default() += 1;
        }
        tables.index.insert(job.id, at);
        tables.entries.push(Entry {
            job,
            needs,
            feeds: Vec::new(),
            missing: missing + usize::from(lost.is_some()),
            state: State::Waiting,
            live: Vec::new(),
            deliveries: 0,
            attempts: Vec::new(),
            avoid: BTreeSet::new(),
            outputs: Vec::new(),
            run,
            work,
            rank_secs: 0.0,
            ready_since: now,
            unplaced_since: None,
        });
        match lost {
            Some(need) => self.follow_loss(need, at, now, effects),
            None => self.unblock(at, now, effects),
        }
    }

    /// A job whose needs are all done becomes ready, or asks for its key.
    pub(super) fn unblock(&mut self, at: usize, now: Duration, effects: &mut Effects) {
        let Some(entry) = self.tables.entries.get(at) else {
            return;
        };
        if entry.missing > 0 || entry.state != State::Waiting {
            return;
        }
        match entry.job.key {
            Some(key) => self.take_key(at, key, now, effects),
            None => {
                effects.to_key.push(entry.job.id);
                self.tables.set_state(at, State::Unkeyed, now);
            }
        }
    }

    /// A keyed job is ready, unless another one with the same key is under way or done.
    pub(super) fn take_key(&mut self, at: usize, key: Key, now: Duration, effects: &mut Effects) {
        let owner = self.tables.keys.get(&key).copied().unwrap_or(at);
        let twin = self
            .tables
            .entries
            .get(owner)
            .filter(|_| owner != at)
            .map(|entry| (entry.state.clone(), entry.outputs.clone()));
        match twin {
            Some((State::Done, outputs)) => self.finish(at, &outputs, now, effects),
            Some((State::Failed(_) | State::Cancelled, _)) | None => {
                self.tables.keys.insert(key, at);
                self.tables.set_state(at, State::Ready, now);
            }
            Some(_) => self.tables.set_state(at, State::Follows(owner), now),
        }
    }

    /// Give a job whose inputs are made its key.
    ///
    /// # Errors
    /// When there is no such job, its inputs are not made, or it has another key. A job that has
    /// ended takes any key and stays as it is.
    pub fn set_key(&mut self, job: JobId, key: Key, now: Duration) -> Result<Effects, KeyError> {
        let Some((at, entry)) = self.tables.entry(job) else {
            return Err(KeyError::NoSuchJob { job });
        };
        let mut effects = Effects::default();
        if entry.state.is_terminal() {
            return Ok(effects);
        }
        if entry.missing > 0 {
            let missing = entry.missing;
            return Err(KeyError::TooEarly { job, missing });
        }
        match entry.job.key {
            Some(has) if has != key => return Err(KeyError::Other { job, has, got: key }),
            Some(_) => return Ok(effects),
            None => {}
        }
        if let Some(entry) = self.tables.entries.get_mut(at) {
            entry.job.key = Some(key);
        }
        self.take_key(at, key, now, &mut effects);
        Ok(effects)
    }

    /// A job's outputs were in the store already: it is done without a worker, whatever it was
    /// waiting for.
    pub fn found(&mut self, job: JobId, outputs: &[Output], now: Duration) -> Effects {
        let mut effects = Effects::default();
        if let Some((at, entry)) = self.tables.entry(job)
            && !entry.state.is_terminal()
        {
            self.finish(at, outputs, now, &mut effects);
        }
        effects
    }

    /// What a job will take on a class of device, for people.
    pub fn predict(&self, job: JobId, class: &crate::DeviceClass) -> Option<Prediction> {
        let (_, entry) = self.tables.entry(job)?;
        Some(self.tables.costs.predict(&Work::of(&entry.job), class))
    }
}
