//! Speed of the language model on the processor, and how far it agrees with llama.cpp.
//!
//! `LONGTAKE_MODEL` names the GGUF file; without it the default pack's is looked for. With
//! `LONGTAKE_LLAMA_CPP_PYTHON`, a Python that has llama-cpp-python built from source, llama.cpp runs
//! in turn with ours on the same file, tokens and threads.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use engine_base::CancelToken;
use engine_models::{DenseModel, LoadOptions, load_dense};
use engine_nn::TokenModel as _;
use longtake_tests::receipt::Measured;
use longtake_tests::{Better, Receipt};
use serde_json::{Value, json};

use crate::Bench;

pub(crate) const BENCH: Bench = Bench {
    name: "text",
    about: "prefill and decode of the language model, against llama.cpp",
    run,
};

const THREADS: usize = 2;
const ROUNDS: usize = 5;
const DECODED: u32 = 64;
const PACK: &str = "longtake/models/smollm2-135m-instruct-q4_1";

/// Beginnings that both models continue.
const PROMPTS: [&str; 20] = [
    "A lighthouse keeper finds a letter in a bottle that",
    "The recipe for a good onion soup begins with",
    "In the winter of 1911 the railway",
    "Rust is a programming language that",
    "Once upon a time a fox and a heron",
    "The three causes of tides are",
    "Dear editor, I am writing to complain about",
    "To change the tyre of a bicycle, first",
    "She opened the door of the observatory and",
    "The chemical symbol of iron is",
    "Every morning the baker of the village",
    "A short history of the violin:",
    "The captain looked at the broken mast and",
    "Photosynthesis is the process by which",
    "My grandmother used to say that",
    "The train to Lisbon leaves at",
    "If you want to grow tomatoes on a balcony,",
    "The detective put the glove on the table.",
    "Water boils at a lower temperature on mountains because",
    "Two astronauts argue about who",
];

/// llama.cpp in a process of its own.
struct Peer {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    name: String,
}

impl Peer {
    fn start(python: &str, model: &Path) -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/peers/llama_cpp.py");
        let mut child = Command::new(python)
            .arg("-P")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {python:?}"))?;
        let to = child.stdin.take().context("no way to the peer")?;
        let from = BufReader::new(child.stdout.take().context("no way from the peer")?);
        let mut peer = Self {
            child,
            to,
            from,
            name: String::new(),
        };
        let reply = peer.ask(&json!({"do": "load", "path": model, "threads": THREADS}))?;
        let version = reply["version"].as_str().unwrap_or_default();
        peer.name = format!("llama.cpp (llama-cpp-python {version})");
        Ok(peer)
    }

    fn ask(&mut self, request: &Value) -> Result<Value> {
        writeln!(self.to, "{request}")?;
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| {
            format!(
                "llama.cpp gave no answer to {}; is llama-cpp-python installed",
                request["do"]
            )
        })
    }

    fn secs(&mut self, request: &Value) -> Result<f64> {
        self.ask(request)?["secs"]
            .as_f64()
            .context("expected a time from the peer")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}

fn model_file() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("LONGTAKE_MODEL") {
        return Ok(path.into());
    }
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let folder = data.or(home).context("no folder of data")?.join(PACK);
    let files = std::fs::read_dir(&folder).with_context(|| {
        format!(
            "no model: run `cargo xtask setup`, or set LONGTAKE_MODEL: {}",
            folder.display()
        )
    })?;
    let files = files.filter_map(|file| Some(file.ok()?.path()));
    files
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "gguf"))
        .with_context(|| format!("no GGUF file: {}", folder.display()))
}

fn ids(count: u32) -> Vec<u32> {
    (0..count).map(|at| (at * 7919 + 13) % 49_000).collect()
}

fn run(receipt: &mut Receipt) -> Result<()> {
    let path = model_file()?;
    let checkpoint = engine_weights::open(&path)?;
    let options = LoadOptions {
        threads: THREADS,
        ..LoadOptions::default()
    };
    let model = load_dense(&*checkpoint, &options)?;
    let mut peer = match std::env::var("LONGTAKE_LLAMA_CPP_PYTHON") {
        Ok(python) => Some(Peer::start(&python, &path)?),
        Err(_) => None,
    };
    speed(receipt, &model, peer.as_mut())?;
    memory(receipt, &path)?;
    match &mut peer {
        Some(peer) => agreement(receipt, &model, peer),
        None => Ok(()),
    }
}

fn speed(
    receipt: &mut Receipt,
    model: &Arc<DenseModel>,
    mut peer: Option<&mut Peer>,
) -> Result<()> {
    let cancel = CancelToken::new();
    for (name, count, floor) in [
        ("prefill-256", 256, 0.9),
        ("prefill-512", 512, 0.9),
        ("decode", 0, 1.0),
    ] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let mut stream = Arc::clone(model).stream();
            let (prompt, tokens) = (ids(32), ids(DECODED));
            let rate = |tokens: u32, secs: f64| f64::from(tokens) / secs;
            if count > 0 {
                let started = Instant::now();
                stream.extend(&ids(count), &cancel)?;
                ours.push(rate(count, started.elapsed().as_secs_f64()));
            } else {
                stream.extend(&prompt, &cancel)?;
                let started = Instant::now();
                for token in &tokens {
                    stream.extend(&[*token], &cancel)?;
                }
                ours.push(rate(DECODED, started.elapsed().as_secs_f64()));
            }
            let Some(peer) = peer.as_deref_mut() else {
                continue;
            };
            theirs.push(if count > 0 {
                rate(
                    count,
                    peer.secs(&json!({"do": "prefill", "ids": ids(count)}))?,
                )
            } else {
                let request = json!({"do": "decode", "prompt": prompt, "ids": tokens});
                rate(DECODED, peer.secs(&request)?)
            });
        }
        let spread = longtake_tests::Spread::of(&theirs);
        receipt.add(Measured {
            name,
            unit: "tokens/s",
            better: Better::Higher,
            samples: &ours,
            peer: peer
                .as_deref()
                .map(|peer| (peer.name.as_str(), &theirs[..])),
            floor: spread.map(|peer| floor * peer.median),
        })?;
    }
    Ok(())
}

/// Peak memory of this process over the length of the file, Linux only.
fn memory(receipt: &mut Receipt, path: &Path) -> Result<()> {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return Ok(());
    };
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kib: f64 = kib.context("no peak memory")?.trim().parse()?;
    let file = std::fs::metadata(path)?.len() as f64;
    receipt.add(Measured {
        name: "peak-memory",
        unit: "x file",
        better: Better::Lower,
        samples: &[kib * 1024.0 / file],
        peer: None,
        floor: None,
    })?;
    Ok(())
}

/// Natural logarithms of the shares of `logits`.
fn log_shares(logits: &[f32]) -> Vec<f64> {
    let most = logits.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
    let total: f64 = logits.iter().map(|x| f64::from(x - most).exp()).sum();
    logits
        .iter()
        .map(|x| f64::from(x - most) - total.ln())
        .collect()
}

fn top_two(logits: &[f32]) -> (usize, f32) {
    let (mut best, mut second) = (0, f32::NEG_INFINITY);
    for (at, value) in logits.iter().enumerate().skip(1) {
        if *value > logits[best] {
            second = logits[best];
            best = at;
        } else {
            second = second.max(*value);
        }
    }
    (best, logits[best] - second)
}

/// The same tokens through both: which is the likeliest next, and how far the shares are apart.
fn agreement(receipt: &mut Receipt, model: &Arc<DenseModel>, peer: &mut Peer) -> Result<()> {
    let cancel = CancelToken::new();
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("logits.f32");
    let (mut same, mut count, mut divergence, mut widest) = (0u32, 0u32, 0.0, 0f32);
    for prompt in PROMPTS {
        let reply = peer.ask(&json!({"do": "greedy", "text": prompt, "new": DECODED}))?;
        let list =
            |name: &str| -> Result<Vec<u32>> { Ok(serde_json::from_value(reply[name].clone())?) };
        let (prompt, new) = (list("prompt")?, list("new")?);
        let all = [&prompt[..], &new[..]].concat();
        peer.ask(&json!({"do": "logits", "ids": all, "out": file}))?;
        let bytes = std::fs::read(&file)?;
        let theirs: Vec<f32> = bytes
            .as_chunks()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b))
            .collect();
        let vocab = model.vocab_tokens();
        ensure!(
            theirs.len() == all.len() * vocab,
            "the peer's vocabulary is another"
        );
        let mut stream = Arc::clone(model).stream();
        let ours = stream.extend_all(&all, &cancel)?;
        let rows = ours.chunks_exact(vocab).zip(theirs.chunks_exact(vocab));
        for (ours, theirs) in rows.skip(all.len() - new.len()) {
            let (best, gap) = top_two(theirs);
            if top_two(ours).0 == best {
                same += 1;
            } else {
                widest = widest.max(gap);
            }
            count += 1;
            let pairs = log_shares(theirs).into_iter().zip(log_shares(ours));
            divergence += pairs.map(|(p, q)| p.exp() * (p - q)).sum::<f64>();
        }
    }
    let rows = [
        (
            "top-1-agreement",
            "share",
            Better::Higher,
            f64::from(same) / f64::from(count),
            Some(0.99),
        ),
        (
            "mean-divergence",
            "nats",
            Better::Lower,
            divergence / f64::from(count),
            Some(1e-3),
        ),
        (
            "widest-gap-of-a-disagreement",
            "logits",
            Better::Lower,
            f64::from(widest),
            Some(0.1),
        ),
    ];
    for (name, unit, better, value, floor) in rows {
        receipt.add(Measured {
            name,
            unit,
            better,
            samples: &[value],
            peer: None,
            floor,
        })?;
    }
    Ok(())
}
