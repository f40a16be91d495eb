//! How jobs end, and what that does to those around them. Work lists, not recursion: chains of
//! a film are long.

use std::time::Duration;

use engine_base::ContentHash;

use super::table::State;
use super::{Dispatcher, Effects};
use crate::job::Output;
use crate::lease::{Failure, LeaseId};

impl Dispatcher {
    /// Give a lease up: its device is free, and its result would be late.
    pub(super) fn release(&mut self, lease: LeaseId) {
        let Some(held) = self.tables.leases.get_mut(&lease) else {
            return;
        };
        held.live = false;
        let (at, device) = (held.entry, held.device);
        let lane = self
            .tables
            .workers
            .get_mut(&held.worker)
            .and_then(|worker| worker.lanes.get_mut(device));
        if let Some(lane) = lane
            && lane.lease == Some(lease)
        {
            lane.lease = None;
        }
        if let Some(entry) = self.tables.entries.get_mut(at) {
            entry.live.retain(|live| *live != lease);
        }
    }

    /// Stop every worker that is at a job.
    fn stop_all(&mut self, at: usize, effects: &mut Effects) {
        let live = match self.tables.entries.get_mut(at) {
            Some(entry) => std::mem::take(&mut entry.live),
            None => return,
        };
        for lease in live {
            self.release(lease);
            effects.stop.push(lease);
        }
    }

    fn end(&mut self, at: usize, state: State, now: Duration, effects: &mut Effects) {
        self.stop_all(at, effects);
        self.tables.set_state(at, state, now);
        if let Some(entry) = self.tables.entries.get(at) {
            effects.ended.push(entry.job.id);
        }
    }

    fn followers(&self, of: usize) -> Vec<usize> {
        if self.tables.following == 0 {
            return Vec::new();
        }
        let Some(key) = self.tables.entries.get(of).and_then(|entry| entry.job.key) else {
            return Vec::new();
        };
        if self.tables.keys.get(&key) != Some(&of) {
            return Vec::new();
        }
        let entries = self.tables.entries.iter().enumerate();
        entries
            .filter(|(_, entry)| entry.state == State::Follows(of))
            .map(|(at, _)| at)
            .collect()
    }

    /// A job is done: so are those that follow it, and those that need it come closer.
    pub(super) fn finish(
        &mut self,
        at: usize,
        outputs: &[Output],
        now: Duration,
        effects: &mut Effects,
    ) {
        let mut list = vec![at];
        while let Some(at) = list.pop() {
            let Some(entry) = self.tables.entries.get_mut(at) else {
                continue;
            };
            if entry.state.is_terminal() {
                continue;
            }
            entry.outputs = outputs.to_vec();
            self.end(at, State::Done, now, effects);
            list.extend(self.followers(at));
            let feeds = match self.tables.entries.get(at) {
                Some(entry) => entry.feeds.clone(),
                None => continue,
            };
            for feed in feeds {
                if let Some(feed) = self.tables.entries.get_mut(feed) {
                    feed.missing = feed.missing.saturating_sub(1);
                }
                self.unblock(feed, now, effects);
            }
        }
    }

    /// A job failed for good: so do its followers and all that need it.
    pub(super) fn fail(
        &mut self,
        at: usize,
        failure: &Failure,
        now: Duration,
        effects: &mut Effects,
    ) {
        let Some(id) = self.tables.entries.get(at).map(|entry| entry.job.id) else {
            return;
        };
        let upstream = match failure {
            Failure::Upstream { .. } => failure.clone(),
            _ => Failure::Upstream {
                job: id,
                reason: Box::new(failure.clone()),
            },
        };
        let mut list = vec![(at, failure.clone())];
        while let Some((at, failure)) = list.pop() {
            let Some(entry) = self.tables.entries.get(at) else {
                continue;
            };
            if entry.state.is_terminal() {
                continue;
            }
            let feeds = entry.feeds.clone();
            let followers = self.followers(at);
            list.extend(followers.into_iter().map(|at| (at, failure.clone())));
            self.end(at, State::Failed(failure), now, effects);
            list.extend(feeds.into_iter().map(|at| (at, upstream.clone())));
        }
    }

    /// A job that needs a lost one is lost like it.
    pub(super) fn follow_loss(
        &mut self,
        need: usize,
        at: usize,
        now: Duration,
        effects: &mut Effects,
    ) {
        let lost = self.tables.entries.get(need);
        match lost.map(|entry| (entry.job.id, entry.state.clone())) {
            Some((_, State::Failed(failure @ Failure::Upstream { .. }))) => {
                self.fail(at, &failure, now, effects);
            }
            Some((job, State::Failed(failure))) => {
                let reason = Box::new(failure);
                self.fail(at, &Failure::Upstream { job, reason }, now, effects);
            }
            _ => self.cancel_from(vec![at], now, effects),
        }
    }

    /// Cancel these jobs and all that need them; what is done stays done.
    pub(super) fn cancel_from(
        &mut self,
        mut list: Vec<usize>,
        now: Duration,
        effects: &mut Effects,
    ) {
        while let Some(at) = list.pop() {
            let Some(entry) = self.tables.entries.get(at) else {
                continue;
            };
            if entry.state.is_terminal() {
                continue;
            }
            let (feeds, key) = (entry.feeds.clone(), entry.job.key);
            let followers = self.followers(at);
            let had_turn = matches!(entry.state, State::Ready | State::Running);
            self.end(at, State::Cancelled, now, effects);
            if let (Some(key), true) = (key, had_turn) {
                self.hand_over(key, &followers, now, effects);
            }
            list.extend(feeds);
        }
    }

    /// The job that had the key is cancelled: the first that followed it has it now.
    fn hand_over(
        &mut self,
        key: engine_base::Key,
        followers: &[usize],
        now: Duration,
        effects: &mut Effects,
    ) {
        self.tables.keys.remove(&key);
        let Some((first, rest)) = followers.split_first() else {
            effects.withdrawn.push(key);
            return;
        };
        self.take_key(*first, key, now, effects);
        for at in rest {
            self.tables.set_state(*at, State::Follows(*first), now);
        }
    }

    /// A content that a job needs is gone from every holder: the job that made it is opened
    /// again, and all that need it wait. Says whether there is such a job.
    pub(super) fn remake(
        &mut self,
        at: usize,
        content: ContentHash,
        now: Duration,
        effects: &mut Effects,
    ) -> bool {
        self.tables.holders.remove(&content);
        let needs = match self.tables.entries.get(at) {
            Some(entry) => entry.needs.clone(),
            None => return false,
        };
        let made = |need: &usize| {
            let entry = self.tables.entries.get(*need);
            entry.is_some_and(|entry| entry.outputs.iter().any(|one| one.content == content))
        };
        let Some(maker) = needs.into_iter().find(made) else {
            // Opened already on behalf of another job that misses the same.
            return self
                .tables
                .entries
                .get(at)
                .is_some_and(|entry| entry.missing > 0);
        };
        let Some(entry) = self.tables.entries.get_mut(maker) else {
            return false;
        };
        entry.deliveries = 0;
        entry.outputs.clear();
        let (missing, key, feeds) = (entry.missing, entry.job.key, entry.feeds.clone());
        // A maker that was found in the store may never have had a key, or lack inputs itself.
        let state = match (missing, key) {
            (0, Some(key)) => {
                self.tables.keys.insert(key, maker);
                State::Ready
            }
            (0, None) => {
                effects
                    .to_key
                    .extend(self.tables.entries.get(maker).map(|entry| entry.job.id));
                State::Unkeyed
            }
            _ => State::Waiting,
        };
        self.tables.set_state(maker, state, now);
        for feed in feeds {
            let Some(entry) = self.tables.entries.get_mut(feed) else {
                continue;
            };
            entry.missing += 1;
            if matches!(
                entry.state,
                State::Unkeyed | State::Ready | State::Follows(_)
            ) {
                self.set_back(feed, now, effects);
            }
        }
        true
    }

    /// A job waits again. Its inputs may come back with other content, so its key is forgotten;
    /// one that followed it has the key now.
    pub(super) fn set_back(&mut self, at: usize, now: Duration, effects: &mut Effects) {
        let followers = self.followers(at);
        let key = self
            .tables
            .entries
            .get_mut(at)
            .and_then(|entry| entry.job.key.take());
        self.tables.set_state(at, State::Waiting, now);
        if let Some(key) = key
            && self.tables.keys.get(&key) == Some(&at)
        {
            self.hand_over(key, &followers, now, effects);
        }
    }
}
