//! `longtake models inspect` on files of weights, good and bad.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use longtake_tests::film::{Ran, ran};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

fn inspect(words: &[&str]) -> Ran {
    let home = tempfile::tempdir().unwrap();
    let mut program = Command::new(PROGRAM);
    program.env("LONGTAKE_MODELS", home.path());
    program.args(["models", "inspect"]).args(words);
    ran(&mut program).unwrap()
}

fn asked(path: &Path) -> Value {
    let done = inspect(&["--json", path.to_str().unwrap()]);
    assert!(done.status.success(), "{done:?}");
    done.json()
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn a_gguf_is_told_in_full() {
    let path = here("cases/ld-01/tied.gguf");
    let told = asked(&path);
    let weights = &told["files"][0]["weights"];
    assert_eq!(told["files"][0]["format"], "gguf");
    assert_eq!(
        (&weights["architecture"], &weights["family"]),
        (&json!("llama"), &json!("llama"))
    );
    assert_eq!(weights["cannot_run"], Value::Null, "{weights}");
    let sum = |field: &str| -> u64 {
        let dtypes = weights["dtypes"].as_object().unwrap();
        dtypes
            .values()
            .map(|used| used[field].as_u64().unwrap())
            .sum()
    };
    for field in ["tensors", "parameters", "bytes"] {
        assert_eq!(weights[field], sum(field), "{field}");
    }
    assert!(weights["parameters"].as_u64().unwrap() > 10_000);
    assert!(weights["context_tokens"].as_u64().unwrap() >= 16);
    let known = weights["known_families"].as_array().unwrap();
    assert!(known.contains(&json!("qwen3")) && known.contains(&json!("llama")));
    assert_eq!(weights["metadata"]["general.architecture"], "llama");

    let said = inspect(&[path.to_str().unwrap()]).out;
    for words in [
        "architecture: llama; runs as family llama",
        "parameters",
        "context: ",
        "tokenizer: ",
        "chat template: ",
        "general.architecture: \"llama\"",
    ] {
        assert!(said.contains(words), "{words:?} in\n{said}");
    }
}

#[test]
fn a_folder_is_told_with_its_configuration() {
    let told = asked(&here("fixtures/qwen3"));
    let weights = &told["files"][0]["weights"];
    assert_eq!(weights["kind"], "safetensors", "{weights}");
    assert_eq!(weights["family"], "qwen3");
    assert_eq!(weights["tokenizer"], Value::Null);
    assert!(
        weights["side_files"]
            .as_array()
            .unwrap()
            .contains(&json!("config.json"))
    );
}

/// A GGUF of these texts and no tensors.
fn gguf(entries: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| {
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes
    };
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend(0u64.to_le_bytes());
    bytes.extend((entries.len() as u64).to_le_bytes());
    for (key, value) in entries {
        bytes.extend(text(key));
        bytes.extend(8u32.to_le_bytes());
        bytes.extend(text(value));
    }
    bytes
}

#[test]
fn what_cannot_be_run_is_told_with_what_can() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.gguf");
    let long = "z".repeat(5000);
    let entries = [
        ("general.architecture", "mamba"),
        ("general.name", "Snake"),
        ("notes", &long),
    ];
    fs::write(&path, gguf(&entries)).unwrap();
    let told = asked(&path);
    let weights = &told["files"][0]["weights"];
    assert_eq!(
        (&weights["family"], &weights["name"]),
        (&Value::Null, &json!("Snake"))
    );
    let why = weights["cannot_run"].as_str().unwrap();
    assert!(
        why.contains("\"mamba\"") && why.contains("llama, qwen2, qwen3"),
        "{why}"
    );
    let shown = weights["metadata"]["notes"].as_str().unwrap();
    assert!(
        shown.len() < 300 && shown.ends_with("… (5000 bytes)"),
        "{shown}"
    );
    // A template that cannot be read is told of, and the rest with it.
    fs::write(&path, gguf(&[("general.architecture", "llama")])).unwrap();
    let why = asked(&path)["files"][0]["weights"]["cannot_run"].clone();
    assert!(why.as_str().unwrap().contains("missing"), "{why}");
}

#[test]
fn bad_files_end_with_the_readers_own_error() {
    let folder = tempfile::tempdir().unwrap();
    let good = fs::read(here("cases/ld-01/tied.gguf")).unwrap();
    let mut counts = good.clone();
    counts[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0000000000000000000000000000000000000000000000000000000000000000\nsize 4265146304\n";
    let cases: [(&str, &[u8], i32, &str); 6] = [
        (
            "cut.gguf",
            &good[..good.len() - 1000],
            6,
            "1000 bytes are missing",
        ),
        ("counts.gguf", &counts, 6, "18446744073709551615"),
        ("empty.gguf", b"", 3, "empty"),
        (
            "page.safetensors",
            b"<!DOCTYPE html><html>Sign in</html>",
            3,
            "web page",
        ),
        ("pointer.gguf", pointer, 3, "Git LFS pointer"),
        (
            "noise.bin",
            b"\x01\x02\x03\x04\x05\x06\x07\x08\x09 noise",
            3,
            "noise.bin",
        ),
    ];
    for (name, bytes, status, words) in cases {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let refused = inspect(&["--json", path.to_str().unwrap()]);
        println!("{name}: {}", refused.err.trim());
        refused.ended(status, &[words, name]);
        assert!(
            refused.json()["error"]["message"]
                .as_str()
                .unwrap()
                .contains(words)
        );
    }
    let none = inspect(&["no-such-model"]);
    none.ended(3, &["neither a model nor a file", "no-such-model"]);
}
