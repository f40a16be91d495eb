//! ncnn networks of the families as tensors by their usual names.

use std::collections::BTreeMap;

use engine_weights::{Ncnn, NcnnLayer, TensorRef};

use crate::LoadError;

/// Parameters of ncnn's layers.
const CONV_PAD: i32 = 4;
const CONV_STRIDE: i32 = 3;
const CONV_DILATION: i32 = 2;
const CONV_GROUPS: i32 = 7;
const CONV_ACTIVATION: i32 = 9;
const CONV_SLOPE: i32 = 10;
const LEAKY_RELU: f64 = 2.0;

/// Tensors of an ncnn network, named as its family's safetensors checkpoints are.
///
/// What an x2 network of the family `srvgg` shrinks after its 4x shuffle is left out: the tensors are
/// those of the 4x network.
///
/// # Errors
/// [`LoadError::UnknownPicture`] for a network that is laid out otherwise than the families are.
pub fn picture_tensors_of_ncnn(net: &Ncnn) -> Result<BTreeMap<String, TensorRef>, LoadError> {
    let kinds: Vec<&str> = net
        .layers
        .iter()
        .map(|layer| layer.kind.as_str())
        .filter(|kind| !matches!(*kind, "Input" | "Split"))
        .collect();
    let has = |kind: &str| kinds.contains(&kind);
    let tensors = if has("PixelShuffle") {
        srvgg(net, &kinds)
    } else if has("Concat") {
        rrdb(net, &kinds)
    } else {
        None
    };
    tensors.ok_or_else(|| {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for layer in &net.layers {
            *counts.entry(&layer.kind).or_default() += 1;
        }
        let counts: Vec<String> = counts
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        LoadError::UnknownPicture {
            found: format!("an ncnn network of {}", counts.join(", ")),
            known:
                "srvgg (convolutions and PReLU in turn, a pixel shuffle, the input added), rrdb \
                    (residual dense blocks)"
                    .to_owned(),
        }
    })
}

fn is_3x3(layer: &NcnnLayer) -> bool {
    let is = |key, default: f64, expected: f64| layer.number(key).unwrap_or(default) == expected;
    layer.kind == "Convolution"
        && layer.weights.len() == 2
        && layer.weights[0].shape[2..] == [3, 3]
        && is(CONV_PAD, 0.0, 1.0)
        && is(CONV_STRIDE, 1.0, 1.0)
        && is(CONV_DILATION, 1.0, 1.0)
        && is(CONV_GROUPS, 1.0, 1.0)
}

fn put(tensors: &mut BTreeMap<String, TensorRef>, name: &str, layer: &NcnnLayer) {
    for (end, weights) in ["weight", "bias"].iter().zip(&layer.weights) {
        tensors.insert(format!("{name}.{end}"), weights.clone());
    }
}

fn srvgg(net: &Ncnn, kinds: &[&str]) -> Option<BTreeMap<String, TensorRef>> {
    let body: Vec<&NcnnLayer> = net
        .layers
        .iter()
        .filter(|layer| matches!(layer.kind.as_str(), "Convolution" | "PReLU"))
        .collect();
    let turns = body.iter().enumerate().all(|(at, layer)| {
        if at % 2 == 0 {
            is_3x3(layer) && layer.number(CONV_ACTIVATION).unwrap_or(0.0) == 0.0
        } else {
            layer.kind == "PReLU"
        }
    });
    let tail: &[&str] = kinds.get(body.len()..)?;
    let known = matches!(
        tail,
        ["PixelShuffle", "Interp", "BinaryOp"] | ["PixelShuffle", "Interp", "BinaryOp", "Interp"]
    );
    if !turns || body.len().is_multiple_of(2) || !known {
        return None;
    }
    let mut tensors = BTreeMap::new();
    for (at, layer) in body.into_iter().enumerate() {
        put(&mut tensors, &format!("body.{at}"), layer);
    }
    Some(tensors)
}

fn rrdb(net: &Ncnn, kinds: &[&str]) -> Option<BTreeMap<String, TensorRef>> {
    let convs: Vec<&NcnnLayer> = net
        .layers
        .iter()
        .filter(|layer| layer.kind == "Convolution")
        .collect();
    // One first, 15 a block, and trunk, two up, high, last.
    let blocks = convs.len().checked_sub(6)? / 15;
    let count = |kind: &str| kinds.iter().filter(|other| **other == kind).count();
    let fits = blocks > 0
        && convs.len() == 6 + 15 * blocks
        && convs.iter().all(|conv| is_3x3(conv))
        && count("Concat") == 12 * blocks
        && count("Eltwise") == 4 * blocks
        && count("BinaryOp") == 1
        && count("Interp") == 2
        && count("PReLU") == 0;
    if !fits {
        return None;
    }
    let mut names = vec!["conv_first".to_owned()];
    for block in 0..blocks {
        for conv in 0..15 {
            names.push(format!(
                "body.{block}.rdb{}.conv{}",
                conv / 5 + 1,
                conv % 5 + 1
            ));
        }
    }
    names.extend(["conv_body", "conv_up1", "conv_up2", "conv_hr", "conv_last"].map(str::to_owned));
    let mut tensors = BTreeMap::new();
    for (name, conv) in names.iter().zip(convs) {
        let plain = ["conv5", "conv_first", "conv_body", "conv_last"]
            .iter()
            .any(|end| name.ends_with(end));
        let leaky = conv.number(CONV_ACTIVATION) == Some(LEAKY_RELU)
            && conv
                .number(CONV_SLOPE)
                .is_some_and(|slope| (slope - 0.2).abs() < 1e-6);
        let activation = conv.number(CONV_ACTIVATION).unwrap_or(0.0);
        if (plain && activation != 0.0) || (!plain && !leaky) {
            return None;
        }
        put(&mut tensors, name, conv);
    }
    Some(tensors)
}
