//! One cache, several processes and threads.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Barrier};

use flow_store::{Committed, StoredValue};

use crate::support::{commit_file, content, key, open, small};

const KEYS: u64 = 150;

/// Not a test: one of the processes of `processes_agree_on_what_came_first`.
#[test]
fn child() {
    let Ok(orders) = std::env::var("LONGTAKE_SHARED_TEST") else {
        return;
    };
    let [dir, name] = orders.split('|').collect::<Vec<_>>()[..] else {
        panic!("orders {orders:?}");
    };
    let dir = Path::new(dir);
    let store = open(&dir.join("cache"));
    let mut got = Vec::new();
    for n in 0..KEYS {
        let committed = store.commit(small(n, name)).unwrap();
        let StoredValue::Small(text) = &committed.result().ports[0].elements[0] else {
            panic!("plain data came back as something else");
        };
        got.push(format!("{} {}", n, text.as_str().unwrap()));
        // The same content from all, at about the same time.
        let temp = store.temp("bin").unwrap();
        std::fs::write(&temp, content(n, 500)).unwrap();
        store.adopt(&temp, "x/y").unwrap();
    }
    std::fs::write(dir.join(name), got.join("\n")).unwrap();
}

#[test]
fn processes_agree_on_what_came_first() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["one", "two", "three"];
    let children: Vec<_> = names
        .iter()
        .map(|name| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "shared::child", "--test-threads=1"])
                .env(
                    "LONGTAKE_SHARED_TEST",
                    format!("{}|{name}", dir.path().display()),
                )
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let said = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(said("one") == said("two") && said("two") == said("three"));
    let store = open(&dir.path().join("cache"));
    let counts = store.counts().unwrap();
    assert_eq!((counts.results, counts.commits_ever), (KEYS, KEYS));
    assert_eq!(counts.duplicates_dropped, 2 * KEYS);
    let report = store.check(true).unwrap();
    assert!(report.is_sound());
    assert_eq!(report.orphans.len() as u64, KEYS);
}

#[test]
fn threads_agree_on_what_came_first() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let barrier = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (store, barrier) = (store.clone(), Arc::clone(&barrier));
            std::thread::Builder::new()
                .name(format!("committer {thread}"))
                .spawn(move || {
                    barrier.wait();
                    (0..100)
                        .map(|n| store.commit(small(n, &format!("{thread}"))).unwrap())
                        .collect::<Vec<Committed>>()
                })
                .unwrap()
        })
        .collect();
    let outcomes: Vec<_> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    for n in 0..100 {
        let made = outcomes.iter().filter(|all| all[n].is_made()).count();
        assert_eq!(made, 1, "key {n} was made {made} times");
        assert!(
            outcomes
                .iter()
                .all(|all| all[n].result() == outcomes[0][n].result())
        );
    }
}

#[test]
fn pruning_and_committing_at_once_breaks_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let other = open(dir.path());
    let pruner = std::thread::Builder::new()
        .name("pruner".to_owned())
        .spawn(move || {
            for _ in 0..20 {
                other.prune(20_000, false).unwrap();
            }
        })
        .unwrap();
    for n in 0..60 {
        // Contents come back, so that files are removed and made under the same name.
        let temp = store.temp("bin").unwrap();
        std::fs::write(&temp, content(n % 7, 5000)).unwrap();
        let blob = store.adopt(&temp, "x/y").unwrap();
        let new = crate::support::result(
            n,
            flow_store::Exactness::Exact,
            vec![StoredValue::Blob(blob)],
        );
        assert!(store.commit(new).unwrap().is_made());
        let (found, _held) = store.lookup_held(&[key(n)]).unwrap();
        if let Some(result) = &found[0] {
            let hash = result.blobs().next().unwrap().hash;
            assert!(store.blob_path(&hash).is_ok(), "a held file went");
        }
    }
    pruner.join().unwrap();
    commit_file(&store, 500, 100);
    let report = store.check(true).unwrap();
    assert!(report.is_sound(), "{report:?}");
}
