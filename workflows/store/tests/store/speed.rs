//! Durable commits and lookups in numbers. Other work on the machine disturbs a run, never helps
//! it, so the best of a few runs counts.

use std::time::{Duration, Instant};

use crate::support::{key, open, small};

const RESULTS: u64 = 10_000;

fn best(runs: usize, mut run: impl FnMut(usize) -> Duration) -> Duration {
    (0..runs).map(&mut run).min().unwrap()
}

#[test]
fn durable_commits_take_well_under_200_microseconds() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let commits = best(3, |run| {
        let first = run as u64 * RESULTS;
        let start = Instant::now();
        let pending: Vec<_> = (first..first + RESULTS)
            .map(|n| {
                store
                    .submit(small(n, "a result of the usual size"))
                    .unwrap()
            })
            .collect();
        for pending in pending {
            assert!(pending.wait().unwrap().is_made());
        }
        start.elapsed()
    });
    let each = commits / RESULTS as u32;
    let keys: Vec<_> = (0..RESULTS).map(key).collect();
    let lookup = best(3, |_| {
        let start = Instant::now();
        let found = store.lookup(&keys).unwrap();
        assert!(found.iter().all(Option::is_some));
        start.elapsed()
    });
    println!("commit {each:?} each, lookup of {RESULTS} keys {lookup:?}");
    assert!(each < Duration::from_micros(200), "a commit took {each:?}");
    assert!(
        lookup < Duration::from_millis(200),
        "the lookup took {lookup:?}"
    );
    assert_eq!(store.counts().unwrap().commits_ever, 3 * RESULTS);
}
