//! Models in one file: the network alone under the names of several programs, or all parts of a Stable
//! Diffusion. What a configuration would say is read off the shapes of tensors.

use std::path::Path;

use engine_tensor::Cpu;
use engine_weights::{Checkpoint, Renamed, ScaledRows, TensorSource};
use serde_json::{Value, json};

use super::families::{self, FamilyEntry};
use super::folder::{Folder, GivenPart};
use super::{IMAGE_FAMILIES, ImageError, ImageOptions, ldm};
use crate::image::family::ImageFamily;

/// What programs put before the network's names.
const PREFIXES: &[&str] = &["model.diffusion_model.", "diffusion_model.", "transformer."];

/// Shapes of a checkpoint's tensors, for reading a configuration off them.
pub(super) struct Shapes<'a>(pub(super) &'a dyn Checkpoint);

impl Shapes<'_> {
    fn side(&self, name: &str, axis: usize) -> usize {
        let shape = self.0.tensor(name).map(|tensor| tensor.shape);
        shape
            .and_then(|shape| shape.get(axis).copied())
            .unwrap_or(0)
    }

    pub(super) fn rows(&self, name: &str) -> usize {
        self.side(name, 0)
    }

    pub(super) fn cols(&self, name: &str) -> usize {
        self.side(name, 1)
    }

    /// How many numbers from 0 on follow `before`.
    pub(super) fn count(&self, before: &str) -> usize {
        let numbers = self.0.names().filter_map(|name| {
            let rest = name.strip_prefix(before)?;
            rest.split('.').next()?.parse::<usize>().ok()
        });
        numbers.max().map_or(0, |last| last.saturating_add(1))
    }
}

/// A head's elements over three axes: the first about a share of `1 / of`, the others alike; all even.
fn axes(head_dim: usize, of: usize) -> [usize; 3] {
    let first = head_dim / of.max(1);
    let others = (head_dim.saturating_sub(first) / 2) & !1;
    [head_dim.saturating_sub(2 * others), others, others]
}

/// A family's network in one file.
struct Known {
    family: &'static str,
    /// A tensor that only it has.
    mark: &'static str,
    rename: fn(&str) -> Vec<(String, TensorSource)>,
    config: fn(&Shapes<'_>) -> Value,
    scheduler: fn() -> Value,
    index: fn() -> Value,
}

fn as_it_is(name: &str) -> Vec<(String, TensorSource)> {
    vec![(name.to_owned(), TensorSource::Whole(name.to_owned()))]
}

const KNOWN: &[Known] = &[
    Known {
        family: "qwen_image_21",
        mark: "transformer_blocks.0.img_mlp.gate_layer.weight",
        rename: as_it_is,
        config: |shapes| {
            let hidden = shapes.rows("img_in.weight");
            let head_dim = shapes.rows("transformer_blocks.0.attn.norm_q.weight");
            let inner = shapes.rows("transformer_blocks.0.img_mlp.gate_layer.weight");
            json!({
                "attention_head_dim": head_dim,
                "num_attention_heads": hidden.checked_div(head_dim),
                "num_layers": shapes.count("transformer_blocks."),
                "in_channels": shapes.cols("img_in.weight"),
                "out_channels": shapes.cols("img_in.weight"),
                "context_in_dim": shapes.rows("txt_in.text_norm.weight"),
                "mlp_ratio": inner.checked_div(hidden),
                "axes_dims_rope": axes(head_dim, 8),
            })
        },
        scheduler: qwen_scheduler,
        index: || json!({"_class_name": "QwenImage21Pipeline"}),
    },
    Known {
        family: "qwen_image",
        mark: "transformer_blocks.0.txt_mlp.net.2.weight",
        rename: as_it_is,
        config: |shapes| {
            let hidden = shapes.rows("img_in.weight");
            let head_dim = shapes.rows("transformer_blocks.0.attn.norm_q.weight");
            let channels = shapes.cols("img_in.weight");
            json!({
                "attention_head_dim": head_dim,
                "num_attention_heads": hidden.checked_div(head_dim),
                "num_layers": shapes.count("transformer_blocks."),
                "in_channels": channels,
                "out_channels": channels / 4,
                "patch_size": 2,
                "joint_attention_dim": shapes.rows("txt_norm.weight"),
                "axes_dims_rope": axes(head_dim, 8),
            })
        },
        scheduler: qwen_scheduler,
        index: || json!({"_class_name": "QwenImagePipeline"}),
    },
    Known {
        family: "flux2",
        mark: "single_transformer_blocks.0.attn.to_qkv_mlp_proj.weight",
        rename: as_it_is,
        config: |shapes| {
            let hidden = shapes.rows("x_embedder.weight");
            let head_dim = shapes.rows("transformer_blocks.0.attn.norm_q.weight");
            let inner = shapes.cols("transformer_blocks.0.ff.linear_out.weight");
            json!({
                "attention_head_dim": head_dim,
                "num_attention_heads": hidden.checked_div(head_dim),
                "num_layers": shapes.count("transformer_blocks."),
                "num_single_layers": shapes.count("single_transformer_blocks."),
                "in_channels": shapes.cols("x_embedder.weight"),
                "joint_attention_dim": shapes.cols("context_embedder.weight"),
                "mlp_ratio": inner as f64 / hidden.max(1) as f64,
                "axes_dims_rope": vec![head_dim / 4; 4],
                "rope_theta": 2000.0,
                "eps": 1e-6,
            })
        },
        scheduler: || json!({"use_dynamic_shifting": true, "shift": 3.0}),
        index: || json!({"_class_name": "Flux2KleinPipeline", "is_distilled": true}),
    },
    Known {
        family: "flux3",
        mark: "early_stream_modulations.txt.linear.weight",
        rename: as_it_is,
        config: |shapes| {
            let hidden = shapes.rows("x_embedders.image.weight");
            let norm = shapes
                .0
                .names()
                .find(|name| name.ends_with("norm_q.weight"));
            let head_dim = norm.map_or(0, |name| shapes.rows(name));
            let out = shapes
                .0
                .names()
                .find(|name| name.ends_with("ff.linear_out.weight"));
            let inner = out.map_or(0, |name| shapes.cols(name));

            json!({
                "attention_head_dim": head_dim,
                "num_attention_heads": hidden.checked_div(head_dim),
                "num_layers": shapes.count("txt_mode_blocks."),
                "num_single_layers": shapes.count("single_transformer_blocks."),
                "in_channels": shapes.cols("x_embedders.image.weight"),
                "cond_in_channels": shapes.cols("x_embedders.image_cond.weight"),
                "joint_attention_dim": shapes.cols("context_embedder.weight"),
                "timestep_channels": shapes.cols("timestep_embedder.linear_1.weight"),
                "mlp_ratio": inner as f64 / hidden.max(1) as f64,
                "axes_dims_rope": vec![head_dim / 4; 4],
                "rope_theta": 10_000.0,
                "eps": 1e-6,
                "flow_map": shapes.rows("target_timestep_embedder.linear_1.weight") > 0,
            })
        },
        scheduler: || json!({"shift": 6.93}),
        index: || json!({"_class_name": "Flux3DistilledModularPipeline"}),
    },
    Known {
        family: "z_image",
        mark: "noise_refiner.0.attention.to_q.weight",
        rename: z_image_names,
        config: |shapes| {
            let dim = shapes.rows("all_x_embedder.2-1.weight");
            let head_dim = shapes.rows("layers.0.attention.norm_q.weight");
            let heads = dim.checked_div(head_dim);
            json!({
                "in_channels": shapes.cols("all_x_embedder.2-1.weight") / 4,
                "dim": dim,
                "n_layers": shapes.count("layers."),
                "n_refiner_layers": shapes.count("noise_refiner."),
                "n_heads": heads,
                "n_kv_heads": heads,
                "cap_feat_dim": shapes.rows("cap_embedder.0.weight"),
                "norm_eps": 1e-5,
                "rope_theta": 256.0,
                "t_scale": 1000.0,
                "axes_dims": axes(head_dim, 4),
                "qk_norm": true,
            })
        },
        scheduler: || json!({"shift": 3.0}),
        index: || json!({"_class_name": "ZImagePipeline"}),
    },
];

fn qwen_scheduler() -> Value {
    json!({
        "use_dynamic_shifting": true,
        "base_image_seq_len": 256,
        "max_image_seq_len": 8192,
        "base_shift": 0.5,
        "max_shift": 0.9,
        "shift_terminal": 0.02,
    })
}

/// Z-Image's own names: queries, keys and values in one, shorter names for the rest.
fn z_image_names(name: &str) -> Vec<(String, TensorSource)> {
    if let Some(block) = name.strip_suffix(".attention.qkv.weight") {
        let part = |(part, kind): (usize, &str)| {
            let source = TensorSource::Rows {
                name: name.to_owned(),
                part,
                of: 3,
            };
            (format!("{block}.attention.{kind}.weight"), source)
        };
        return ["to_q", "to_k", "to_v"]
            .into_iter()
            .enumerate()
            .map(part)
            .collect();
    }
    let mut new = name.to_owned();
    for (from, to) in [
        (".attention.out.", ".attention.to_out.0."),
        (".attention.q_norm.", ".attention.norm_q."),
        (".attention.k_norm.", ".attention.norm_k."),
    ] {
        new = new.replace(from, to);
    }
    for (from, to) in [
        ("x_embedder.", "all_x_embedder.2-1."),
        ("final_layer.", "all_final_layer.2-1."),
    ] {
        if let Some(rest) = new.strip_prefix(from) {
            new = format!("{to}{rest}");
        }
    }
    vec![(new, TensorSource::Whole(name.to_owned()))]
}

fn open_weights(path: &Path) -> Result<Box<dyn Checkpoint>, ImageError> {
    Ok(Box::new(ScaledRows::new(crate::open_checkpoint(path)?)?))
}

fn entry(family: &str) -> Option<&'static FamilyEntry> {
    families::FAMILIES.iter().find(|entry| entry.id == family)
}

/// The model in the file at `path`.
///
/// # Errors
/// [`ImageError`]: a file that is no model we know, by what its tensors look like; a part that is missing.
pub(super) fn open(
    path: &Path,
    options: &ImageOptions,
) -> Result<Box<dyn ImageFamily>, ImageError> {
    let weights = open_weights(path)?;
    if ldm::is_whole(weights.as_ref()) {
        drop(weights);
        let family = entry("stable_diffusion");
        let family = family.ok_or_else(|| unknown("nothing", path))?;
        let index = json!({"_class_name": family.classes.first()});
        let folder = Folder::new(path, (index, family.id), options)?;
        let folder = folder.with(ldm::parts(|| open_weights(path), path)?);
        return (family.open)(&folder, &Cpu::new(options.threads)?);
    }
    let prefix = PREFIXES
        .iter()
        .find(|prefix| weights.names().any(|name| name.starts_with(**prefix)));
    let weights: Box<dyn Checkpoint> = match prefix {
        Some(prefix) => Box::new(Renamed::below(weights, prefix)),
        None => weights,
    };
    let found = KNOWN.iter().find(|known| {
        let renamed = weights.names().flat_map(known.rename);
        renamed.into_iter().any(|(name, _)| name == known.mark)
    });
    let Some(known) = found else {
        let names: Vec<&str> = weights.names().collect();
        let looks = engine_weights::family_of_modules(names.iter().copied());
        let first = names.first().copied().unwrap_or("nothing");
        let got = match looks {
            Some(family) => format!("one like {family}, with tensors such as {first:?}"),
            None => format!("tensors such as {first:?}"),
        };
        return Err(unknown(&got, path));
    };
    let family = entry(known.family).ok_or_else(|| unknown(known.family, path))?;
    let weights: Box<dyn Checkpoint> = Box::new(Renamed::new(weights, known.rename));
    let config = (known.config)(&Shapes(weights.as_ref()));
    let index = (known.index)();
    let folder = Folder::new(path, (index, family.id), options)?;
    let folder = folder.with(vec![
        GivenPart::weights("transformer", config, weights),
        GivenPart::json("scheduler", (known.scheduler)()),
    ]);
    (family.open)(&folder, &Cpu::new(options.threads)?)
}

fn unknown(got: &str, path: &Path) -> ImageError {
    ImageError::Family {
        got: got.to_owned(),
        known: IMAGE_FAMILIES.join(", "),
        path: path.to_owned(),
    }
}
