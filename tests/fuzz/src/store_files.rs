//! Damaged database files: a cache and a project, opened, asked, changed, checked and repaired.

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use engine_base::{Clock, Datum, Key, ManualClock};
use flow_store::project::{Change, CommandRecord, Expected, ProjectDb};
use flow_store::{
    Exactness, Faults, NewResult, Provenance, Store, StoreError, StoreOptions, StoredPort,
    StoredValue,
};
use serde_json::json;

fn clock() -> Arc<dyn Clock> {
    Arc::new(ManualClock::at(0))
}

fn open(dir: &Path) -> Result<Store, StoreError> {
    let options = StoreOptions {
        cap_bytes: 1 << 30,
        clock: clock(),
        faults: Faults::none(),
    };
    Store::open(dir, options)
}

fn keys() -> Vec<Key> {
    (0..8u8).map(|n| Key::of_canonical(&[n])).collect()
}

fn new_result(key: Key, name: &str) -> NewResult {
    NewResult {
        key,
        node_type: "fuzz.node".to_owned(),
        ports: vec![StoredPort::one(StoredValue::Small(Datum::map([(
            "name",
            name.into(),
        )])))],
        exactness: Exactness::Exact,
        provenance: Provenance::default(),
    }
}

fn put(id: &str, body: serde_json::Value) -> Change {
    Change::Put {
        kind: "shot".to_owned(),
        id: id.to_owned(),
        order_key: id.to_owned(),
        body,
        expected: Expected::Any,
    }
}

fn command(id: &str) -> CommandRecord {
    CommandRecord {
        id: id.to_owned(),
        kind: "edit".to_owned(),
        name: "shot.rename".to_owned(),
        body: json!({"id": id}),
        forward: vec![put(id, json!({"id": id, "length": "5 s"}))],
        backward: vec![put(id, json!({"id": id, "length": "4 s"}))],
        at_millis: 1,
    }
}

/// File of a whole cache.
static CACHE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = open(dir.path()).expect("a new store");
    for key in keys() {
        store.commit(new_result(key, "shot")).expect("a commit");
    }
    drop(store);
    fs::read(dir.path().join("cache.db")).expect("the cache's database")
});

/// File of a whole project.
static PROJECT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let project = ProjectDb::create(dir.path(), clock()).expect("a new project");
    project
        .set_setting("size", json!("1280x720"))
        .expect("a setting");
    for id in ["one", "two", "three"] {
        project.record(command(id)).expect("a command");
    }
    project.undo().expect("a command was undone");
    drop(project);
    fs::read(dir.path().join("project.db")).expect("the project's database")
});

/// The first byte chooses the cache or the project; each four after it set 1 byte of its file.
/// Every call answers or refuses.
///
/// # Panics
/// When one does not.
pub fn store_files(bytes: &[u8]) {
    let Some((kind, changes)) = bytes.split_first() else {
        return;
    };
    let is_cache = kind % 2 == 0;
    let mut file = if is_cache { &*CACHE } else { &*PROJECT }.clone();
    for change in changes.chunks_exact(4) {
        let at = u32::from_be_bytes([0, change[0], change[1], change[2]]) as usize % file.len();
        file[at] = change[3];
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let name = if is_cache { "cache.db" } else { "project.db" };
    fs::write(dir.path().join(name), file).expect("the damaged database");
    if is_cache {
        cache(dir.path());
    } else {
        project(dir.path());
    }
}

fn cache(dir: &Path) {
    let Ok(store) = open(dir) else {
        return;
    };
    drop(store.lookup(&keys()));
    drop(store.commit(new_result(Key::of_canonical(b"new"), "new")));
    drop(store.counts());
    drop(store.check(true));
    drop(store.repair(false));
    drop(store.prune(0, false));
}

fn project(dir: &Path) {
    let Ok(project) = ProjectDb::open(dir, clock()) else {
        return;
    };
    drop(project.list("shot"));
    drop(project.get("shot", "two"));
    drop(project.settings());
    drop(project.media());
    drop(project.undo_state());
    drop(project.redo());
    drop(project.undo());
    drop(project.inverse_of(&[put("one", json!(null))]));
    drop(project.record(command("four")));
    drop(project.apply(vec![put("five", json!([]))]));
}
