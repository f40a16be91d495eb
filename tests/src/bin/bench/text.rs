//! Speed of the language model on the processor, what a constraint costs, the memory it takes, and
//! how far it agrees with llama.cpp.
//!
//! `LONGTAKE_MODEL` names the GGUF file; without it the default pack's is looked for. With `--peers`
//! llama.cpp runs in turn with ours on the same file, tokens and threads: `LONGTAKE_LLAMA_CPP_PYTHON`
//! is a Python that has llama-cpp-python built from source.

mod agreement;
mod llama_cpp;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use engine_base::CancelToken;
use engine_models::{DenseModel, LoadOptions, load_dense};
use engine_nn::{Sampling, TokenModel as _};
use engine_pipelines::{Constraint, TextOptions, TextPipeline, TextRequest};
use longtake_tests::receipt::Measured;
use longtake_tests::{Better, Receipt, Spread};
use serde_json::json;

use crate::Bench;
use crate::packs::pack;
use crate::peer::python;
use llama_cpp::LlamaCpp;

pub(crate) const BENCH: Bench = Bench {
    name: "text",
    about: "language model: prefill, decode, memory, cost of a constraint; peer llama.cpp",
    run,
};

const ROUNDS: usize = 3;
const DECODED: u32 = 64;
const PACK: &str = "smollm2-135m-instruct-q4_1";

/// What a piece of work took.
struct Spent {
    wall_secs: f64,
    cpu_secs: f64,
}

/// What `work` takes in this process.
fn spent(work: impl FnOnce() -> Result<()>) -> Result<Spent> {
    let (cpu, wall) = (cpu_secs()?, Instant::now());
    work()?;
    Ok(Spent {
        wall_secs: wall.elapsed().as_secs_f64(),
        cpu_secs: cpu_secs()? - cpu,
    })
}

/// Processor time of all living threads of this process, to the nanosecond: Linux only.
fn cpu_secs() -> Result<f64> {
    let mut total = 0.0;
    for task in std::fs::read_dir("/proc/self/task").context("no processor times here")? {
        let times = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let nanos = times.split(' ').next().context("no processor time")?;
        total += nanos.parse::<f64>()? * 1e-9;
    }
    Ok(total)
}

fn model_file() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("LONGTAKE_MODEL") {
        return Ok(path.into());
    }
    let folder = pack(PACK, "LONGTAKE_MODEL")?;
    let files =
        std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let files = files.filter_map(|file| Some(file.ok()?.path()));
    files
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "gguf"))
        .with_context(|| format!("no GGUF file: {}", folder.display()))
}

fn ids(count: u32) -> Vec<u32> {
    (0..count).map(|at| (at * 7919 + 13) % 49_000).collect()
}

fn load(path: &Path, threads: usize) -> Result<Arc<DenseModel>> {
    let options = LoadOptions {
        threads,
        ..LoadOptions::default()
    };
    Ok(load_dense(&*engine_weights::open(path)?, &options)?)
}

fn run(receipt: &mut Receipt, peers: bool) -> Result<()> {
    let path = model_file()?;
    let mut peer = match peers {
        true => Some(LlamaCpp::start(&python("LONGTAKE_LLAMA_CPP_PYTHON")?)?),
        false => None,
    };
    memory(receipt, &path)?;
    for threads in [1, 2] {
        let model = load(&path, threads)?;
        if let Some(peer) = &mut peer {
            peer.load(&path, threads)?;
        }
        speed(receipt, &model, threads, peer.as_mut())?;
    }
    constraint(receipt, &path)?;
    match &mut peer {
        Some(peer) => agreement::agreement(receipt, &path, &load(&path, 2)?, peer),
        None => Ok(()),
    }
}

/// Ours, taken from a stream of `model` that is new each time.
fn ours(model: &Arc<DenseModel>, prefill: u32) -> Result<Spent> {
    let cancel = CancelToken::new();
    let mut stream = Arc::clone(model).stream();
    if prefill > 0 {
        return spent(|| Ok(stream.extend(&ids(prefill), &cancel).map(drop)?));
    }
    stream.extend(&ids(32), &cancel)?;
    spent(|| {
        for token in ids(DECODED) {
            stream.extend(&[token], &cancel)?;
        }
        Ok(())
    })
}

fn theirs(peer: &mut LlamaCpp, prefill: u32) -> Result<Spent> {
    peer.spent(&if prefill > 0 {
        json!({"do": "prefill", "ids": ids(prefill)})
    } else {
        json!({"do": "decode", "prompt": ids(32), "ids": ids(DECODED)})
    })
}

fn speed(
    receipt: &mut Receipt,
    model: &Arc<DenseModel>,
    threads: usize,
    mut peer: Option<&mut LlamaCpp>,
) -> Result<()> {
    for (name, prefill, floor) in [
        ("prefill of 256", 256, 0.9),
        ("prefill of 512", 512, 0.9),
        ("decode", 0, 1.0),
    ] {
        let tokens = f64::from(if prefill > 0 { prefill } else { DECODED });
        let mut taken = [const { Vec::new() }; 4];
        for _ in 0..ROUNDS {
            let our = ours(model, prefill)?;
            taken[0].push(tokens / our.wall_secs);
            taken[1].push(tokens / our.cpu_secs);
            if let Some(peer) = peer.as_deref_mut() {
                let their = theirs(peer, prefill)?;
                taken[2].push(tokens / their.wall_secs);
                taken[3].push(tokens / their.cpu_secs);
            }
        }
        for (at, unit) in [(0, "tokens/s"), (1, "tokens/CPU s")] {
            let their = &taken[at + 2];
            let per = if at == 0 { "" } else { " per processor second" };
            receipt.add(Measured {
                name: &format!("{name}, threads {threads}{per}"),
                unit,
                better: Better::Higher,
                samples: &taken[at],
                peer: peer.as_deref().map(|peer| (peer.name.as_str(), &their[..])),
                floor: Spread::of(their).map(|peer| floor * peer.median),
            })?;
        }
    }
    Ok(())
}

/// Part of the time of a reply that goes to holding it to a schema.
fn constraint(receipt: &mut Receipt, path: &Path) -> Result<()> {
    let checkpoint = engine_weights::open(path)?;
    let options = TextOptions {
        load: LoadOptions {
            threads: 2,
            ..LoadOptions::default()
        },
        ..TextOptions::default()
    };
    let mut pipeline = TextPipeline::open(&*checkpoint, options)?;
    let line = json!({"type": "string", "minLength": 20, "maxLength": 120});
    let shot = json!({
        "type": "object",
        "properties": {
            "framing": {"enum": ["wide", "medium", "close"]},
            "action": line,
            "line": line,
            "secs": {"type": "integer", "minimum": 2, "maximum": 12}
        },
        "required": ["framing", "action", "line", "secs"],
        "additionalProperties": false
    });
    let schema = json!({"type": "array", "items": shot, "minItems": 2, "maxItems": 3});
    let mut shares = Vec::new();
    for seed in 0..10 {
        let mut request = TextRequest::plain(
            "The shots of a film about a lighthouse keeper in a storm, as JSON:\n",
            300,
        );
        request.sampling = Sampling {
            seed,
            ..Sampling::default()
        };
        request.constraint = Constraint::JsonSchema(schema.clone());
        let reply = pipeline.generate(
            &request,
            &mut |_| std::ops::ControlFlow::Continue(()),
            &CancelToken::new(),
        )?;
        shares.push(reply.constraint_secs / (reply.decode_secs - reply.constraint_secs));
    }
    receipt.add(Measured {
        name: "cost of a JSON schema over decoding without one",
        unit: "share",
        better: Better::Lower,
        samples: &shares,
        peer: None,
        floor: Some(0.1),
    })?;
    Ok(())
}

/// Most memory that the model adds to this process as it reads and writes, over the length of the
/// file: Linux only. Must come before anything else that takes memory.
fn memory(receipt: &mut Receipt, path: &Path) -> Result<()> {
    let file = std::fs::metadata(path)?.len() as f64;
    // Starts the kernel's peak anew from what is held now.
    if std::fs::write("/proc/self/clear_refs", "5").is_err() {
        return Ok(());
    }
    let before = peak_bytes()?;
    let model = load(path, 2)?;
    ours(&model, 256)?;
    ours(&model, 0)?;
    drop(model);
    receipt.add(Measured {
        name: "peak memory that the model adds",
        unit: "x file",
        better: Better::Lower,
        samples: &[(peak_bytes()? - before) / file],
        peer: None,
        floor: Some(1.2),
    })?;
    Ok(())
}

fn peak_bytes() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    Ok(kib.context("no peak memory")?.trim().parse::<f64>()? * 1024.0)
}
