//! RRDB networks (Wang et al., "ESRGAN", arXiv 1809.00219): residual dense blocks, then twice the
//! nearest pixel and a convolution.
//!
//! Checked against spandrel 0.4.2 (`ESRGAN`) at scale 2; the names of all three published layouts are
//! read. Checkpoints for 2x and 1x take 2 x 2 or 4 x 4 px of the input as channels (Real-ESRGAN).

use engine_base::CancelToken;
use engine_tensor::ops::{
    Activation, Conv2d, ConvEnd, conv2d, pixel_shuffle, pixel_unshuffle, scaled_add,
    upsample_nearest,
};
use engine_tensor::{Cpu, Planes};

use super::named::Named;
use super::plain::{ConvWeights, DenseNetwork};
use super::{PictureError, PictureFamily, PictureMemory, PictureModel};
use crate::LoadError;

pub(super) const FAMILY: PictureFamily = PictureFamily {
    id: "rrdb",
    about: "ESRGAN and Real-ESRGAN: conv_first.weight, body.0.rdb1.conv1.weight …",
    recognises: |named| LAYOUTS.iter().any(|layout| layout.is_of(named)),
    load: |named| Ok(Box::new(Rrdb::load(named)?)),
};

/// Slope of the activations below 0, and the factor of residuals.
const SLOPE: f32 = 0.2;
const RESIDUAL: f32 = 0.2;
/// Most blocks of a network that is taken for real.
const BLOCKS_CAP: usize = 256;

/// Side of the windows in which features are enlarged, and what is shown around each.
const WINDOW_PX: usize = 64;
const WINDOW_MARGIN_PX: usize = 4;

/// Names of one published layout; `#`, `@`, `%` stand for block, dense block and convolution.
struct Layout {
    first: &'static str,
    dense: &'static str,
    trunk: &'static str,
    up: [&'static str; 2],
    high: &'static str,
    last: &'static str,
}

const LAYOUTS: &[Layout] = &[
    Layout {
        first: "conv_first",
        dense: "body.#.rdb@.conv%",
        trunk: "conv_body",
        up: ["conv_up1", "conv_up2"],
        high: "conv_hr",
        last: "conv_last",
    },
    Layout {
        first: "conv_first",
        dense: "RRDB_trunk.#.RDB@.conv%",
        trunk: "trunk_conv",
        up: ["upconv1", "upconv2"],
        high: "HRconv",
        last: "conv_last",
    },
    Layout {
        first: "model.0",
        dense: "model.1.sub.#.RDB@.conv%.0",
        // The trunk's convolution follows the last block.
        trunk: "model.1.sub.#",
        up: ["model.3", "model.6"],
        high: "model.8",
        last: "model.10",
    },
];

impl Layout {
    fn dense(&self, block: usize, dense: usize, conv: usize) -> String {
        self.dense
            .replace('#', &block.to_string())
            .replace('@', &dense.to_string())
            .replace('%', &conv.to_string())
    }

    fn is_of(&self, named: &Named<'_>) -> bool {
        [self.first.to_owned(), self.dense(0, 1, 1)]
            .iter()
            .all(|name| named.shape(&format!("{name}.weight")).is_some())
    }
}

/// Five convolutions, each of which reads all before it.
#[derive(Debug)]
struct Dense {
    grow: Vec<Conv2d>,
    join: Conv2d,
}

#[derive(Debug)]
struct Rrdb {
    /// Pixels of the input along each side that become channels.
    unshuffle: usize,
    first: Conv2d,
    blocks: Vec<[Dense; 3]>,
    trunk: Conv2d,
    up: [Conv2d; 2],
    high: Conv2d,
    last: Conv2d,
    /// Blocks of 16 channels of the features, and of a dense block's buffer.
    feature_blocks: usize,
    dense_blocks: usize,
}

impl Rrdb {
    fn load(named: &Named<'_>) -> Result<Self, LoadError> {
        let layout = LAYOUTS.iter().find(|layout| layout.is_of(named));
        let layout = layout.ok_or(LoadError::NoConfig {
            expected: "tensors of an RRDB network",
        })?;
        let wrong = |name: &str, got: &[usize], expected: &str| LoadError::Config {
            key: format!("the shape of {name:?}"),
            got: format!("{got:?}"),
            expected: expected.to_owned(),
        };
        let first = named
            .shape(&format!("{}.weight", layout.first))
            .unwrap_or_default();
        let [features, channels @ (3 | 12 | 48), 3, 3] = first[..] else {
            let expected = "[features, 3 | 12 | 48, 3, 3]";
            return Err(wrong(layout.first, &first, expected));
        };
        let unshuffle = match channels {
            3 => 1,
            12 => 2,
            _ => 4,
        };
        let growth = named.shape(&format!("{}.weight", layout.dense(0, 1, 1)));
        let growth = growth.and_then(|shape| shape.first().copied()).unwrap_or(0);
        let leaky = Activation::LeakyRelu(SLOPE);
        let dense = |block: usize, dense: usize| -> Result<Dense, LoadError> {
            let mut segments = vec![features];
            let mut grow = Vec::new();
            for conv in 1..=4 {
                let name = layout.dense(block, dense, conv);
                grow.push(named.conv(&name, growth, &segments, &leaky)?);
                segments.push(growth);
            }
            let name = layout.dense(block, dense, 5);
            let join = named.conv(&name, features, &segments, &Activation::None)?;
            Ok(Dense { grow, join })
        };
        let mut blocks = Vec::new();
        while blocks.len() < BLOCKS_CAP {
            let next = blocks.len();
            if named
                .shape(&format!("{}.weight", layout.dense(next, 1, 1)))
                .is_none()
            {
                break;
            }
            blocks.push([dense(next, 1)?, dense(next, 2)?, dense(next, 3)?]);
        }
        let trunk = layout.trunk.replace('#', &blocks.len().to_string());
        let plain = |name: &str, outputs, channels, activation: &Activation| {
            named.conv(name, outputs, &[channels], activation)
        };
        let model = Self {
            unshuffle,
            first: plain(layout.first, features, channels, &Activation::None)?,
            trunk: plain(&trunk, features, features, &Activation::None)?,
            up: [
                plain(layout.up[0], features, features, &leaky)?,
                plain(layout.up[1], features, features, &leaky)?,
            ],
            high: plain(layout.high, features, features, &leaky)?,
            last: plain(layout.last, 3, features, &Activation::None)?,
            feature_blocks: features.div_ceil(16),
            dense_blocks: features.div_ceil(16) + 4 * growth.div_ceil(16),
            blocks,
        };
        named.all_used(FAMILY.id)?;
        Ok(model)
    }

    /// `to`'s first blocks = `from`'s + 0.2 * what the dense block makes of them; `from`'s other blocks
    /// are its memory.
    fn dense(
        &self,
        cpu: &Cpu,
        dense: &Dense,
        from: &mut Planes,
        to: &mut Planes,
    ) -> Result<(), PictureError> {
        for conv in &dense.grow {
            let (read, write) = from.split(conv.in_blocks());
            let write = write.first(conv.out_blocks());
            conv2d(cpu, conv, read, ConvEnd::default(), write)?;
        }
        let end = ConvEnd {
            residual: Some((RESIDUAL, from.part(0..self.feature_blocks))),
        };
        let write = to.part_mut(0..self.feature_blocks);
        conv2d(cpu, &dense.join, from.all(), end, write)?;
        Ok(())
    }

    /// All blocks; the result is in the first blocks of what is given back.
    fn trunk(
        &self,
        cpu: &Cpu,
        features: &Planes,
        memory: &mut PictureMemory,
        cancel: &CancelToken,
    ) -> Result<Planes, PictureError> {
        let (height, width) = (features.height(), features.width());
        let mut take = || memory.take(self.dense_blocks, height, width);
        let (mut x, mut y, mut z) = (take()?, take()?, take()?);
        x.part_mut(0..self.feature_blocks)
            .copy_from(features.all())?;
        for [first, second, third] in &self.blocks {
            cancel.check()?;
            self.dense(cpu, first, &mut x, &mut y)?;
            self.dense(cpu, second, &mut y, &mut z)?;
            self.dense(cpu, third, &mut z, &mut y)?;
            let part = 0..self.feature_blocks;
            scaled_add(cpu, y.part_mut(part.clone()), RESIDUAL, x.part(part))?;
            std::mem::swap(&mut x, &mut y);
        }
        memory.give(y);
        memory.give(z);
        Ok(x)
    }
}

/// The convolutions of a checkpoint of which [`Rrdb::load`] makes a model.
pub(super) fn plain(named: &Named<'_>) -> Result<DenseNetwork, LoadError> {
    let layout = LAYOUTS.iter().find(|layout| layout.is_of(named));
    let layout = layout.ok_or(LoadError::NoConfig {
        expected: "tensors of an RRDB network",
    })?;
    let conv = |name: &str| ConvWeights::of(named, name);
    let dense = |block: usize, dense: usize| -> Result<[ConvWeights; 5], LoadError> {
        let conv = |at: usize| conv(&layout.dense(block, dense, at));
        Ok([conv(1)?, conv(2)?, conv(3)?, conv(4)?, conv(5)?])
    };
    let mut blocks = Vec::new();
    while blocks.len() < BLOCKS_CAP {
        let next = blocks.len();
        let first = format!("{}.weight", layout.dense(next, 1, 1));
        if named.shape(&first).is_none() {
            break;
        }
        blocks.push([dense(next, 1)?, dense(next, 2)?, dense(next, 3)?]);
    }
    let first = conv(layout.first)?;
    Ok(DenseNetwork {
        unshuffle: match first.inputs {
            12 => 2,
            48 => 4,
            _ => 1,
        },
        first,
        trunk: conv(&layout.trunk.replace('#', &blocks.len().to_string()))?,
        up: [conv(layout.up[0])?, conv(layout.up[1])?],
        high: conv(layout.high)?,
        last: conv(layout.last)?,
        blocks,
    })
}

/// A stretch of a side: where its window begins and how long it is, and the part that is kept.
#[derive(Clone, Copy)]
struct Window {
    start: usize,
    len: usize,
    kept: (usize, usize),
}

/// Windows that cover a side. What follows the trunk reaches 2 px at most, and at 4 times each side it
/// would take more memory than all the rest.
fn windows(side: usize) -> Vec<Window> {
    let len = (WINDOW_PX + 2 * WINDOW_MARGIN_PX).min(side);
    (0..side)
        .step_by(WINDOW_PX)
        .map(|first| Window {
            start: first.saturating_sub(WINDOW_MARGIN_PX).min(side - len),
            len,
            kept: (first, (first + WINDOW_PX).min(side)),
        })
        .collect()
}

impl Rrdb {
    /// One window of the features at 4 times each side, as a part of `out`.
    fn enlarge(
        &self,
        cpu: &Cpu,
        features: &Planes,
        (y, x): (Window, Window),
        memory: &mut PictureMemory,
        out: &mut [f32],
    ) -> Result<(), PictureError> {
        let blocks = self.feature_blocks;
        let mut at = memory.take(blocks, y.len, x.len)?;
        at.all_mut()
            .copy_window(features.all(), (y.start, x.start))?;
        for conv in &self.up {
            let (rows, columns) = (2 * at.height(), 2 * at.width());
            let mut large = memory.take(blocks, rows, columns)?;
            upsample_nearest(cpu, at.all(), large.all_mut())?;
            let next = memory.take(blocks, rows, columns)?;
            memory.give(std::mem::replace(&mut at, next));
            conv2d(cpu, conv, large.all(), ConvEnd::default(), at.all_mut())?;
            memory.give(large);
        }
        let (rows, columns) = (at.height(), at.width());
        let mut high = memory.take(blocks, rows, columns)?;
        conv2d(
            cpu,
            &self.high,
            at.all(),
            ConvEnd::default(),
            high.all_mut(),
        )?;
        memory.give(at);
        let mut last = memory.take(1, rows, columns)?;
        conv2d(
            cpu,
            &self.last,
            high.all(),
            ConvEnd::default(),
            last.all_mut(),
        )?;
        memory.give(high);
        let mut rgb = vec![0.0; 3 * rows * columns];
        pixel_shuffle(cpu, last.all(), 1, None, &mut rgb)?;
        memory.give(last);
        let (height, width) = (4 * features.height(), 4 * features.width());
        let len = 4 * (x.kept.1 - x.kept.0);
        for channel in 0..3 {
            for row in 4 * y.kept.0..4 * y.kept.1 {
                let from =
                    (channel * rows + row - 4 * y.start) * columns + 4 * (x.kept.0 - x.start);
                let to = (channel * height + row) * width + 4 * x.kept.0;
                out[to..to + len].copy_from_slice(&rgb[from..from + len]);
            }
        }
        Ok(())
    }
}

impl PictureModel for Rrdb {
    fn family(&self) -> &'static str {
        FAMILY.id
    }

    fn scale(&self) -> usize {
        4 / self.unshuffle
    }

    fn step_px(&self) -> usize {
        self.unshuffle
    }

    fn overlap_px(&self) -> usize {
        // What lies further off than this hardly reaches: the dense blocks are residuals of 0.2.
        64 * self.unshuffle.min(2)
    }

    fn bytes_per_px(&self) -> usize {
        // Three dense blocks' buffers, features twice, the picture at 4 times each side; windows are
        // small beside that.
        let floats = 16 * (3 * self.dense_blocks + 2 * self.feature_blocks) + 48;
        4 * (floats / (self.unshuffle * self.unshuffle) + 3)
    }

    fn run(
        &self,
        cpu: &Cpu,
        rgb: &[f32],
        (height, width): (usize, usize),
        memory: &mut PictureMemory,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, PictureError> {
        memory.begin((height, width));
        let (rows, columns) = (height / self.unshuffle, width / self.unshuffle);
        let mut input = memory.take(self.first.in_blocks(), rows, columns)?;
        pixel_unshuffle(cpu, rgb, self.unshuffle, input.all_mut())?;
        let mut features = memory.take(self.feature_blocks, rows, columns)?;
        conv2d(
            cpu,
            &self.first,
            input.all(),
            ConvEnd::default(),
            features.all_mut(),
        )?;
        memory.give(input);
        let trunk = self.trunk(cpu, &features, memory, cancel)?;
        let mut at = memory.take(self.feature_blocks, rows, columns)?;
        let end = ConvEnd {
            residual: Some((1.0, features.all())),
        };
        conv2d(
            cpu,
            &self.trunk,
            trunk.part(0..self.feature_blocks),
            end,
            at.all_mut(),
        )?;
        memory.give(trunk);
        memory.give(features);
        let mut out = vec![0.0; 48 * rows * columns];
        for y in windows(rows) {
            for x in windows(columns) {
                cancel.check()?;
                self.enlarge(cpu, &at, (y, x), memory, &mut out)?;
            }
        }
        memory.give(at);
        Ok(out)
    }
}
