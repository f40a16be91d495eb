//! Critical path first, on the device that finishes it first.
//!
//! List scheduling by upward rank with earliest finish times, as in "Performance-effective and
//! low-complexity task scheduling for heterogeneous computing" (Topcuoglu, Hariri and Wu, 2002:
//! HEFT), made anew at each pull from what is known by then.

use std::collections::BTreeMap;

use super::view::{LaneView, ReadyJob};
use super::{Asker, Choice, Placement, View};
use crate::job::JobId;

/// The policy.
///
/// Jobs are looked at in order of level, then of rank; between jobs whose ranks differ by less
/// than it takes to load a model, the one whose model is there goes first. Each is given, on
/// paper, to the device on which it would end first, counting loading, transfer and what that
/// device is at still. The first job that falls to the asker now is its own. A slow device
/// therefore leaves the job on which the film waits to a fast one that is free soon, and takes
/// one for which nobody else has time. Nothing ready: the running job whose second start wins
/// most.
#[derive(Debug, Clone, Copy, Default)]
pub struct CriticalPath;

/// By how much sooner another device has to end a job that ends there in `end_secs`, so that the
/// asker, which is here now, leaves it: predictions are not that sharp, and an idle device has to
/// ask first.
fn worth_waiting(end_secs: f64) -> f64 {
    0.5 + 0.02 * end_secs
}

/// The lane on which a job would end first, and when, in seconds from now.
fn soonest(view: &View<'_>, lanes: &[LaneView], job: JobId) -> Option<(f64, usize)> {
    let mut best: Option<(f64, usize)> = None;
    for (index, lane) in lanes.iter().enumerate() {
        // Not worth asking about where even an instant job would end later.
        if best.is_some_and(|(end, _)| lane.free_in_secs >= end) {
            continue;
        }
        let Ok(terms) = view.terms(job, &lane.at) else {
            continue;
        };
        let end = lane.free_in_secs + terms.total_secs();
        if best.is_none_or(|(least, _)| end < least) {
            best = Some((end, index));
        }
    }
    best
}

impl CriticalPath {
    fn ordered(view: &View<'_>, asker: &Asker) -> Vec<ReadyJob> {
        // Thousands of ready jobs run a few models.
        let mut known: BTreeMap<_, f64> = BTreeMap::new();
        let mut jobs: Vec<(ReadyJob, f64)> = Vec::new();
        for ready in view.ready() {
            let Some(job) = view.job(ready.id) else {
                continue;
            };
            let needs = (job.model.map(|need| need.model), job.memory_bytes());
            let model_secs = *known
                .entry(needs)
                .or_insert_with(|| view.model_secs(ready.id, asker));
            jobs.push((ready, ready.rank_secs - model_secs));
        }
        jobs.sort_by(|(a, a_rank), (b, b_rank)| {
            let by_level = b.level.total_cmp(&a.level);
            let by_rank = b_rank.total_cmp(a_rank);
            by_level.then(by_rank).then(a.id.cmp(&b.id))
        });
        jobs.into_iter().map(|(job, _)| job).collect()
    }
}

impl Placement for CriticalPath {
    fn name(&self) -> &'static str {
        "critical path"
    }

    fn choose(&mut self, view: &View<'_>, asker: &Asker) -> Option<Choice> {
        if !view.has_ready() {
            return view.best_duplicate(asker);
        }
        let mut lanes = view.lanes();
        lanes.retain(|lane| lane.at != *asker);
        for job in Self::ordered(view, asker) {
            let own = view.terms(job.id, asker).ok();
            let other = soonest(view, &lanes, job.id);
            match (own, other) {
                (Some(own), Some((end, _))) if own.total_secs() <= end + worth_waiting(end) => {
                    return Some(Choice::Start(job.id));
                }
                (Some(_), None) => return Some(Choice::Start(job.id)),
                (_, Some((end, index))) => {
                    if let Some(lane) = lanes.get_mut(index) {
                        lane.free_in_secs = end;
                    }
                }
                (None, None) => {}
            }
        }
        view.best_duplicate(asker)
    }
}
