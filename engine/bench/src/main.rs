//! `engine-bench`: the GPU's kernels and models held against the CPU, and timed beside their peers.
//!
//! Small, and without FFmpeg, so that it runs on a machine that has a GPU and nothing else. It knows no figures
//! but those it measures; what it prints and writes are receipts.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool: its output is what it is for"
)]

mod checks;
mod decode;
mod dense;
mod gemvs;
mod kernels;
mod pictures;
mod prefill;
mod receipt;
mod tokens;
mod vae;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use engine_cuda::{Device, DeviceOptions, probe};

use crate::receipt::Receipt;

const USAGE: &str = "usage: engine-bench WHAT [--KEY VALUE]…

  kernels   compile every kernel: --arch sm_90a,sm_121 [--verbose yes]; needs no device
  probe     say which devices can be used, or why none can
  check     case tables, rows, repeats, graphs and tokens on the device against the CPU
  fault     let a kernel fail on purpose, and see that the error names it
  time      measure: rows of kernels and models, with a receipt

  --only NAME,NAME       of check: ops; of time: attention, gemv, decode, picture, dense, vae, prefill
  --model NAME           of time: the decoders whose names have it
  --way NUMBER           how products of 4-bit weights run, 0 (by default) to 2
  --checked yes          wait after every launch
  --early no             no launch begins before the one before has ended
  --cache FOLDER         where compiled kernels are kept
  --fixtures FOLDER      tests/fixtures, for the tokens of tiny models
  --upscaler FILE        weights of realesr-animevideov3-x2, as safetensors
  --dense FILE           weights of an RRDB network of 64 features, as safetensors
  --memcheck FILE        of check: what compute-sanitizer said of a run of it
  --peers FILE           samples of peers measured on the same machine (tests/gpu/peers.py)
  --out FILE             where the receipt is written
  --commit NAME          what the program was built from";

/// What was asked for.
#[derive(Debug, Default)]
pub(crate) struct Order {
    what: String,
    keys: BTreeMap<String, String>,
}

impl Order {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut order = Self {
            what: words.next().context(USAGE)?,
            keys: BTreeMap::new(),
        };
        while let Some(word) = words.next() {
            let key = word
                .strip_prefix("--")
                .with_context(|| format!("cannot read {word:?}\n{USAGE}"))?;
            let value = words
                .next()
                .with_context(|| format!("--{key} expects a value\n{USAGE}"))?;
            order.keys.insert(key.to_owned(), value);
        }
        Ok(order)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }

    pub(crate) fn path(&self, key: &str) -> Option<PathBuf> {
        self.get(key).map(PathBuf::from)
    }

    fn is_yes(&self, key: &str) -> bool {
        self.get(key) == Some("yes")
    }

    /// Whether `--only` leaves `name` in.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.get("only")
            .is_none_or(|only| only.split(',').any(|one| one == name))
    }
}

fn open(order: &Order) -> Result<Device> {
    if let Some(way) = order.get("way") {
        let way = way
            .parse()
            .with_context(|| format!("cannot read the way {way:?}"))?;
        engine_cuda::ops::PACKED_WAY.store(way, std::sync::atomic::Ordering::Relaxed);
    }
    let devices = probe()?;
    let info = devices.first().context("no device")?;
    let mut options = DeviceOptions {
        checked: order.is_yes("checked"),
        early_starts: order.get("early") != Some("no"),
        ..DeviceOptions::default()
    };
    if let Some(folder) = order.path("cache") {
        options.cache = engine_cuda::CubinCache::new(Some(folder));
    }
    println!(
        "{}: {}, {:.1} GiB, {} processors, driver CUDA {}.{}",
        info.name,
        info.arch(),
        info.memory_bytes as f64 / (1u64 << 30) as f64,
        info.processors,
        info.driver.0,
        info.driver.1
    );
    Ok(Device::open(info, options)?)
}

fn time(order: &Order) -> Result<()> {
    let device = open(order)?;
    let mut receipt = Receipt::new(&device, order)?;
    let read_rate = gemvs::read_rate(&device, &mut receipt)?;
    // What heats the chip most comes last: it lowers its clock.
    if order.wants("attention") {
        prefill::attentions(&device, &mut receipt)?;
    }
    if order.wants("gemv") {
        gemvs::run(&device, &mut receipt, read_rate)?;
    }
    if order.wants("decode") {
        decode::run(
            &device,
            order.get("model").unwrap_or(""),
            &mut receipt,
            read_rate,
        )?;
    }
    if order.wants("picture") {
        pictures::run(&device, order, &mut receipt)?;
    }
    if order.wants("dense") {
        dense::run(&device, order, &mut receipt)?;
    }
    if order.wants("vae") {
        vae::run(&device, &mut receipt)?;
    }
    if order.wants("prefill") {
        prefill::prompt(&device, &mut receipt)?;
    }
    receipt.finish(order.path("out").as_deref())
}

fn run() -> Result<()> {
    let order = Order::parse(std::env::args().skip(1))?;
    match order.what.as_str() {
        "kernels" => kernels::run(
            order.get("arch").unwrap_or("sm_90a,sm_121"),
            order.is_yes("verbose"),
            order.path("cache").as_deref(),
        ),
        "probe" => {
            for info in probe()? {
                println!("{info:?}");
            }
            Ok(())
        }
        "check" => {
            let device = open(&order)?;
            let receipt = Receipt::new(&device, &order)?;
            checks::run(&device, &order, receipt)
        }
        "fault" => checks::fault(&open(&order)?),
        "time" => time(&order),
        other => bail!("cannot run {other:?}\n{USAGE}"),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_and_bad_ones_refused() {
        let words = |text: &str| {
            text.split(' ')
                .map(str::to_owned)
                .collect::<Vec<_>>()
                .into_iter()
        };
        let order = Order::parse(words("time --only decode,gemv --early no")).unwrap();
        assert!(order.wants("gemv") && !order.wants("picture"));
        assert_eq!(order.get("early"), Some("no"));
        for bad in ["time only", "time --only"] {
            assert!(Order::parse(words(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn without_a_device_every_command_says_why() {
        if probe().is_ok() {
            return;
        }
        let error = open(&Order::default()).unwrap_err().to_string();
        assert!(error.contains("CUDA"), "{error}");
    }
}
