//! What the vision towers of Qwen's models share: patches in the order in which they are merged, their
//! rotary places, attention in groups.

use engine_nn::{Linear, Runner};
use engine_tensor::ops::{
    AttentionSpec, KvKind, KvRows, QueryRow, RopePairs, RopeRows, attention, rope_rows,
};
use engine_tensor::{Cpu, TensorError};
use serde_json::Value;

use crate::LoadError;
use crate::error::{check_sizes, wrong};
use crate::images::Tensors;
use crate::images::kit::columns;

const ROPE_BASE: f64 = 10_000.0;
/// Channels of a picture.
const COLOURS: usize = 3;

/// Sizes of a vision tower.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct VisionConfig {
    pub(super) depth: usize,
    pub(super) hidden: usize,
    pub(super) heads: usize,
    pub(super) inner: usize,
    pub(super) out: usize,
    /// Side of a patch, in pixels.
    pub(super) patch: usize,
    /// Patches of a token, along each side.
    pub(super) merge: usize,
    /// Frames of a patch: a picture is shown as often.
    pub(super) frames: usize,
}

impl VisionConfig {
    pub(super) fn of(config: &Value) -> Result<Self, LoadError> {
        let part = &config["vision_config"];
        let needed = |key: &str| {
            let count = part[key].as_u64().and_then(|n| usize::try_from(n).ok());
            count.ok_or_else(|| wrong(key, &part[key], "a whole number from 1 to 2^20"))
        };
        let config = Self {
            depth: needed("depth")?,
            hidden: needed("hidden_size")?,
            heads: needed("num_heads")?,
            inner: needed("intermediate_size")?,
            out: needed("out_hidden_size")?,
            patch: needed("patch_size")?,
            merge: needed("spatial_merge_size")?,
            frames: needed("temporal_patch_size")?,
        };
        check_sizes([
            ("depth", config.depth),
            ("hidden_size", config.hidden),
            ("num_heads", config.heads),
            ("intermediate_size", config.inner),
            ("out_hidden_size", config.out),
            ("patch_size", config.patch),
            ("spatial_merge_size", config.merge),
            ("temporal_patch_size", config.frames),
        ])?;
        let head_dim = config.hidden / config.heads;
        if head_dim * config.heads != config.hidden || !head_dim.is_multiple_of(4) {
            return Err(wrong("num_heads", config.heads, "heads of a multiple of 4"));
        }
        if config.patch > 256 || config.merge > 16 || config.frames > 16 {
            let got = format!("{}, {}, {}", config.patch, config.merge, config.frames);
            return Err(wrong("patch sizes", got, "at most 256, 16 and 16"));
        }
        Ok(config)
    }

    /// Values of a patch.
    pub(super) fn patch_values(&self) -> usize {
        COLOURS * self.frames * self.patch * self.patch
    }

    /// Pixels of a token, along each side.
    pub(super) fn token_px(&self) -> usize {
        self.patch * self.merge
    }

    fn head_dim(&self) -> usize {
        self.hidden / self.heads
    }

    /// Row and column of each patch of a picture of `height` x `width` patches: the patches of a token
    /// stand together.
    pub(super) fn places(&self, (height, width): (usize, usize)) -> Vec<(usize, usize)> {
        let merge = self.merge;
        let cells = (height / merge) * (width / merge);
        let across = width / merge;
        (0..cells * merge * merge)
            .map(|at| {
                let (inside, cell) = (at % (merge * merge), at / (merge * merge));
                (
                    cell / across * merge + inside / merge,
                    cell % across * merge + inside % merge,
                )
            })
            .collect()
    }

    /// `picture: [3, height, width]` to patches in their order: `[patches, patch_values]`.
    pub(super) fn patches(&self, picture: &[f32], (height, width): (usize, usize)) -> Vec<f32> {
        let side = self.patch;
        let mut out = Vec::with_capacity(picture.len() * self.frames);
        for (row, column) in self.places((height / side, width / side)) {
            for colour in 0..COLOURS {
                for _ in 0..self.frames {
                    for y in 0..side {
                        let start = (colour * height + row * side + y) * width + column * side;
                        out.extend_from_slice(&picture[start..start + side]);
                    }
                }
            }
        }
        out
    }

    pub(super) fn turns(&self, places: &[(usize, usize)]) -> RopeRows {
        let quarter = self.head_dim() / 4;
        let angles: Vec<f64> = places
            .iter()
            .flat_map(|(row, column)| {
                [*row, *column].into_iter().flat_map(move |at| {
                    (0..quarter)
                        .map(move |f| at as f64 * ROPE_BASE.powf(-(f as f64) / quarter as f64))
                })
            })
            .collect();
        RopeRows::of_angles(4 * quarter, &angles)
    }
}

/// Queries, keys and values in one layer, and the way out.
#[derive(Debug)]
pub(super) struct VisionAttention {
    qkv: Linear,
    proj: Linear,
}

impl VisionAttention {
    pub(super) fn load(tensors: &Tensors<'_>, hidden: usize) -> Result<Self, LoadError> {
        Ok(Self {
            qkv: tensors.biased("qkv", 3 * hidden, hidden)?,
            proj: tensors.biased("proj", hidden, hidden)?,
        })
    }

    /// Rows see each other inside their group: `groups[row]` is the number of each one's, from 0.
    pub(super) fn run(
        &self,
        runner: &mut Runner,
        config: &VisionConfig,
        x: &[f32],
        (turns, groups): (&RopeRows, &[usize]),
    ) -> Result<Vec<f32>, TensorError> {
        let cpu = runner.cpu().clone();
        let (hidden, head_dim) = (config.hidden, config.head_dim());
        let mut qkv = vec![0.0; 3 * x.len()];
        runner.linear(x, [(&self.qkv, &mut qkv)])?;
        let part = |at: usize| columns(&qkv, 3 * hidden, at * hidden..(at + 1) * hidden);
        let (mut q, mut k, v) = (part(0), part(1), part(2));
        for part in [&mut q, &mut k] {
            rope_rows(&cpu, turns, RopePairs::Halves, head_dim, part)?;
        }
        let mixed = grouped(&cpu, (config.heads, head_dim), (&q, &k, &v), groups)?;
        let mut out = vec![0.0; x.len()];
        runner.linear(&mixed, [(&self.proj, &mut out)])?;
        Ok(out)
    }
}

fn grouped(
    cpu: &Cpu,
    (heads, head_dim): (usize, usize),
    (q, k, v): (&[f32], &[f32], &[f32]),
    groups: &[usize],
) -> Result<Vec<f32>, TensorError> {
    let width = heads * head_dim;
    let count = groups.iter().max().map_or(0, |last| last + 1);
    let mut kvs: Vec<KvRows> = (0..count)
        .map(|_| KvRows::new(KvKind::F32, heads, head_dim))
        .collect();
    let rows = k.chunks_exact(width).zip(v.chunks_exact(width)).zip(groups);
    for ((key, value), group) in rows {
        kvs[*group].push(key, value)?;
    }
    let queries: Vec<QueryRow<'_>> = groups
        .iter()
        .map(|group| QueryRow {
            kv: &kvs[*group],
            position: kvs[*group].positions().saturating_sub(1),
        })
        .collect();
    let spec = AttentionSpec {
        heads,
        kv_heads: heads,
        head_dim,
        scale: (1.0 / (head_dim as f64).sqrt()) as f32,
        window: None,
    };
    let mut out = vec![0.0; q.len()];
    attention(cpu, &spec, q, &queries, &mut out)?;
    Ok(out)
}
