//! What the executor itself costs: trivial nodes made, reused and planned.

use anyhow::{Result, ensure};
use longtake_tests::film::scratch;
use longtake_tests::graphs::{Kept, Shape, Trivial, document};
use longtake_tests::load::CpuTime;
use longtake_tests::{Better, Receipt};

use crate::{Bench, Samples};

pub(crate) const BENCH: Bench = Bench {
    name: "executor",
    about: "trivial nodes made, reused and planned",
    run,
};

const NODES: usize = 10_000;
const ROUNDS: u32 = 7;
const PLANS: [usize; 4] = [2_500, 5_000, 10_000, 20_000];
/// Microseconds for each node that must not be exceeded.
const MEMORY_FLOOR: f64 = 50.0;
const DURABLE_FLOOR: f64 = 200.0;
/// How much longer a node of 20,000 may take to plan than one of 5,000.
const PLAN_FLOOR: f64 = 1.5;

const MICROS: &str = "us/node";

fn run(receipt: &mut Receipt, _peers: bool) -> Result<()> {
    let folder = tempfile::Builder::new()
        .prefix("longtake-executor-")
        .tempdir_in(scratch()?)?;
    let trivial = Trivial::open(folder.path())?;
    let mut samples = Samples::new();
    for round in 0..ROUNDS {
        for (shape, name) in [(Shape::Chain, "chain"), (Shape::Wide, "wide")] {
            let memory = document(Kept::Memory, shape, NODES, 0)?;
            let called = measure(&trivial, &memory, &mut samples, &format!("memory {name}"))?;
            ensure!(called.1 == NODES as u64, "{} calls", called.1);
            let durable = document(Kept::Durable, shape, NODES, round)?;
            let name = format!("durable {name}");
            let made = measure(&trivial, &durable, &mut samples, &format!("{name} made"))?;
            ensure!(made.0 == NODES as u64, "{} made", made.0);
            let again = measure(&trivial, &durable, &mut samples, &format!("{name} reused"))?;
            ensure!(again.0 == 0, "{} made again", again.0);
        }
        let mut each = Vec::new();
        for count in PLANS {
            let secs = trivial.plan(&document(Kept::Cheap, Shape::Chain, count, 0)?)?;
            each.push(secs * 1e6 / count as f64);
            samples.add(&format!("plan {count}"), secs * 1e6 / count as f64);
        }
        samples.add("plan 20000 to 5000", each[3] / each[1]);
    }
    for shape in ["chain", "wide"] {
        let memory = format!("memory {shape}");
        samples.row(receipt, &memory, MICROS, Better::Lower, Some(MEMORY_FLOOR))?;
        let made = format!("durable {shape} made");
        samples.row(receipt, &made, MICROS, Better::Lower, Some(DURABLE_FLOOR))?;
        let reused = format!("durable {shape} reused");
        samples.row(receipt, &reused, MICROS, Better::Lower, None)?;
        for name in [memory, made, reused] {
            let name = format!("{name}, processor");
            samples.row(receipt, &name, MICROS, Better::Lower, None)?;
        }
    }
    for count in PLANS {
        let name = format!("plan {count}");
        samples.row(receipt, &name, MICROS, Better::Lower, None)?;
    }
    let name = "plan 20000 to 5000";
    samples.row(receipt, name, "x", Better::Lower, Some(PLAN_FLOOR))
}

/// Run `document` and note what each node took; gives results made and calls kept in memory.
fn measure(
    trivial: &Trivial,
    document: &flow_graph::Document,
    samples: &mut Samples,
    name: &str,
) -> Result<(u64, u64)> {
    let each = 1e6 / document.nodes.len() as f64;
    let before = CpuTime::now();
    let (report, secs) = trivial.run(document)?;
    samples.add(name, secs * each);
    if let (Some(before), Some(after)) = (before, CpuTime::now()) {
        let secs = after.since(before).own_secs;
        samples.add(&format!("{name}, processor"), secs * each);
    }
    Ok((report.made, report.called))
}
