//! What was made where and when, read from the stores after a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use engine_base::{Key, SystemClock};
use flow_store::{CommitMark, Faults, Store, StoreOptions};

/// A result in a store: when its work began and ended, in milliseconds since 1970, by the clock of
/// whoever made it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    pub(crate) began_millis: u64,
    pub(crate) ended_millis: u64,
}

/// All results of the store in `dir`; none where there is no store.
pub(crate) fn results(dir: &Path) -> Result<BTreeMap<Key, Made>> {
    if !dir.join("cache.db").is_file() {
        return Ok(BTreeMap::new());
    }
    let options = StoreOptions {
        cap_bytes: u64::MAX,
        clock: Arc::new(SystemClock::new()),
        faults: Faults::none(),
    };
    let store = Store::open(dir, options).with_context(|| format!("{}", dir.display()))?;
    let made = store.made_since(CommitMark(0))?;
    Ok(made
        .into_iter()
        .map(|record| {
            let made = Made {
                began_millis: record.made_millis.saturating_sub(record.wall_millis),
                ended_millis: record.made_millis,
            };
            (record.key, made)
        })
        .collect())
}

/// A worker's results, and whether what it finished was in reach of the others to the end.
pub(crate) struct Worker {
    pub(crate) made: BTreeMap<Key, Made>,
    pub(crate) healthy: bool,
}

/// Keys that are not in the owner's store.
pub(crate) fn lost(expected: &BTreeSet<Key>, owner: &BTreeMap<Key, Made>) -> u64 {
    let missing = expected.iter().filter(|key| !owner.contains_key(key));
    missing.count() as u64
}

/// How often work began on something that was finished: in the owner's store, or in the store of
/// another worker that was in reach. Two workers that are at the same work at one time, as when
/// one is slow, are none of these.
pub(crate) fn made_twice(owner: &BTreeMap<Key, Made>, workers: &[Worker]) -> u64 {
    let mut twice = 0;
    for (at, worker) in workers.iter().enumerate() {
        for (key, made) in &worker.made {
            let taken_in = owner.get(key).map(|made| made.ended_millis);
            let others = workers
                .iter()
                .enumerate()
                .filter(|(other, worker)| *other != at && worker.healthy)
                .filter_map(|(_, worker)| Some(worker.made.get(key)?.ended_millis));
            let finished = taken_in.into_iter().chain(others).min();
            if finished.is_some_and(|finished| finished < made.began_millis) {
                twice += 1;
            }
        }
    }
    twice
}

/// How many results more than one worker made, whatever the reason.
pub(crate) fn made_by_several(workers: &[Worker]) -> usize {
    let mut by_key: BTreeMap<Key, usize> = BTreeMap::new();
    for key in workers.iter().flat_map(|worker| worker.made.keys()) {
        *by_key.entry(*key).or_default() += 1;
    }
    by_key.values().filter(|count| **count > 1).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(began_millis: u64, ended_millis: u64) -> Made {
        Made {
            began_millis,
            ended_millis,
        }
    }

    fn key(byte: u8) -> Key {
        Key::from_bytes([byte; 32])
    }

    #[test]
    fn work_on_what_is_finished_counts_and_work_at_the_same_time_does_not() {
        let owner = BTreeMap::from([(key(1), made(90, 100)), (key(2), made(190, 200))]);
        let worker = |results: &[(u8, u64, u64)], healthy| Worker {
            made: results
                .iter()
                .map(|(k, b, e)| (key(*k), made(*b, *e)))
                .collect(),
            healthy,
        };
        let once = [worker(&[(1, 10, 90)], true), worker(&[(2, 10, 150)], true)];
        assert_eq!(made_twice(&owner, &once), 0);
        let stolen = [worker(&[(1, 10, 90)], true), worker(&[(1, 50, 95)], true)];
        assert_eq!(
            (made_twice(&owner, &stolen), made_by_several(&stolen)),
            (0, 1)
        );
        let again = [
            worker(&[(1, 10, 90)], false),
            worker(&[(1, 120, 130)], true),
        ];
        assert_eq!(made_twice(&owner, &again), 1);
        // Finished by a worker that is still there, and not taken in yet.
        let ignored = [worker(&[(2, 10, 50)], true), worker(&[(2, 60, 150)], true)];
        assert_eq!(made_twice(&owner, &ignored), 1);
        // Finished by one that nobody could ask.
        let unreachable = [worker(&[(2, 10, 50)], false), worker(&[(2, 60, 150)], true)];
        assert_eq!(made_twice(&owner, &unreachable), 0);
        assert_eq!(lost(&BTreeSet::from([key(1), key(3)]), &owner), 1);
    }
}
