//! The configuration of a U-Net.

use serde::Deserialize;

use crate::LoadError;
use crate::error::{SIZE_CAP, check_sizes, wrong};

/// One number for all levels, or one for each.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum PerLevel {
    /// For all.
    All(usize),
    /// For each, from the outermost.
    Each(Vec<usize>),
}

impl PerLevel {
    fn of(&self, level: usize) -> usize {
        match self {
            Self::All(value) => *value,
            Self::Each(values) => values.get(level).copied().unwrap_or(0),
        }
    }
}

/// `unet/config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct UNetConfig {
    /// Channels of a latent.
    pub in_channels: usize,
    /// Channels of what is predicted.
    pub out_channels: usize,
    /// Channels of each level, from the outermost.
    pub block_out_channels: Vec<usize>,
    /// Residual blocks of a level on the way down; one more on the way up.
    pub layers_per_block: usize,
    /// Groups of the norms.
    pub norm_num_groups: usize,
    /// Epsilon of the norms.
    pub norm_eps: f64,
    /// Kinds of the levels on the way down.
    pub down_block_types: Vec<String>,
    /// Kinds of the levels on the way up, from the innermost.
    pub up_block_types: Vec<String>,
    /// Elements of a text state.
    pub cross_attention_dim: usize,
    /// Heads of each level (the name is the reference's).
    pub attention_head_dim: PerLevel,
    /// Heads, where a configuration names them rightly.
    #[serde(default)]
    pub num_attention_heads: Option<PerLevel>,
    /// Blocks that read the text, in each place of a level.
    #[serde(default = "one")]
    pub transformer_layers_per_block: PerLevel,
    /// Whether cosines come first in the timestep's waves.
    pub flip_sin_to_cos: bool,
    /// Taken off the count of frequencies.
    pub freq_shift: f32,
    /// `text_time` for SDXL.
    #[serde(default)]
    pub addition_embed_type: Option<String>,
    /// Elements of the waves of each size id, for SDXL.
    #[serde(default)]
    pub addition_time_embed_dim: Option<usize>,
    /// Elements of the pooled text and all size ids together, for SDXL.
    #[serde(default)]
    pub projection_class_embeddings_input_dim: Option<usize>,
    /// Elements of an embedded guidance, where it is an input.
    #[serde(default)]
    pub time_cond_proj_dim: Option<usize>,
}

fn one() -> PerLevel {
    PerLevel::All(1)
}

const DOWN: [&str; 2] = ["CrossAttnDownBlock2D", "DownBlock2D"];
const UP: [&str; 2] = ["CrossAttnUpBlock2D", "UpBlock2D"];

impl UNetConfig {
    pub(super) fn check(&self) -> Result<(), LoadError> {
        let levels = self.block_out_channels.len();
        if !(1..=8).contains(&levels) {
            return Err(wrong("length of block_out_channels", levels, "1 to 8"));
        }
        check_sizes([
            ("in_channels", self.in_channels),
            ("out_channels", self.out_channels),
            ("layers_per_block", self.layers_per_block),
            ("norm_num_groups", self.norm_num_groups),
            ("cross_attention_dim", self.cross_attention_dim),
        ])?;
        check_sizes(
            self.block_out_channels
                .iter()
                .map(|c| ("block_out_channels", *c)),
        )?;
        for (key, kinds, known) in [
            ("down_block_types", &self.down_block_types, DOWN),
            ("up_block_types", &self.up_block_types, UP),
        ] {
            if kinds.len() != levels {
                let key = format!("length of {key}");
                return Err(wrong(&key, kinds.len(), "that of block_out_channels"));
            }
            if let Some(other) = kinds.iter().find(|kind| !known.contains(&kind.as_str())) {
                return Err(wrong(key, format!("{other:?}"), &known.join(" or ")));
            }
        }
        for level in 0..levels {
            let (channels, heads) = (self.block_out_channels[level], self.heads(level));
            if heads == 0 || !channels.is_multiple_of(heads) {
                return Err(wrong(
                    "attention_head_dim",
                    heads,
                    "a divisor of the channels",
                ));
            }
            if self.blocks(level) > SIZE_CAP {
                let key = "transformer_layers_per_block";
                return Err(wrong(key, self.blocks(level), "at most 2^20"));
            }
        }
        match self.addition_embed_type.as_deref() {
            None => Ok(()),
            Some("text_time") => check_sizes([
                (
                    "addition_time_embed_dim",
                    self.addition_time_embed_dim.unwrap_or(0),
                ),
                (
                    "projection_class_embeddings_input_dim",
                    self.added_dims().unwrap_or(0),
                ),
            ]),
            Some(other) => {
                let got = format!("{other:?}");
                Err(wrong("addition_embed_type", got, "\"text_time\" or null"))
            }
        }
    }

    pub(super) fn norm(&self) -> (usize, f32) {
        (self.norm_num_groups, self.norm_eps as f32)
    }

    pub(super) fn heads(&self, level: usize) -> usize {
        let heads = self.num_attention_heads.as_ref();
        heads.unwrap_or(&self.attention_head_dim).of(level)
    }

    pub(super) fn blocks(&self, level: usize) -> usize {
        self.transformer_layers_per_block.of(level)
    }

    pub(super) fn down_reads_text(&self, index: usize) -> bool {
        self.down_block_types
            .get(index)
            .is_some_and(|kind| kind == DOWN[0])
    }

    pub(super) fn up_reads_text(&self, index: usize) -> bool {
        self.up_block_types
            .get(index)
            .is_some_and(|kind| kind == UP[0])
    }

    /// Elements of what is added to the timestep, for SDXL.
    pub(super) fn added_dims(&self) -> Option<usize> {
        self.addition_embed_type.as_ref()?;
        self.projection_class_embeddings_input_dim
    }
}
