//! First wins, files, damage.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use engine_base::{Code, ContentHash, Datum, ManualClock};
use flow_store::{
    Committed, Exactness, SMALL_MAX_BYTES, Store, StoreError, StoreOptions, StoredBlob, StoredPort,
    StoredValue, content_of,
};

use crate::support::{
    adopt, commit_file, content, is_there, key, open, options, result, small, snapshot,
};

#[test]
fn what_was_committed_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let blob = adopt(&store, b"a picture");
    let values = vec![
        StoredValue::Small(Datum::map([
            ("seed", Datum::Uint(u64::MAX)),
            ("scale", Datum::Float(-0.5)),
            ("names", Datum::List(vec!["é".into(), Datum::Null])),
        ])),
        StoredValue::Blob(blob.clone()),
        StoredValue::Blocked(Some("no voice".to_owned())),
        StoredValue::Blocked(None),
    ];
    let mut new = result(1, Exactness::Exact, values.clone());
    new.ports.push(StoredPort {
        list: true,
        elements: vec![],
    });
    let made = store.commit(new.clone()).unwrap().into_result();
    assert_eq!(made.commit_number, 1);
    drop(store);

    let store = open(dir.path());
    let found = store.lookup(&[key(2), key(1), key(1)]).unwrap();
    assert_eq!(found, [None, Some(made.clone()), Some(made.clone())]);
    assert_eq!(made.ports, new.ports);
    assert_eq!(made.content, content_of(&new.ports).unwrap());
    let path = store.blob_path(&blob.hash).unwrap();
    assert_eq!(fs::read(path).unwrap(), b"a picture");
    assert_eq!(blob.hash, ContentHash::of(b"a picture"));
    assert!(store.check(true).unwrap().is_sound());
}

#[test]
fn the_first_content_of_a_key_wins() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let first = store.commit(small(1, "first")).unwrap();
    assert!(first.is_made());
    let again = store.commit(small(1, "first")).unwrap();
    let other = store.commit(small(1, "other")).unwrap();
    assert_eq!(again, Committed::Kept(first.result().clone()));
    assert_eq!(other, Committed::Kept(first.result().clone()));

    let exact = |text: &str| {
        let values = vec![StoredValue::Small(Datum::from(text))];
        store.commit(result(1, Exactness::Exact, values))
    };
    assert!(!exact("first").unwrap().is_made());
    let refused = exact("other").unwrap_err();
    assert!(
        matches!(&refused, StoreError::ExactMismatch { key: at, had, .. }
            if *at == key(1) && *had == first.result().content),
        "{refused}"
    );
    let counts = store.counts().unwrap();
    assert_eq!((counts.results, counts.commits_ever), (1, 1));
    assert_eq!(counts.duplicates_dropped, 3);
    assert_eq!(counts.duplicates_differing, 1);
    assert_eq!(counts.mismatches, 1);
}

#[test]
fn the_first_wins_within_one_transaction_too() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let results: Vec<_> = (0..300).map(|n| small(n % 3, &format!("{n}"))).collect();
    let committed = store.commit_many(results).unwrap();
    for (n, outcome) in committed.iter().enumerate() {
        let expected = StoredValue::Small(Datum::from(format!("{}", n % 3)));
        assert_eq!(outcome.result().ports[0].elements[0], expected);
        assert_eq!(outcome.is_made(), n < 3);
    }
    assert_eq!(store.counts().unwrap().duplicates_differing, 297);
}

#[test]
fn one_bad_result_spoils_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let absent = StoredValue::Blob(StoredBlob {
        hash: ContentHash::of(b"never made"),
        bytes: 10,
        media_type: "video/mp4".to_owned(),
    });
    let pending = [
        store.submit(small(1, "good")).unwrap(),
        store
            .submit(result(2, Exactness::Exact, vec![absent]))
            .unwrap(),
        store.submit(small(3, "good too")).unwrap(),
    ];
    let outcomes = pending.map(flow_store::PendingCommit::wait);
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
    assert!(matches!(outcomes[1], Err(StoreError::MissingBlob { .. })));
    assert_eq!(store.counts().unwrap().results, 2);
}

#[test]
fn plain_data_over_the_limit_and_nan_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    // Three bytes of head before a text of this length.
    let most = "x".repeat(SMALL_MAX_BYTES - 3);
    assert!(store.commit(small(1, &most)).is_ok());
    let over = store.commit(small(2, &format!("{most}x"))).unwrap_err();
    assert!(
        matches!(
            over,
            StoreError::TooLarge {
                got_bytes: 65_537,
                ..
            }
        ),
        "{over}"
    );
    let nan = vec![StoredValue::Small(Datum::Float(f64::NAN))];
    let refused = store.commit(result(3, Exactness::Exact, nan)).unwrap_err();
    assert_eq!(refused.code(), Code::BadInput);
}

#[test]
fn the_same_content_is_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let (first, second) = (adopt(&store, b"same"), adopt(&store, b"same"));
    assert_eq!(first, second);
    let source = dir.path().join("outside.png");
    fs::write(&source, b"same").unwrap();
    let third = store.import(&source, "image/png").unwrap();
    assert_eq!((third.hash, third.bytes), (first.hash, 4));
    assert!(source.exists(), "an asset was moved instead of copied");
    let files = snapshot(&dir.path().join("blobs"));
    assert_eq!(files.len(), 1);
    let temps = snapshot(&dir.path().join("temp"));
    assert!(temps.is_empty(), "left in temp: {:?}", temps.keys());
}

#[test]
fn only_plain_files_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let gone = store.temp("mp4").unwrap();
    assert_eq!(
        store.adopt(&gone, "video/mp4").unwrap_err().code(),
        Code::NotFound
    );
    assert_eq!(
        store.import(&gone, "video/mp4").unwrap_err().code(),
        Code::NotFound
    );
    fs::create_dir(&gone).unwrap();
    for refused in [store.adopt(&gone, "x/y"), store.import(&gone, "x/y")] {
        assert_eq!(refused.unwrap_err().code(), Code::BadInput);
    }
    #[cfg(unix)]
    {
        let link = store.temp("png").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
        assert!(matches!(
            store.adopt(&link, "x/y"),
            Err(StoreError::NotAFile {
                got: "a symbolic link",
                ..
            })
        ));
    }
    let absent = store.blob_path(&ContentHash::of(b"absent"));
    assert!(matches!(absent, Err(StoreError::NotFound { .. })));
}

#[test]
fn a_result_whose_file_is_gone_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let blob = commit_file(&store, 1, 5000);
    fs::remove_file(store.blob_path(&blob.hash).unwrap()).unwrap();
    assert!(!is_there(&store, 1));
    // Another content this time: the lost one cannot win, even for an exact node.
    let other = adopt(&store, b"other");
    let committed = store
        .commit(result(1, Exactness::Exact, vec![StoredValue::Blob(other)]))
        .unwrap();
    assert!(committed.is_made());
    assert_eq!(
        committed.result().commit_number,
        2,
        "a commit number was used twice"
    );
    assert!(is_there(&store, 1));
}

#[test]
fn check_finds_damage_and_repair_drops_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let blobs: Vec<_> = (0..6).map(|n| commit_file(&store, n, 4000)).collect();
    let path = |at: usize| store.blob_path(&blobs[at].hash).unwrap();
    let orphan = adopt(&store, b"never committed");
    let change = |at: usize, bytes: &[u8]| {
        let path = path(at);
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    };
    fs::remove_file(path(0)).unwrap();
    change(1, &content(1, 3999));
    let mut flipped = content(2, 4000);
    flipped[1234] ^= 1;
    change(2, &flipped);

    let quick = store.check(false).unwrap();
    assert_eq!(quick.missing, [blobs[0].hash]);
    assert_eq!(
        quick.corrupt,
        [blobs[1].hash],
        "a wrong size shows without hashing"
    );
    let deep = store.check(true).unwrap();
    let mut corrupt = vec![blobs[1].hash, blobs[2].hash];
    corrupt.sort_unstable();
    assert_eq!(deep.corrupt, corrupt);
    assert_eq!(deep.orphans, [orphan.hash]);
    assert_eq!((deep.results, deep.blobs), (6, 6));
    assert!(!deep.is_sound());

    let repaired = store.repair(true).unwrap();
    assert_eq!(
        (repaired.results_dropped, repaired.files_quarantined),
        (3, 2)
    );
    let after = store.check(true).unwrap();
    assert!(after.is_sound(), "{after:?}");
    assert_eq!(after.results, 3);
    let aside = snapshot(&dir.path().join("quarantine"));
    assert_eq!(aside[&blobs[2].hash.to_hex()], flipped);
    for n in 0..6 {
        assert_eq!(is_there(&store, n), n >= 3);
    }
    commit_file(&store, 2, 4000);
    assert!(store.check(true).unwrap().is_sound());
}

#[test]
fn damaged_rows_are_absent_reported_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let pattern = "a text to be found in the file";
    store.commit(small(1, pattern)).unwrap();
    store.commit(small(2, "sound")).unwrap();
    drop(store);
    let path = dir.path().join("cache.db");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes
        .windows(pattern.len())
        .position(|window| window == pattern.as_bytes())
        .unwrap();
    bytes[at] ^= 0x80;
    fs::write(&path, &bytes).unwrap();

    let store = open(dir.path());
    assert!(!is_there(&store, 1) && is_there(&store, 2));
    assert_eq!(store.check(false).unwrap().rows_unreadable, [key(1)]);
    assert!(store.commit(small(1, pattern)).unwrap().is_made());
    assert!(store.check(false).unwrap().is_sound());
}

#[test]
fn an_orphan_is_found_again_when_its_content_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let orphan = adopt(&store, &content(1, 9000));
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.check(false).unwrap().orphans, [orphan.hash]);
    assert_eq!(commit_file(&store, 1, 9000), orphan);
    assert!(store.check(true).unwrap().orphans.is_empty());
}

#[test]
fn alien_and_newer_databases_are_refused_untouched() {
    for (name, header) in [
        ("text", b"not a database at all".to_vec()),
        ("other program's", {
            let mut bytes = vec![0; 4096];
            bytes[..16].copy_from_slice(b"SQLite format 3\0");
            bytes
        }),
    ] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("cache.db"), &header).unwrap();
        let before = snapshot(dir.path());
        let refused = Store::open(dir.path(), options()).unwrap_err();
        assert!(
            matches!(refused, StoreError::NotADatabase { .. }),
            "{name}: {refused}"
        );
        assert_eq!(snapshot(dir.path()), before, "{name}");
    }
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let path = dir.path().join("cache.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[60..64].copy_from_slice(&7u32.to_be_bytes());
    fs::write(&path, &bytes).unwrap();
    let before = snapshot(dir.path());
    let refused = Store::open(dir.path(), options()).unwrap_err();
    assert!(
        matches!(
            refused,
            StoreError::NewerSchema {
                got: 7,
                newest: 1,
                ..
            }
        ),
        "{refused}"
    );
    assert_eq!(refused.code(), Code::Refused);
    assert_eq!(snapshot(dir.path()), before);
}

#[test]
fn commits_are_counted_from_a_mark() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.commit(small(1, "before")).unwrap();
    let mark = store.mark().unwrap();
    store.commit(small(1, "again")).unwrap();
    for n in 2..5 {
        store.commit(small(n, "after")).unwrap();
    }
    let since = store.committed_since(mark).unwrap();
    let keys: Vec<_> = since.iter().map(|commit| commit.key).collect();
    assert_eq!(keys, [key(2), key(3), key(4)]);
    assert_eq!(since[0].node_type, "test.node");
    assert_eq!(
        since
            .iter()
            .map(|commit| commit.commit_number)
            .collect::<Vec<_>>(),
        [2, 3, 4]
    );
}

#[test]
fn clocks_set_back_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(2_000_000_000_000));
    let options = StoreOptions {
        clock: clock.clone(),
        ..options()
    };
    let store = Store::open(dir.path(), options).unwrap();
    let mut numbers = BTreeMap::new();
    for n in 0..4 {
        clock.set_unix_millis(2_000_000_000_000 - n * 1_000_000_000);
        let made = store.commit(small(n, &"x".repeat(1000))).unwrap();
        numbers.insert(made.result().commit_number, n);
    }
    assert_eq!(numbers.into_values().collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(is_there(&store, 0));
    // Used last, though committed first and, by the clock, in the future of all others.
    store.prune(1500, false).unwrap();
    let left: Vec<_> = (0..4).filter(|n| is_there(&store, *n)).collect();
    assert_eq!(left, [0]);
}

#[test]
fn no_damage_to_the_database_panics_and_a_new_one_can_be_begun() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for n in 0..30 {
        store.commit(small(n, "sound")).unwrap();
    }
    let blob = commit_file(&store, 30, 3000);
    drop(store);
    let path = dir.path().join("cache.db");
    let sound = fs::read(&path).unwrap();
    // A fixed walk over the file: a xorshift generator, so that a failure comes back.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut broken = 0;
    for round in 0..60 {
        let mut bytes = sound.clone();
        match round % 3 {
            0 => (0..8).for_each(|_| bytes[next(sound.len())] = next(256) as u8),
            1 => {
                let at = next(sound.len() / 512) * 512;
                bytes[at..at + 512].fill(next(256) as u8);
            }
            _ => bytes.truncate(next(sound.len())),
        }
        fs::write(&path, &bytes).unwrap();
        let keys: Vec<_> = (0..31).map(key).collect();
        let looked = Store::open(dir.path(), options()).and_then(|store| {
            let found = store.lookup(&keys)?;
            store.check(true)?;
            Ok((found, store.repair(false)?, store.prune(1 << 40, false)?))
        });
        match looked {
            Ok((found, _, _)) => {
                for result in found.iter().flatten() {
                    assert_eq!(content_of(&result.ports).unwrap(), result.content);
                }
            }
            Err(error) => {
                broken += 1;
                assert_ne!(
                    error,
                    StoreError::Closed,
                    "a thread panicked in round {round}"
                );
            }
        }
        for suffix in ["-wal", "-shm"] {
            drop(fs::remove_file(
                dir.path().join(format!("cache.db{suffix}")),
            ));
        }
    }
    assert!(
        broken > 10,
        "only {broken} of 60 damaged databases were noticed"
    );

    fs::write(&path, &sound[..5000]).unwrap();
    let aside = Store::set_database_aside(dir.path()).unwrap();
    assert_eq!(fs::read(aside).unwrap(), &sound[..5000]);
    let store = open(dir.path());
    assert_eq!(store.counts().unwrap().results, 0);
    assert_eq!(commit_file(&store, 30, 3000), blob);
    let busy = Store::set_database_aside(dir.path());
    assert!(busy.is_err(), "an open store was taken away");
}
