//! Libraries that are none, or the wrong one. Their faults leave the process able to load the right
//! one, which `cargo xtask setup` fetches.
#![allow(
    clippy::unwrap_used,
    reason = "a failed step of a test ends it; helpers count as test code"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine_base::Code;
use engine_onnx::{OnnxError, OnnxRuntime};

fn models() -> PathBuf {
    let data = || {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        std::env::var_os("XDG_DATA_HOME")
            .map_or_else(|| home.join(".local/share"), PathBuf::from)
            .join("longtake/models")
    };
    std::env::var_os("LONGTAKE_MODELS").map_or_else(data, PathBuf::from)
}

fn model(name: &str) -> PathBuf {
    let path = models().join(name);
    assert!(
        path.is_file(),
        "{path:?} is not there: fetch it with `cargo xtask setup`"
    );
    path
}

fn runtime() -> OnnxRuntime {
    OnnxRuntime::open(&model("onnxruntime/libonnxruntime.so.1.32.0")).unwrap()
}

fn library(folder: &Path, name: &str, source: &str) -> PathBuf {
    let (code, path) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&code, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .arg(&path)
        .arg(&code);
    assert!(compiler.status().unwrap().success());
    path
}

/// A library that says it is a version of ONNX Runtime and gives no interface.
fn named(folder: &Path, version: &str) -> PathBuf {
    let source = format!(
        "static const void *get_api(unsigned v) {{ (void)v; return 0; }}\n\
         static const char *version(void) {{ return \"{version}\"; }}\n\
         static const struct {{ const void *(*a)(unsigned); const char *(*b)(void); }} base =\n\
         {{ get_api, version }};\n\
         const void *OrtGetApiBase(void) {{ return &base; }}\n"
    );
    library(folder, &format!("libold-{version}.so"), &source)
}

/// One test alone in its process: what a process has loaded stays.
#[test]
fn wrong_libraries_are_refused_and_the_right_one_still_loads() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let missing = OnnxRuntime::open(&folder.join("none.so")).unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    for text in ["cargo xtask setup", "longtake models pull onnxruntime"] {
        assert!(missing.to_string().contains(text), "{missing}");
        assert!(OnnxError::NoRuntime.to_string().contains(text));
    }
    assert!(OnnxRuntime::open(folder).is_err());

    let text = folder.join("text.so");
    fs::write(&text, "this is no library\n").unwrap();
    let cut = folder.join("cut.so");
    let whole = fs::read(model("onnxruntime/libonnxruntime.so.1.32.0")).unwrap();
    fs::write(&cut, &whole[..whole.len() - 4096]).unwrap();
    let stub = folder.join("stub.so");
    fs::write(&stub, &whole[..5000]).unwrap();
    let foreign = folder.join("foreign.so");
    let mut bytes = whole;
    // Another kind of machine: MIPS.
    bytes[18] = 8;
    fs::write(&foreign, &bytes).unwrap();
    let other = library(folder, "other.so", "int answer(void) { return 42; }\n");
    let none = "const void *OrtGetApiBase(void) { return 0; }\n";
    let none = library(folder, "none-inside.so", none);
    for path in [&text, &cut, &stub, &foreign, &other, &none] {
        let error = OnnxRuntime::open(path).unwrap_err();
        println!("{error}");
        assert!(matches!(error, OnnxError::BadRuntime { .. }), "{error}");
        assert_eq!(error.code(), Code::BadInput);
    }
    let error = OnnxRuntime::open(&named(folder, "1.17.3")).unwrap_err();
    assert!(matches!(error, OnnxError::RuntimeVersion { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("1.17.3") && text.contains("1.24"), "{text}");

    let opened = runtime();
    assert_eq!(runtime().path(), opened.path());
    let error = OnnxRuntime::open(&named(folder, "1.99.0")).unwrap_err();
    assert!(matches!(error, OnnxError::AnotherRuntime { .. }), "{error}");
}
