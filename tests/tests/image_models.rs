//! `longtake image` and workflow documents over tiny models of every family, laid out like the real
//! repositories.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

#[path = "../../engine/pipelines/tests/families/tiny.rs"]
mod tiny;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flow_media::Pixels;
use flow_media::still::{SavePicture, SaveSamples, StillOptions, load_still, save_still};
use longtake_tests::film::{Ran, ran};
use serde_json::{Value, json};
use tempfile::TempDir;

use self::tiny::{MODELS, Tensors, Tiny, floats};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .env("LONGTAKE_CACHE", self.path("cache"))
            .env("LONGTAKE_MODELS", self.path("models"))
            .stdin(Stdio::null())
            .current_dir(self.folder.path());
        command
    }

    fn run(&self, words: &[&str]) -> Ran {
        ran(self.program().arg("--json").args(words)).unwrap()
    }

    /// `longtake image` of a small picture in two steps.
    fn image(&self, model: &Path, out: &str, more: &[&str]) -> Ran {
        let mut words = vec!["image", "a red kite", "-o", out];
        let usual = [
            ("--seed", "7"),
            ("--size", "64x64"),
            ("--steps", "2"),
            ("--model", model.to_str().unwrap()),
        ];
        for (name, value) in usual {
            if !more.contains(&name) {
                words.extend([name, value]);
            }
        }
        self.run(&[&words[..], more].concat())
    }

    fn pixels(&self, name: &str) -> Vec<u8> {
        let picture = load_still(&self.path(name), &StillOptions::default()).unwrap();
        match picture.pixels {
            Pixels::Rgba8(values) => values,
            Pixels::Rgba16(_) => panic!("{name} has 16 bits"),
        }
    }

    fn paint(&self, name: &str, (width, height): (u32, u32), of: impl Fn(u32, u32) -> [u8; 4]) {
        let bytes: Vec<u8> = (0..width * height)
            .flat_map(|at| of(at % width, at / width))
            .collect();
        let picture = SavePicture {
            width_px: width,
            height_px: height,
            channels: 4,
            samples: SaveSamples::U8(&bytes),
        };
        save_still(&picture, &self.path(name)).unwrap();
    }
}

fn stripes(x: u32, y: u32) -> [u8; 4] {
    let dark = if (x / 8 + y / 16).is_multiple_of(2) {
        40
    } else {
        210
    };
    [dark, 255 - dark, (4 * y % 256) as u8, 255]
}

#[test]
fn every_family_is_drawn_with_from_its_folder() {
    let place = Place::new();
    for model in MODELS {
        let tiny = Tiny::new(model);
        let done = place.image(tiny.path(), "a.png", &[]);
        assert!(done.status.success(), "{model}: {done:?}");
        let told = done.json();
        let family = if model.starts_with("sd") {
            "stable_diffusion"
        } else {
            model
        };
        assert_eq!(told["family"], family, "{told}");
        assert!(place.image(tiny.path(), "b.png", &[]).status.success());
        let bytes = |name: &str| std::fs::read(place.path(name)).unwrap();
        assert!(bytes("a.png") == bytes("b.png"), "{model}");
    }
    // Several with one load: seeds count up, and the second is the one of its seed.
    let tiny = Tiny::new("qwen_image_21");
    let done = place.image(tiny.path(), "s.png", &["--count", "3"]);
    assert_eq!(done.json()["pictures"].as_array().map(Vec::len), Some(3));
    place.image(tiny.path(), "alone.png", &["--seed", "8"]);
    assert_eq!(place.pixels("s-2.png"), place.pixels("alone.png"));
    assert_ne!(place.pixels("s-1.png"), place.pixels("s-2.png"));
}

#[test]
fn pictures_masks_references_and_adapters_are_handed_in() {
    let place = Place::new();
    let tiny = Tiny::new("qwen_image_21");
    let model = tiny.path();
    place.paint("init.png", (64, 64), stripes);
    place.paint("mask.png", (64, 64), |x, _| {
        let light = if x < 32 { 255 } else { 0 };
        [light, light, light, 255]
    });
    place.paint("small.png", (48, 32), stripes);
    let module = "transformer.transformer_blocks.0.attn.to_q";
    let lora = Tensors::from([
        (format!("{module}.lora_A.weight"), floats(&[2, 48], 1, 1.0)),
        (format!("{module}.lora_B.weight"), floats(&[48, 2], 2, 1.0)),
    ]);
    engine_weights::write_safetensors(&place.path("ink.safetensors"), &lora, &[]).unwrap();
    assert!(place.image(model, "plain.png", &[]).status.success());
    let plain = place.pixels("plain.png");
    for (out, more) in [
        (
            "init-half.png",
            &["--init", "init.png", "--strength", "0.5"][..],
        ),
        ("masked.png", &["--init", "init.png", "--mask", "mask.png"]),
        ("wide.png", &["--init", "small.png", "--outpaint"]),
        ("ref.png", &["--ref", "init.png", "--ref", "small.png"]),
        ("ink.png", &["--lora", "ink.safetensors:0.8"]),
        (
            "ink-twice.png",
            &[
                "--lora",
                "ink.safetensors",
                "--lora",
                "ink.safetensors:-0.5",
            ],
        ),
    ] {
        let done = place.image(model, out, more);
        assert!(done.status.success(), "{out}: {done:?}");
        assert_ne!(place.pixels(out), plain, "{out}");
    }
    let (masked, init) = (place.pixels("masked.png"), place.pixels("init.png"));
    let half = |pixels: &[u8], right: bool| -> Vec<u8> {
        let rows = pixels.chunks_exact(4 * 64);
        rows.flat_map(|row| {
            if right {
                &row[4 * 32..]
            } else {
                &row[..4 * 32]
            }
        })
        .copied()
        .collect()
    };
    assert_eq!(half(&masked, true), half(&init, true));
    assert_ne!(half(&masked, false), half(&init, false));
    assert_ne!(place.pixels("ink.png"), place.pixels("ink-twice.png"));
}

#[test]
fn what_cannot_be_drawn_with_or_handed_in_says_why() {
    let place = Place::new();
    let tiny = Tiny::new("qwen_image_21");
    let model = tiny.path();
    place.paint("init.png", (64, 64), stripes);
    place.paint("mask.png", (64, 32), stripes);
    std::fs::write(place.path("words.png"), "no picture at all").unwrap();
    let module = "lora_unet_down_blocks_0_attentions_0_proj_in";
    let lora = Tensors::from([
        (
            format!("{module}.lora_down.weight"),
            floats(&[2, 16], 1, 1.0),
        ),
        (format!("{module}.lora_up.weight"), floats(&[16, 2], 2, 1.0)),
    ]);
    engine_weights::write_safetensors(&place.path("sd.safetensors"), &lora, &[]).unwrap();
    for (more, texts) in [
        (&["--ref", "words.png"][..], &["words.png"][..]),
        (&["--ref", "gone.png"], &["gone.png"]),
        (
            &["--init", "init.png", "--mask", "mask.png"],
            &["64 x 32", "64 x 64"],
        ),
        (&["--mask", "mask.png"], &["a mask", "to begin with"]),
        (&["--strength", "0.5"], &["strength"]),
        (
            &["--init", "init.png", "--strength", "2"],
            &["strength", "up to 1"],
        ),
        (
            &["--lora", "sd.safetensors"],
            &["qwen_image_21", "stable_diffusion"],
        ),
        (&["--lora", "gone.safetensors"], &["gone.safetensors"]),
        (&["--lora", "sd.safetensors:heavy"], &["heavy"]),
        (&["--size", "100x64"], &["96 x 64"]),
        (&["--size", "16000x16000"], &["256000000 px", "nearest"]),
        (&["--device", "cuda:0"], &["cuda:0", "cpu"]),
    ] {
        let done = place.image(model, "none.png", more);
        assert!(!done.status.success(), "{more:?}");
        for text in texts {
            assert!(
                done.err.contains(text) || done.out.contains(text),
                "{more:?}: {done:?}"
            );
        }
        assert!(!place.path("none.png").exists());
    }
    std::fs::remove_dir_all(tiny.part("text_encoder")).unwrap();
    let done = place.image(model, "none.png", &[]);
    assert!(!done.status.success());
    assert!(
        done.err.contains("text encoder is missing")
            || done.out.contains("text encoder is missing")
    );
}

#[test]
fn a_killed_picture_goes_on_to_the_same_bytes() {
    let place = Place::new();
    let tiny = Tiny::new("qwen_image_21");
    let words = |out: &str| {
        let mut command = place.program();
        command.args([
            "--json",
            "image",
            "a red kite",
            "--size",
            "96x96",
            "--steps",
            "60",
        ]);
        command
            .args(["--seed", "3", "-o", out, "--model"])
            .arg(tiny.path());
        command
    };
    let whole = ran(&mut words("whole.png")).unwrap();
    assert!(whole.status.success(), "{whole:?}");
    let kept = place.path("cut.latent.safetensors");
    let mut child = words("cut.png")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !kept.exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(kept.exists(), "it was killed after its last step");
    assert!(!place.path("cut.png").exists());
    let resumed = ran(&mut words("cut.png")).unwrap();
    let told = resumed.json();
    let steps = told["pictures"][0]["kept_steps"].as_u64().unwrap();
    assert!((1..60).contains(&steps), "{told}");
    let bytes = |name: &str| std::fs::read(place.path(name)).unwrap();
    assert_eq!(bytes("cut.png"), bytes("whole.png"), "after step {steps}");
    assert!(!kept.exists());
}

/// A document that draws in single nodes.
fn document(model: &str, adapter: Option<&str>) -> Value {
    let drawn_with = if adapter.is_some() {
        "adapter"
    } else {
        "model"
    };
    let mut nodes = json!({
        "model": {"type": "image.model", "version": 1, "widgets": {"model": model}},
        "words": {"type": "image.prompt", "version": 1, "widgets": {"prompt": "a red kite"}},
        "empty": {"type": "image.latent", "version": 1,
                  "widgets": {"width_px": 64, "height_px": 64},
                  "links": {"model": [drawn_with, "model"]}},
        "sample": {"type": "image.sample", "version": 1, "widgets": {"seed": 7, "steps": 2},
                   "links": {"model": [drawn_with, "model"],
                             "conditioning": ["words", "conditioning"],
                             "latent": ["empty", "latent"]}},
        "decode": {"type": "image.decode", "version": 1,
                   "links": {"model": [drawn_with, "model"], "latent": ["sample", "latent"]}}
    });
    if let Some(adapter) = adapter {
        nodes["adapter"] = json!({"type": "image.adapter", "version": 1,
            "widgets": {"adapter": adapter, "weight": 0.8},
            "links": {"model": ["model", "model"]}});
    }
    json!({"longtake": 1, "nodes": nodes, "targets": ["decode"]})
}

#[test]
fn a_workflow_draws_what_the_command_does() {
    let place = Place::new();
    let models = place.path("models");
    std::fs::create_dir_all(&models).unwrap();
    let run = |document: &Value, out: &str| {
        let file = place.path("flow.json");
        std::fs::write(&file, document.to_string()).unwrap();
        let done = place.run(&["run", "flow.json", "--out", out]);
        assert!(done.status.success(), "{done:?}");
        done.json()
    };
    for model in ["qwen_image_21", "flux2", "sd15"] {
        let tiny = Tiny::new(model);
        let folder = models.join(model);
        copy_all(tiny.path(), &folder);
        assert!(place.image(&folder, "own.png", &[]).status.success());
        let told = run(&document(model, None), model);
        assert_eq!(told["failed"], 0, "{told}");
        let made = place.path(model).join("decode picture 0.png");
        let name = first_png(&place.path(model)).unwrap_or(made);
        let shown = name.strip_prefix(place.folder.path()).unwrap().to_owned();
        assert_eq!(
            place.pixels(shown.to_str().unwrap()),
            place.pixels("own.png"),
            "{model}"
        );
        // Nothing is computed twice.
        let again = run(&document(model, None), model);
        assert!(again["reused"].as_u64().unwrap() >= 3, "{again}");
    }
    let module = "transformer.transformer_blocks.0.attn.to_q";
    let lora = Tensors::from([
        (format!("{module}.lora_A.weight"), floats(&[2, 48], 1, 1.0)),
        (format!("{module}.lora_B.weight"), floats(&[48, 2], 2, 1.0)),
    ]);
    engine_weights::write_safetensors(&models.join("ink.safetensors"), &lora, &[]).unwrap();
    run(&document("qwen_image_21", Some("ink.safetensors")), "with");
    let path = models.join("ink.safetensors");
    let adapter = format!("{}:0.8", path.display());
    place.image(
        &models.join("qwen_image_21"),
        "own.png",
        &["--lora", &adapter],
    );
    let name = first_png(&place.path("with")).unwrap();
    let shown = name.strip_prefix(place.folder.path()).unwrap().to_owned();
    assert_eq!(
        place.pixels(shown.to_str().unwrap()),
        place.pixels("own.png")
    );

    // Only what lies in the model folder.
    for model in ["../elsewhere", "/etc", "none"] {
        let file = place.path("flow.json");
        std::fs::write(&file, document(model, None).to_string()).unwrap();
        let done = place.run(&["run", "flow.json"]);
        assert!(!done.status.success(), "{model}: {done:?}");
    }
}

fn first_png(folder: &Path) -> Option<PathBuf> {
    let entries = folder.read_dir().ok()?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.find(|path| path.extension().is_some_and(|end| end == "png"))
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy_all(&path, &name),
            false => {
                std::fs::copy(&path, &name).unwrap();
            }
        }
    }
}
