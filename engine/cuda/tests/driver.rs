//! Machines whose driver is there and cannot be used, by a library that stands where the driver's would.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a child of this test tells what it saw by its output"
)]

use std::path::Path;
use std::process::Command;

/// The child's part: says what the probe and the compiler's library say.
#[test]
#[ignore = "run by the tests beside it, with a driver of their own"]
fn child() {
    match engine_cuda::probe() {
        Ok(devices) => println!("told: {} of {}", devices.len(), devices[0].name),
        Err(missing) => println!("told: {missing}"),
    }
    match engine_cuda::compiler_version() {
        Ok(version) => println!("compiler: {version:?}"),
        Err(error) => println!("compiler: {error}"),
    }
}

fn built(folder: &Path) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/driver/driver.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(folder.join("libcuda.so"))
        .arg(source)
        .status()
        .unwrap();
    assert!(status.success());
}

/// What the child says with the libraries of `folder` alone, and with these variables.
fn told(folder: &Path, variables: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--ignored", "--nocapture"])
        .env("LD_LIBRARY_PATH", folder)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn drivers_that_cannot_be_used_say_why_and_nothing_panics() {
    let folder = tempfile::tempdir().unwrap();
    built(folder.path());
    let cases = [
        (
            vec![("FALSE_VERSION", "11080")],
            "CUDA 11.8, expected at least 12.4",
        ),
        (
            vec![("FALSE_INIT", "100")],
            "finds no device (CUDA_ERROR_NO_DEVICE)",
        ),
        (
            vec![("FALSE_COUNT", "0")],
            "finds no device (it lists none)",
        ),
        (
            vec![("FALSE_MAJOR", "8")],
            "\"False device\": compute capability 8.0, expected 9.0",
        ),
        (vec![], "told: 1 of False device"),
        (vec![("FALSE_COUNT", "3")], "told: 3 of False device"),
    ];
    for (variables, expected) in cases {
        let text = told(folder.path(), &variables);
        assert!(text.contains(expected), "{variables:?}: {text}");
    }
}

#[test]
fn a_driver_library_that_is_none_counts_as_none() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("libcuda.so"), b"not a library").unwrap();
    std::fs::write(folder.path().join("libnvrtc.so"), b"not a library").unwrap();
    let text = told(folder.path(), &[]);
    // A machine with a device has a library of its own beside it.
    let has_driver = text.contains("told: ") && !text.contains("told: no CUDA");
    assert!(
        has_driver || text.contains("(libcuda) is not on this machine"),
        "{text}"
    );
    let has_compiler = text.contains("compiler: (");
    assert!(
        has_compiler || text.contains("(libnvrtc) is not on this machine"),
        "{text}"
    );
}
