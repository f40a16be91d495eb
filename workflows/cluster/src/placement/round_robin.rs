//! The baseline that others are measured against.

use std::collections::{BTreeMap, BTreeSet};

use super::{Asker, Choice, Placement, View};
use crate::job::JobId;

/// Deals jobs out to the devices in turn as they become ready, first come, first served. Knows
/// no costs, models or paths; deals a device's jobs anew when it is gone.
#[derive(Debug, Clone, Default)]
pub struct RoundRobin {
    dealt: BTreeMap<JobId, Asker>,
    next: usize,
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
            let keeps = self
                .dealt
                .get(job)
                .is_some_and(|to| there.contains(to) && view.terms(*job, to).is_ok());
            if keeps {
                continue;
            }
            self.dealt.remove(job);
            for _ in 0..lanes.len() {
                let to = lanes.get(self.next % lanes.len());
                self.next = self.next.wrapping_add(1);
                if let Some(to) = to.filter(|to| view.terms(*job, to).is_ok()) {
                    self.dealt.insert(*job, to.clone());
                    break;
                }
            }
        }
        let mut own = ready
            .iter()
            .filter(|job| self.dealt.get(job) == Some(asker));
        let job = own.next()?;
        self.dealt.remove(job);
        Some(Choice::Start(*job))
    }
}
