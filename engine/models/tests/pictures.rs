//! Picture models against outputs of the reference networks on tiny random checkpoints, and what is
//! no picture model.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_base::CancelToken;
use engine_models::{PictureMemory, load_picture_model};
use engine_tensor::{Cpu, DType, Simd, Threads};
use engine_weights::{Checkpoint as _, SafeTensors, TensorRef, write_safetensors};
use serde_json::Value;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/upscalers")
}

fn cpu(threads: usize, simd: Simd) -> Cpu {
    Cpu::with(Arc::new(Threads::new(threads).unwrap()), simd)
}

/// Tensors of a fixture's model.
fn tensors(name: &str) -> BTreeMap<String, TensorRef> {
    let file = SafeTensors::open(fixture().join(name)).unwrap();
    let names: Vec<String> = file.names().map(str::to_owned).collect();
    let tensors = names.into_iter().map(|name| {
        let tensor = file.tensor(&name).unwrap();
        (name, tensor)
    });
    tensors.collect()
}

/// The model of these tensors, by way of a file.
fn load(
    tensors: &BTreeMap<String, TensorRef>,
) -> Result<Box<dyn engine_models::PictureModel>, engine_models::LoadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    write_safetensors(&path, tensors, &[]).unwrap();
    load_picture_model(&SafeTensors::open(&path).unwrap())
}

#[test]
fn pictures_are_those_of_the_reference_on_any_threads_and_instructions() {
    let meta = std::fs::read(fixture().join("meta.json")).unwrap();
    let meta: Value = serde_json::from_slice(&meta).unwrap();
    let inputs = SafeTensors::open(fixture().join("inputs.safetensors")).unwrap();
    let expected = SafeTensors::open(fixture().join("expected.safetensors")).unwrap();
    for (name, family, scale) in [
        ("rrdb_x2", "rrdb", 2),
        ("rrdb_x4", "rrdb", 4),
        ("srvgg_x2", "srvgg", 2),
    ] {
        let file = SafeTensors::open(fixture().join(name)).unwrap();
        let model = load_picture_model(&file).unwrap();
        assert_eq!((model.family(), model.scale()), (family, scale), "{name}");
        let x = inputs.tensor(&format!("{name}.x")).unwrap();
        let size = (x.shape[2], x.shape[3]);
        let rgb = x.to_f32().unwrap();
        let want = expected
            .tensor(&format!("{name}.out"))
            .unwrap()
            .to_f32()
            .unwrap();
        let limit = meta["calls"][name]["atol"]["out"].as_f64().unwrap();
        let mut first: Option<Vec<f32>> = None;
        for simd in Simd::available() {
            for threads in [1, 3] {
                let mut memory = PictureMemory::new();
                let cancel = CancelToken::new();
                let cpu = cpu(threads, simd);
                // Twice: memory that was used gives what fresh memory gives.
                for _ in 0..2 {
                    let got = model.run(&cpu, &rgb, size, &mut memory, &cancel).unwrap();
                    assert_eq!(got.len(), want.len(), "{name}");
                    let pairs = got.iter().zip(&want);
                    let worst = pairs.fold(0f64, |worst, (a, b)| {
                        worst.max((f64::from(*a) - f64::from(*b)).abs())
                    });
                    assert!(
                        worst <= limit,
                        "{name}: differs by {worst:e}, limit {limit:e}"
                    );
                    assert!(
                        first.get_or_insert_with(|| got.clone()) == &got,
                        "{name} on {simd}"
                    );
                }
            }
        }
        let cancel = CancelToken::new();
        cancel.cancel();
        let (cpu, mut memory) = (cpu(1, Simd::best()), PictureMemory::new());
        let stopped = model.run(&cpu, &rgb, size, &mut memory, &cancel);
        assert_eq!(stopped.unwrap_err().to_string(), "cancelled");
    }
}

#[test]
fn names_of_all_layouts_and_prefixes_are_known() {
    let new = tensors("rrdb_x4");
    let older: &[(&str, &str)] = &[
        (".rdb", ".RDB"),
        ("conv_body", "trunk_conv"),
        ("body.", "RRDB_trunk."),
        ("conv_up", "upconv"),
        ("conv_hr", "HRconv"),
    ];
    let oldest = |name: &str| -> String {
        for (from, to) in [
            ("conv_first", "model.0"),
            ("conv_body", "model.1.sub.2"),
            ("conv_up1", "model.3"),
            ("conv_up2", "model.6"),
            ("conv_hr", "model.8"),
            ("conv_last", "model.10"),
        ] {
            if let Some(end) = name.strip_prefix(from) {
                return format!("{to}{end}");
            }
        }
        let name = name
            .replace("body.", "model.1.sub.")
            .replace(".rdb", ".RDB");
        name.replace(".weight", ".0.weight")
            .replace(".bias", ".0.bias")
    };
    let rename = |by: &dyn Fn(&str) -> String| -> BTreeMap<String, TensorRef> {
        new.iter()
            .map(|(name, tensor)| (by(name), tensor.clone()))
            .collect()
    };
    let by_pairs = |name: &str| {
        older
            .iter()
            .fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
    };
    for renamed in [
        rename(&|name| format!("params_ema.{name}")),
        rename(&|name| format!("params.{name}")),
        rename(&by_pairs),
        rename(&oldest),
    ] {
        assert_eq!(load(&renamed).unwrap().family(), "rrdb");
    }
}

#[test]
fn what_is_no_picture_model_is_said() {
    let good = tensors("srvgg_x2");
    let value = |shape: Vec<usize>| {
        let count: usize = shape.iter().product();
        TensorRef::new(DType::F32, shape, vec![0; 4 * count].into()).unwrap()
    };
    let with = |name: &str, tensor: TensorRef| {
        let mut tensors = good.clone();
        tensors.insert(name.to_owned(), tensor);
        tensors
    };
    let without = |name: &str| {
        let mut tensors = good.clone();
        tensors.remove(name);
        tensors
    };
    let nan = TensorRef::new(DType::F32, vec![1], f32::NAN.to_le_bytes().to_vec().into()).unwrap();
    let mut bad_bias = tensors("srvgg_x2");
    let bias = bad_bias["body.0.bias"].shape[0];
    let nans = nan.bytes.repeat(bias);
    let nans = TensorRef::new(DType::F32, vec![bias], nans.into()).unwrap();
    bad_bias.insert("body.0.bias".to_owned(), nans);
    let cases: Vec<(BTreeMap<String, TensorRef>, &str)> = vec![
        (
            BTreeMap::from([("lm_head.weight".to_owned(), value(vec![4, 4]))]),
            "lm_head.weight",
        ),
        (BTreeMap::new(), "no tensors"),
        (with("extra.weight", value(vec![1])), "extra.weight"),
        (without("body.2.bias"), "body.2.bias"),
        (without("body.3.weight"), "body.3.weight"),
        (
            with("body.0.weight", value(vec![16, 4, 3, 3])),
            "[16, 4, 3, 3]",
        ),
        (
            with("body.2.weight", value(vec![16, 17, 3, 3])),
            "[16, 17, 3, 3]",
        ),
        (bad_bias, "not finite"),
    ];
    for (tensors, expected) in cases {
        let error = load(&tensors).unwrap_err().to_string();
        assert!(
            error.contains(expected),
            "{error:?} does not say {expected:?}"
        );
    }
    let error = load(&BTreeMap::from([("w".to_owned(), value(vec![1]))])).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("srvgg") && text.contains("rrdb"), "{text}");
}
