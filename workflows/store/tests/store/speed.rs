//! Durable commits and lookups in numbers. Other work on the machine disturbs a run, never helps
//! it, so the best of a few runs counts.

use std::time::{Duration, Instant};

use flow_store::{Exactness, StoredValue};

use crate::support::{adopt, content, key, open, result, small};

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
    let singles = 50;
    let single = {
        let start = Instant::now();
        for n in 0..singles {
            store.commit(small(10 * RESULTS + n, "one by one")).unwrap();
        }
        start.elapsed() / singles as u32
    };
    println!("a commit that is waited for {single:?}");
    // Both in one run on one disk: batches are what makes commits cheap.
    assert!(
        each * 4 < single,
        "a batched commit took {each:?}, a single one {single:?}"
    );
    assert!(
        lookup < each * RESULTS as u32 * 4,
        "the lookup took {lookup:?}"
    );
    assert_eq!(store.counts().unwrap().commits_ever, 3 * RESULTS + singles);
}

#[test]
fn files_and_single_commits_in_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let files = 200;
    let start = Instant::now();
    let blobs: Vec<_> = (0..files)
        .map(|n| adopt(&store, &content(n, 2000 + n as usize)))
        .collect();
    let each_file = start.elapsed() / files as u32;
    let start = Instant::now();
    for (n, blob) in blobs.into_iter().enumerate() {
        let value = vec![StoredValue::Blob(blob)];
        store
            .commit(result(n as u64, Exactness::Exact, value))
            .unwrap();
    }
    let each_commit = start.elapsed() / files as u32;
    println!("a small file {each_file:?}, a commit that is waited for {each_commit:?}");
    assert_eq!(store.counts().unwrap().commits_ever, files);
}
