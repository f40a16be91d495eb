//! What was measured, with all that is needed to believe or repeat it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use engine_base::ContentHash;
use engine_cuda::{CudaError, Device, Graph, Timer};
use serde_json::{Value, json};

use crate::Order;

/// A figure with its samples; larger or smaller is better as `higher` says.
pub(crate) struct Row<'a> {
    pub(crate) name: &'a str,
    pub(crate) unit: &'static str,
    pub(crate) higher: bool,
    pub(crate) samples: Vec<f64>,
    /// What has to be reached.
    pub(crate) bar: Option<f64>,
    /// What no program could pass on this machine, by the rate it reads or multiplies at.
    pub(crate) floor: Option<f64>,
}

pub(crate) struct Receipt {
    head: Value,
    peers: BTreeMap<String, Vec<f64>>,
    about_peers: Value,
    rows: Vec<Value>,
    samples: BTreeMap<String, Vec<f64>>,
}

pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Of a path its last part: where it lies is one machine's affair.
fn last_part(word: &str) -> String {
    let last = word.trim_end_matches('/').rsplit('/').next();
    last.unwrap_or(word).to_owned()
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(|line| line.trim().to_owned())
}

impl Receipt {
    pub(crate) fn new(device: &Device, order: &Order) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find the running program")?;
        let binary =
            ContentHash::of(&fs::read(&program).context("cannot read the running program")?);
        let info = device.info();
        let driver = first_line(
            Command::new("nvidia-smi")
                .args(["--query-gpu=driver_version", "--format=csv,noheader"]),
        );
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpu
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let compiler = engine_cuda::compiler_version().ok();
        let head = json!({
            "commit": order.get("commit").unwrap_or("unknown"),
            "binary": binary.to_hex(),
            "release": !cfg!(debug_assertions),
            "machine": {
                "device": info.name,
                "arch": info.arch(),
                "memory_bytes": info.memory_bytes,
                "processors": info.processors,
                "driver": driver.unwrap_or_else(|| "unknown".to_owned()),
                "driver_cuda": format!("{}.{}", info.driver.0, info.driver.1),
                "kernel_compiler": compiler.map_or_else(|| "none".to_owned(), |(a, b)| format!("{a}.{b}")),
                "cpu": cpu.unwrap_or("unknown"),
                "cores": cores,
            },
            "command": std::iter::once("engine-bench".to_owned()).chain(std::env::args().skip(1).map(|word| last_part(&word))).collect::<Vec<_>>(),
        });
        let mut receipt = Self {
            head,
            peers: BTreeMap::new(),
            about_peers: Value::Null,
            rows: Vec::new(),
            samples: BTreeMap::new(),
        };
        if let Some(path) = order.path("peers") {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read the peers' samples: {}", path.display()))?;
            let read: Value = serde_json::from_str(&text)
                .with_context(|| format!("cannot read the peers' samples: {}", path.display()))?;
            receipt.about_peers = read["about"].clone();
            for (name, samples) in read["samples"].as_object().into_iter().flatten() {
                let samples: Vec<f64> = samples
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_f64)
                    .collect();
                receipt.peers.insert(name.clone(), samples);
            }
        }
        Ok(receipt)
    }

    /// Keeps a figure and prints it.
    pub(crate) fn add(&mut self, row: Row<'_>) {
        let value = median(&row.samples);
        let peer = self
            .peers
            .get(row.name)
            .filter(|samples| !samples.is_empty());
        let peer_value = peer.map(|samples| median(samples));
        let ratio = peer_value.map(|peer| {
            if row.higher {
                value / peer
            } else {
                peer / value
            }
        });
        let least = row.samples.iter().copied().fold(f64::INFINITY, f64::min);
        let most = row
            .samples
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        let holds = row
            .bar
            .map(|bar| if row.higher { value > bar } else { value < bar });
        let shown =
            |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.4}"));
        println!(
            "{:<44} {value:>12.4} {:<9} [{least:.4}, {most:.4}] bar {} floor {} peer {} {}",
            row.name,
            row.unit,
            shown(row.bar),
            shown(row.floor),
            shown(peer_value),
            match holds {
                Some(true) => "reached",
                Some(false) => "NOT REACHED",
                None => "",
            }
        );
        self.rows.push(json!({
            "name": row.name,
            "value": value,
            "unit": row.unit,
            "better": if row.higher { "higher" } else { "lower" },
            "bar": row.bar,
            "reached": holds,
            "floor": row.floor,
            "peer": peer_value.map(|_| self.about_peers.clone()),
            "peer_value": peer_value,
            "ratio": ratio,
            "spread": {"min": least, "median": value, "max": most},
        }));
        if let Some(peer) = peer {
            self.samples
                .insert(format!("{}/peer", row.name), peer.clone());
        }
        self.samples.insert(row.name.to_owned(), row.samples);
    }

    /// Writes it to `path`; prints the rows as one last line.
    pub(crate) fn finish(mut self, path: Option<&Path>) -> Result<()> {
        if let Some(head) = self.head.as_object_mut() {
            head.insert("name".to_owned(), json!("gpu"));
            head.insert("rows".to_owned(), json!(self.rows));
            head.insert("samples".to_owned(), json!(self.samples));
        }
        if let Some(path) = path {
            let text = serde_json::to_string(&self.head)?;
            fs::write(path, text + "\n")
                .with_context(|| format!("cannot write the receipt: {}", path.display()))?;
        }
        println!("{} rows", self.rows.len());
        Ok(())
    }
}

/// Seconds of each of `repeats` runs of `work`, after three that are not counted.
pub(crate) fn timed(
    device: &Device,
    repeats: usize,
    mut work: impl FnMut() -> Result<(), CudaError>,
) -> Result<Vec<f64>> {
    for _ in 0..3 {
        work()?;
    }
    device.wait()?;
    let timer = Timer::new(device, repeats + 1)?;
    timer.mark(0)?;
    for at in 0..repeats {
        work()?;
        timer.mark(at + 1)?;
    }
    let secs: Result<Vec<f64>, CudaError> = (0..repeats).map(|at| timer.secs(at, at + 1)).collect();
    Ok(secs?)
}

/// Seconds of one of the `inner` parts that a recorded graph consists of.
pub(crate) fn timed_graph(
    device: &Device,
    repeats: usize,
    inner: usize,
    graph: &Graph,
) -> Result<Vec<f64>> {
    let secs = timed(device, repeats, || graph.replay())?;
    Ok(secs.into_iter().map(|secs| secs / inner as f64).collect())
}

#[cfg(test)]
mod tests {
    use super::{last_part, median};

    #[test]
    fn receipts_name_no_folders() {
        assert_eq!(last_part("some/where/gpu.json"), "gpu.json");
        assert_eq!(last_part("--out"), "--out");
        assert_eq!(last_part("cache/"), "cache");
    }

    #[test]
    fn medians_are_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
