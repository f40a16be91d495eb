//! LoRA and LoKr over models of several families.

use std::path::PathBuf;

use engine_base::Code;
use engine_pipelines::{ImageOptions, ImagePipeline, RgbaImage};
use engine_weights::write_safetensors;

use crate::tiny::{Tensors, Tiny, floats};
use crate::{draw, options, request};

fn write(tiny: &Tiny, name: &str, tensors: &Tensors) -> PathBuf {
    let path = tiny.path().join(name);
    write_safetensors(&path, tensors, &[]).unwrap();
    path
}

/// A change of `module`, `[rows, cols]`, named as `style` does.
fn lora(module: &str, (rows, cols): (usize, usize), style: &str) -> Tensors {
    let (down, up) = (floats(&[2, cols], 11, 1.0), floats(&[rows, 2], 12, 1.0));
    let parts = match style {
        "diffusers" => [
            (format!("transformer.{module}.lora_A.weight"), down),
            (format!("transformer.{module}.lora_B.weight"), up),
        ],
        "unet" => [
            (format!("unet.{module}.lora_A.weight"), down),
            (format!("unet.{module}.lora_B.weight"), up),
        ],
        _ => {
            let module = module.replace('.', "_");
            [
                (format!("lora_unet_{module}.lora_down.weight"), down),
                (format!("lora_unet_{module}.lora_up.weight"), up),
            ]
        }
    };
    let mut tensors = Tensors::from(parts);
    if style == "kohya" {
        let module = module.replace('.', "_");
        tensors.insert(format!("lora_unet_{module}.alpha"), floats_of(2.0));
    }
    tensors
}

fn floats_of(value: f32) -> engine_weights::TensorRef {
    let bytes = value.to_le_bytes().to_vec();
    engine_weights::TensorRef::new(engine_tensor::DType::F32, Vec::new(), bytes.into()).unwrap()
}

fn drawn(tiny: &Tiny, adapters: &[(PathBuf, f32)]) -> RgbaImage {
    let options = ImageOptions {
        adapters: adapters.to_vec(),
        ..options()
    };
    let pipeline = ImagePipeline::open(tiny.path(), &options).unwrap();
    draw(&pipeline, &request("a red kite", 7)).unwrap()
}

#[test]
fn adapters_of_both_ways_of_naming_change_the_picture_alike() {
    for (model, module, rows, style) in [
        (
            "qwen_image_21",
            "transformer_blocks.0.attn.to_q",
            48,
            "diffusers",
        ),
        (
            "qwen_image",
            "transformer_blocks.1.attn.add_k_proj",
            48,
            "diffusers",
        ),
        (
            "flux2",
            "transformer_blocks.0.attn.to_out.0",
            48,
            "diffusers",
        ),
        ("z_image", "layers.0.attention.to_v", 48, "diffusers"),
        (
            "sd15",
            "mid_block.attentions.0.transformer_blocks.0.attn1.to_q",
            24,
            "unet",
        ),
    ] {
        let tiny = Tiny::new(model);
        let plain = drawn(&tiny, &[]);
        let one = lora(module, (rows, rows), style);
        let one = write(&tiny, "one.safetensors", &one);
        let other = lora(module, (rows, rows), "kohya");
        let other = write(&tiny, "other.safetensors", &other);
        let with = drawn(&tiny, &[(one.clone(), 1.0)]);
        assert_ne!(with, plain, "{model}");
        assert_eq!(drawn(&tiny, &[(other.clone(), 1.0)]), with, "{model}");
        assert_eq!(drawn(&tiny, &[(one.clone(), 0.0)]), plain, "{model}");
        // Halves of the same change are the change.
        let halves = drawn(&tiny, &[(one.clone(), 0.5), (other, 0.5)]);
        assert!(crate::apart(&halves, &with) <= 1, "{model}");
        assert_ne!(drawn(&tiny, &[(one, 0.5)]), with, "{model}");
    }
}

#[test]
fn a_product_of_factors_is_the_matrix_that_it_stands_for() {
    let tiny = Tiny::new("qwen_image_21");
    let module = "transformer_blocks.0.attn.to_q";
    let plain = drawn(&tiny, &[]);
    // Kronecker's product of a 1 x 1 matrix with the whole change is the change.
    let lora = lora(module, (48, 48), "diffusers");
    let lora = write(&tiny, "lora.safetensors", &lora);
    let one = engine_weights::TensorRef::new(
        engine_tensor::DType::F32,
        vec![1, 1],
        1.0f32.to_le_bytes().to_vec().into(),
    );
    let key = format!("lycoris_{}", module.replace('.', "_"));
    let lokr = Tensors::from([
        (format!("{key}.lokr_w1"), one.unwrap()),
        (format!("{key}.lokr_w2_a"), floats(&[48, 2], 12, 1.0)),
        (format!("{key}.lokr_w2_b"), floats(&[2, 48], 11, 1.0)),
    ]);
    let lokr = write(&tiny, "lokr.safetensors", &lokr);
    let with = drawn(&tiny, &[(lokr, 1.0)]);
    assert_ne!(with, plain);
    assert_eq!(with, drawn(&tiny, &[(lora, 1.0)]));
    let both = Tensors::from([
        (format!("{key}.lokr_w1"), floats(&[4, 6], 3, 0.3)),
        (format!("{key}.lokr_w2"), floats(&[12, 8], 4, 0.3)),
    ]);
    let both = write(&tiny, "both.safetensors", &both);
    assert_ne!(drawn(&tiny, &[(both, 1.0)]), plain);
}

#[test]
fn an_adapter_of_another_model_is_refused_by_name() {
    let tiny = Tiny::new("qwen_image_21");
    let refused = |name: &str, tensors: &Tensors| {
        let path = write(&tiny, name, tensors);
        let options = ImageOptions {
            adapters: vec![(path, 1.0)],
            ..options()
        };
        let error = ImagePipeline::open(tiny.path(), &options).unwrap_err();
        (error.code(), error.to_string())
    };
    for (family, module) in [
        ("flux2", "single_transformer_blocks.0.attn.to_out"),
        ("stable_diffusion", "down_blocks.0.attentions.0.proj_in"),
        ("z_image", "noise_refiner.0.attention.to_q"),
        ("qwen_image", "transformer_blocks.0.txt_mlp.net.2"),
    ] {
        let (code, text) = refused("other.safetensors", &lora(module, (8, 8), "kohya"));
        assert_eq!(code, Code::BadInput);
        assert!(text.contains("qwen_image_21"), "{text}");
        assert!(text.contains(&format!("like one for {family}")), "{text}");
    }
    let module = "transformer_blocks.0.attn.to_q";
    let (code, text) = refused("size.safetensors", &lora(module, (64, 64), "diffusers"));
    assert_eq!(code, Code::BadInput);
    assert!(
        text.contains("another size") && text.contains("[48, 48]"),
        "{text}"
    );
    // A file that is a model, one that lacks a half, one that is cut, one that is nothing.
    let model = Tensors::from([("img_in.weight".to_owned(), floats(&[4, 4], 1, 1.0))]);
    let (_, text) = refused("model.safetensors", &model);
    assert!(
        text.contains("img_in.weight") && text.contains("expected LoRA"),
        "{text}"
    );
    let mut half = lora(module, (48, 48), "diffusers");
    half.pop_first();
    let (code, text) = refused("half.safetensors", &half);
    assert_eq!(code, Code::Corrupt);
    assert!(text.contains("lacks a part"), "{text}");
    let mut odd = lora(module, (48, 48), "diffusers");
    odd.insert(
        format!("transformer.{module}.lora_B.weight"),
        floats(&[48, 3], 1, 1.0),
    );
    let (_, text) = refused("odd.safetensors", &odd);
    assert!(text.contains("cannot be multiplied"), "{text}");
    let dora = Tensors::from([("x.dora_scale".to_owned(), floats(&[4], 1, 1.0))]);
    let (_, text) = refused("dora.safetensors", &dora);
    assert!(text.contains("dora_scale"), "{text}");
}
