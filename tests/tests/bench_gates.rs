//! Small versions of the benches, held to twice what is aimed at: a machine that does other things
//! beside still passes, a mistake of another order does not.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, which fail by panicking"
)]

use std::path::Path;

use longtake_tests::film::scratch;
use longtake_tests::graphs::{Kept, Shape, Trivial, document};
use longtake_tests::long_film::LongFilm;

/// The least of some runs: other work disturbs a run, never helps it.
const RUNS: u32 = 3;

fn least(mut run: impl FnMut(u32) -> f64) -> f64 {
    (0..RUNS).map(&mut run).fold(f64::INFINITY, f64::min)
}

fn folder(name: &str) -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix(name)
        .tempdir_in(scratch().unwrap())
        .unwrap()
}

#[test]
fn a_trivial_node_takes_little_time() {
    const NODES: usize = 2_000;
    let folder = folder("longtake-gate-");
    let trivial = Trivial::open(folder.path()).unwrap();
    let micros = |secs: f64| secs * 1e6 / NODES as f64;
    for shape in [Shape::Chain, Shape::Wide] {
        let memory = least(|_| {
            let document = document(Kept::Memory, shape, NODES, 0).unwrap();
            let (report, secs) = trivial.run(&document).unwrap();
            assert_eq!((report.called, report.made), (NODES as u64, 0));
            micros(secs)
        });
        let mut reused = f64::INFINITY;
        let made = least(|round| {
            let document = document(Kept::Durable, shape, NODES, round).unwrap();
            let (report, secs) = trivial.run(&document).unwrap();
            assert_eq!((report.made, report.reused), (NODES as u64, 0));
            let (again, secs_again) = trivial.run(&document).unwrap();
            assert_eq!((again.made, again.reused), (0, NODES as u64));
            reused = reused.min(micros(secs_again));
            micros(secs)
        });
        println!("{shape:?}: in memory {memory:.1}, made {made:.1}, reused {reused:.1} us a node");
        assert!(memory < 100.0, "{shape:?} in memory: {memory:.1} us a node");
        assert!(made < 400.0, "{shape:?} made: {made:.1} us a node");
        assert!(reused < 400.0, "{shape:?} reused: {reused:.1} us a node");
    }
}

#[test]
fn planning_is_linear_in_the_graph() {
    let folder = folder("longtake-gate-");
    let trivial = Trivial::open(folder.path()).unwrap();
    let each = |count: usize| {
        let document = document(Kept::Cheap, Shape::Chain, count, 0).unwrap();
        least(|_| trivial.plan(&document).unwrap() * 1e6 / count as f64)
    };
    let (short, long) = (each(2_500), each(10_000));
    println!("plan: {short:.1} us a node of 2,500, {long:.1} of 10,000");
    assert!(
        long < 2.0 * short,
        "a node takes {short} us to plan among 2,500, {long} us among 10,000"
    );
}

#[test]
fn memory_does_not_grow_with_the_film() {
    let program = Path::new(env!("CARGO_BIN_EXE_longtake-under-test"));
    let peak = |shots: usize| {
        let film = LongFilm {
            shots,
            shot_secs: 1,
            size_px: (640, 360),
            fps: 12,
            preset: "ultrafast",
        };
        let folder = folder("longtake-gate-");
        film.make(program, folder.path()).unwrap().peak_bytes
    };
    let (short, long) = (peak(10), peak(40));
    println!("peak: {short} bytes for 10 shots, {long} for 40");
    if cfg!(target_os = "linux") {
        assert!(short > 0, "the peak is not told");
    }
    assert!(
        long <= short + short / 5,
        "10 shots take {short} bytes, 40 take {long}"
    );
}
