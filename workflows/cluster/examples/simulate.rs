//! A half-hour film on clusters that need not exist: `cargo run -p flow-cluster --example
//! simulate [-- --json] [--seed N]` prints a table, or one JSON line of bench rows: the makespan
//! of our placement beside two baselines, and how far it is over the bound that no schedule beats.
#![allow(clippy::print_stdout, reason = "its output is its purpose")]

use std::error::Error;

use engine_base::{Clock as _, SystemClock};
use flow_cluster::placement::CriticalPath;
use flow_cluster::simulate::{Machine, Row, Scenario, ShotsShape, all, run, shots, table};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (mut as_json, mut seed) = (false, 1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => as_json = true,
            "--seed" => {
                let text = arguments.next().unwrap_or_default();
                seed = text.parse().map_err(|_no_number| {
                    format!("expected a number after --seed, got {text:?}")
                })?;
            }
            other => return Err(format!("expected --json or --seed N, got {other:?}").into()),
        }
    }
    let cases = all(seed)?;
    let rows: Vec<Row> = cases.iter().map(Row::of).collect::<Result<_, _>>()?;
    if !as_json {
        print!("{}", table(&rows));
        return Ok(());
    }
    let mut rows: Vec<_> = rows.iter().flat_map(lines).collect();
    rows.push(dispatch_row()?);
    println!("{}", json!({ "rows": rows, "receipt": null }));
    Ok(())
}

/// The makespan beside each baseline, and how far it is over the bound.
fn lines(row: &Row) -> Vec<Value> {
    let case = format!("{}, {} machines", row.name, row.machines);
    // Played once: the same seed gives the same time.
    let spread = |value: f64| json!({ "min": value, "median": value, "max": value });
    let value = row.ours.makespan_secs;
    let beside = |peer: &str, other: f64| {
        json!({
            "name": case,
            "value": value,
            "unit": "s",
            "peer": peer,
            "peer_value": other,
            "ratio": other / value,
            "floor": null,
            "spread": spread(value),
        })
    };
    let over = row.ours.over_bound();
    vec![
        beside("round robin", row.round_robin.makespan_secs),
        beside("first come", row.first_come.makespan_secs),
        json!({
            "name": format!("{case}, over the lower bound"),
            "value": over,
            "unit": "x",
            "peer": "lower bound",
            "peer_value": 1.0,
            "ratio": 1.0 / over,
            "floor": row.is_bounded.then_some(1.1),
            "spread": spread(over),
        }),
    ]
}

/// What deciding costs: wall time of handing one job out and taking its result, with 10,000 jobs
/// ready and 64 machines there. The only figure here that the machine at hand decides.
fn dispatch_row() -> Result<Value, Box<dyn Error>> {
    let shape = ShotsShape {
        shots: 10_000,
        chain: 0.01,
        ..ShotsShape::default()
    };
    let scenario = Scenario {
        jobs: shots(shape, "dispatch", 1)?,
        ..Scenario::half_hour_film("", Machine::sparks(64), 1)?
    };
    let clock = SystemClock::new();
    let start = clock.monotonic();
    let outcome = run(&scenario, Box::new(CriticalPath))?;
    let secs = (clock.monotonic() - start).as_secs_f64();
    let millis = secs * 1e3 / outcome.leases as f64;
    Ok(json!({
        "name": "dispatch of one job, 10,000 jobs on 64 machines",
        "value": millis,
        "unit": "ms",
        "peer": null,
        "peer_value": null,
        "ratio": null,
        "floor": 10.0,
        "spread": { "min": millis, "median": millis, "max": millis },
    }))
}
