//! The same weights in other files: shards with an index, 8-bit floats and whole numbers.

use std::path::Path;

use engine_pipelines::RgbaImage;
use engine_tensor::DType;
use engine_weights::{TensorRef, write_safetensors};
use serde_json::json;

use crate::tiny::{Tensors, Tiny, tensors_of};
use crate::{apart, draw, open, request};

const FILE: &str = "diffusion_pytorch_model.safetensors";

fn drawn(tiny: &Tiny) -> RgbaImage {
    draw(&open(tiny), &request("a red kite", 7)).unwrap()
}

#[test]
fn shards_with_an_index_are_the_whole() {
    let tiny = Tiny::new("qwen_image_21");
    let whole = drawn(&tiny);
    let folder = tiny.part("transformer");
    let tensors = tensors_of(&folder);
    std::fs::remove_file(folder.join(FILE)).unwrap();
    let half = tensors.len() / 2;
    let mut map = serde_json::Map::new();
    for part in 0..2 {
        let name = format!(
            "diffusion_pytorch_model-{:05}-of-00002.safetensors",
            part + 1
        );
        let taken: Tensors = tensors
            .iter()
            .skip(part * half)
            .take(if part == 0 { half } else { usize::MAX })
            .map(|(name, tensor)| (name.clone(), tensor.clone()))
            .collect();
        map.extend(taken.keys().map(|key| (key.clone(), json!(name))));
        write_safetensors(&folder.join(name), &taken, &[]).unwrap();
    }
    tiny.put(
        "transformer/diffusion_pytorch_model.safetensors.index.json",
        &json!({"metadata": {}, "weight_map": map}),
    );
    assert_eq!(drawn(&tiny), whole);
    std::fs::remove_file(folder.join("diffusion_pytorch_model-00002-of-00002.safetensors"))
        .unwrap();
    let error = engine_pipelines::ImagePipeline::open(tiny.path(), &crate::options());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("00002-of-00002"), "{error}");
}

/// The nearest number of 8 bits, by all of them.
fn nearest_f8(value: f32) -> u8 {
    let decode = |byte: u8| {
        let tensor = TensorRef::new(DType::F8_E4M3, vec![1], vec![byte].into()).unwrap();
        tensor.to_f32().unwrap()[0]
    };
    let near = |byte: &u8| (decode(*byte) - value).abs();
    let all = (0..=255u8).filter(|byte| byte & 0x7f != 0x7f);
    all.min_by(|a, b| near(a).total_cmp(&near(b))).unwrap()
}

/// The matrices of attention in 8 bits with scales named as `scale` does, and the same in f32.
fn small(path: &Path, dtype: DType, scale: &str) -> (Tensors, Tensors) {
    let (mut small, mut plain) = (tensors_of(path), tensors_of(path));
    let names: Vec<String> = plain
        .keys()
        .filter(|name| name.ends_with("attn.to_q.weight"))
        .cloned()
        .collect();
    for name in names {
        let tensor = plain[&name].clone();
        let (rows, cols) = (tensor.shape[0], tensor.shape[1]);
        let values = tensor.to_f32().unwrap();
        let largest = |values: &[f32]| values.iter().fold(0f32, |a, b| a.max(b.abs()));
        let by_rows = dtype == DType::I8;
        let scales: Vec<f32> = match by_rows {
            true => values
                .chunks(cols)
                .map(|row| largest(row) / 127.0)
                .collect(),
            false => vec![largest(&values) / 448.0],
        };
        let scale_of = |at: usize| scales[if by_rows { at / cols } else { 0 }];
        let bytes: Vec<u8> = values
            .iter()
            .enumerate()
            .map(|(at, value)| match dtype {
                DType::I8 => ((value / scale_of(at)).round() as i8).cast_unsigned(),
                _ => nearest_f8(value / scale_of(at)),
            })
            .collect();
        let coded = TensorRef::new(dtype, vec![rows, cols], bytes.clone().into()).unwrap();
        let numbers: Vec<f32> = match dtype {
            DType::I8 => bytes.iter().map(|b| f32::from(b.cast_signed())).collect(),
            _ => coded.to_f32().unwrap(),
        };
        let decoded: Vec<u8> = numbers
            .iter()
            .enumerate()
            .flat_map(|(at, number)| (number * scale_of(at)).to_le_bytes())
            .collect();
        let decoded = TensorRef::new(DType::F32, vec![rows, cols], decoded.into()).unwrap();
        let shape = if by_rows { vec![rows, 1] } else { Vec::new() };
        let bytes: Vec<u8> = scales
            .iter()
            .flat_map(|scale| scale.to_le_bytes())
            .collect();
        let scales = TensorRef::new(DType::F32, shape, bytes.into()).unwrap();
        let stem = name.strip_suffix(".weight").unwrap();
        small.insert(scale.replace("{}", stem), scales);
        small.insert(name.clone(), coded);
        plain.insert(name, decoded);
    }
    (small, plain)
}

#[test]
fn weights_of_8_bits_with_scales_are_read_as_what_they_stand_for() {
    for (dtype, scale) in [
        (DType::F8_E4M3, "{}.scale_weight"),
        (DType::F8_E4M3, "{}.weight_scale"),
        (DType::I8, "{}.weight_scale"),
        (DType::I8, "{}.weight.scale"),
    ] {
        let tiny = Tiny::new("qwen_image_21");
        let whole = drawn(&tiny);
        let file = tiny.part("transformer").join(FILE);
        let (small, plain) = small(&file, dtype, scale);
        write_safetensors(&file, &plain, &[]).unwrap();
        let expected = drawn(&tiny);
        write_safetensors(&file, &small, &[]).unwrap();
        let got = drawn(&tiny);
        assert_eq!(got, expected, "{dtype} {scale}");
        let far = apart(&got, &whole);
        assert!(far > 0, "{dtype} is not exact");
        // Whole numbers without scales say nothing.
        if dtype == DType::I8 {
            let mut without = small;
            without.retain(|name, _| !name.contains("scale"));
            write_safetensors(&file, &without, &[]).unwrap();
            let error = engine_pipelines::ImagePipeline::open(tiny.path(), &crate::options());
            assert!(error.unwrap_err().to_string().contains("scale"));
        }
    }
}

/// What Stable Diffusion's first program called the tensors of a part.
fn old_name(part: &str, name: &str) -> String {
    let numbers = |text: &str| text.parse::<usize>().unwrap();
    let block = |rest: &str| {
        let pairs = [
            ("norm1", "in_layers.0"),
            ("conv1", "in_layers.2"),
            ("time_emb_proj", "emb_layers.1"),
            ("norm2", "out_layers.0"),
            ("conv2", "out_layers.3"),
            ("conv_shortcut", "skip_connection"),
        ];
        let found = pairs.iter().find(|(from, _)| rest.starts_with(from));
        found.map_or(rest.to_owned(), |(from, to)| rest.replacen(from, to, 1))
    };
    let parts: Vec<&str> = name.splitn(5, '.').collect();
    if part == "unet" {
        let new = match parts[..] {
            ["conv_in", end] => format!("input_blocks.0.0.{end}"),
            ["conv_norm_out", end] => format!("out.0.{end}"),
            ["conv_out", end] => format!("out.2.{end}"),
            ["time_embedding", "linear_1", end] => format!("time_embed.0.{end}"),
            ["time_embedding", "linear_2", end] => format!("time_embed.2.{end}"),
            ["mid_block", "attentions", "0", ..] => {
                name.replacen("mid_block.attentions.0", "middle_block.1", 1)
            }
            ["mid_block", "resnets", at, ..] => {
                let rest = name.splitn(4, '.').nth(3).unwrap();
                format!("middle_block.{}.{}", 2 * numbers(at), block(rest))
            }
            ["down_blocks", level, kind, at, rest] => {
                let first = 1 + 2 * numbers(level);
                match kind {
                    "resnets" => format!("input_blocks.{}.0.{}", first + numbers(at), block(rest)),
                    "attentions" => format!("input_blocks.{}.1.{rest}", first + numbers(at)),
                    _ => format!(
                        "input_blocks.{}.0.{}",
                        first + 1,
                        rest.replacen("conv", "op", 1)
                    ),
                }
            }
            ["up_blocks", level, kind, at, rest] => {
                let first = 2 * numbers(level);
                match kind {
                    "resnets" => format!("output_blocks.{}.0.{}", first + numbers(at), block(rest)),
                    "attentions" => format!("output_blocks.{}.1.{rest}", first + numbers(at)),
                    _ => format!("output_blocks.{}.1.{rest}", first + 1),
                }
            }
            _ => panic!("{name}"),
        };
        return format!("model.diffusion_model.{new}");
    }
    let mut new = name.to_owned();
    for (from, to) in [
        ("mid_block.resnets.0", "mid.block_1"),
        ("mid_block.resnets.1", "mid.block_2"),
        ("mid_block.attentions.0.group_norm", "mid.attn_1.norm"),
        ("mid_block.attentions.0.to_q", "mid.attn_1.q"),
        ("mid_block.attentions.0.to_k", "mid.attn_1.k"),
        ("mid_block.attentions.0.to_v", "mid.attn_1.v"),
        ("mid_block.attentions.0.to_out.0", "mid.attn_1.proj_out"),
        ("conv_norm_out", "norm_out"),
        ("conv_shortcut", "nin_shortcut"),
        ("up_blocks.0.", "up.1."),
        ("up_blocks.1.", "up.0."),
        ("down_blocks.", "down."),
        (".resnets.", ".block."),
        (".downsamplers.0.", ".downsample."),
        (".upsamplers.0.", ".upsample."),
    ] {
        new = new.replace(from, to);
    }
    format!("first_stage_model.{new}")
}

#[test]
fn stable_diffusion_in_one_file_is_the_folder() {
    let tiny = Tiny::new("sd15");
    // What a file cannot say: all levels have eight heads in it.
    tiny.change("unet/config.json", |config| {
        config["attention_head_dim"] = json!(8);
    });
    let whole = drawn(&tiny);
    let mut all = Tensors::new();
    for part in ["unet", "vae"] {
        for (name, tensor) in tensors_of(&tiny.part(part)) {
            all.insert(old_name(part, &name), tensor);
        }
    }
    for (name, tensor) in tensors_of(&tiny.part("text_encoder")) {
        let bare = name.strip_prefix("text_model.").unwrap_or(&name);
        all.insert(
            format!("cond_stage_model.transformer.text_model.{bare}"),
            tensor,
        );
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("model.safetensors");
    write_safetensors(&file, &all, &[]).unwrap();
    let options = engine_pipelines::ImageOptions {
        text_encoder: Some(tiny.part("tokenizer")),
        ..crate::options()
    };
    let error = engine_pipelines::ImagePipeline::open(&file, &crate::options()).unwrap_err();
    assert!(error.to_string().contains("tokenizer"), "{error}");
    // The text encoder is in the file, its words are not.
    let words = elsewhere.path().join("words");
    std::fs::create_dir(&words).unwrap();
    std::fs::copy(
        tiny.part("tokenizer/tokenizer.json"),
        words.join("tokenizer.json"),
    )
    .unwrap();
    let options = engine_pipelines::ImageOptions {
        tokenizer: Some(words),
        text_encoder: None,
        ..options
    };
    let pipeline = engine_pipelines::ImagePipeline::open(&file, &options).unwrap();
    assert_eq!(pipeline.family(), "stable_diffusion");
    let got = draw(&pipeline, &request("a red kite", 7)).unwrap();
    assert!(got == whole);
}

#[test]
fn networks_in_one_file_are_the_folders() {
    for (model, prefix) in [
        ("qwen_image_21", ""),
        ("qwen_image", "model.diffusion_model."),
        ("flux2", "diffusion_model."),
        ("flux3", "transformer."),
        ("z_image", "model.diffusion_model."),
    ] {
        let tiny = Tiny::new(model);
        if model == "qwen_image" {
            // The file does not say that it edits.
            tiny.change("model_index.json", |index| {
                index["_class_name"] = json!("QwenImagePipeline");
            });
        }
        let whole = drawn(&tiny);
        let mut tensors = tensors_of(&tiny.part("transformer"));
        if model == "z_image" {
            tensors = fused(tensors);
        }
        let tensors: Tensors = tensors
            .into_iter()
            .map(|(name, tensor)| (format!("{prefix}{name}"), tensor))
            .collect();
        let elsewhere = tempfile::tempdir().unwrap();
        let file = elsewhere.path().join("network.safetensors");
        write_safetensors(&file, &tensors, &[]).unwrap();
        let missing = engine_pipelines::ImagePipeline::open(&file, &crate::options());
        let missing = missing.unwrap_err().to_string();
        assert!(missing.contains("vae is missing"), "{model}: {missing}");
        let words = ["tokenizer", "processor"].map(|name| tiny.part(name));
        let options = engine_pipelines::ImageOptions {
            vae: Some(tiny.part("vae")),
            text_encoder: Some(tiny.part("text_encoder")),
            tokenizer: words.into_iter().find(|path| path.is_dir()),
            ..crate::options()
        };
        let pipeline = engine_pipelines::ImagePipeline::open(&file, &options).unwrap();
        assert_eq!(pipeline.family(), model);
        let got = draw(&pipeline, &request("a red kite", 7)).unwrap();
        assert!(got == whole, "{model}");
    }
    // A language model is none of them.
    let error = engine_pipelines::ImagePipeline::open(
        &crate::tiny::fixtures("qwen3/model.safetensors"),
        &crate::options(),
    );
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("lm_head") || error.contains("model."),
        "{error}"
    );
    assert!(error.contains("z_image"), "{error}");
}

/// Z-Image's own names.
fn fused(mut tensors: Tensors) -> Tensors {
    let names: Vec<String> = tensors
        .keys()
        .filter(|name| name.ends_with(".attention.to_q.weight"))
        .cloned()
        .collect();
    for name in names {
        let block = name.strip_suffix("to_q.weight").unwrap();
        let mut bytes = Vec::new();
        let mut shape = Vec::new();
        let mut dtype = DType::F32;
        for part in ["to_q", "to_k", "to_v"] {
            let tensor = tensors.remove(&format!("{block}{part}.weight")).unwrap();
            bytes.extend_from_slice(&tensor.bytes);
            (shape, dtype) = (tensor.shape, tensor.dtype);
        }
        shape[0] *= 3;
        let whole = TensorRef::new(dtype, shape, bytes.into()).unwrap();
        tensors.insert(format!("{block}qkv.weight"), whole);
    }
    let old = |name: String| {
        name.replace(".attention.to_out.0.", ".attention.out.")
            .replace(".attention.norm_q.", ".attention.q_norm.")
            .replace(".attention.norm_k.", ".attention.k_norm.")
            .replace("all_x_embedder.2-1.", "x_embedder.")
            .replace("all_final_layer.2-1.", "final_layer.")
    };
    tensors
        .into_iter()
        .map(|(name, tensor)| (old(name), tensor))
        .collect()
}

/// A GGUF file of `tensors`: plain ones as they are, those whose rows are whole blocks of 32 in 8 bits.
fn gguf(tensors: &Tensors) -> (Vec<u8>, Tensors) {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let mut plain = tensors.clone();
    let (mut infos, mut data) = (Vec::new(), Vec::new());
    for (name, tensor) in tensors {
        let row = tensor.shape.last().copied().unwrap_or(1);
        let packed = tensor.shape.len() == 2 && row % 32 == 0 && name.contains("txt_in");
        let (kind, bytes) = if packed {
            let values = tensor.to_f32().unwrap();
            let (mut bytes, mut decoded) = (Vec::new(), Vec::new());
            for block in values.chunks(32) {
                let scale = block.iter().fold(0f32, |a, b| a.max(b.abs())) / 127.0;
                // Powers of two are whole in 16 bits.
                let exponent = scale.max(1e-4).log2().ceil() as i32;
                let scale = 2f32.powi(exponent);
                bytes.extend((((exponent + 15) as u16) << 10).to_le_bytes());
                for value in block {
                    let code = (value / scale).round().clamp(-127.0, 127.0);
                    bytes.push((code as i8).cast_unsigned());
                    decoded.extend((code * scale).to_le_bytes());
                }
            }
            let decoded = TensorRef::new(DType::F32, tensor.shape.clone(), decoded.into());
            plain.insert(name.clone(), decoded.unwrap());
            (8u32, bytes)
        } else {
            let kind = if tensor.dtype == DType::BF16 { 30 } else { 0 };
            (kind, tensor.bytes.to_vec())
        };
        infos.extend(text(name));
        infos.extend((tensor.shape.len() as u32).to_le_bytes());
        for side in tensor.shape.iter().rev() {
            infos.extend((*side as u64).to_le_bytes());
        }
        infos.extend(kind.to_le_bytes());
        infos.extend((data.len() as u64).to_le_bytes());
        data.extend(bytes);
        data.resize(data.len().next_multiple_of(32), 0);
    }
    let mut file = b"GGUF".to_vec();
    file.extend(3u32.to_le_bytes());
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend(1u64.to_le_bytes());
    file.extend(text("general.architecture"));
    file.extend(8u32.to_le_bytes());
    file.extend(text("qwen_image"));
    file.extend(infos);
    file.resize(file.len().next_multiple_of(32), 0);
    file.extend(data);
    (file, plain)
}

#[test]
fn a_network_in_gguf_is_what_its_blocks_stand_for() {
    let tiny = Tiny::new("qwen_image_21");
    let folder = tiny.part("transformer");
    let (bytes, plain) = gguf(&tensors_of(&folder));
    let before = drawn(&tiny);
    write_safetensors(&folder.join(FILE), &plain, &[]).unwrap();
    let expected = drawn(&tiny);
    assert!(expected != before, "8 bits are not exact");
    let file = tiny.path().join("network.gguf");
    std::fs::write(&file, bytes).unwrap();
    let options = engine_pipelines::ImageOptions {
        vae: Some(tiny.part("vae")),
        text_encoder: Some(tiny.part("text_encoder")),
        tokenizer: Some(tiny.part("processor")),
        ..crate::options()
    };
    let pipeline = engine_pipelines::ImagePipeline::open(&file, &options).unwrap();
    let got = draw(&pipeline, &request("a red kite", 7)).unwrap();
    assert!(apart(&got, &expected) <= 1, "{}", apart(&got, &expected));
    // In a folder of its part it is found too.
    std::fs::remove_file(folder.join(FILE)).unwrap();
    std::fs::rename(&file, folder.join("network.gguf")).unwrap();
    assert!(drawn(&tiny) == got);
}
