//! Least recently used first; pins, holds and the cap.

use std::fs;

use flow_store::Exactness;
use flow_store::{Store, StoreOptions, StoredValue};

use crate::support::{adopt, commit_file, is_there, key, open, options, result, snapshot};

const LENGTH: usize = 10_000;

fn left(store: &Store, of: u64) -> Vec<u64> {
    let keys: Vec<_> = (0..of).map(key).collect();
    let found = store.lookup(&keys).unwrap();
    (0..of).filter(|n| found[*n as usize].is_some()).collect()
}

#[test]
fn the_least_recently_used_go_first() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for n in 0..6 {
        commit_file(&store, n, LENGTH);
    }
    for n in [3, 0] {
        assert!(is_there(&store, n));
    }
    let before = snapshot(dir.path());
    let counts = store.counts().unwrap();
    let planned = store.prune(35_000, true).unwrap();
    assert_eq!(
        snapshot(&dir.path().join("blobs")).len(),
        6,
        "a dry run removed files"
    );
    assert_eq!(store.counts().unwrap(), counts);
    let done = store.prune(35_000, false).unwrap();
    assert_eq!(planned, done);
    assert_eq!((done.results, done.blobs), (3, 3));
    assert_eq!(done.bytes_freed + done.bytes_left, counts.bytes);
    assert!(done.bytes_left <= 35_000);
    assert_eq!(left(&store, 6), [0, 3, 5]);
    assert!(before.len() > snapshot(dir.path()).len());
    let after = store.counts().unwrap();
    assert_eq!((after.results, after.blobs, after.commits_ever), (3, 3, 6));
    assert_eq!(after.bytes, done.bytes_left);
    // Numbers go on where they were.
    commit_file(&store, 7, LENGTH);
    assert_eq!(store.counts().unwrap().commits_ever, 7);
    assert!(store.check(true).unwrap().is_sound());
}

#[test]
fn the_order_of_use_survives_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for n in 0..3 {
        commit_file(&store, n, LENGTH);
    }
    assert!(is_there(&store, 0));
    drop(store);
    let store = open(dir.path());
    store.prune(15_000, false).unwrap();
    assert_eq!(left(&store, 3), [0]);
}

#[test]
fn a_file_of_two_results_stays_with_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let blob = commit_file(&store, 0, LENGTH);
    commit_file(&store, 1, LENGTH);
    let shared = vec![
        StoredValue::Blob(blob.clone()),
        StoredValue::Blob(blob.clone()),
    ];
    store.commit(result(2, Exactness::Exact, shared)).unwrap();
    let report = store.prune(11_000, false).unwrap();
    assert_eq!((report.results, report.blobs), (2, 1));
    assert_eq!(left(&store, 3), [2]);
    assert!(store.blob_path(&blob.hash).is_ok());
    store.prune(0, false).unwrap();
    assert!(store.blob_path(&blob.hash).is_err());
}

#[test]
fn pinned_files_stay_until_unpinned() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let blobs: Vec<_> = (0..3).map(|n| commit_file(&store, n, LENGTH)).collect();
    let asset = adopt(&store, b"an asset that no result names");
    store
        .pin("project a", &[blobs[0].hash, asset.hash])
        .unwrap();
    store.pin("project b", &[blobs[0].hash]).unwrap();
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.pins("project b").unwrap(), [blobs[0].hash]);
    let report = store.prune(0, false).unwrap();
    assert_eq!(left(&store, 3), [0]);
    assert!(store.blob_path(&asset.hash).is_ok());
    assert!(
        report.bytes_kept >= 10_000 && report.bytes_left >= 10_000,
        "{report:?}"
    );
    store.unpin("project a").unwrap();
    store.prune(0, false).unwrap();
    assert_eq!(left(&store, 3), [0]);
    assert!(store.blob_path(&asset.hash).is_err());
    store.unpin("project b").unwrap();
    store.prune(0, false).unwrap();
    assert!(left(&store, 3).is_empty());
    assert_eq!(store.counts().unwrap().bytes, 0);
}

#[test]
fn files_in_use_stay_for_every_process() {
    let dir = tempfile::tempdir().unwrap();
    // Two openings are two sessions, as two processes are.
    let (store, other) = (open(dir.path()), open(dir.path()));
    for n in 0..3 {
        commit_file(&store, n, LENGTH);
    }
    let (found, guard) = store.lookup_held(&[key(1), key(9)]).unwrap();
    assert!(found[0].is_some() && found[1].is_none());
    let twice = store.hold(guard.hashes()).unwrap();
    let fresh = adopt(&store, b"adopted, not committed yet");
    other.prune(0, false).unwrap();
    assert_eq!(left(&other, 3), [1]);
    store
        .commit(result(
            5,
            Exactness::Exact,
            vec![StoredValue::Blob(fresh.clone())],
        ))
        .unwrap();
    drop(guard);
    store.prune(0, false).unwrap();
    assert_eq!(left(&store, 3), [1], "one of two guards is left");
    assert!(
        store.blob_path(&fresh.hash).is_err(),
        "committed files are as others"
    );
    drop(twice);
    store.prune(0, false).unwrap();
    assert!(left(&store, 3).is_empty());
}

#[test]
fn holds_of_ended_sessions_do_not_stay() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    commit_file(&store, 0, LENGTH);
    adopt(&store, b"never committed");
    drop(store);
    let store = open(dir.path());
    let report = store.prune(0, false).unwrap();
    assert_eq!(
        (report.blobs, report.bytes_left, report.bytes_kept),
        (2, 0, 0)
    );
    assert!(snapshot(&dir.path().join("blobs")).is_empty());
}

#[test]
fn a_store_over_its_cap_is_trimmed_at_open() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for n in 0..6 {
        commit_file(&store, n, LENGTH);
    }
    assert_eq!(store.trim().unwrap().results, 0, "under the cap");
    drop(store);
    let capped = StoreOptions {
        cap_bytes: 25_000,
        ..options()
    };
    let store = Store::open(dir.path(), capped).unwrap();
    assert_eq!(left(&store, 6), [4, 5]);
    commit_file(&store, 6, LENGTH);
    assert_eq!(store.trim().unwrap().results, 1);
    assert_eq!(fs::read_dir(dir.path().join("temp")).unwrap().count(), 0);
}
