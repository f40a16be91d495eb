//! What cannot be drawn says why.

use engine_base::Code;
use engine_pipelines::{
    GivenPicture, ImageError, ImageOptions, ImagePipeline, ImageRequest, InitPicture,
};
use serde_json::json;

use crate::tiny::{MODELS, Tiny, floats, tensors_of};
use crate::{draw, open, options, request};

fn error_of(tiny: &Tiny) -> (Code, String) {
    let error = ImagePipeline::open(tiny.path(), &options()).unwrap_err();
    (error.code(), error.to_string())
}

#[test]
fn parts_that_are_missing_are_named() {
    for model in MODELS {
        for (part, named) in [
            ("vae", "vae"),
            ("text_encoder", "text encoder"),
            ("scheduler", "scheduler"),
        ] {
            let tiny = Tiny::new(model);
            std::fs::remove_dir_all(tiny.part(part)).unwrap();
            let (code, text) = error_of(&tiny);
            assert_eq!(code, Code::NotFound, "{model} {part}: {text}");
            assert!(text.contains(&format!("its {named} is missing")), "{text}");
        }
    }
    let tiny = Tiny::new("sd15");
    std::fs::remove_dir_all(tiny.part("tokenizer")).unwrap();
    let (code, text) = error_of(&tiny);
    assert_eq!(code, Code::NotFound);
    assert!(text.contains("tokenizer.json"), "{text}");
    // Parts may lie elsewhere.
    let tiny = Tiny::new("qwen_image");
    let whole = draw(&open(&tiny), &request("a red kite", 7)).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    for part in ["vae", "text_encoder"] {
        std::fs::rename(tiny.part(part), elsewhere.path().join(part)).unwrap();
    }
    let options = ImageOptions {
        vae: Some(elsewhere.path().join("vae")),
        text_encoder: Some(elsewhere.path().join("text_encoder")),
        ..options()
    };
    let pipeline = ImagePipeline::open(tiny.path(), &options).unwrap();
    assert_eq!(draw(&pipeline, &request("a red kite", 7)).unwrap(), whole);
}

#[test]
fn parts_of_other_models_do_not_go_together() {
    let tiny = Tiny::new("qwen_image_21");
    let other = Tiny::new("qwen_image");
    let exchange = |part: &str| {
        let kept = tiny.part("kept");
        std::fs::rename(tiny.part(part), &kept).unwrap();
        std::fs::rename(other.part(part), tiny.part(part)).unwrap();
        let error = error_of(&tiny);
        std::fs::rename(tiny.part(part), other.part(part)).unwrap();
        std::fs::rename(&kept, tiny.part(part)).unwrap();
        error
    };
    for part in ["transformer", "vae"] {
        let (_, text) = exchange(part);
        assert!(!text.is_empty(), "{part}");
    }
    open(&tiny);
    tiny.change("model_index.json", |index| {
        index["_class_name"] = json!("HunyuanDiTPipeline");
    });
    let (code, text) = error_of(&tiny);
    assert_eq!(code, Code::BadInput);
    assert!(
        text.contains("HunyuanDiTPipeline") && text.contains("flux3"),
        "{text}"
    );
    tiny.change("text_encoder/config.json", |config| {
        config["model_type"] = json!("llama");
    });
    tiny.change("model_index.json", |index| {
        index["_class_name"] = json!("QwenImage21Pipeline");
    });
    let (_, text) = error_of(&tiny);
    assert!(
        text.contains("llama") && text.contains("qwen3_vl"),
        "{text}"
    );
}

#[test]
fn sizes_masks_and_numbers_that_cannot_be_are_refused() {
    for model in MODELS {
        let tiny = Tiny::new(model);
        let pipeline = open(&tiny);
        for (size, what) in [
            ((70, 63), "multiples of"),
            ((16_000, 16_000), "256000000 px"),
        ] {
            let asked = ImageRequest {
                width_px: size.0,
                height_px: size.1,
                ..request("a kite", 0)
            };
            let error = draw(&pipeline, &asked).unwrap_err();
            let text = error.to_string();
            let ImageError::Size {
                nearest_width_px,
                nearest_height_px,
                ..
            } = error
            else {
                panic!("{model}: {text}");
            };
            // Stable Diffusion's tiny lattice has 70 on it.
            assert!(text.contains(what) || size.0 == 70, "{model}: {text}");
            let again = ImageRequest {
                width_px: nearest_width_px,
                height_px: nearest_height_px,
                ..asked
            };
            pipeline.settle(&again).unwrap();
        }
    }
    let tiny = Tiny::new("qwen_image_21");
    let pipeline = open(&tiny);
    let picture = |width, height| {
        GivenPicture::new(width, height, vec![255; 4 * (width * height) as usize]).unwrap()
    };
    let init = |strength| {
        Some(InitPicture {
            picture: picture(64, 64),
            strength,
        })
    };
    let masked = ImageRequest {
        init: init(1.0),
        mask: Some(picture(64, 32)),
        ..request("a kite", 0)
    };
    let error = draw(&pipeline, &masked).unwrap_err();
    assert_eq!(error.code(), Code::BadInput);
    let text = error.to_string();
    assert!(
        text.contains("64 x 32") && text.contains("64 x 64"),
        "{text}"
    );
    let alone = ImageRequest {
        init: None,
        ..masked
    };
    assert!(draw(&pipeline, &alone).is_err());
    for strength in [0.0, 1.5, f32::NAN] {
        let asked = ImageRequest {
            init: init(strength),
            ..request("a kite", 0)
        };
        let error = draw(&pipeline, &asked).unwrap_err();
        assert!(error.to_string().contains("strength"), "{error}");
    }
}

#[test]
fn long_prompts_are_cut_and_numbers_that_are_none_stop_at_their_step() {
    for model in MODELS {
        let tiny = Tiny::new(model);
        let part = if model.starts_with("sd") {
            "unet"
        } else {
            "transformer"
        };
        if ["flux2", "sd15", "sdxl", "z_image"].contains(model) {
            let long = "a red kite over the sea ".repeat(200);
            let wanted = ImageRequest {
                steps: Some(1),
                ..request(&long, 7)
            };
            let drawn = draw(&open(&tiny), &wanted).unwrap();
            assert_eq!(drawn.notes.len(), 1, "{model}: {:?}", drawn.notes);
            assert!(
                drawn.notes[0].contains("was cut after"),
                "{}",
                drawn.notes[0]
            );
        }

        // The last layer gives what no latent bears.
        let file = tiny.part(part).join("diffusion_pytorch_model.safetensors");
        let mut tensors = tensors_of(&file);
        let last = [
            "proj_out.weight",
            "all_final_layer.2-1.linear.weight",
            "conv_out.weight",
        ];
        let name = last.into_iter().find(|name| tensors.contains_key(*name));
        let name = name.unwrap_or_else(|| panic!("{model}"));
        let shape = tensors[name].shape.clone();
        tensors.insert(name.to_owned(), floats(&shape, 1, 1e38));
        engine_weights::write_safetensors(&file, &tensors, &[]).unwrap();
        let error = draw(&open(&tiny), &request("a kite", 7)).unwrap_err();
        let ImageError::NotANumber { step, of: 3 } = error else {
            panic!("{model}: {error}");
        };
        assert!(
            error
                .to_string()
                .contains(&format!("after step {step} of 3"))
        );
    }
}

#[test]
fn configurations_that_cannot_be_are_refused() {
    let changes: [(&str, &str, &str, serde_json::Value); 14] = [
        ("qwen_image_21", "text_encoder", "model_type", json!(7)),
        ("qwen_image_21", "text_encoder", "text_config", json!({})),
        (
            "qwen_image_21",
            "text_encoder",
            "vision_config",
            json!({"depth": 1e9}),
        ),
        ("qwen_image_21", "vae", "z_dim", json!(9)),
        ("qwen_image", "transformer", "num_layers", json!(u32::MAX)),
        (
            "qwen_image",
            "transformer",
            "axes_dims_rope",
            json!([400, 6, 6]),
        ),
        ("flux2", "transformer", "joint_attention_dim", json!(48)),
        ("flux3", "transformer", "attention_head_dim", json!(0)),
        ("z_image", "transformer", "n_heads", json!(7)),
        ("z_image", "vae", "scaling_factor", json!(0.0)),
        ("sd15", "unet", "block_out_channels", json!([])),
        ("sd15", "unet", "attention_head_dim", json!(0)),
        ("sd15", "unet", "down_block_types", json!(["A", "B"])),
        ("sdxl", "unet", "addition_embed_type", json!("image")),
    ];
    for (model, part, key, value) in changes {
        let tiny = Tiny::new(model);
        tiny.change(&format!("{part}/config.json"), |config| config[key] = value);
        let (_, text) = error_of(&tiny);
        assert!(!text.is_empty(), "{model} {key}");
    }
    for (model, key, value) in [
        ("z_image", "shift", json!(-1)),
        ("sd15", "beta_end", json!(2.0)),
        ("sd15", "beta_schedule", json!("linear")),
        ("sd15", "prediction_type", json!("sample")),
    ] {
        let tiny = Tiny::new(model);
        tiny.change("scheduler/scheduler_config.json", |config| {
            config[key] = value
        });
        assert!(
            ImagePipeline::open(tiny.path(), &options()).is_err(),
            "{model} {key}"
        );
    }
    let tiny = Tiny::new("qwen_image_21");
    tiny.change("model_index.json", |index| {
        index["sample_sigmas"] = json!([0.5, 0.7]);
    });
    let (_, text) = error_of(&tiny);
    assert!(text.contains("sample_sigmas"), "{text}");
}
