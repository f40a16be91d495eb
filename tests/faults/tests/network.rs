//! The network of the faults: hosts reach each other, a cut link cuts, a slow one is slow.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::path::Path;
use std::time::{Duration, Instant};

use longtake_faults::network::{Kind, Links, Network, Process};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-faults");

/// Asks from one host to another; gives milliseconds of the first byte's journey and back.
fn ask(network: &Network, from: usize, to: usize, count: usize, logs: &Path) -> Option<f64> {
    let mut command = network.command(from, Path::new(PROGRAM));
    command.args(["ask", "--to", &format!("{}:7000", network.address(to))]);
    command.args(["--count", &count.to_string()]);
    command.args(["--patience-millis", "15000"]);
    let asking = Process::start("ask", command, logs).unwrap();
    asking.wait(Duration::from_secs(40)).unwrap();
    let said = asking.said();
    said.split_whitespace().next()?.parse().ok()
}

fn serve(network: &Network, host: usize, logs: &Path) -> Process {
    let mut command = network.command(host, Path::new(PROGRAM));
    command.args([
        "echo",
        "--listen",
        &format!("{}:7000", network.address(host)),
    ]);
    let serving = Process::start(&format!("echo{host}"), command, logs).unwrap();
    serving.line(Duration::from_secs(20)).unwrap();
    serving
}

#[test]
fn hosts_reach_each_other_until_a_link_is_cut() {
    let logs = tempfile::tempdir().unwrap();
    let logs = logs.path();
    let open = || Network::open(3, Links::Plain, Path::new(PROGRAM), logs).unwrap();
    // Two at once are in nobody's way.
    let (network, other) = (open(), open());
    let serving = serve(&network, 0, logs);
    assert!(ask(&network, 1, 0, 100_000, logs).is_some());
    if network.kind() == Kind::Loopback {
        println!("on the loopback: {:?}", network.why_loopback());
        assert!(network.set_link(1, false).is_err());
        return;
    }
    // The other network has the same addresses, and nobody there.
    assert_eq!(ask(&other, 1, 0, 1, logs), None);
    network.set_link(1, false).unwrap();
    let mut command = network.command(1, Path::new(PROGRAM));
    command.args(["ask", "--to", &format!("{}:7000", network.address(0))]);
    command.args(["--count", "1", "--patience-millis", "400"]);
    let cut = Process::start("cut", command, logs).unwrap();
    assert!(!cut.wait(Duration::from_secs(20)).unwrap().success());
    // The others are not cut off with it.
    assert!(ask(&network, 2, 0, 1, logs).is_some());
    network.set_link(1, true).unwrap();
    assert!(ask(&network, 1, 0, 1000, logs).is_some());
    let id = serving.id();
    drop(serving);
    assert!(!Path::new(&format!("/proc/{id}")).exists());
}

#[test]
fn slow_links_are_slow_and_lose_nothing_that_tcp_would_not_send_again() {
    let logs = tempfile::tempdir().unwrap();
    let logs = logs.path();
    let links = Links::Slow {
        delay: Duration::from_millis(50),
        loss_percent: 5,
    };
    let network = Network::open(2, links, Path::new(PROGRAM), logs).unwrap();
    if network.kind() == Kind::Loopback {
        println!("on the loopback: {:?}", network.why_loopback());
        return;
    }
    let _serving = serve(&network, 0, logs);
    let begun = Instant::now();
    let away = ask(&network, 1, 0, 60_000, logs).unwrap();
    assert!(away >= 100.0, "{away} ms");
    assert!(begun.elapsed() < Duration::from_secs(40));
    network.set_link(1, false).unwrap();
    network.set_link(1, true).unwrap();
    assert!(ask(&network, 1, 0, 1, logs).is_some());
}
