//! What is wrong with a cluster's machines, and what to change.
//!
//! Facts are read first, of this machine and of each worker; [`diagnose`] then says what they mean
//! and reads nothing itself. The settings of a Spark (GB10) are those that cost most in practice:
//! its GPU shares the machine's memory, so the page cache takes memory from it one to one, and
//! background compaction of memory stops a step for 100 ms and more.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use ts_rs::TS;

use super::status::{ClusterStatus, cluster_status};
use crate::config;
use crate::error::StudioError;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As it should be.
    Fine,
    /// It works, but slower or with less room than it could.
    Advice,
    /// It will fail, or has failed already.
    Wrong,
}

/// Something that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct Finding {
    /// Which machine: `here`, or a worker's name.
    pub machine: String,
    /// How bad it is.
    pub severity: Severity,
    /// What was looked at and found.
    pub found: String,
    /// What to change; empty when nothing is to be changed.
    pub advice: String,
}

/// What is known of this machine. Sizes in bytes; absent = this system does not say.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct HostFacts {
    /// Its model, as `NVIDIA DGX Spark`.
    pub(crate) model: String,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) available_bytes: Option<u64>,
    pub(crate) page_cache_bytes: Option<u64>,
    /// `vm.compaction_proactiveness`, 0 to 100.
    pub(crate) compaction: Option<u64>,
    /// Where the store lies, what is free there, and how large that disk is.
    pub(crate) store: Option<(PathBuf, u64, u64)>,
    /// The network's cards that are up: name, megabits a second, greatest packet.
    pub(crate) links: Vec<(String, u64, u64)>,
    /// The server program that would be used, or why there is none.
    pub(crate) server: Option<Result<String, String>>,
}

/// Whether its GPU takes its memory from the machine's.
fn shares_memory(model: &str) -> bool {
    let model = model.to_lowercase();
    model.contains("spark") || model.contains("gb10")
}

fn number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// A figure of `/proc/meminfo`.
fn meminfo(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    number(line.trim_start_matches(':')).map(|kib| kib.saturating_mul(1024))
}

impl HostFacts {
    /// Those of this machine, with its store in `store`. What cannot be read is absent.
    pub(crate) fn here(store: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let memory = read("/proc/meminfo");
        let trimmed = |path: &str| read(path).trim_matches(['\0', '\n', ' ']).to_owned();
        let model = ["/sys/class/dmi/id/product_name", "/proc/device-tree/model"]
            .map(trimmed)
            .into_iter()
            .find(|model| !model.is_empty())
            .unwrap_or_default();
        let mut links = Vec::new();
        for card in std::fs::read_dir("/sys/class/net")
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = card.file_name().to_string_lossy().into_owned();
            let of = |what: &str| read(&format!("/sys/class/net/{name}/{what}"));
            // A card without a plug says -1, the loopback says nothing.
            if let (Some(speed), Some(mtu)) = (number(&of("speed")), number(&of("mtu"))) {
                links.push((name, speed, mtu));
            }
        }
        links.sort();
        let found = flow_cluster::server::find(
            config::nats_server().as_deref(),
            &config::program_folders(),
        );
        Self {
            model,
            memory_bytes: meminfo(&memory, "MemTotal"),
            available_bytes: meminfo(&memory, "MemAvailable"),
            page_cache_bytes: meminfo(&memory, "Cached"),
            compaction: number(&read("/proc/sys/vm/compaction_proactiveness")),
            store: crate::memory::disk_bytes(store)
                .map(|(free, total)| (store.to_owned(), free, total)),
            links,
            server: Some(
                found
                    .map(|program| program.version.to_string())
                    .map_err(|error| error.to_string()),
            ),
        }
    }
}

/// How long a worker took to answer over HTTP, in milliseconds, or why it did not.
pub(crate) type Answered = Result<f64, String>;

const GIB: u64 = 1 << 30;

/// Disk below which a worker refuses soon, and below which it makes room all the time.
const DISK_LEAST_BYTES: u64 = 2 * GIB;
const DISK_SMALL_BYTES: u64 = 50 * GIB;

/// Seconds by which clocks may differ: leases are counted by each machine for itself, so only what
/// people read is wrong. Certificates fail with a clock that is a day off.
const CLOCK_NOTED_SECS: f64 = 5.0;
const CLOCK_WRONG_SECS: f64 = 12.0 * 3600.0;

/// Megabits a second below which files take longer than most work on them.
const LINK_SLOW_MEGABITS: u64 = 1000;

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / GIB as f64)
}

/// Collects findings of one machine.
struct Report<'a> {
    machine: &'a str,
    findings: &'a mut Vec<Finding>,
}

impl Report<'_> {
    fn say(&mut self, severity: Severity, found: impl Into<String>, advice: impl Into<String>) {
        self.findings.push(Finding {
            machine: self.machine.to_owned(),
            severity,
            found: found.into(),
            advice: advice.into(),
        });
    }

    fn fine(&mut self, found: impl Into<String>) {
        self.say(Severity::Fine, found, "");
    }
}

/// What the facts mean, this machine first.
pub(crate) fn diagnose(
    host: &HostFacts,
    release: &str,
    cluster: Option<(&ClusterStatus, &[Answered])>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut here = Report {
        machine: "here",
        findings: &mut findings,
    };
    server(host, &mut here);
    disk(host, &mut here);
    memory(host, &mut here);
    links(host, &mut here);
    let Some((status, answers)) = cluster else {
        return findings;
    };
    if status.workers.is_empty() {
        here.say(
            Severity::Wrong,
            "no worker has joined",
            "run the line of `longtake cluster up` on each machine: longtake worker --join LINE",
        );
    }
    for (at, worker) in status.workers.iter().enumerate() {
        let mut report = Report {
            machine: &worker.worker,
            findings: &mut findings,
        };
        if !worker.here {
            let since = format!("it went away {:.0} s ago", worker.away_secs);
            report.say(
                Severity::Wrong,
                since,
                "look at its log; or `longtake cluster drain NAME --forget`",
            );
            continue;
        }
        if worker.release == release {
            report.fine(format!("release {release}"));
        } else {
            report.say(
                Severity::Wrong,
                format!("release {}, this machine has {release}", worker.release),
                "install the same release on both: results of two builds may differ",
            );
        }
        clock(worker.clock_off_secs, &mut report);
        match answers.get(at) {
            Some(Ok(millis)) => report.fine(format!("its files answer in {millis:.0} ms")),
            Some(Err(why)) => report.say(
                Severity::Wrong,
                format!("its files cannot be reached at {}: {why}", worker.url),
                "open that port to this machine, or start it with --advertise and a host that \
                 others reach",
            ),
            None => {}
        }
        if worker.draining {
            report.say(
                Severity::Advice,
                "it takes nothing more",
                "longtake cluster drain NAME --undo",
            );
        }
    }
    findings
}

fn server(host: &HostFacts, here: &mut Report<'_>) {
    match &host.server {
        Some(Ok(version)) => here.fine(format!("nats-server {version}")),
        Some(Err(why)) => here.say(
            Severity::Advice,
            why.clone(),
            "only the machine of `longtake cluster up` needs it: cargo xtask setup fetches it",
        ),
        None => {}
    }
}

fn disk(host: &HostFacts, here: &mut Report<'_>) {
    let Some((path, free, total)) = &host.store else {
        return;
    };
    let found = format!(
        "{} free of {} for {}",
        gib(*free),
        gib(*total),
        path.display()
    );
    if *free < DISK_LEAST_BYTES {
        here.say(
            Severity::Wrong,
            found,
            "free some, or put the store on another disk with --cache",
        );
    } else if *free < DISK_SMALL_BYTES {
        here.say(
            Severity::Advice,
            found,
            "50 GiB keep the results of a long film; `longtake cache prune` frees what is old",
        );
    } else {
        here.fine(found);
    }
}

fn memory(host: &HostFacts, here: &mut Report<'_>) {
    let (Some(total), Some(available)) = (host.memory_bytes, host.available_bytes) else {
        return;
    };
    here.fine(format!(
        "{} of {} memory to be had",
        gib(available),
        gib(total)
    ));
    if !shares_memory(&host.model) {
        return;
    }
    // What the firmware keeps for a screen is in no figure of the system's.
    if total < 120 * GIB {
        here.say(
            Severity::Advice,
            format!("a Spark of 128 GB shows {}", gib(total)),
            "the firmware keeps about 2 GiB for a screen; if far more is missing, look for huge \
             pages (vm.nr_hugepages) and kdump (crashkernel=)",
        );
    }
    match host.page_cache_bytes {
        Some(cached) if cached > total / 10 => here.say(
            Severity::Advice,
            format!(
                "the page cache holds {}, which the GPU cannot have",
                gib(cached)
            ),
            "before large models are loaded: sync; echo 1 | sudo tee /proc/sys/vm/drop_caches",
        ),
        Some(cached) => here.fine(format!("the page cache holds {}", gib(cached))),
        None => {}
    }
    match host.compaction {
        Some(0) => here.fine("memory is not compacted in the background"),
        Some(value) => here.say(
            Severity::Advice,
            format!("vm.compaction_proactiveness is {value}: steps stop for 100 ms and more"),
            "sudo sysctl -w vm.compaction_proactiveness=0, and the same in /etc/sysctl.d",
        ),
        None => {}
    }
}

fn links(host: &HostFacts, here: &mut Report<'_>) {
    let Some((name, speed, mtu)) = host.links.iter().max_by_key(|(_, speed, _)| *speed) else {
        return;
    };
    let found = format!("{name}: {speed} Mbit/s, packets of {mtu} bytes");
    if *speed < LINK_SLOW_MEGABITS {
        here.say(
            Severity::Advice,
            found,
            "a cable or port for 1 Gbit/s or more: files travel between all machines",
        );
    } else if *speed >= 100_000 && *mtu < 9000 {
        here.say(
            Severity::Advice,
            found,
            format!("sudo ip link set {name} mtu 9000, on all machines of this link"),
        );
    } else {
        here.fine(found);
    }
}

fn clock(off_secs: f64, report: &mut Report<'_>) {
    let found = format!("its clock is {off_secs:+.1} s off ours");
    let severity = match off_secs.abs() {
        off if off >= CLOCK_WRONG_SECS => Severity::Wrong,
        off if off >= CLOCK_NOTED_SECS => Severity::Advice,
        _ => Severity::Fine,
    };
    let advice = match severity {
        Severity::Fine => "",
        Severity::Advice | Severity::Wrong => "sudo timedatectl set-ntp true, there and here",
    };
    report.say(severity, found, advice);
}

/// Asks each worker's file server for nothing in particular: any answer of it will do.
async fn ask(status: &ClusterStatus) -> Vec<Answered> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(std::time::Duration::from_secs(3))
        .build();
    let mut answers = Vec::new();
    for worker in &status.workers {
        let answer = match &client {
            Ok(client) => {
                let begun = Instant::now();
                let asked = client
                    .get(format!("{}/artifact/-", worker.url))
                    .send()
                    .await;
                asked
                    .map(|_any| begun.elapsed().as_secs_f64() * 1000.0)
                    .map_err(|error| error.without_url().to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        answers.push(answer);
    }
    answers
}

/// Look at this machine, with its store in `store`, and at a cluster's workers if one is given.
///
/// # Errors
/// As [`cluster_status`].
pub fn cluster_doctor(store: &Path, cluster: Option<&str>) -> Result<Vec<Finding>, StudioError> {
    let host = HostFacts::here(store);
    let release = env!("CARGO_PKG_VERSION");
    let Some(cluster) = cluster else {
        return Ok(diagnose(&host, release, None));
    };
    let status = cluster_status(cluster)?;
    let answers = super::status::block_on(async { Ok(ask(&status).await) })?;
    Ok(diagnose(
        &host,
        release,
        Some((&status, answers.as_slice())),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::status::WorkerRow;

    fn worker(name: &str) -> WorkerRow {
        WorkerRow {
            worker: name.to_owned(),
            here: true,
            away_secs: 0.0,
            draining: false,
            devices: Vec::new(),
            memory_bytes: 0,
            models: 0,
            node_types: 0,
            release: "1.0.0".to_owned(),
            url: "http://10.0.0.2:7411".to_owned(),
            clock_off_secs: 0.2,
            jobs: Vec::new(),
            done: 0,
        }
    }

    fn spark() -> HostFacts {
        HostFacts {
            model: "NVIDIA DGX Spark".to_owned(),
            memory_bytes: Some(121 * GIB),
            available_bytes: Some(80 * GIB),
            page_cache_bytes: Some(37 * GIB),
            compaction: Some(20),
            store: Some((PathBuf::from("/data"), GIB, 900 * GIB)),
            links: vec![
                ("enp1".to_owned(), 200_000, 1500),
                ("wlan".to_owned(), 300, 1500),
            ],
            server: Some(Ok("2.15.1".to_owned())),
        }
    }

    fn bad(findings: &[Finding]) -> Vec<String> {
        let bad = findings.iter().filter(|one| one.severity != Severity::Fine);
        bad.map(|one| format!("{}: {}", one.machine, one.found))
            .collect()
    }

    #[test]
    fn every_costly_setting_of_a_spark_is_named_with_its_cure() {
        let findings = diagnose(&spark(), "1.0.0", None);
        let text = bad(&findings).join("\n");
        for word in [
            "1.0 GiB free",
            "page cache holds 37.0 GiB",
            "compaction",
            "enp1",
        ] {
            assert!(text.contains(word), "{word} in\n{text}");
        }
        for finding in &findings {
            let is_fine = finding.severity == Severity::Fine;
            assert_eq!(finding.advice.is_empty(), is_fine, "{finding:?}");
        }
    }

    #[test]
    fn a_plain_machine_is_not_told_about_sparks() {
        let host = HostFacts {
            model: "Some PC".to_owned(),
            store: Some((PathBuf::from("/data"), 500 * GIB, 900 * GIB)),
            links: vec![("eth0".to_owned(), 1000, 1500)],
            ..spark()
        };
        assert_eq!(bad(&diagnose(&host, "1.0.0", None)), Vec::<String>::new());
    }

    #[test]
    fn workers_of_another_release_or_clock_or_out_of_reach_are_found() {
        let mut workers = vec![worker("a"), worker("b"), worker("c"), worker("d")];
        workers[0].release = "0.9.0".to_owned();
        workers[1].clock_off_secs = 86_400.0;
        workers[2].here = false;
        workers[2].away_secs = 42.0;
        let status = ClusterStatus {
            address: String::new(),
            nats_version: "2.15.1".to_owned(),
            paused: false,
            lease_secs: 30.0,
            owner: None,
            workers,
        };
        let host = HostFacts::default();
        let answers = [
            Ok(1.0),
            Ok(1.0),
            Err("x".to_owned()),
            Err("refused".to_owned()),
        ];
        let found = bad(&diagnose(
            &host,
            "1.0.0",
            Some((&status, answers.as_slice())),
        ));
        assert_eq!(
            found,
            [
                "a: release 0.9.0, this machine has 1.0.0",
                "b: its clock is +86400.0 s off ours",
                "c: it went away 42 s ago",
                "d: its files cannot be reached at http://10.0.0.2:7411: refused",
            ]
        );
    }

    #[test]
    fn figures_of_the_system_are_read() {
        let text = "MemTotal:       126927080 kB\nCached:  1000 kB\n";
        assert_eq!(meminfo(text, "MemTotal"), Some(126_927_080 * 1024));
        assert_eq!(meminfo(text, "Cached"), Some(1_024_000));
        assert_eq!(meminfo(text, "SwapTotal"), None);
    }
}
