//! The baselines that others are measured against.

use std::collections::{BTreeMap, BTreeSet};

use super::{Asker, Choice, Placement, View};
use crate::job::JobId;

/// Deals jobs out to the devices in turn as they become ready, each node type by itself so that
/// a film's rhythm does not send all clips to the same machines; first come, first served. Knows
/// no costs, models or paths; deals a device's jobs anew when it is gone.
#[derive(Debug, Clone, Default)]
pub struct RoundRobin {
    dealt: BTreeMap<JobId, Asker>,
    next: BTreeMap<String, usize>,
}

impl Placement for RoundRobin {
    fn name(&self) -> &'static str {
        "round robin"
    }

    fn choose(&mut self, view: &View<'_>, asker: &Asker) -> Option<Choice> {
        let lanes: Vec<Asker> = view.lanes().into_iter().map(|lane| lane.at).collect();
        let there: BTreeSet<&Asker> = lanes.iter().collect();
        let ready: Vec<JobId> = view.ready().into_iter().map(|job| job.id).collect();
        for job in &ready {
            if self.dealt.get(job).is_some_and(|to| there.contains(to)) {
                continue;
            }
            let node_type = view.job(*job).map_or("", |job| job.main_type());
            let next = self.next.entry(node_type.to_owned()).or_default();
            for _ in 0..lanes.len() {
                let to = lanes.get(*next % lanes.len());
                *next = next.wrapping_add(1);
                if let Some(to) = to.filter(|to| view.terms(*job, to).is_ok()) {
                    self.dealt.insert(*job, to.clone());
                    break;
                }
            }
        }
        let own = ready
            .iter()
            .filter(|job| self.dealt.get(job) == Some(asker));
        for job in own.copied().collect::<Vec<_>>() {
            self.dealt.remove(&job);
            if view.terms(job, asker).is_ok() {
                return Some(Choice::Start(job));
            }
        }
        None
    }
}

/// Gives every asker the oldest job that it can take.
#[derive(Debug, Clone, Copy, Default)]
pub struct FirstCome;

impl Placement for FirstCome {
    fn name(&self) -> &'static str {
        "first come"
    }

    fn choose(&mut self, view: &View<'_>, asker: &Asker) -> Option<Choice> {
        let mut ready = view.ready().into_iter();
        let job = ready.find(|job| view.terms(job.id, asker).is_ok())?;
        Some(Choice::Start(job.id))
    }
}
