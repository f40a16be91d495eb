//! Folders, shards and parts.

use std::fs;
use std::path::Path;

use engine_weights::{Checkpoint, CheckpointKind, Gguf, SafeTensors, WeightsError, inspect, open};
use tempfile::TempDir;

use crate::build::{GgufFile, floats, varied};

/// A safetensors file of F32 tensors of one element each.
fn file(tensors: &[(&str, f32)]) -> Vec<u8> {
    let entries: Vec<String> = tensors
        .iter()
        .enumerate()
        .map(|(at, (name, _))| {
            let (start, end) = (at * 4, at * 4 + 4);
            format!(r#""{name}":{{"dtype":"F32","shape":[1],"data_offsets":[{start},{end}]}}"#)
        })
        .collect();
    let header = format!(
        r#"{{"__metadata__":{{"format":"pt"}},{}}}"#,
        entries.join(",")
    );
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    for (_, value) in tensors {
        bytes.extend(value.to_le_bytes());
    }
    bytes
}

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("folders are made");
        fs::write(path, bytes).expect("it is written");
    }
    dir
}

fn value(checkpoint: &dyn Checkpoint, name: &str) -> f32 {
    let tensor = checkpoint.tensor(name).expect("the tensor is there");
    tensor.to_f32().expect("floats")[0]
}

fn refusal(path: &Path) -> String {
    open(path).expect_err("it is refused").to_string()
}

const INDEX: &str = "model.safetensors.index.json";

#[test]
fn shards_are_joined() {
    let (one, two) = (
        file(&[("b", 1.0), ("left", 9.0)]),
        file(&[("a", 2.0), ("c", 3.0)]),
    );
    let index = r#"{"metadata":{"total_size":12},"weight_map":{"c":"s/2.safetensors","b":"1.safetensors","a":"s/2.safetensors"}}"#;
    let dir = folder(&[
        (INDEX, index.as_bytes()),
        ("1.safetensors", &one),
        ("s/2.safetensors", &two),
        (
            "config.json",
            br#"{"architectures":["LlamaForCausalLM"],"model_type":"llama"}"#,
        ),
        ("tokenizer.json", b"{}"),
    ]);
    for path in [dir.path().to_owned(), dir.path().join(INDEX)] {
        let read = open(&path).expect("it opens");
        assert_eq!(read.kind(), CheckpointKind::SafeTensors);
        assert_eq!(read.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        let values = ["a", "b", "c"].map(|name| value(&*read, name));
        assert_eq!(values, [2.0, 1.0, 3.0]);
        assert_eq!(read.files().len(), 2);
        assert_eq!(read.metadata().text("format"), Ok(Some("pt")));
        let config = read
            .metadata()
            .read_side_file("config.json")
            .expect("it is read");
        assert!(config.is_some_and(|bytes| bytes.starts_with(b"{\"arch")));
        assert_eq!(read.notes().len(), 1, "{:?}", read.notes());
        assert!(read.notes()[0].contains("\"left\""));
    }
    let seen = inspect(dir.path()).expect("it can be inspected");
    assert_eq!(seen.architecture.as_deref(), Some("LlamaForCausalLM"));
    assert_eq!((seen.parameters, seen.dtypes["F32"].tensors), (3, 3));
    assert_eq!(seen.side_files, ["config.json", "tokenizer.json"]);
    let text = serde_json::to_string(&seen).expect("it is written");
    assert_eq!(
        serde_json::from_str::<engine_weights::Inspection>(&text).ok(),
        Some(seen)
    );
}

#[test]
fn a_missing_shard_or_tensor_is_named() {
    let one = file(&[("b", 1.0)]);
    let index = br#"{"weight_map":{"a":"2.safetensors","b":"1.safetensors"}}"#;
    let dir = folder(&[(INDEX, index), ("1.safetensors", &one)]);
    let text = refusal(dir.path());
    assert!(
        text.contains("weight file \"2.safetensors\" is missing"),
        "{text}"
    );
    fs::write(dir.path().join("2.safetensors"), file(&[("x", 1.0)])).expect("it is written");
    let text = refusal(dir.path());
    assert!(
        text.contains("tensor \"a\" is missing") && text.contains("2.safetensors"),
        "{text}"
    );
    fs::write(dir.path().join("2.safetensors"), "<html>").expect("it is written");
    let text = refusal(dir.path());
    assert!(
        text.contains("web page") && text.contains("2.safetensors"),
        "{text}"
    );
}

#[test]
fn shards_stay_in_their_folder() {
    let outside = file(&[("a", 1.0)]);
    let dir = folder(&[("out.safetensors", &outside), ("in/x", b"")]);
    let absolute = dir.path().join("out.safetensors");
    let absolute = absolute.to_str().expect("plain names");
    for name in [
        "../out.safetensors",
        "x/../../out.safetensors",
        absolute,
        "",
        "./a",
        "..\\a",
        "C:a",
    ] {
        let index = serde_json::json!({"weight_map": {"a": name}}).to_string();
        let path = dir.path().join("in").join(INDEX);
        fs::write(&path, index).expect("it is written");
        let error = SafeTensors::open(&path).expect_err("it is refused");
        let refused = matches!(&error, WeightsError::OutsideFolder { name: n, .. } if n == name);
        assert!(refused, "{name:?}: {error}");
    }
}

#[test]
fn wrong_indexes_are_refused() {
    for (index, expected) in [
        ("", "EOF"),
        ("[]", "index"),
        (r#"{"weight_map":{"a":1}}"#, "invalid type"),
        (r#"{"weight_map":{"a":"x","a":"y"}}"#, "\"a\" stands twice"),
        (r#"{"metadata":{}}"#, "missing field"),
    ] {
        let dir = folder(&[(INDEX, index.as_bytes())]);
        let text = refusal(dir.path());
        assert!(
            text.contains(expected),
            "{text:?} does not say {expected:?}"
        );
    }
}

#[test]
fn folders_hold_one_checkpoint() {
    let one = file(&[("a", 1.0)]);
    let other = file(&[("a", 2.0)]);
    let dir = folder(&[]);
    assert!(refusal(dir.path()).contains("no safetensors or GGUF files in it"));
    fs::write(dir.path().join("x.safetensors"), &one).expect("written");
    assert_eq!(value(&*open(dir.path()).expect("the only file"), "a"), 1.0);
    fs::write(dir.path().join("y.safetensors"), &other).expect("written");
    let text = refusal(dir.path());
    assert!(
        text.contains("several safetensors files and no index"),
        "{text}"
    );
    assert!(
        text.contains("\"x.safetensors\", \"y.safetensors\""),
        "{text}"
    );
    fs::write(dir.path().join("model.safetensors"), &other).expect("written");
    assert_eq!(value(&*open(dir.path()).expect("the model"), "a"), 2.0);

    let dir = folder(&[("m.gguf", &varied().bytes())]);
    assert_eq!(
        open(dir.path()).expect("the GGUF").kind(),
        CheckpointKind::Gguf
    );
    fs::write(dir.path().join("n.gguf"), varied().bytes()).expect("written");
    assert!(refusal(dir.path()).contains("2 GGUF files"));
    let missing = refusal(&dir.path().join("absent.gguf"));
    assert!(missing.contains("cannot open weights") && missing.contains("absent.gguf"));
    let empty = dir.path().join("empty.gguf");
    fs::write(&empty, "").expect("written");
    assert!(refusal(&empty).contains("this file is empty"));
    let error = Gguf::open(dir.path())
        .expect_err("a folder is no file")
        .to_string();
    assert!(error.contains("a folder"), "{error}");
}

#[test]
fn content_decides_not_the_name() {
    let dir = folder(&[
        ("a.safetensors", &varied().bytes()),
        ("b.gguf", &file(&[("a", 1.0)])),
    ]);
    let kind = |name: &str| open(dir.path().join(name)).expect("it opens").kind();
    assert_eq!(kind("a.safetensors"), CheckpointKind::Gguf);
    assert_eq!(kind("b.gguf"), CheckpointKind::SafeTensors);
    let error = Gguf::open(dir.path().join("b.gguf"))
        .expect_err("another kind")
        .to_string();
    assert!(
        error.contains("this is a safetensors file, opened as another kind"),
        "{error}"
    );
}

fn part(no: u16, count: u16, name: &str, value: f32) -> Vec<u8> {
    GgufFile::new()
        .key("split.no", 2, &no.to_le_bytes())
        .key("split.count", 2, &count.to_le_bytes())
        .key("split.tensors.count", 5, &3i32.to_le_bytes())
        .u32_key("which", no.into())
        .tensor(name, &[1], 0, &floats(&[value]))
        .bytes()
}

#[test]
fn parts_of_a_gguf_are_joined() {
    let names = [
        "m-00001-of-00003.gguf",
        "m-00002-of-00003.gguf",
        "m-00003-of-00003.gguf",
    ];
    let parts = [
        part(0, 3, "b", 1.0),
        part(1, 3, "c", 2.0),
        part(2, 3, "a", 3.0),
    ];
    let dir = folder(&[
        (names[0], &parts[0]),
        (names[1], &parts[1]),
        (names[2], &parts[2]),
    ]);
    for path in [
        dir.path().to_owned(),
        dir.path().join(names[0]),
        dir.path().join(names[2]),
    ] {
        let read = open(&path).expect("it opens");
        assert_eq!(read.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(
            ["a", "b", "c"].map(|name| value(&*read, name)),
            [3.0, 1.0, 2.0]
        );
        assert_eq!(read.files().len(), 3);
        assert_eq!(read.metadata().unsigned("which"), Ok(Some(0)));
    }
    fs::write(dir.path().join(names[1]), part(2, 3, "c", 2.0)).expect("written");
    assert!(refusal(&dir.path().join(names[0])).contains("part 2 says its place is Some(2)"));
    fs::write(dir.path().join(names[1]), part(1, 3, "a", 2.0)).expect("written");
    assert!(refusal(&dir.path().join(names[0])).contains("\"a\" stands twice"));
    fs::remove_file(dir.path().join(names[1])).expect("removed");
    let text = refusal(&dir.path().join(names[0]));
    assert!(
        text.contains("\"m-00002-of-00003.gguf\" is missing"),
        "{text}"
    );
    fs::rename(dir.path().join(names[0]), dir.path().join("m.gguf")).expect("renamed");
    assert!(refusal(&dir.path().join("m.gguf")).contains("one of 3 parts"));
}
