#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::tests::{Bench, bench};
use super::*;
use crate::cluster::{WorkerRequest, WorkerRow};
use crate::studio::{Studio, StudioOptions};

fn worker(name: &str, done: u64) -> WorkerRow {
    WorkerRow {
        worker: name.to_owned(),
        here: true,
        away_secs: 0.0,
        draining: false,
        devices: Vec::new(),
        memory_bytes: 0,
        models: 0,
        node_types: 0,
        release: String::new(),
        url: String::new(),
        clock_off_secs: 0.0,
        jobs: Vec::new(),
        done,
    }
}

fn with(workers: Vec<WorkerRow>) -> ClusterStatus {
    ClusterStatus {
        address: String::new(),
        nats_version: String::new(),
        paused: false,
        lease_secs: 1.0,
        owner: None,
        workers,
    }
}

#[test]
fn rates_are_of_what_was_watched_and_begin_anew_with_a_worker() {
    let desk = ClusterDesk::default();
    let first = desk.rates(&with(vec![worker("a", 5), worker("b", 0)]), 1_000);
    assert_eq!(first, BTreeMap::new(), "one look tells no speed");
    let then = desk.rates(&with(vec![worker("a", 8), worker("b", 0)]), 31_000);
    assert_eq!(then["a"], 6.0);
    assert_eq!(then["b"], 0.0);
    // Started again, it counts from nothing.
    let again = desk.rates(&with(vec![worker("a", 1)]), 61_000);
    assert_eq!(again, BTreeMap::new());
    let later = desk.rates(&with(vec![worker("a", 2)]), 91_000);
    assert_eq!(later["a"], 2.0);
    // What is long past counts no more.
    let much_later = desk.rates(&with(vec![worker("a", 2)]), 91_000 + RATE_MILLIS);
    assert_eq!(much_later["a"], 0.0);
}

/// Ask for the cluster's state until `holds`.
#[track_caller]
fn until(bench: &Bench, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let state = bench.call("cluster.state", json!({}));
        if holds(&state) {
            return state;
        }
        assert!(Instant::now() < end, "{what}: {state}");
    }
}

/// A worker of this process with a store of its own; gives its thread once it has joined.
fn join(bench: &Bench, line: &str) -> JoinHandle<Result<(), StudioError>> {
    let studio = Studio::open(&StudioOptions {
        cache_folder: bench.folder.path().join("worker"),
        cache_cap_bytes: 1 << 30,
    })
    .unwrap();
    let (sender, joined) = sync_channel(1);
    let request = WorkerRequest {
        join: line.to_owned(),
        name: Some("second".to_owned()),
        ..WorkerRequest::default()
    };
    let thread = std::thread::Builder::new()
        .name("worker".to_owned())
        .spawn(move || {
            let tell = |it: &crate::cluster::WorkerJoined| drop(sender.send(it.worker.clone()));
            studio.work(&request, &CancelToken::new(), tell)
        })
        .unwrap();
    let name = joined.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!(name, "second");
    thread
}

fn code_of(bench: &Bench, name: &str, args: Value) -> Code {
    bench.desk.call(name, args).unwrap_err().code
}

#[test]
fn a_cluster_is_started_joined_drained_and_left() {
    let bench = bench();
    let none = bench.call("cluster.state", json!({}));
    assert_eq!(none["place"], Value::Null);
    assert_eq!(none["runs_here"], false);
    for (name, args) in [
        ("cluster.films", json!({ "on": true })),
        ("cluster.line", json!({})),
        ("cluster.pause", json!({ "on": true })),
        ("cluster.drain", json!({ "worker": "a", "order": "drain" })),
    ] {
        assert_eq!(code_of(&bench, name, args), Code::NotFound, "{name}");
    }
    assert_eq!(
        code_of(&bench, "cluster.use", json!({ "cluster": "no line" })),
        Code::BadInput
    );

    let up = bench.call("cluster.start", json!({}));
    assert_eq!(up["runs_here"], true);
    let address = up["status"]["address"].as_str().unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    assert_eq!(up["open"], false);
    assert_eq!(code_of(&bench, "cluster.start", json!({})), Code::Busy);
    // The secret is in no answer but the one that is for it.
    let command = bench.call("cluster.line", json!({}));
    let command = command["command"].as_str().unwrap();
    let line = command.strip_prefix("longtake worker --join ").unwrap();
    assert!(!up.to_string().contains(line));
    #[cfg(unix)]
    for file in ["owner.line", "worker.line"] {
        use std::os::unix::fs::PermissionsExt as _;
        let path = bench.desk.data_folder().join(FOLDER).join(file);
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let bundle = bench.call("diagnostics.bundle", json!({}));
    let text = std::fs::read_to_string(bundle["path"].as_str().unwrap()).unwrap();
    assert!(!text.contains(line) && !text.contains("owner:"), "{text}");

    bench.call("cluster.pause", json!({ "on": true }));
    until(&bench, "it is paused", |state| {
        state["status"]["paused"] == true
    });
    bench.call("cluster.pause", json!({ "on": false }));

    let thread = join(&bench, line);
    let drain = |order: &str| {
        let args = json!({ "worker": "second", "order": order });
        bench.call("cluster.drain", args);
    };
    let is = |field: &str, value: bool| {
        let field = field.to_owned();
        move |state: &Value| state["status"]["workers"][0][field.as_str()] == value
    };
    let state = until(&bench, "it is here", is("here", true));
    let shown = &state["status"]["workers"][0];
    assert!(shown["memory_bytes"].as_u64().unwrap() > 0, "{shown}");
    assert_eq!(shown["jobs"], json!([]));
    let found = bench.call("cluster.doctor", json!({})).to_string();
    assert!(found.contains("its files answer"), "{found}");
    drain("drain");
    until(&bench, "it drains", is("draining", true));
    drain("undo");
    until(&bench, "it works again", is("draining", false));
    drain("leave");
    thread.join().unwrap().unwrap();
    let gone = until(&bench, "it went away", |state| {
        let workers = state["status"]["workers"].as_array().unwrap();
        workers.iter().all(|worker| worker["here"] == false)
    });
    if gone["status"]["workers"].as_array().unwrap().len() == 1 {
        drain("forget");
    }
    until(&bench, "it is forgotten", |state| {
        state["status"]["workers"] == json!([])
    });

    bench.call("cluster.films", json!({ "on": true }));
    let down = bench.call("cluster.stop", json!({}));
    assert_eq!(down["runs_here"], false);
    assert_eq!(down["status"], Value::Null);
    assert!(!down["why"].as_str().unwrap().is_empty());
    // A film that was to be made there is not made elsewhere unasked.
    let refused = bench.desk.cluster_of_job("film").unwrap_err();
    assert!(refused.message.contains("page Cluster"), "{refused:?}");
    bench.call("cluster.films", json!({ "on": false }));
    assert!(bench.desk.cluster_of_job("film").unwrap().is_none());
    let left = bench.call("cluster.leave", json!({}));
    assert_eq!(left["place"], Value::Null);
}

#[test]
fn a_line_that_was_given_is_kept_for_this_user_only() {
    let bench = bench();
    let up = bench.call("cluster.start", json!({}));
    let folder = up["place"].as_str().unwrap();
    let owner = std::fs::read_to_string(Path::new(folder).join("owner.line")).unwrap();
    let used = bench.call("cluster.use", json!({ "cluster": owner.trim() }));
    let place = PathBuf::from(used["place"].as_str().unwrap());
    assert_eq!(place, bench.desk.data_folder().join(LINE_FILE));
    assert!(!used.to_string().contains(owner.trim()));
    assert_eq!(used["status"]["workers"], json!([]));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&place).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // Who only makes films there cannot let others in.
    assert_eq!(code_of(&bench, "cluster.line", json!({})), Code::NotFound);
    // A worker's line makes no films.
    let worker = std::fs::read_to_string(Path::new(folder).join("worker.line")).unwrap();
    assert_eq!(
        code_of(&bench, "cluster.use", json!({ "cluster": worker.trim() })),
        Code::NotPermitted
    );
    bench.call("cluster.leave", json!({}));
    assert!(!place.exists());
}
