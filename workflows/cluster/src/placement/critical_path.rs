//! Critical path first, on the device that finishes it first.
//!
//! List scheduling by upward rank with earliest finish times, as in "Performance-effective and
//! low-complexity task scheduling for heterogeneous computing" (Topcuoglu, Hariri and Wu, 2002:
//! HEFT), made anew at each pull from what is known by then.

use std::collections::BTreeMap;

use super::view::ReadyJob;
use super::{Asker, Choice, Placement, View};

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

/// Differences below this are none, in seconds: equal devices tie, and the asker wins ties.
const TIE_SECS: f64 = 1e-6;

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
        for job in Self::ordered(view, asker) {
            let mut best: Option<(f64, usize)> = None;
            for (index, lane) in lanes.iter().enumerate() {
                // Loading takes long: a job is not worth asking about where even an instant
                // start could not win.
                if best.is_some_and(|(end, _)| lane.free_in_secs > end + TIE_SECS) {
                    continue;
                }
                let Ok(terms) = view.terms(job.id, &lane.at) else {
                    continue;
                };
                let end = lane.free_in_secs + terms.total_secs();
                let wins = match best {
                    None => true,
                    Some((least, _)) if lane.at == *asker => end <= least + TIE_SECS,
                    Some((least, _)) => end < least - TIE_SECS,
                };
                if wins {
                    best = Some((end, index));
                }
            }
            let Some((end, index)) = best else {
                continue;
            };
            let Some(lane) = lanes.get_mut(index) else {
                continue;
            };
            if lane.at == *asker && lane.free_in_secs <= 0.0 {
                return Some(Choice::Start(job.id));
            }
            lane.free_in_secs = end;
        }
        view.best_duplicate(asker)
    }
}
