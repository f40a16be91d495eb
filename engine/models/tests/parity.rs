//! Families against outputs of transformers on tiny random checkpoints, and our own paths against
//! each other, bit for bit.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_base::CancelToken;
use engine_models::{
    Affinity, DenseModel, DenseStream, KvKind, LoadOptions, load_dense, load_token_model,
};
use engine_nn::{ModelError, TokenModel as _};
use engine_tensor::ops::argmax;
use engine_weights::{Checkpoint as _, Gguf, SafeTensors};
use serde_json::Value;

fn repository(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("tests").join(path)
}

const FIXTURES: &[&str] = &["llama", "llama3_rope", "qwen3"];

fn options(kv: KvKind, threads: usize) -> LoadOptions {
    LoadOptions {
        threads,
        kv,
        ..LoadOptions::default()
    }
}

fn model(fixture: &str, options: &LoadOptions) -> Arc<DenseModel> {
    let folder = repository("fixtures").join(fixture);
    let checkpoint = SafeTensors::open(folder.join("model.safetensors")).unwrap();
    load_dense(&checkpoint, options).unwrap()
}

fn stream(fixture: &str) -> DenseStream {
    model(fixture, &options(KvKind::F32, 2)).stream()
}

fn whole_numbers(file: &SafeTensors, name: &str) -> (Vec<usize>, Vec<u32>) {
    let tensor = file.tensor(name).unwrap();
    let numbers = tensor.bytes.as_chunks::<8>().0.iter();
    let numbers = numbers.map(|bytes| u32::try_from(i64::from_le_bytes(*bytes)).unwrap());
    (tensor.shape.clone(), numbers.collect())
}

fn floats(file: &SafeTensors, name: &str) -> Vec<f32> {
    file.tensor(name).unwrap().to_f32().unwrap()
}

#[track_caller]
fn assert_close(what: &str, got: &[f32], expected: &[f32], limit: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let pairs = got.iter().zip(expected);
    let worst = pairs.fold(0f64, |w, (a, b)| {
        w.max((f64::from(*a) - f64::from(*b)).abs())
    });
    assert!(
        worst <= limit,
        "{what}: differs by {worst:e}, limit {limit:e}"
    );
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// A text of ids under 370.
fn text(seed: u32, len: usize) -> Vec<u32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % 370
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn logits_hidden_states_and_greedy_tokens_are_those_of_transformers() {
    for fixture in FIXTURES {
        let folder = repository("fixtures").join(fixture);
        let meta: Value =
            serde_json::from_slice(&std::fs::read(folder.join("meta.json")).unwrap()).unwrap();
        let limit = |name: &str| meta["calls"]["lm"]["atol"][name].as_f64().unwrap();
        let expected = SafeTensors::open(folder.join("expected.safetensors")).unwrap();
        let inputs = SafeTensors::open(folder.join("inputs.safetensors")).unwrap();
        let (shape, ids) = whole_numbers(&inputs, "lm.input_ids");
        let (greedy_shape, greedy_ids) = whole_numbers(&expected, "lm.greedy_ids");
        let (batch, seq, new) = (shape[0], shape[1], greedy_shape[1]);
        let logits = floats(&expected, "lm.logits");
        let greedy_logits = floats(&expected, "lm.greedy_logits");
        let vocab = logits.len() / batch / seq;
        let cancel = CancelToken::new();
        for row in 0..batch {
            let mut stream = stream(fixture);
            let trace = stream
                .trace(&ids[row * seq..(row + 1) * seq], &cancel)
                .unwrap();
            let part = |values: &[f32], len: usize| values[row * len..(row + 1) * len].to_vec();
            assert_close(
                &format!("{fixture} logits"),
                &trace.logits,
                &part(&logits, seq * vocab),
                limit("logits"),
            );
            for (index, hidden) in trace.hidden.iter().enumerate() {
                let name = format!("hidden.{index}");
                let expected = floats(&expected, &format!("lm.{name}"));
                let expected = part(&expected, hidden.len());
                assert_close(
                    &format!("{fixture} {name}"),
                    hidden,
                    &expected,
                    limit(&name),
                );
            }
            let mut last = trace.logits[(seq - 1) * vocab..].to_vec();
            for step in 0..new {
                let expected = &greedy_logits[(row * new + step) * vocab..][..vocab];
                let what = format!("{fixture} greedy {step}");
                assert_close(&what, &last, expected, limit("greedy_logits"));
                let token = u32::try_from(argmax(&last).unwrap()).unwrap();
                assert_eq!(token, greedy_ids[row * new + step], "{what}");
                last = stream.extend(&[token], &cancel).unwrap().to_vec();
            }
        }
    }
}

#[test]
fn cached_cut_batched_and_threaded_runs_give_the_same_bits() {
    let cancel = CancelToken::new();
    for fixture in FIXTURES {
        for kv in [KvKind::F32, KvKind::F16] {
            let tokens = text(7, 300);
            let model = model(fixture, &options(kv, 2));
            let mut whole = Arc::clone(&model).stream();
            let all = whole.extend_all(&tokens, &cancel).unwrap().to_vec();
            let vocab = whole.vocab_tokens();
            let after = |count: usize| bits(&all[(count - 1) * vocab..count * vocab]);

            let mut cut = Arc::clone(&model).stream();
            let mut done = 0;
            for len in [1, 1, 2, 9, 100, 27, 121, 1, 38] {
                let logits = cut.extend(&tokens[done..done + len], &cancel).unwrap();
                done += len;
                assert_eq!(bits(logits), after(done), "{fixture} {kv:?} cut at {done}");
            }
            cut.truncate(130);
            assert_eq!(cut.cached_tokens(), 130);
            let logits = cut.extend(&tokens[130..200], &cancel).unwrap();
            assert_eq!(bits(logits), after(200), "{fixture} {kv:?} resumed");

            let mut three: Vec<DenseStream> = (0..3).map(|_| Arc::clone(&model).stream()).collect();
            let lens = [11, 1, 40];
            let others = [text(1, 60), text(2, 60), text(3, 60)];
            let mut together = Vec::new();
            for step in 0..3 {
                let mut calls: Vec<(&mut DenseStream, &[u32])> = three
                    .iter_mut()
                    .zip(lens)
                    .zip(&others)
                    .map(|((stream, len), other)| {
                        let part = if step == 0 {
                            0..len
                        } else {
                            len + step - 1..len + step
                        };
                        (stream, &other[part])
                    })
                    .collect();
                together = model.extend_together(&mut calls, &cancel).unwrap();
            }
            for ((len, other), logits) in lens.into_iter().zip(&others).zip(&together) {
                let mut alone = Arc::clone(&model).stream();
                let solo = alone.extend(&other[..len + 2], &cancel).unwrap();
                assert_eq!(bits(solo), bits(logits), "{fixture} {kv:?} batch");
            }

            let single = self::model(fixture, &options(kv, 1));
            let mut single = single.stream();
            let logits = single.extend(&tokens, &cancel).unwrap();
            assert_eq!(bits(logits), after(300), "{fixture} {kv:?} one thread");

            if cfg!(target_os = "linux") {
                let mut pinned = options(kv, 1);
                pinned.affinity = Affinity::Pinned;
                let mut pinned = self::model(fixture, &pinned).stream();
                let logits = pinned.extend(&tokens, &cancel).unwrap();
                assert_eq!(bits(logits), after(300), "{fixture} {kv:?} pinned");
            }
        }
    }
}

#[test]
fn half_sized_caches_stay_close() {
    let cancel = CancelToken::new();
    for fixture in FIXTURES {
        let tokens = text(3, 64);
        let run = |kv| {
            let mut stream = model(fixture, &options(kv, 1)).stream();
            stream.extend(&tokens, &cancel).unwrap().to_vec()
        };
        assert_close(fixture, &run(KvKind::F16), &run(KvKind::F32), 0.02);
    }
}

#[test]
fn refused_and_cancelled_calls_leave_the_cache_alone() {
    let cancel = CancelToken::new();
    let mut stream = stream("llama");
    let tokens = text(5, 200);
    stream.extend(&tokens[..50], &cancel).unwrap();
    let too_long = text(6, 463);
    assert_eq!(
        stream.extend(&too_long, &cancel).unwrap_err(),
        ModelError::ContextFull {
            got_tokens: 513,
            max_tokens: 512
        }
    );
    assert!(matches!(
        stream.extend(&[3, 384], &cancel).unwrap_err(),
        ModelError::BadToken {
            got: 384,
            vocab: 384
        }
    ));
    assert!(stream.extend(&[], &cancel).is_err());
    let stopped = CancelToken::new();
    stopped.cancel();
    assert_eq!(
        stream.extend(&tokens[50..], &stopped).unwrap_err(),
        ModelError::Cancelled
    );
    assert_eq!(stream.cached_tokens(), 50);
    let resumed = bits(stream.extend(&tokens[50..], &cancel).unwrap());
    let mut fresh = self::stream("llama");
    assert_eq!(resumed, bits(fresh.extend(&tokens, &cancel).unwrap()));
}

/// Case ld-01: a file without `output.weight` is one whose head is the table of embeddings.
#[test]
fn a_tied_gguf_gives_the_bits_of_one_with_a_copied_head() {
    let cancel = CancelToken::new();
    let run = |file: &str| {
        let checkpoint = Gguf::open(repository("cases/ld-01").join(file)).unwrap();
        let model = load_dense(&checkpoint, &options(KvKind::F32, 2)).unwrap();
        let report = model.report().clone();
        let mut stream = model.stream();
        let mut logits = stream
            .extend(&[1, 262, 265, 266], &cancel)
            .unwrap()
            .to_vec();
        let (mut ids, mut all) = (Vec::new(), bits(&logits));
        for _ in 0..16 {
            ids.push(u32::try_from(argmax(&logits).unwrap()).unwrap());
            logits = stream
                .extend(&ids[ids.len() - 1..], &cancel)
                .unwrap()
                .to_vec();
            all.extend(bits(&logits));
        }
        (report, ids, all)
    };
    let (tied, tied_ids, tied_logits) = run("tied.gguf");
    let (untied, untied_ids, untied_logits) = run("untied-same.gguf");
    assert_eq!(tied_ids, untied_ids);
    assert_eq!(tied_logits, untied_logits);
    assert!(tied.tied_head && !untied.tied_head);
    assert!(
        tied.lines
            .iter()
            .any(|line| line.contains("\"token_embd.weight\""))
    );
}

#[test]
fn a_token_model_keeps_the_context_asked_for() {
    let folder = repository("fixtures/qwen3");
    let checkpoint = SafeTensors::open(folder.join("model.safetensors")).unwrap();
    let with = |context_tokens| LoadOptions {
        context_tokens: Some(context_tokens),
        ..LoadOptions::default()
    };
    let mut model = load_token_model(&checkpoint, &with(8)).unwrap();
    assert_eq!((model.context_tokens(), model.vocab_tokens()), (8, 384));
    assert!(model.extend(&text(1, 9), &CancelToken::new()).is_err());
    assert_eq!(
        load_token_model(&checkpoint, &with(513))
            .err()
            .unwrap()
            .to_string(),
        "cannot load the model for 513 tokens: expected at most 512"
    );
}

#[test]
fn states_after_a_block_are_those_on_the_way_through() {
    let cancel = CancelToken::new();
    for fixture in FIXTURES {
        let ids = text(3, 20);
        let trace = stream(fixture).trace(&ids, &cancel).unwrap();
        let layers = trace.hidden.len() - 1;
        let mut stream = stream(fixture);
        for (blocks, hidden) in trace.hidden[..layers].iter().enumerate() {
            let states = stream.states_after(&ids, blocks, &cancel).unwrap();
            assert_eq!(
                bits(&states),
                bits(hidden),
                "{fixture} after block {blocks}"
            );
            assert_eq!(stream.cached_tokens(), 0);
        }
        assert!(stream.states_after(&ids, layers + 1, &cancel).is_err());
        assert!(stream.states_after(&[], 1, &cancel).is_err());
        stream.extend(&ids, &cancel).unwrap();
        assert!(stream.states_after(&ids, 1, &cancel).is_err());
    }
}
