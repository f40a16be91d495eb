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
