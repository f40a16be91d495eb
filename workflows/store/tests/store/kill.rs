//! A process that ends at every named point, in the middle of everything: what it was told is
//! durable is there, nothing half-made is taken for whole, and a rerun makes only the rest.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine_base::ManualClock;
use flow_store::project::{Change, CommandRecord, Expected, ProjectDb};
use flow_store::{Exactness, Faults, Store, StoreOptions, StoredValue};

use crate::support::{commit_file, content, key, open, options, result, small};

const WORK: u64 = 12;
const LENGTH: usize = 20_000;

/// Aborts at the `pass`-th pass of `point`: nothing is flushed, no destructor runs.
fn abort_at(point: String, pass: u64) -> Faults {
    let left = AtomicU64::new(pass);
    Faults::new(move |at| {
        if at == point && left.fetch_sub(1, Ordering::SeqCst) == 1 {
            std::process::abort();
        }
    })
}

fn note(progress: &mut File, line: &str) {
    progress.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// The work of the process that ends: imports and commits, with pruning in between.
fn work(dir: &Path, faults: Faults) {
    let mut progress = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("progress"))
        .unwrap();
    let store = Store::open(
        &dir.join("cache"),
        StoreOptions {
            faults: faults.clone(),
            ..options()
        },
    )
    .unwrap();
    for n in 0..WORK {
        let source = dir.join("source");
        fs::write(&source, content(n, LENGTH)).unwrap();
        let blob = store.import(&source, "x/y").unwrap();
        let new = result(n, Exactness::Exact, vec![StoredValue::Blob(blob)]);
        if store.commit(new).unwrap().is_made() {
            note(&mut progress, &format!("made {n}"));
        }
        store.commit(small(100 + n, "plain")).unwrap();
    }
    note(&mut progress, "pruning");
    store.prune(WORK * LENGTH as u64 / 2, false).unwrap();
    note(&mut progress, "pruned");
    let clock = Arc::new(ManualClock::at(1));
    let project_dir = dir.join("film.longtake");
    let project = if ProjectDb::is_there(&project_dir) {
        ProjectDb::open_with(&project_dir, clock, faults)
    } else {
        ProjectDb::create_with(&project_dir, clock, faults)
    }
    .unwrap();
    project.record(rename(&project)).unwrap();
    let kept = store.lookup(&[key(WORK - 1)]).unwrap().remove(0).unwrap();
    project.keep_result(&store, "test.node", &kept).unwrap();
    note(&mut progress, "done");
}

fn rename(project: &ProjectDb) -> CommandRecord {
    let forward = vec![Change::Put {
        kind: "shot".to_owned(),
        id: "1".to_owned(),
        order_key: "a".to_owned(),
        body: serde_json::json!({"name": "dawn"}),
        expected: Expected::Any,
    }];
    CommandRecord {
        id: format!("{}", project.list("shot").unwrap().len()),
        kind: "edit".to_owned(),
        name: "shot.rename".to_owned(),
        body: serde_json::Value::Null,
        backward: project.inverse_of(&forward).unwrap(),
        forward,
        at_millis: 1,
    }
}

/// Not a test: the process that `dies_at` starts. Without its orders it does nothing.
#[test]
fn child() {
    let Ok(orders) = std::env::var("LONGTAKE_KILL_TEST") else {
        return;
    };
    let [dir, point, pass] = orders.split('|').collect::<Vec<_>>()[..] else {
        panic!("orders {orders:?}");
    };
    work(
        Path::new(dir),
        abort_at(point.to_owned(), pass.parse().unwrap()),
    );
}

/// Whether the process came to that point (and ended there).
fn dies_at(dir: &Path, point: &str, pass: u64) -> bool {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--nocapture", "--test-threads=1"])
        .env(
            "LONGTAKE_KILL_TEST",
            format!("{}|{point}|{pass}", dir.display()),
        )
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let done =
        fs::read_to_string(dir.join("progress")).is_ok_and(|progress| progress.ends_with("done\n"));
    assert_eq!(
        output.status.success(),
        done,
        "{point} {pass}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    !done
}

fn made(dir: &Path) -> BTreeSet<u64> {
    fs::read_to_string(dir.join("progress"))
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.strip_prefix("made ")?.parse().ok())
        .collect()
}

fn look_at_what_is_left(dir: &Path, point: &str) {
    let was_pruning = fs::read_to_string(dir.join("progress"))
        .unwrap_or_default()
        .contains("pruning");
    let store = open(&dir.join("cache"));
    let keys: Vec<_> = (0..WORK).map(key).collect();
    let found = store.lookup(&keys).unwrap();
    for n in made(dir) {
        let Some(result) = &found[n as usize] else {
            assert!(was_pruning, "{point}: result {n} was durable and is gone");
            continue;
        };
        let blob = result.blobs().next().unwrap();
        let bytes = fs::read(store.blob_path(&blob.hash).unwrap()).unwrap();
        assert!(
            bytes == content(n, LENGTH),
            "{point}: result {n} has other bytes"
        );
    }
    let report = store.check(true).unwrap();
    assert!(report.corrupt.is_empty(), "{point}: {report:?}");
    assert!(
        report.database.is_empty() && report.rows_unreadable.is_empty(),
        "{point}"
    );
    // Only pruning removes files, before the rows that name them.
    assert!(
        report.missing.is_empty() || was_pruning,
        "{point}: {report:?}"
    );
    let temps = fs::read_dir(dir.join("cache").join("temp"))
        .unwrap()
        .count();
    assert_eq!(
        temps, 0,
        "{point}: temporary files of the ended process are left"
    );
}

#[test]
fn every_point_may_be_the_last() {
    let mut hit = BTreeSet::new();
    let points = Faults::POINTS
        .iter()
        .flat_map(|point| [(*point, 1), (*point, 7)]);
    for (point, pass) in points {
        let dir = tempfile::tempdir().unwrap();
        if !dies_at(dir.path(), point, pass) {
            continue;
        }
        hit.insert(point);
        let before = made(dir.path());
        if ProjectDb::is_there(&dir.path().join("film.longtake")) {
            let clock = Arc::new(ManualClock::at(1));
            let project = ProjectDb::open(&dir.path().join("film.longtake"), clock).unwrap();
            for blob in project.media().unwrap() {
                assert!(project.media_path(&blob.hash).is_ok());
            }
        }
        look_at_what_is_left(dir.path(), point);
        let store = open(&dir.path().join("cache"));
        let found = store
            .lookup(&(0..WORK).map(key).collect::<Vec<_>>())
            .unwrap();
        let missing: BTreeSet<u64> = (0..WORK).filter(|n| found[*n as usize].is_none()).collect();
        drop(store);
        let pruning = fs::read_to_string(dir.path().join("progress"))
            .is_ok_and(|progress| progress.contains("pruning"));
        let lost: Vec<_> = before.intersection(&missing).collect();
        assert!(lost.is_empty() || pruning, "{point}: {lost:?} were durable");

        // The rerun makes what is missing and nothing else; results whose files pruning has
        // removed come back with their files.
        fs::remove_file(dir.path().join("progress")).unwrap_or_default();
        assert!(!dies_at(dir.path(), "none", 1), "{point}: the rerun failed");
        let again = made(dir.path());
        if point == "prune.files_removed" {
            assert!(
                again.is_subset(&missing),
                "{point}: {again:?} of {missing:?}"
            );
        } else {
            assert_eq!(again, missing, "{point}");
        }
    }
    // The copy of an older schema has its own test beside the code.
    let expected: BTreeSet<_> = Faults::POINTS
        .into_iter()
        .filter(|point| *point != "migrate.copied")
        .collect();
    assert_eq!(hit, expected);
}

#[test]
fn a_kill_between_calls_loses_nothing() {
    // Killed from outside, at moments of the parent's choosing rather than at named points.
    for millis in [5, 20, 45, 80] {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child", "--test-threads=1"])
            .env(
                "LONGTAKE_KILL_TEST",
                format!("{}|none|1", dir.path().display()),
            )
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(millis));
        // It may have ended by itself already.
        drop(child.kill());
        child.wait().unwrap();
        look_at_what_is_left(dir.path(), &format!("killed after {millis} ms"));
        let store = open(&dir.path().join("cache"));
        commit_file(&store, 1000, LENGTH);
    }
}
