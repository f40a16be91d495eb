//! Stable Diffusion in one file, under the names of its first program (Rombach et al., arXiv 2112.10752).

use std::path::Path;

use engine_weights::{Checkpoint, Renamed, TensorSource};
use serde_json::{Value, json};

use super::ImageError;
use super::folder::GivenPart;
use super::single::Shapes;

const UNET: &str = "model.diffusion_model.";
const VAE: &str = "first_stage_model.";
const FIRST_TEXT: &[&str] = &[
    "cond_stage_model.transformer.",
    "conditioner.embedders.0.transformer.",
];
const SECOND_TEXT: &str = "conditioner.embedders.1.model.";
/// Residual blocks of a level: alike in all released models but those of tests.
const HEAD_DIM: usize = 64;

/// Whether a file has a U-Net by its old names.
pub(super) fn is_whole(weights: &dyn Checkpoint) -> bool {
    weights
        .tensor(&format!("{UNET}input_blocks.0.0.weight"))
        .is_some()
}

type Renames = Vec<(String, TensorSource)>;

fn whole(new: String, name: &str) -> Renames {
    vec![(new, TensorSource::Whole(name.to_owned()))]
}

/// Names inside a residual block.
fn inside(rest: &str) -> String {
    let pairs = [
        ("in_layers.0", "norm1"),
        ("in_layers.2", "conv1"),
        ("emb_layers.1", "time_emb_proj"),
        ("out_layers.0", "norm2"),
        ("out_layers.3", "conv2"),
        ("skip_connection", "conv_shortcut"),
    ];
    let found = pairs
        .iter()
        .find_map(|(from, to)| Some(format!("{to}{}", rest.strip_prefix(from)?)));
    found.unwrap_or_else(|| rest.to_owned())
}

/// The name of a tensor of the U-Net; `layers`: residual blocks of a level on the way down.
pub(super) fn unet_name(name: &str, layers: usize) -> Option<String> {
    for (from, to) in [
        ("time_embed.0.", "time_embedding.linear_1."),
        ("time_embed.2.", "time_embedding.linear_2."),
        ("label_emb.0.0.", "add_embedding.linear_1."),
        ("label_emb.0.2.", "add_embedding.linear_2."),
        ("input_blocks.0.0.", "conv_in."),
        ("out.0.", "conv_norm_out."),
        ("out.2.", "conv_out."),
        ("middle_block.1.", "mid_block.attentions.0."),
    ] {
        if let Some(rest) = name.strip_prefix(from) {
            return Some(format!("{to}{rest}"));
        }
    }
    for (from, to) in [("middle_block.0.", 0), ("middle_block.2.", 1)] {
        if let Some(rest) = name.strip_prefix(from) {
            return Some(format!("mid_block.resnets.{to}.{}", inside(rest)));
        }
    }
    let (side, rest) = name.split_once("_blocks.")?;
    let (index, rest) = rest.split_once('.')?;
    let (part, rest) = rest.split_once('.')?;
    let index: usize = index.parse().ok()?;
    let step = layers + 1;
    match side {
        "input" => {
            let (level, layer) = (index.checked_sub(1)? / step, (index - 1) % step);
            if let Some(rest) = rest.strip_prefix("op.") {
                return Some(format!("down_blocks.{level}.downsamplers.0.conv.{rest}"));
            }
            Some(match part {
                "0" => format!("down_blocks.{level}.resnets.{layer}.{}", inside(rest)),
                _ => format!("down_blocks.{level}.attentions.{layer}.{rest}"),
            })
        }
        "output" => {
            let (level, layer) = (index / step, index % step);
            if let Some(rest) = rest.strip_prefix("conv.") {
                return Some(format!("up_blocks.{level}.upsamplers.0.conv.{rest}"));
            }
            Some(match part {
                "0" => format!("up_blocks.{level}.resnets.{layer}.{}", inside(rest)),
                _ => format!("up_blocks.{level}.attentions.{layer}.{rest}"),
            })
        }
        _ => None,
    }
}

/// What a module of attention is called in the old names, for adapters that were trained by them.
pub(super) fn old_module(module: &str, layers: usize) -> Option<String> {
    if let Some(rest) = module.strip_prefix("mid_block.attentions.0.") {
        return Some(format!("middle_block.1.{rest}"));
    }
    let (side, rest) = module.split_once("_blocks.")?;
    let (level, rest) = rest.split_once(".attentions.")?;
    let (layer, rest) = rest.split_once('.')?;
    let (level, layer): (usize, usize) = (level.parse().ok()?, layer.parse().ok()?);
    match side {
        "down" => Some(format!(
            "input_blocks.{}.1.{rest}",
            1 + level * (layers + 1) + layer
        )),
        "up" => Some(format!(
            "output_blocks.{}.1.{rest}",
            level * (layers + 1) + layer
        )),
        _ => None,
    }
}

/// The name of a tensor of the autoencoder of `levels`.
fn vae_name(name: &str, levels: usize) -> Option<String> {
    if name.starts_with("quant_conv.") || name.starts_with("post_quant_conv.") {
        return Some(name.to_owned());
    }
    let (side, rest) = name.split_once('.')?;
    if !["encoder", "decoder"].contains(&side) {
        return None;
    }
    let block = |rest: &str| rest.replacen("nin_shortcut", "conv_shortcut", 1);
    for (from, to) in [
        ("mid.block_1.", "mid_block.resnets.0."),
        ("mid.block_2.", "mid_block.resnets.1."),
        ("mid.attn_1.norm.", "mid_block.attentions.0.group_norm."),
        ("mid.attn_1.q.", "mid_block.attentions.0.to_q."),
        ("mid.attn_1.k.", "mid_block.attentions.0.to_k."),
        ("mid.attn_1.v.", "mid_block.attentions.0.to_v."),
        ("mid.attn_1.proj_out.", "mid_block.attentions.0.to_out.0."),
        ("norm_out.", "conv_norm_out."),
    ] {
        if let Some(rest) = rest.strip_prefix(from) {
            return Some(format!("{side}.{to}{}", block(rest)));
        }
    }
    let (kind, inner) = match rest.split_once('.') {
        Some(("down", inner)) => ("down", inner),
        Some(("up", inner)) => ("up", inner),
        _ => return Some(name.to_owned()),
    };
    let (level, inner) = inner.split_once('.')?;
    let level: usize = level.parse().ok()?;
    // The decoder counts from the picture on.
    let level = match kind {
        "up" => levels.checked_sub(level + 1)?,
        _ => level,
    };
    let inner = match inner.split_once('.') {
        Some(("block", inner)) => format!("resnets.{}", block(inner)),
        Some(("downsample", inner)) => format!("downsamplers.0.{inner}"),
        Some(("upsample", inner)) => format!("upsamplers.0.{inner}"),
        _ => return None,
    };
    Some(format!("{side}.{kind}_blocks.{level}.{inner}"))
}

/// Names of the second text encoder, which another program trained.
fn open_clip_name(name: &str, own: &str) -> Renames {
    let new = |new: &str| whole(new.to_owned(), own);
    match name {
        "token_embedding.weight" => return new("text_model.embeddings.token_embedding.weight"),
        "positional_embedding" => return new("text_model.embeddings.position_embedding.weight"),
        "text_projection" => {
            let source = TensorSource::Turned(own.to_owned());
            return vec![("text_projection.weight".to_owned(), source)];
        }
        _ => {}
    }
    if let Some(rest) = name.strip_prefix("ln_final.") {
        return new(&format!("text_model.final_layer_norm.{rest}"));
    }
    let Some((layer, rest)) = name
        .strip_prefix("transformer.resblocks.")
        .and_then(|rest| rest.split_once('.'))
    else {
        return Vec::new();
    };
    let before = format!("text_model.encoder.layers.{layer}.");
    if let Some(kind) = rest.strip_prefix("attn.in_proj_") {
        let part = |(part, name): (usize, &str)| {
            let source = TensorSource::Rows {
                name: own.to_owned(),
                part,
                of: 3,
            };
            (format!("{before}self_attn.{name}.{kind}"), source)
        };
        return ["q_proj", "k_proj", "v_proj"]
            .into_iter()
            .enumerate()
            .map(part)
            .collect();
    }
    let pairs = [
        ("attn.out_proj.", "self_attn.out_proj."),
        ("ln_1.", "layer_norm1."),
        ("ln_2.", "layer_norm2."),
        ("mlp.c_fc.", "mlp.fc1."),
        ("mlp.c_proj.", "mlp.fc2."),
    ];
    let found = pairs
        .iter()
        .find_map(|(from, to)| Some(format!("{before}{to}{}", rest.strip_prefix(from)?)));
    found.map(|found| whole(found, own)).unwrap_or_default()
}

/// All parts of the file that `open` opens.
pub(super) fn parts(
    open: impl Fn() -> Result<Box<dyn Checkpoint>, ImageError>,
    path: &Path,
) -> Result<Vec<GivenPart>, ImageError> {
    let file = open()?;
    let layers = layers_of(file.as_ref());
    let unet = Renamed::new(open()?, |name| {
        let new = name
            .strip_prefix(UNET)
            .and_then(|bare| unet_name(bare, layers));
        new.map(|new| whole(new, name)).unwrap_or_default()
    });
    let unet_config = unet_config(&Shapes(&unet), layers).ok_or_else(|| ImageError::Folder {
        what: "its U-Net is of no shape that is known".to_owned(),
        path: path.to_owned(),
    })?;
    let levels = Shapes(file.as_ref()).count(&format!("{VAE}encoder.down."));
    let vae = Renamed::new(open()?, |name| {
        let new = name
            .strip_prefix(VAE)
            .and_then(|bare| vae_name(bare, levels));
        new.map(|new| whole(new, name)).unwrap_or_default()
    });
    let large = unet_config["addition_embed_type"].is_string();
    let vae_config = vae_config(&Shapes(&vae), large);
    let mut parts = vec![
        GivenPart::weights("unet", unet_config, Box::new(unet)),
        GivenPart::json(
            "scheduler",
            json!({"beta_start": 0.000_85, "beta_end": 0.012, "beta_schedule": "scaled_linear",
                   "steps_offset": 1}),
        ),
    ];
    if levels > 0 {
        parts.push(GivenPart::weights("vae", vae_config, Box::new(vae)));
    }
    let prefix = FIRST_TEXT
        .iter()
        .find(|prefix| file.names().any(|name| name.starts_with(**prefix)));
    if let Some(prefix) = prefix {
        let text = Renamed::below(open()?, prefix);
        let config = clip_config(&Shapes(&text), "quick_gelu");
        parts.push(GivenPart::weights("text encoder", config, Box::new(text)));
    }
    if large {
        let text = Renamed::new(open()?, |name| match name.strip_prefix(SECOND_TEXT) {
            Some(bare) => open_clip_name(bare, name),
            None => Vec::new(),
        });
        let config = clip_config(&Shapes(&text), "gelu");
        parts.push(GivenPart::weights(
            "second text encoder",
            config,
            Box::new(text),
        ));
    }
    Ok(parts)
}

/// Residual blocks of a level: those before the first that halves.
fn layers_of(file: &dyn Checkpoint) -> usize {
    let halves = |index: usize| {
        let name = format!("{UNET}input_blocks.{index}.0.op.weight");
        file.tensor(&name).is_some()
    };
    (2..=9)
        .find(|index| halves(*index))
        .map_or(2, |index| index - 1)
}

fn unet_config(shapes: &Shapes<'_>, layers: usize) -> Option<Value> {
    let levels = shapes.count("down_blocks.");
    if levels == 0 || levels > 8 {
        return None;
    }
    let widths: Vec<usize> = (0..levels)
        .map(|level| shapes.rows(&format!("down_blocks.{level}.resnets.0.conv1.weight")))
        .collect();
    let blocks = |place: &str| shapes.count(&format!("{place}.transformer_blocks."));
    let down: Vec<usize> = (0..levels)
        .map(|level| blocks(&format!("down_blocks.{level}.attentions.0")))
        .collect();
    let up: Vec<usize> = (0..levels)
        .map(|level| blocks(&format!("up_blocks.{level}.attentions.0")))
        .collect();
    let kinds = |counts: &[usize], side: &str| -> Vec<String> {
        let kind = |count: &usize| match count {
            0 => format!("{side}Block2D"),
            _ => format!("CrossAttn{side}Block2D"),
        };
        counts.iter().map(kind).collect()
    };
    let text = "mid_block.attentions.0.transformer_blocks.0.attn2.to_k.weight";
    let large = shapes.rows("add_embedding.linear_1.weight") > 0;
    // The first program fixed the heads' number, the later one their size.
    let heads: Vec<usize> = widths
        .iter()
        .map(|width| match large {
            true => (width / HEAD_DIM).max(1),
            false if width % 8 == 0 => 8,
            false => 1,
        })
        .collect();
    let per_place: Vec<usize> = (0..levels)
        .map(|level| match down[level] {
            // A level that reads only on the way up.
            0 => up[levels - 1 - level].max(1),
            count => count,
        })
        .collect();
    Some(json!({
        "in_channels": shapes.cols("conv_in.weight"),
        "out_channels": shapes.rows("conv_out.weight"),
        "block_out_channels": widths,
        "layers_per_block": layers,
        "norm_num_groups": groups_of(widths.first().copied().unwrap_or(0)),
        "norm_eps": 1e-5,
        "down_block_types": kinds(&down, "Down"),
        "up_block_types": kinds(&up, "Up"),
        "cross_attention_dim": shapes.cols(text),
        "attention_head_dim": heads,
        "transformer_layers_per_block": per_place,
        "flip_sin_to_cos": true,
        "freq_shift": 0,
        "addition_embed_type": large.then_some("text_time"),
        "addition_time_embed_dim": large.then_some(256),
        "projection_class_embeddings_input_dim": shapes.cols("add_embedding.linear_1.weight"),
        "sample_size": if large { 128 } else { 64 },
    }))
}

/// 32 in all released models; a divisor where a level is narrower.
fn groups_of(width: usize) -> usize {
    if width >= 32 { 32 } else { 8.min(width.max(1)) }
}

fn vae_config(shapes: &Shapes<'_>, large: bool) -> Value {
    let levels = shapes.count("encoder.down_blocks.");
    let widths: Vec<usize> = (0..levels)
        .map(|level| {
            shapes.rows(&format!(
                "encoder.down_blocks.{level}.resnets.0.conv1.weight"
            ))
        })
        .collect();
    let first = widths.first().copied().unwrap_or(0);
    json!({
        "in_channels": 3,
        "out_channels": 3,
        "block_out_channels": widths,
        "layers_per_block": shapes.count("encoder.down_blocks.0.resnets."),
        "latent_channels": shapes.cols("decoder.conv_in.weight"),
        "norm_num_groups": if first >= 32 { 32 } else { 4.min(first.max(1)) },
        "scaling_factor": if large { 0.130_25 } else { 0.182_15 },
    })
}

fn clip_config(shapes: &Shapes<'_>, act: &str) -> Value {
    let hidden = shapes.cols("text_model.embeddings.token_embedding.weight");
    let vocab = shapes.rows("text_model.embeddings.token_embedding.weight");
    json!({
        "hidden_size": hidden,
        "intermediate_size": shapes.rows("text_model.encoder.layers.0.mlp.fc1.weight"),
        "num_hidden_layers": shapes.count("text_model.encoder.layers."),
        "num_attention_heads": if hidden >= 256 { hidden / 64 } else { 4 },
        "max_position_embeddings": shapes.rows("text_model.embeddings.position_embedding.weight"),
        "vocab_size": vocab,
        "hidden_act": act,
        "layer_norm_eps": 1e-5,
        "eos_token_id": vocab.saturating_sub(1),
        "projection_dim": shapes.rows("text_projection.weight"),
    })
}
