//! Results to commit, and looking at folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use engine_base::{Datum, Key, ManualClock};
use flow_store::{
    Exactness, Faults, NewResult, Provenance, Store, StoreOptions, StoredBlob, StoredPort,
    StoredValue,
};

pub(crate) fn options() -> StoreOptions {
    StoreOptions {
        cap_bytes: 1 << 40,
        clock: Arc::new(ManualClock::at(1_700_000_000_000)),
        faults: Faults::none(),
    }
}

pub(crate) fn open(dir: &Path) -> Store {
    Store::open(dir, options()).unwrap()
}

pub(crate) fn key(number: u64) -> Key {
    Key::of_canonical(&number.to_be_bytes())
}

pub(crate) fn result(number: u64, exactness: Exactness, values: Vec<StoredValue>) -> NewResult {
    NewResult {
        key: key(number),
        node_type: "test.node".to_owned(),
        ports: values.into_iter().map(StoredPort::one).collect(),
        exactness,
        provenance: Provenance {
            inputs: vec![],
            engine_build: "test".to_owned(),
            device_class: "cpu".to_owned(),
            wall_millis: 3,
        },
    }
}

pub(crate) fn small(number: u64, text: &str) -> NewResult {
    result(
        number,
        Exactness::Tolerant,
        vec![StoredValue::Small(Datum::from(text))],
    )
}

/// Bytes of the file that work `number` makes.
pub(crate) fn content(number: u64, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at as u64 * 31 + number * 17) as u8)
        .collect()
}

/// Make a file in the store the way nodes do.
pub(crate) fn adopt(store: &Store, bytes: &[u8]) -> StoredBlob {
    let temp = store.temp("bin").unwrap();
    fs::write(&temp, bytes).unwrap();
    store.adopt(&temp, "application/octet-stream").unwrap()
}

/// Commit work `number` with a file of `length` bytes.
pub(crate) fn commit_file(store: &Store, number: u64, length: usize) -> StoredBlob {
    let blob = adopt(store, &content(number, length));
    let committed = store
        .commit(result(
            number,
            Exactness::Exact,
            vec![StoredValue::Blob(blob.clone())],
        ))
        .unwrap();
    assert!(committed.is_made());
    blob
}

pub(crate) fn is_there(store: &Store, number: u64) -> bool {
    store.lookup(&[key(number)]).unwrap()[0].is_some()
}

/// Every file below `dir` with its bytes.
pub(crate) fn snapshot(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().display().to_string();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    files
}
