//! Forgetting runs that are over: an owner lives for weeks, and every decision walks what it knows.

use super::Dispatcher;
use super::table::{Entry, State, Tables};
use crate::names::RunId;

impl Dispatcher {
    /// Forget a run all of whose jobs have ended. Gives how many jobs were forgotten: none while
    /// one of them is open, or a job of another run needs one of them. Results that come for
    /// them later are late.
    pub fn forget(&mut self, run: &RunId) -> usize {
        let Some(run) = self.tables.run_index.get(run).copied() else {
            return 0;
        };
        let tables = &mut self.tables;
        let is_outside = |at: &usize| tables.entries.get(*at).is_none_or(|one| one.run != run);
        let mut own = tables.entries.iter().filter(|entry| entry.run == run);
        if own.any(|entry| !entry.state.is_terminal() || entry.feeds.iter().any(is_outside)) {
            return 0;
        }
        let before = tables.entries.len();
        keep(tables, |entry| entry.run != run);
        before - tables.entries.len()
    }
}

/// Keep the entries for which `wanted` holds, and move every index.
fn keep(tables: &mut Tables, wanted: impl Fn(&Entry) -> bool) {
    let mut moved: Vec<Option<usize>> = Vec::with_capacity(tables.entries.len());
    let mut kept = Vec::new();
    for entry in std::mem::take(&mut tables.entries) {
        if wanted(&entry) {
            moved.push(Some(kept.len()));
            kept.push(entry);
        } else {
            moved.push(None);
            tables.index.remove(&entry.job.id);
            for output in &entry.outputs {
                tables.holders.remove(&output.content);
            }
        }
    }
    let to = |at: usize| moved.get(at).copied().flatten();
    for entry in &mut kept {
        entry.needs = entry.needs.iter().filter_map(|at| to(*at)).collect();
        entry.feeds = entry.feeds.iter().filter_map(|at| to(*at)).collect();
        // What is followed is open, and what is open is kept.
        if let State::Follows(of) = &mut entry.state {
            *of = to(*of).unwrap_or(*of);
        }
    }
    tables.entries = kept;
    for at in tables.index.values_mut() {
        *at = to(*at).unwrap_or(*at);
    }
    tables.ready = tables.ready.iter().filter_map(|at| to(*at)).collect();
    tables.running = tables.running.iter().filter_map(|at| to(*at)).collect();
    tables.keys.retain(|_, at| {
        let place = to(*at);
        *at = place.unwrap_or(*at);
        place.is_some()
    });
    tables.leases.retain(|_, held| {
        let place = to(held.entry);
        held.entry = place.unwrap_or(held.entry);
        place.is_some()
    });
    tables.fresh_at = None;
}
