//! What becomes of an upscaler when a GPU is not as it should be: told by name, and the CPU goes on where it may. Drivers
//! that are wrong in one way each are built here; what only a GPU can show is listed as skipped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests, one of which is a program"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine_base::{CancelToken, NoProgress};
use engine_pipelines::{DeviceChoice, Raster, Samples, Upscaler};
use tempfile::TempDir;

/// Weights of the smallest network that has kernels: 3 to 64 to 12 channels.
fn write_weights(path: &Path) {
    let tensors = [
        ("body.0.bias", vec![64]),
        ("body.0.weight", vec![64, 3, 3, 3]),
        ("body.1.weight", vec![64]),
        ("body.2.bias", vec![12]),
        ("body.2.weight", vec![12, 64, 3, 3]),
    ];
    let (mut header, mut bytes) = (Vec::new(), Vec::new());
    for (name, shape) in tensors {
        let start = bytes.len();
        let count: usize = shape.iter().product();
        bytes.extend((0..count).flat_map(|at| ((at % 7) as f32 / 100.0).to_le_bytes()));
        header.push(format!(
            "\"{name}\":{{\"dtype\":\"F32\",\"shape\":{shape:?},\"data_offsets\":[{start},{}]}}",
            bytes.len()
        ));
    }
    let mut header = format!("{{{}}}", header.join(","));
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(bytes);
    fs::write(path, file).unwrap();
}

fn picture() -> Raster {
    let (width_px, height_px) = (96, 64);
    Raster {
        width_px,
        height_px,
        channels: 3,
        samples: Samples::U8((0..96 * 64 * 3).map(|at| (at % 251) as u8).collect()),
    }
}

/// The program that tests start with other libraries: it says what became of it, line by line.
#[test]
#[ignore = "started by the tests below"]
fn child() {
    let Some(folder) = std::env::var_os("CHILD_FOLDER").map(PathBuf::from) else {
        return;
    };
    let choice: DeviceChoice = DeviceChoice::of_environment().unwrap();
    let opened = Upscaler::open_on(&folder.join("weights.safetensors"), 1, choice);
    let upscaler = match opened {
        Ok(upscaler) => upscaler,
        Err(error) => return println!("error {} {error}", error.code().as_str()),
    };
    for time in 0..2 {
        let made = upscaler.upscale(&picture(), 2, &CancelToken::new(), &NoProgress);
        match made {
            // The false devices leave what they are asked for as zeros.
            Ok(Raster {
                samples: Samples::U8(values),
                ..
            }) => println!("made {time} {}", values.iter().any(|value| *value != 0)),
            Ok(_) => println!("made {time} other samples"),
            Err(error) => println!("error {} {error}", error.code().as_str()),
        }
    }
    println!("device {}", upscaler.device());
    for note in upscaler.notes() {
        println!("note {note}");
    }
}

struct Libraries {
    folder: TempDir,
}

impl Libraries {
    /// A folder with those of the false libraries that are asked for.
    fn new(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_weights(&folder.path().join("weights.safetensors"));
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/gpu");
        for name in names {
            let to = match *name {
                "driver" => "libcuda.so.1",
                _ => "libnvrtc.so.13",
            };
            let built = Command::new("cc")
                .args(["-shared", "-fPIC", "-o"])
                .arg(folder.path().join(to))
                .arg(fixtures.join(format!("{name}.c")))
                .status()
                .expect("a C compiler, which Rust links with");
            assert!(built.success());
        }
        Self { folder }
    }

    /// What the program says on a device that is `wrong` in some way.
    fn said(&self, wrong: &str, choice: &str) -> String {
        self.said_with(wrong, choice, &self.folder.path().join("cache"))
    }

    fn said_with(&self, wrong: &str, choice: &str, cache: &Path) -> String {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--ignored", "--nocapture"])
            .env("LD_LIBRARY_PATH", self.folder.path())
            .env("CHILD_FOLDER", self.folder.path())
            .env("LONGTAKE_CACHE", cache)
            .env("LONGTAKE_DEVICE", choice)
            .env("FAKE_GPU", wrong)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}{errors}");
        said
    }
}

fn has(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "expected {part:?} in:\n{said}");
    }
}

const BY_CPU: [&str; 3] = ["made 0 true", "made 1 true", "device CPU"];
const BY_DEVICE: [&str; 3] = ["made 0 false", "made 1 false", "device Fake GPU (cuda:0)"];

#[test]
fn without_a_driver_the_cpu_is_used_and_said() {
    let libraries = Libraries::new(&[]);
    let said = libraries.said("", "auto");
    if said.contains("(cuda:") {
        // A driver of the system is found whatever folders come first.
        return println!("skipped: this machine has a GPU");
    }
    has(&said, &BY_CPU);
    has(&said, &["note no CUDA here", "libcuda", "the CPU is used"]);
    let refused = libraries.said("", "cuda");
    has(&refused, &["error not_found", "no CUDA here", "libcuda"]);
    let quiet = libraries.said("", "cpu");
    has(&quiet, &BY_CPU);
    assert!(!quiet.contains("note"), "{quiet}");
}

#[test]
fn a_driver_without_a_device_or_too_old_is_told_apart() {
    let libraries = Libraries::new(&["driver", "compiler"]);
    let none = libraries.said("none", "auto");
    has(&none, &BY_CPU);
    has(&none, &["finds no device (CUDA_ERROR_NO_DEVICE)"]);
    has(
        &libraries.said("none", "cuda"),
        &["error not_found", "finds no device"],
    );
    let old = libraries.said("old", "auto");
    has(&old, &BY_CPU);
    has(&old, &["CUDA 11.8", "at least 12.4"]);
    let place = libraries.said("", "cuda:3");
    has(&place, &["error not_found", "cuda:3", "Fake GPU (cuda:0)"]);
}

#[test]
fn without_a_compiler_the_cpu_is_used() {
    let libraries = Libraries::new(&["driver"]);
    let said = libraries.said("", "auto");
    if said.contains("(cuda:") {
        return println!("skipped: this machine has the compiler");
    }
    has(&said, &BY_CPU);
    has(
        &said,
        &["note Fake GPU (cuda:0)", "libnvrtc", "the CPU is used"],
    );
    has(
        &libraries.said("", "cuda"),
        &["error not_found", "libnvrtc"],
    );
}

#[test]
fn a_device_that_works_is_used_whatever_the_cache_is() {
    let libraries = Libraries::new(&["driver", "compiler"]);
    let said = libraries.said("", "auto");
    has(&said, &BY_DEVICE);
    assert!(!said.contains("note"), "{said}");
    // What is kept is damaged, or another program's.
    let kept = libraries.folder.path().join("cache/kernels");
    let mut count = 0;
    for entry in fs::read_dir(&kept).unwrap() {
        fs::write(entry.unwrap().path(), b"\x7fELF another build's").unwrap();
        count += 1;
    }
    assert!(count > 0);
    has(&libraries.said("", "cuda"), &BY_DEVICE);
    // A file where the folder should be refuses every user, root too.
    let file = libraries.folder.path().join("weights.safetensors");
    has(&libraries.said_with("", "cuda:0", &file), &BY_DEVICE);
}

#[test]
fn machine_code_that_the_driver_refuses_is_made_anew_once_and_then_told() {
    let libraries = Libraries::new(&["driver", "compiler"]);
    let said = libraries.said("foreign", "auto");
    has(&said, &BY_CPU);
    has(&said, &["load kernels", "CUDA_ERROR_INVALID_IMAGE"]);
    has(
        &libraries.said("foreign", "cuda"),
        &["error internal", "INVALID_IMAGE"],
    );
}

#[test]
fn a_kernel_that_fails_is_named_with_its_shapes() {
    let libraries = Libraries::new(&["driver", "compiler"]);
    let said = libraries.said("fault", "auto");
    has(&said, &BY_CPU);
    has(
        &said,
        &["CUDA_ERROR_ILLEGAL_ADDRESS", "conv3x3[3, 64, 8, 8]"],
    );
    has(
        &libraries.said("fault", "cuda"),
        &["error internal", "conv3x3[64, 12, 8, 8]"],
    );
}

#[test]
fn after_a_fault_the_device_is_opened_anew_and_goes_on() {
    let libraries = Libraries::new(&["driver", "compiler"]);
    for choice in ["auto", "cuda"] {
        let said = libraries.said("once", choice);
        has(&said, &BY_DEVICE);
        has(&said, &["CUDA_ERROR_ILLEGAL_ADDRESS", "it is opened anew"]);
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_figures() {
    let libraries = Libraries::new(&["driver", "compiler"]);
    has(&libraries.said("small", "cuda"), &BY_DEVICE);
    let refused = libraries.said("tiny", "cuda");
    has(
        &refused,
        &[
            "error out_of_memory",
            "bytes on the device",
            "of a budget of",
        ],
    );
    let said = libraries.said("tiny", "auto");
    has(&said, &BY_CPU);
    has(&said, &["bytes on the device", "the CPU is used"]);
}

/// Only a device shows these; `engine-bench check` and `engine-bench fault` hold them there.
#[test]
#[ignore = "needs a GPU: engine-bench check, engine-bench fault"]
fn pictures_of_a_gpu_are_within_1_of_255_of_the_cpus() {}
