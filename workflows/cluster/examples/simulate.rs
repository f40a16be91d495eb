//! A half-hour film on clusters that need not exist: `cargo run -p flow-cluster --example
//! simulate [-- --json] [--seed N]` prints a table, or one JSON line of bench rows: the makespan
//! of our placement, round robin as the peer, and the bound that no schedule can beat.
#![allow(clippy::print_stdout, reason = "its output is its purpose")]

use std::error::Error;

use flow_cluster::simulate::{Row, all, table};
use serde_json::json;

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
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let value = row.ours.makespan_secs;
            json!({
                "name": format!("{}, {} machines", row.name, row.machines),
                "value": value,
                "unit": "s",
                "peer": "round robin",
                "peer_value": row.baseline.makespan_secs,
                "ratio": row.baseline.makespan_secs / value,
                "floor": row.is_bounded.then(|| 1.1 * row.ours.bound.secs()),
                "bound": row.ours.bound.secs(),
                // Played once: the same seed gives the same time.
                "spread": { "min": value, "median": value, "max": value },
            })
        })
        .collect();
    println!("{}", json!({ "rows": rows, "receipt": null }));
    Ok(())
}
