//! Whole runs from a prompt to a picture, on a tiny model laid out like the small one of our own, and what
//! is no model or cannot be drawn.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use engine_base::{CancelToken, Code};
use engine_pipelines::{
    ImageError, ImageOptions, ImagePipeline, ImageRequest, KeptLatent, RgbaImage,
};
use engine_tensor::DType;
use engine_tensor::ops::numbers;
use engine_weights::{Checkpoint as _, SafeTensors, TensorRef, write_safetensors};
use serde_json::{Value, json};
use tempfile::TempDir;

const TEMPLATE: &str = "<|im_start|>system\nLook.<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n";
/// Elements of a state of the tiny text encoder.
const STATE: usize = 64;

fn fixtures(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    root.join(path)
}

fn floats(shape: &[usize], seed: u64, scale: f32) -> TensorRef {
    let values = numbers(seed, shape.iter().product());
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|v| (v * scale).to_le_bytes())
        .collect();
    TensorRef::new(DType::F32, shape.to_vec(), bytes.into()).unwrap()
}

fn read(path: PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A tiny model and its text encoder. What the last layer gives is multiplied by `gain`.
struct Tiny {
    folder: TempDir,
}

impl Tiny {
    fn new(gain: f32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        std::fs::create_dir(&text).unwrap();
        for (from, name) in [
            ("llama", "config.json"),
            ("llama", "model.safetensors"),
            ("tokenizers/bpe_qwen", "tokenizer.json"),
            ("tokenizers/bpe_qwen", "tokenizer_config.json"),
        ] {
            std::fs::copy(fixtures(from).join(name), text.join(name)).unwrap();
        }
        let mut tensors = BTreeMap::new();
        for part in ["transformer", "vae"] {
            let file = SafeTensors::open(fixtures("qwen_image_21").join(part)).unwrap();
            for name in file.names() {
                tensors.insert(format!("{part}.{name}"), file.tensor(name).unwrap());
            }
        }
        let mut put = |name: &str, tensor| tensors.insert(format!("transformer.{name}"), tensor);
        put("txt_in.text_norm.weight", floats(&[STATE], 1, 0.1));
        put("txt_in.in_layer.weight", floats(&[48, STATE], 2, 0.2));
        put("proj_out.weight", floats(&[8, 48], 3, 0.2 * gain));
        let model = folder.path().join("model");
        std::fs::create_dir(&model).unwrap();
        write_safetensors(&model.join("sketch.safetensors"), &tensors, &[]).unwrap();
        let mut transformer = read(fixtures("qwen_image_21/transformer/config.json"));
        transformer["context_in_dim"] = json!(STATE);
        let config = json!({
            "transformer": transformer,
            "vae": read(fixtures("qwen_image_21/vae/config.json")),
            "text": {"model": "a tiny llama", "layer": 2, "max_tokens": 24, "template": TEMPLATE},
            "sample": {"size": 64, "steps": 4, "guidance": 2.0, "negative": "", "shift": 1.5,
                       "alpha": true},
        });
        std::fs::write(model.join("config.json"), config.to_string()).unwrap();
        Self { folder }
    }

    fn model(&self) -> PathBuf {
        self.folder.path().join("model")
    }

    fn options(&self, threads: usize) -> ImageOptions {
        ImageOptions {
            threads,
            text_encoder: Some(self.folder.path().join("text")),
            ..ImageOptions::default()
        }
    }

    fn open(&self, threads: usize) -> ImagePipeline {
        ImagePipeline::open(&self.model(), &self.options(threads)).unwrap()
    }

    /// Opens the model after `change` of its configuration.
    fn changed(&self, change: impl FnOnce(&mut Value)) -> Result<ImagePipeline, ImageError> {
        let path = self.model().join("config.json");
        let mut config = read(path.clone());
        change(&mut config);
        std::fs::write(&path, config.to_string()).unwrap();
        ImagePipeline::open(&self.model(), &self.options(1))
    }
}

fn request(prompt: &str, seed: u64) -> ImageRequest {
    ImageRequest {
        prompt: prompt.to_owned(),
        seed,
        ..ImageRequest::default()
    }
}

fn draw(pipeline: &ImagePipeline, request: &ImageRequest) -> Result<RgbaImage, ImageError> {
    pipeline.draw(request, &mut |_| ControlFlow::Continue(()))
}

#[test]
fn a_picture_is_of_its_words_and_seed_whatever_was_drawn_before_and_on_any_threads() {
    let tiny = Tiny::new(1.0);
    let pipeline = tiny.open(1);
    assert_eq!(pipeline.family(), "qwen_image_21");
    let first = draw(&pipeline, &request("a red kite", 7)).unwrap();
    assert_eq!((first.width_px, first.height_px), (64, 64));
    assert_eq!(first.rgba.len(), 64 * 64 * 4);
    assert!(first.notes.is_empty(), "{:?}", first.notes);
    for other in [request("a red kite", 8), request("a blue boat", 7)] {
        assert_ne!(draw(&pipeline, &other).unwrap().rgba, first.rgba);
    }
    let guided = ImageRequest {
        guidance: Some(5.0),
        ..request("a red kite", 7)
    };
    assert_ne!(draw(&pipeline, &guided).unwrap().rgba, first.rgba);
    assert_eq!(
        draw(&tiny.open(3), &request("a red kite", 7)).unwrap(),
        first
    );
    let wide = ImageRequest {
        width_px: 96,
        ..request("a red kite", 7)
    };
    assert_eq!(draw(&pipeline, &wide).unwrap().rgba.len(), 96 * 64 * 4);
}

#[test]
fn a_picture_cut_short_goes_on_to_the_same_bytes() {
    let tiny = Tiny::new(1.0);
    let pipeline = tiny.open(2);
    let request = request("a red kite", 7);
    let whole = draw(&pipeline, &request).unwrap();
    let path = tiny.folder.path().join("kept.safetensors");
    let mark = pipeline.mark(&request).unwrap();
    let cut = pipeline.draw(&request, &mut |step| {
        KeptLatent::save(step.step, step.latent, &mark, &path).unwrap();
        if step.step == 2 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(cut.unwrap_err().code(), Code::Cancelled);
    let kept = KeptLatent::load(&mark, &path).unwrap();
    assert_eq!(kept.step, 2);
    let mut steps = Vec::new();
    let cancel = CancelToken::new();
    let resumed = pipeline.draw_from(&request, Some(kept.clone()), &cancel, &mut |step| {
        steps.push(step.step);
        ControlFlow::Continue(())
    });
    assert_eq!(resumed.unwrap(), whole);
    assert_eq!(steps, [3, 4]);

    let other = ImageRequest {
        seed: 8,
        ..request.clone()
    };
    let other = pipeline.mark(&other).unwrap();
    let error = KeptLatent::load(&other, &path).unwrap_err().to_string();
    assert!(error.contains("of another picture"), "{error}");
    let mut broken = kept.clone();
    broken.latent.values[5] = f32::NAN;
    let error = pipeline.draw_from(&request, Some(broken), &cancel, &mut |_| {
        ControlFlow::Continue(())
    });
    assert!(matches!(
        error,
        Err(ImageError::NotANumber { step: 2, of: 4 })
    ));
    let mut broken = kept;
    broken.latent.values.pop();
    let error = pipeline.draw_from(&request, Some(broken), &cancel, &mut |_| {
        ControlFlow::Continue(())
    });
    assert!(matches!(error, Err(ImageError::Kept(_))));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(KeptLatent::load(&mark, &path).is_err());
}

#[test]
fn a_picture_that_is_no_number_any_more_stops_at_its_step() {
    let tiny = Tiny::new(1e37);
    let mut seen = Vec::new();
    let error = tiny.open(1).draw(&request("a red kite", 7), &mut |step| {
        seen.push(step.step);
        ControlFlow::Continue(())
    });
    let error = error.unwrap_err();
    let ImageError::NotANumber { step, of: 4 } = error else {
        panic!("{error}");
    };
    assert_eq!(seen.len() + 1, step as usize);
    assert!(
        error
            .to_string()
            .contains(&format!("after step {step} of 4"))
    );
    assert_eq!(error.code(), Code::Corrupt);
}

#[test]
fn sizes_and_numbers_that_cannot_be_are_refused_with_the_nearest_that_can() {
    let tiny = Tiny::new(1.0);
    let pipeline = tiny.open(1);
    for ((width, height), nearest) in [
        ((100, 64), (96, 64)),
        ((64, 1), (64, 64)),
        ((16_000, 16_000), (1024, 1024)),
        ((u32::MAX, 64), (16_384, 64)),
        ((2048, 1024), (1440, 720)),
    ] {
        let asked = ImageRequest {
            width_px: width,
            height_px: height,
            ..request("a kite", 0)
        };
        let error = pipeline.settle(&asked).unwrap_err();
        let ImageError::Size {
            nearest_width_px,
            nearest_height_px,
            ..
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((nearest_width_px, nearest_height_px), nearest, "{error}");
        let again = ImageRequest {
            width_px: nearest_width_px,
            height_px: nearest_height_px,
            ..asked
        };
        pipeline.settle(&again).unwrap();
    }
    let error = ImageRequest {
        steps: Some(0),
        ..request("a kite", 0)
    };
    assert!(pipeline.settle(&error).is_err());
    let error = ImageRequest {
        guidance: Some(f32::NAN),
        ..request("a kite", 0)
    };
    assert!(pipeline.settle(&error).is_err());
}

#[test]
fn long_prompts_are_cut_after_a_word_and_a_note_says_so() {
    let tiny = Tiny::new(1.0);
    let pipeline = tiny.open(1);
    let long = "a red kite over the sea ".repeat(40);
    let drawn = draw(&pipeline, &request(&long, 1)).unwrap();
    assert_eq!(drawn.notes.len(), 1, "{:?}", drawn.notes);
    let note = &drawn.notes[0];
    assert!(note.contains("was cut after"), "{note}");
    // Whatever follows is not read.
    let longer = format!("{long} and a green ship");
    assert_eq!(
        draw(&pipeline, &request(&longer, 1)).unwrap().rgba,
        drawn.rgba
    );
    // One word without end, and names of special tokens as plain text.
    let endless = draw(&pipeline, &request(&"kite".repeat(500), 1)).unwrap();
    assert_eq!(endless.notes.len(), 1);
    let plain = draw(&pipeline, &request("a kite", 1)).unwrap();
    let marked = draw(&pipeline, &request("a kite<|im_end|>", 1)).unwrap();
    assert_ne!(plain.rgba, marked.rgba);
    assert!(draw(&pipeline, &request("", 1)).unwrap().notes.is_empty());
}

#[test]
fn previews_show_latents_one_pixel_each() {
    let tiny = Tiny::new(1.0);
    let pipeline = tiny.open(1);
    let mut previews = Vec::new();
    let drawn = pipeline.draw(&request("a kite", 1), &mut |step| {
        previews.push(pipeline.preview(step.latent).unwrap());
        ControlFlow::Continue(())
    });
    drawn.unwrap();
    assert_eq!(previews.len(), 4);
    for preview in &previews {
        assert_eq!((preview.width_px, preview.height_px), (4, 4));
        assert_eq!(preview.rgba.len(), 64);
    }
    assert_ne!(previews[0], previews[3]);
}

#[test]
fn what_is_no_model_says_what_is_missing() {
    let tiny = Tiny::new(1.0);
    let message = |error: ImageError| (error.code(), error.to_string());
    let no_encoder = ImageOptions::default();
    let (code, text) = message(ImagePipeline::open(&tiny.model(), &no_encoder).unwrap_err());
    assert_eq!(code, Code::NotFound);
    assert!(
        text.contains("text encoder") && text.contains("a tiny llama"),
        "{text}"
    );
    let folder = tiny.folder.path();
    let (code, text) = message(ImagePipeline::open(folder, &no_encoder).unwrap_err());
    assert_eq!(code, Code::BadInput);
    assert!(text.contains("model_index.json"), "{text}");
    let gone = folder.join("gone");
    assert!(ImagePipeline::open(&gone, &no_encoder).is_err());
    // Families that are known by name, and a language model.
    for (file, about, named) in [
        (
            "model_index.json",
            json!({"_class_name": "SomePipeline"}),
            "SomePipeline",
        ),
        ("config.json", json!({"model_type": "llama"}), "llama"),
    ] {
        let other = folder.join(named);
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join(file), about.to_string()).unwrap();
        let (code, text) = message(ImagePipeline::open(&other, &no_encoder).unwrap_err());
        assert_eq!(code, Code::BadInput);
        assert!(
            text.contains(named) && text.contains("qwen_image_21"),
            "{text}"
        );
    }
    std::fs::remove_file(tiny.model().join("sketch.safetensors")).unwrap();
    let options = tiny.options(1);
    let (code, text) = message(ImagePipeline::open(&tiny.model(), &options).unwrap_err());
    assert_eq!(code, Code::NotFound);
    assert!(text.contains("weights"), "{text}");
}

#[test]
fn configurations_that_cannot_be_are_refused() {
    let wrong: [fn(&mut Value); 12] = [
        |config| config["transformer"]["num_layers"] = json!(4),
        |config| config["transformer"]["num_layers"] = json!(u32::MAX),
        |config| config["transformer"]["patch_size"] = json!(2),
        |config| config["transformer"]["axes_dims_rope"] = json!([400, 6, 6]),
        |config| config["transformer"]["axes_dims_rope"] = json!([3, 6, 6]),
        |config| config["transformer"]["context_in_dim"] = json!(48),
        |config| config["transformer"]["attention_head_dim"] = json!(0),
        |config| config["vae"]["dim_mult"] = json!([]),
        |config| config["vae"]["latents_std"] = json!([0.0]),
        |config| config["text"]["layer"] = json!(-1),
        |config| config["text"]["template"] = json!("no place"),
        |config| config["sample"]["shift"] = json!(0.0),
    ];
    for (index, change) in wrong.into_iter().enumerate() {
        let tiny = Tiny::new(1.0);
        assert!(tiny.changed(change).is_err(), "change {index}");
    }
}
