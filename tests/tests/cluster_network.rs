//! A film made by processes that reach each other through a real nats-server on this machine's
//! loopback: what comes out is the film of one process, whoever is killed on the way.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flow_cluster::transport::{Beat, JOBS, Link, watch_beats};
use flow_media::mux::{StreamHashes, stream_hashes};
use flow_store::{CommitMark, CommitRecord, Faults, Store, StoreOptions};
use longtake_tests::cluster::{Cluster, signal};
use longtake_tests::film::{Ran, SmallFilm, ran};
use rustix::process::Signal;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

/// Six shots of a second, 320x180.
const SCRIPT: &str = include_str!("../src/cluster_film.md");

/// Seconds after which a lease is lost: short, so that the tests are.
const LEASE_SECS: f64 = 2.0;

/// Node types whose equal keys promise equal bytes.
const TOLERANT: &[&str] = &["film.segment", "film.mux", "film.sound_encode"];

fn film() -> SmallFilm {
    let mut film = SmallFilm::new().unwrap();
    SCRIPT.clone_into(&mut film.script);
    film.write_script().unwrap();
    film
}

/// What a store has committed.
fn committed(folder: &Path) -> Vec<CommitRecord> {
    let options = StoreOptions {
        cap_bytes: u64::MAX,
        clock: flow_studio::system_clock(),
        faults: Faults::none(),
    };
    let store = Store::open(folder, options).unwrap();
    store.committed_since(CommitMark(0)).unwrap()
}

fn content(committed: &[CommitRecord]) -> BTreeMap<String, (String, String)> {
    let row = |commit: &CommitRecord| {
        let content = format!("{:?}", commit.content);
        (
            format!("{:?}", commit.key),
            (commit.node_type.clone(), content),
        )
    };
    committed.iter().map(row).collect()
}

/// One way of making the film: a cache, a project and a file of its own.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn new(film: &SmallFilm, name: &str) -> Self {
        let folder = film.folder().join("places").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    fn cache(&self) -> PathBuf {
        self.folder.join("owner")
    }

    fn out(&self) -> PathBuf {
        self.folder.join("film.mp4")
    }

    fn command(&self, film: &SmallFilm, cluster: Option<&Cluster>) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .env_remove("LONGTAKE_FAULT")
            .env_remove("LONGTAKE_CLUSTER");
        command.stdin(Stdio::null());
        command.arg("--cache").arg(self.cache());
        command.args([
            "film",
            "--json",
            "--mute",
            "--no-upscale",
            "--preset",
            "slow",
        ]);
        command.arg("--script").arg(film.script_path());
        command.arg("--stills").arg(film.folder());
        command.arg("--out").arg(self.out());
        if let Some(cluster) = cluster {
            command.arg("--cluster").arg(cluster.dir());
        }
        command
    }

    fn hashes(&self) -> StreamHashes {
        stream_hashes(&self.out()).unwrap()
    }
}

/// The film as one process makes it.
struct Whole {
    film: SmallFilm,
    hashes: StreamHashes,
    content: BTreeMap<String, (String, String)>,
    made: Value,
}

fn whole() -> Whole {
    let film = film();
    let place = Place::new(&film, "whole");
    let done = ran(&mut place.command(&film, None)).unwrap();
    assert!(done.status.success(), "{done:?}");
    Whole {
        hashes: place.hashes(),
        content: content(&committed(&place.cache())),
        made: done.json()["made"].clone(),
        film,
    }
}

impl Whole {
    /// The film at `place` is this one: same keys, same content of exact nodes, same streams.
    fn assert_same(&self, place: &Place, stage: &str) {
        assert_eq!(place.hashes(), self.hashes, "{stage}");
        let there = content(&committed(&place.cache()));
        let keys =
            |of: &BTreeMap<String, (String, String)>| of.keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(keys(&there), keys(&self.content), "{stage}");
        for (key, (node_type, content)) in &there {
            if !TOLERANT.contains(&node_type.as_str()) {
                assert_eq!(content, &self.content[key].1, "{stage}: {node_type}");
            }
        }
    }
}

/// Keys that each worker has committed.
fn made_by(cluster: &Cluster, names: &[&str]) -> BTreeMap<String, Vec<String>> {
    let keys = |name: &&str| {
        let made = committed(&cluster.store_of(name));
        let keys = made
            .iter()
            .map(|commit| format!("{:?}", commit.key))
            .collect();
        ((*name).to_owned(), keys)
    };
    names.iter().map(keys).collect()
}

/// No key was committed by two workers.
fn assert_once(made: &BTreeMap<String, Vec<String>>, stage: &str) {
    let mut seen = BTreeMap::new();
    for (worker, keys) in made {
        for key in keys {
            let before = seen.insert(key.clone(), worker.clone());
            assert_eq!(before, None, "{stage}: {key} was made by {worker} too");
        }
    }
}

fn start(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        status: output.status,
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Wait until `worker` is in the middle of a job: it says so itself, or writes a result.
/// Where that does not come, `film` is told of with what it said.
fn until_at_work(cluster: &Cluster, worker: &str, film: &mut Child) {
    let temp = cluster.store_of(worker).join("temp");
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        let mut files = std::fs::read_dir(&temp).into_iter().flatten().flatten();
        if files.any(|file| file.metadata().is_ok_and(|about| about.is_file())) {
            return;
        }
        if film.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let waited = began.elapsed();
    film.kill().unwrap();
    let status = film.wait().unwrap();
    let mut said = String::new();
    film.stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    let made = committed(&cluster.store_of(worker)).len();
    let cluster = cluster.status();
    panic!(
        "worker {worker} was seen at no work for {waited:?}; it has made {made}; the film: \
         {status}, {said}; the cluster: {cluster:?}"
    );
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn owner_link(cluster: &Cluster) -> Link {
    let dir = cluster.dir();
    let line = flow_studio::line_of(dir.to_str().unwrap(), flow_studio::LineKind::Owner).unwrap();
    runtime().block_on(Link::connect(&line, "test")).unwrap()
}

#[test]
fn a_film_on_workers_is_the_film_of_one_process() {
    let whole = whole();
    let place = Place::new(&whole.film, "one");
    let mut cluster = Cluster::start(PROGRAM, &place.folder, 10.0).unwrap();
    cluster.worker("w1").unwrap();
    let done = ran(&mut place.command(&whole.film, Some(&cluster))).unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(done.json()["made"], whole.made);
    whole.assert_same(&place, "one worker");
    let made = committed(&cluster.store_of("w1"));
    let segments = made
        .iter()
        .filter(|commit| commit.node_type == "film.segment")
        .count();
    assert!(segments >= 6, "the worker made {segments} segments");
    // Again: nothing is made, and nobody is asked.
    let again = ran(&mut place.command(&whole.film, Some(&cluster))).unwrap();
    assert_eq!(again.json()["made"], 0, "{again:?}");

    let place = Place::new(&whole.film, "three");
    cluster.worker("w2").unwrap();
    cluster.worker("w3").unwrap();
    // The first worker begins anew too.
    cluster.workers.get_mut("w1").unwrap().end().unwrap();
    std::fs::remove_dir_all(cluster.store_of("w1")).unwrap();
    cluster.worker("w1").unwrap();
    let done = ran(&mut place.command(&whole.film, Some(&cluster))).unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(done.json()["made"], whole.made);
    whole.assert_same(&place, "three workers");
    let made = made_by(&cluster, &["w1", "w2", "w3"]);
    assert_once(&made, "three workers");
    assert!(made.values().all(|keys| !keys.is_empty()), "{made:?}");
    let status = cluster.status().unwrap();
    let workers = status["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 3, "{status}");
    assert!(
        workers.iter().all(|worker| worker["here"] == true),
        "{status}"
    );
    assert_eq!(status["nats_version"], "2.15.1");

    // The prediction comes from the code that places jobs.
    let mut plan = cluster.command();
    plan.arg("--cache").arg(place.folder.join("empty"));
    plan.args(["--json", "cluster", "plan"])
        .arg(place.folder.join("film.longtake"));
    plan.args(["--workers", "3"]);
    let plan = ran(&mut plan).unwrap().json();
    assert!(plan["jobs"].as_u64().unwrap() >= 6, "{plan}");
    let secs = |name: &str| plan[name].as_f64().unwrap();
    assert!(secs("makespan_secs") < secs("one_worker_secs"), "{plan}");
    assert!(
        secs("makespan_secs") >= secs("bound_secs") * 0.999,
        "{plan}"
    );
}

#[test]
#[ignore = "open: not run whole since its look for work and the owner were mended"]
fn a_film_survives_its_worker_its_owner_and_its_server() {
    let whole = whole();

    // A worker dies in the middle of a job.
    let place = Place::new(&whole.film, "worker");
    let mut cluster = Cluster::start(PROGRAM, &place.folder, LEASE_SECS).unwrap();
    cluster.worker("w1").unwrap();
    cluster.worker("w2").unwrap();
    let mut child = start(&mut place.command(&whole.film, Some(&cluster)));
    until_at_work(&cluster, "w1", &mut child);
    cluster.workers.get_mut("w1").unwrap().kill();
    let done = wait(child);
    assert!(done.status.success(), "{done:?}");
    whole.assert_same(&place, "a worker was killed");
    assert_once(&made_by(&cluster, &["w1", "w2"]), "a worker was killed");

    // The owner dies; its next start goes on. What it had handed out goes on meanwhile.
    cluster.worker("w1").unwrap();
    for name in ["w1", "w2"] {
        cluster.workers.get_mut(name).unwrap().end().unwrap();
        std::fs::remove_dir_all(cluster.store_of(name)).unwrap();
        cluster.worker(name).unwrap();
    }
    let place = Place::new(&whole.film, "owner");
    let mut child = start(&mut place.command(&whole.film, Some(&cluster)));
    until_at_work(&cluster, "w2", &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let done = ran(&mut place.command(&whole.film, Some(&cluster))).unwrap();
    assert!(done.status.success(), "{done:?}");
    whole.assert_same(&place, "the owner was killed");
    assert_once(&made_by(&cluster, &["w1", "w2"]), "the owner was killed");

    // The server dies and is started again by the process that watches it.
    for name in ["w1", "w2"] {
        cluster.workers.get_mut(name).unwrap().end().unwrap();
        std::fs::remove_dir_all(cluster.store_of(name)).unwrap();
        cluster.worker(name).unwrap();
    }
    let place = Place::new(&whole.film, "server");
    let mut child = start(&mut place.command(&whole.film, Some(&cluster)));
    until_at_work(&cluster, "w1", &mut child);
    let pid = std::fs::read_to_string(cluster.dir().join("nats.pid")).unwrap();
    signal(pid.trim().parse().unwrap(), Signal::KILL).unwrap();
    let done = wait(child);
    assert!(done.status.success(), "{done:?}");
    whole.assert_same(&place, "the server was killed");
    assert_once(&made_by(&cluster, &["w1", "w2"]), "the server was killed");

    // The stream of jobs is deleted under everybody.
    for name in ["w1", "w2"] {
        cluster.workers.get_mut(name).unwrap().end().unwrap();
        std::fs::remove_dir_all(cluster.store_of(name)).unwrap();
        cluster.worker(name).unwrap();
    }
    let place = Place::new(&whole.film, "stream");
    let mut child = start(&mut place.command(&whole.film, Some(&cluster)));
    until_at_work(&cluster, "w1", &mut child);
    let dir = cluster.dir();
    let line = flow_studio::line_of(dir.to_str().unwrap(), flow_studio::LineKind::Owner).unwrap();
    runtime().block_on(async {
        let link = Link::connect(&line, "test").await.unwrap();
        link.streams.delete_stream(JOBS).await.unwrap();
    });
    let done = wait(child);
    assert!(done.status.success(), "{done:?}");
    whole.assert_same(&place, "the stream was deleted");
    assert_once(&made_by(&cluster, &["w1", "w2"]), "the stream was deleted");
}

/// Last signs of life, by worker.
fn beats(cluster: &Cluster, listen: Duration) -> Vec<Beat> {
    let dir = cluster.dir();
    let line = flow_studio::line_of(dir.to_str().unwrap(), flow_studio::LineKind::Owner).unwrap();
    runtime().block_on(async {
        let link = Link::connect(&line, "test").await.unwrap();
        watch_beats(&link, listen).await.unwrap()
    })
}

#[test]
fn a_stop_reaches_a_running_job_and_a_worker_that_drains_finishes_its_own() {
    let mut film = film();
    // One long shot: nothing else can be under way.
    let shot = "length: 1 s\n- picture: sea.png\n- move: still";
    film.edit(shot, "length: 60 s\n- picture: sea.png\n- move: still");
    film.edit("size: 320x180", "size: 1280x720");
    film.write_script().unwrap();
    let place = Place::new(&film, "stop");
    let mut cluster = Cluster::start(PROGRAM, &place.folder, 10.0).unwrap();
    cluster.worker("w1").unwrap();
    let mut child = start(&mut place.command(&film, Some(&cluster)));
    until_at_work(&cluster, "w1", &mut child);
    signal(child.id(), Signal::INT).unwrap();
    let asked = Instant::now();
    let done = wait(child);
    assert_eq!(done.status.code(), Some(130), "{done:?}");
    let idle = || {
        beats(&cluster, Duration::from_millis(600))
            .iter()
            .all(|beat| beat.jobs.is_empty())
    };
    while !idle() {
        assert!(asked.elapsed() < Duration::from_secs(10), "the job runs on");
    }
    let took = asked.elapsed();
    eprintln!(
        "the worker was idle {:.2} s after the film was stopped",
        took.as_secs_f64()
    );
    assert!(
        took < Duration::from_secs(4),
        "{took:?}, of which up to 1.2 s are this test's own looks"
    );

    // Paused, nothing is handed out; resumed, it goes on. A worker that is asked to leave
    // finishes what it is at, and the film goes on with the other one.
    let film = self::film();
    let place = Place::new(&film, "drain");
    assert!(cluster.ask(&["pause"]).unwrap().status.success());
    let mut child = start(&mut place.command(&film, Some(&cluster)));
    std::thread::sleep(Duration::from_millis(2500));
    let before = committed(&cluster.store_of("w1")).len();
    assert!(
        beats(&cluster, Duration::from_millis(600))
            .iter()
            .all(|beat| beat.jobs.is_empty())
    );
    assert!(cluster.ask(&["resume"]).unwrap().status.success());
    until_at_work(&cluster, "w1", &mut child);
    cluster.worker("w2").unwrap();
    let status = cluster.workers.get_mut("w1").unwrap().end().unwrap();
    assert_eq!(status, Some(0));
    let done = wait(child);
    assert!(done.status.success(), "{done:?}");
    assert!(
        committed(&cluster.store_of("w1")).len() > before,
        "it left without finishing"
    );
    assert_once(&made_by(&cluster, &["w1", "w2"]), "one left");
    let unknown = cluster.ask(&["drain", "nobody"]).unwrap();
    unknown.ended(3, &["nobody"]);
}

/// A server that says it is another one.
fn false_server(info: &str) -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = listener.try_clone().unwrap();
    let info = format!("INFO {info}\r\n");
    std::thread::Builder::new()
        .name("false-server".into())
        .spawn(move || {
            for stream in server.incoming().take(4) {
                let mut stream = stream.unwrap();
                stream.write_all(info.as_bytes()).unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                    if line.starts_with("PING") {
                        stream.write_all(b"PONG\r\n").unwrap();
                    }
                    line.clear();
                }
            }
        })
        .unwrap();
    (listener, address)
}

fn line(address: &str, token: &str) -> String {
    let line = flow_cluster::JoinLine {
        address: address.to_owned(),
        token: token.to_owned(),
        fingerprint: String::new(),
        version: "0.1.0".to_owned(),
    };
    line.encode().unwrap()
}

#[test]
fn what_is_wrong_is_said() {
    let film = film();
    let place = Place::new(&film, "wrong");
    let mut cluster = Cluster::start(PROGRAM, &place.folder, 10.0).unwrap();
    let join = |line: &str| {
        let mut command = cluster.command();
        command.args(["worker", "--name", "w", "--join", line]);
        command.arg("--data").arg(place.folder.join("w"));
        ran(&mut command).unwrap()
    };
    let whole_line = cluster.join();
    join(&whole_line[..whole_line.len() - 30]).ended(3, &["cut off", "copy it whole"]);
    join("hello").ended(3, &["longtake cluster up"]);
    let address = cluster.status().unwrap()["address"]
        .as_str()
        .unwrap()
        .to_owned();
    join(&line(&address, "worker:wrong")).ended(5, &["token is wrong", &address]);
    let old = r#"{"server_id":"x","version":"2.9.10","max_payload":1048576,"jetstream":true,"headers":true}"#;
    let (_old, at) = false_server(old);
    join(&line(&at, "worker:x")).ended(4, &["2.9.10", "2.12.0"]);
    let plain = r#"{"server_id":"x","version":"2.15.1","max_payload":1048576,"headers":true}"#;
    let (_plain, at) = false_server(plain);
    join(&line(&at, "worker:x")).ended(4, &["JetStream is off"]);
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    join(&line(&nobody, "worker:x")).ended(5, &["cannot reach", &nobody]);

    // A film needs the owner's line.
    let mut command = place.command(&film, None);
    let refused = ran(command.args(["--cluster", &whole_line])).unwrap();
    refused.ended(5, &["joins workers", "owner.line"]);

    // A port that is taken.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut command = cluster.command();
    command.args(["cluster", "up", "--port", &port]);
    let refused = ran(command.arg("--dir").arg(place.folder.join("other"))).unwrap();
    refused.ended(3, &["cannot listen", &port]);

    // A message over the limit is told before it is sent; one more worker of a name is refused.
    let link = owner_link(&cluster);
    drop(link);
    cluster.worker("w1").unwrap();
    std::thread::sleep(Duration::from_millis(600));
    let mut second = cluster.worker_command("w1");
    second.arg("--data").arg(place.folder.join("twin"));
    let mut command = cluster.command();
    command.args(["worker", "--name", "w1", "--join", &whole_line]);
    command.arg("--data").arg(place.folder.join("twin"));
    ran(&mut command)
        .unwrap()
        .ended(4, &["another worker", "--name"]);
    // The first one stays.
    let status = cluster.status().unwrap();
    assert_eq!(status["workers"][0]["here"], true, "{status}");

    // Workers may not do what owners may: publish jobs, delete streams.
    let worker_line: flow_cluster::JoinLine = whole_line.parse().unwrap();
    runtime().block_on(async {
        let link = Link::connect(&worker_line, "test").await.unwrap();
        assert!(link.streams.delete_stream(JOBS).await.is_err());
        let sent = link
            .publish("a job", "lt.jobs.w1.x".into(), "x", vec![1])
            .await;
        assert!(sent.is_err());
        let large = link
            .publish("a result", "lt.results.x.1".into(), "y", vec![0; 2 << 20])
            .await;
        let text = large.unwrap_err().to_string();
        assert!(text.contains("2097") && text.contains("1048576"), "{text}");
    });
    let mut log = String::new();
    let file = std::fs::File::open(cluster.dir().join("nats.conf")).unwrap();
    file.take(1 << 20).read_to_string(&mut log).unwrap();
    assert!(log.contains("sync_interval: always") && log.contains("127.0.0.1"));
}
