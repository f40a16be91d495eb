//! How far the model agrees with llama.cpp, token by token.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use engine_base::CancelToken;
use engine_models::DenseModel;
use longtake_tests::receipt::Measured;
use longtake_tests::{Better, Receipt};
use serde_json::json;

use super::DECODED;
use super::llama_cpp::LlamaCpp;

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

/// How far one model's choices are from another's.
#[derive(Default)]
struct Distance {
    same: u32,
    count: u32,
    /// Sum of the divergences of its shares from the other's.
    divergence: f64,
    /// Widest gap between the other's first and second where the first is not the same.
    widest: f32,
}

impl Distance {
    /// Logits of one position: `from` are the other model's.
    fn add(&mut self, from: &[f32], ours: &[f32]) {
        let (best, gap) = top_two(from);
        if top_two(ours).0 == best {
            self.same += 1;
        } else {
            self.widest = self.widest.max(gap);
        }
        self.count += 1;
        let pairs = log_shares(from).into_iter().zip(log_shares(ours));
        self.divergence += pairs.map(|(p, q)| p.exp() * (p - q)).sum::<f64>();
    }

    fn figures(&self) -> [f64; 3] {
        let count = f64::from(self.count);
        [
            f64::from(self.same) / count,
            self.divergence / count,
            f64::from(self.widest),
        ]
    }
}

/// The same tokens through both: which is the likeliest next, and how far the shares are apart.
///
/// The peer of these rows is llama.cpp against itself, with its keys and values kept in 32 bits
/// and not in 16. Products with inputs of 8 bits turn any small difference into one of this size,
/// so nothing can be asked to be nearer to it than it is to itself.
pub(super) fn agreement(
    receipt: &mut Receipt,
    path: &Path,
    model: &Arc<DenseModel>,
    peer: &mut LlamaCpp,
) -> Result<()> {
    let cancel = CancelToken::new();
    let folder = tempfile::tempdir()?;
    let vocab = model.vocab_tokens();
    peer.load(path, 1)?;
    let mut texts: Vec<(Vec<u32>, usize)> = Vec::new();
    for prompt in PROMPTS {
        let reply = peer.ask(&json!({"do": "greedy", "text": prompt, "new": DECODED}))?;
        let list =
            |name: &str| -> Result<Vec<u32>> { Ok(serde_json::from_value(reply[name].clone())?) };
        let (prompt, new) = (list("prompt")?, list("new")?);
        texts.push(([&prompt[..], &new[..]].concat(), prompt.len()));
    }
    let file_of = |at: usize, kind: &str| folder.path().join(format!("{at}.{kind}"));
    for kind in ["f16", "f32"] {
        peer.load_with(path, 1, kind == "f32")?;
        for (at, (all, _)) in texts.iter().enumerate() {
            peer.ask(&json!({"do": "logits", "ids": all, "out": file_of(at, kind)}))?;
        }
    }
    let (mut ours, mut itself) = (Distance::default(), Distance::default());
    for (at, (all, prompt)) in texts.iter().enumerate() {
        let (theirs, theirs_f32) = (logits(&file_of(at, "f16"))?, logits(&file_of(at, "f32"))?);
        ensure!(
            theirs.len() == all.len() * vocab,
            "the peer's vocabulary is another"
        );
        let mut stream = Arc::clone(model).stream();
        let our = stream.extend_all(all, &cancel)?;
        for row in *prompt..all.len() {
            let row = row * vocab..(row + 1) * vocab;
            ours.add(&theirs[row.clone()], &our[row.clone()]);
            itself.add(&theirs[row.clone()], &theirs_f32[row]);
        }
    }
    let name = format!("{} against itself with keys and values in f32", peer.name);
    let rows = [
        ("likeliest token equal", "share", Better::Higher),
        ("mean divergence of the shares", "nats", Better::Lower),
        ("widest gap of a disagreement", "logits", Better::Lower),
    ];
    for ((row, unit, better), (our, their)) in rows
        .into_iter()
        .zip(ours.figures().into_iter().zip(itself.figures()))
    {
        receipt.add(Measured {
            name: row,
            unit,
            better,
            samples: &[our],
            peer: Some((&name, &[their])),
            floor: None,
        })?;
    }
    Ok(())
}

fn logits(path: &Path) -> Result<Vec<f32>> {
    let bytes = std::fs::read(path)?;
    let chunks = bytes.as_chunks().0;
    Ok(chunks.iter().map(|b| f32::from_le_bytes(*b)).collect())
}
