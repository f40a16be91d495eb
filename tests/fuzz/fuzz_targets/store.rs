//! The store's readers: rows of results, and a whole cache whose database file was damaged.
#![no_main]

use std::fs;
use std::sync::{Arc, LazyLock};

use engine_base::{Datum, Key, ManualClock};
use flow_store::{
    Exactness, Faults, NewResult, Provenance, Store, StoreOptions, StoredPort, StoredValue,
    decode_ports, encode_ports,
};
use libfuzzer_sys::fuzz_target;

fn open(dir: &std::path::Path) -> Result<Store, flow_store::StoreError> {
    let options = StoreOptions {
        cap_bytes: 1 << 30,
        clock: Arc::new(ManualClock::at(0)),
        faults: Faults::none(),
    };
    Store::open(dir, options)
}

fn keys() -> Vec<Key> {
    (0..8u8).map(|n| Key::of_canonical(&[n])).collect()
}

static DATABASE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = open(dir.path()).expect("a new store");
    for (n, key) in keys().into_iter().enumerate() {
        let value = Datum::map([("n", Datum::whole(n as u64)), ("name", "shot".into())]);
        let result = NewResult {
            key,
            node_type: "fuzz.node".to_owned(),
            ports: vec![StoredPort::one(StoredValue::Small(value))],
            exactness: Exactness::Exact,
            provenance: Provenance::default(),
        };
        store.commit(result).expect("a commit");
    }
    drop(store);
    fs::read(dir.path().join("cache.db")).expect("the database")
});

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else {
        return;
    };
    // Opening a database takes milliseconds, a row takes none: most runs go to rows.
    if kind < 250 {
        if let Ok(ports) = decode_ports(data)
            && let Ok(bytes) = encode_ports(&ports)
        {
            assert_eq!(bytes, data, "a row was read that is not canonical");
        }
        return;
    }
    let mut database = DATABASE.clone();
    for change in data.chunks_exact(4) {
        let at = usize::from(change[0]) << 8 | usize::from(change[1]);
        let at = (at * 16 + usize::from(change[2] & 15)) % database.len();
        database[at] = change[3];
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    fs::write(dir.path().join("cache.db"), database).expect("the damaged database");
    if let Ok(store) = open(dir.path()) {
        drop(store.lookup(&keys()));
        drop(store.counts());
        drop(store.check(true));
        drop(store.repair(false));
        drop(store.prune(0, false));
    }
});
