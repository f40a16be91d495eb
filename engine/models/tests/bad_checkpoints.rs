//! Checkpoints that are no model we run: the message names the tensor or key. And packed weights
//! against the same weights decoded.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::Path;

use engine_base::CancelToken;
use engine_models::{Activations, KvKind, LoadOptions, load_dense};
use engine_tensor::{Bytes, DType, f32_to_f16};
use engine_weights::{
    Checkpoint, CheckpointKind, Metadata, SafeTensors, TensorRef, WeightFile, quant,
};

/// A checkpoint with some tensors replaced or taken away.
#[derive(Debug)]
struct Changed {
    base: SafeTensors,
    tensors: BTreeMap<String, Option<TensorRef>>,
}

impl Changed {
    fn of(fixture: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
        Self {
            base: SafeTensors::open(root.join(fixture).join("model.safetensors")).unwrap(),
            tensors: BTreeMap::new(),
        }
    }

    fn with(mut self, name: &str, tensor: Option<TensorRef>) -> Self {
        assert!(self.base.tensor(name).is_some(), "{name}");
        self.tensors.insert(name.to_owned(), tensor);
        self
    }
}

impl Checkpoint for Changed {
    fn kind(&self) -> CheckpointKind {
        self.base.kind()
    }

    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        self.base.names()
    }

    fn tensor(&self, name: &str) -> Option<TensorRef> {
        match self.tensors.get(name) {
            Some(changed) => changed.clone(),
            None => self.base.tensor(name),
        }
    }

    fn metadata(&self) -> &Metadata {
        self.base.metadata()
    }

    fn files(&self) -> &[WeightFile] {
        self.base.files()
    }

    fn notes(&self) -> &[String] {
        self.base.notes()
    }
}

fn error_of(checkpoint: &dyn Checkpoint) -> String {
    let options = LoadOptions::default();
    load_dense(checkpoint, &options).err().unwrap().to_string()
}

#[test]
fn missing_tensors_and_wrong_shapes_are_named() {
    let name = "model.layers.1.mlp.up_proj.weight";
    let error = error_of(&Changed::of("llama").with(name, None));
    assert!(error.contains(name), "{error}");

    let checkpoint = Changed::of("llama");
    let mut turned = checkpoint.tensor(name).unwrap();
    turned.shape.reverse();
    let error = error_of(&checkpoint.with(name, Some(turned)));
    assert!(
        error.contains(name) && error.contains("64") && error.contains("160"),
        "{error}"
    );
}

#[test]
fn weights_that_are_no_number_are_named() {
    for name in [
        "model.layers.2.self_attn.o_proj.weight",
        "model.norm.weight",
    ] {
        for bits in [f32::NAN, f32::INFINITY] {
            let checkpoint = Changed::of("llama");
            let old = checkpoint.tensor(name).unwrap();
            let mut values = old.to_f32().unwrap();
            values[40] = bits;
            let bytes: Vec<u8> = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            let new = TensorRef::new(DType::F32, old.shape, Bytes::from(bytes)).unwrap();
            let error = error_of(&checkpoint.with(name, Some(new)));
            assert!(
                error.contains(name) && error.contains("not finite"),
                "{error}"
            );
        }
    }
}

#[test]
fn odd_configurations_are_refused_with_the_key() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/llama");
    let config = std::fs::read_to_string(root.join("config.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.safetensors");
    std::fs::copy(root.join("model.safetensors"), &model).unwrap();
    let changes = [
        (
            "\"model_type\": \"llama\"",
            "\"model_type\": \"mamba\"",
            "known are llama, qwen2, qwen3",
        ),
        (
            "\"hidden_size\": 64",
            "\"hidden_size\": 0",
            "hidden_size is 0",
        ),
        (
            "\"hidden_size\": 64",
            "\"hidden_size\": -3",
            "hidden_size is -3",
        ),
        (
            "\"num_hidden_layers\": 3",
            "\"num_hidden_layers\": 4000000000",
            "model.layers.3.",
        ),
        (
            "\"vocab_size\": 384",
            "\"vocab_size\": 4000000000",
            "model.embed_tokens.weight",
        ),
        (
            "\"num_key_value_heads\": 2",
            "\"num_key_value_heads\": 3",
            "a multiple of 3",
        ),
        (
            "\"rope_type\": \"default\"",
            "\"rope_type\": \"spiral\"",
            "\"spiral\"",
        ),
        (
            "\"rope_type\": \"default\"",
            "\"rope_type\": \"linear\"",
            "rope_parameters.factor is missing",
        ),
        (
            "\"hidden_act\": \"silu\"",
            "\"hidden_act\": \"gelu\"",
            "expected \"silu\"",
        ),
        (
            "\"rms_norm_eps\": 1e-05",
            "\"rms_norm_eps\": \"x\"",
            "rms_norm_eps is \"x\"",
        ),
        ("\"head_dim\": 16", "\"head_dim\": 4294967296", "self_attn"),
        (
            "\"tie_word_embeddings\": true",
            "\"tie_word_embeddings\": false",
            "lm_head.weight",
        ),
    ];
    for (old, new, expected) in changes {
        let changed = config.replace(old, new);
        assert_ne!(changed, config, "{old}");
        std::fs::write(folder.path().join("config.json"), changed).unwrap();
        let error = error_of(&SafeTensors::open(&model).unwrap());
        assert!(error.contains(expected), "{new}: {error}");
    }
    std::fs::write(folder.path().join("config.json"), "{").unwrap();
    assert!(error_of(&SafeTensors::open(&model).unwrap()).contains("config.json"));
    std::fs::remove_file(folder.path().join("config.json")).unwrap();
    assert!(error_of(&SafeTensors::open(&model).unwrap()).contains("config.json"));
}

/// `values` in blocks of 32 of `dtype`, rounded to nearest.
fn pack(dtype: DType, values: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for block in values.as_chunks::<32>().0 {
        let least = block.iter().fold(f32::INFINITY, |a, b| a.min(*b));
        let most = block.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
        let largest = most.max(-least);
        if dtype == DType::Q8_0 {
            let scale = largest / 127.0;
            bytes.extend(f32_to_f16(scale).to_le_bytes());
            bytes.extend(block.iter().map(|v| (v / scale).round() as i8 as u8));
            continue;
        }
        let code: Vec<u8> = if dtype == DType::Q4_1 {
            let scale = (most - least) / 15.0;
            bytes.extend(f32_to_f16(scale).to_le_bytes());
            bytes.extend(f32_to_f16(least).to_le_bytes());
            block
                .iter()
                .map(|v| ((v - least) / scale).round().min(15.0) as u8)
                .collect()
        } else {
            let scale = largest / 7.0;
            bytes.extend(f32_to_f16(scale).to_le_bytes());
            block
                .iter()
                .map(|v| ((v / scale).round() + 8.0) as u8)
                .collect()
        };
        bytes.extend((0..16).map(|at| code[at] | (code[at + 16] << 4)));
    }
    bytes
}

#[test]
fn packed_weights_equal_the_same_weights_decoded() {
    let tokens: Vec<u32> = (0..70).map(|at| (at * 37 + 5) % 376).collect();
    let run = |checkpoint: &Changed, activations| {
        let options = LoadOptions {
            threads: 2,
            kv: KvKind::F32,
            activations,
            ..LoadOptions::default()
        };
        let mut stream = load_dense(checkpoint, &options).unwrap().stream();
        let logits = stream.extend_all(&tokens, &CancelToken::new()).unwrap();
        logits.to_vec()
    };
    let worst = |a: &[f32], b: &[f32]| {
        a.iter()
            .zip(b)
            .fold(0f32, |worst, (a, b)| worst.max((a - b).abs()))
    };
    for dtype in [DType::Q8_0, DType::Q4_1, DType::Q4_0] {
        let (mut packed, mut decoded) = (Changed::of("qwen3"), Changed::of("qwen3"));
        let names: Vec<String> = packed.names().map(str::to_owned).collect();
        for name in names {
            let old = packed.base.tensor(&name).unwrap();
            if old.shape.len() != 2 {
                continue;
            }
            let bytes = pack(dtype, &old.to_f32().unwrap());
            let mut values = vec![0.0; old.elements()];
            quant::dequantize(dtype, &bytes, &mut values).unwrap();
            let plain = values
                .iter()
                .flat_map(|v| v.to_le_bytes())
                .collect::<Vec<u8>>();
            let shape = old.shape;
            let new = TensorRef::new(dtype, shape.clone(), Bytes::from(bytes));
            packed = packed.with(&name, new);
            let new = TensorRef::new(DType::F32, shape, Bytes::from(plain));
            decoded = decoded.with(&name, new);
        }
        let reference = run(&decoded, Activations::Rounded);
        let exact = run(&packed, Activations::Exact);
        assert!(
            worst(&exact, &reference) <= 1e-4,
            "{dtype}: {:e}",
            worst(&exact, &reference)
        );
        let rounded = run(&packed, Activations::Rounded);
        let largest = reference.iter().fold(0f32, |a, b| a.max(b.abs()));
        let error = worst(&rounded, &reference) / largest;
        assert!(
            error < 0.05,
            "{dtype}: rounded activations are off by {error}"
        );
        assert!(error > 0.0, "{dtype}: activations were not rounded");
    }
}
