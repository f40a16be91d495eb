//! Convolutions of pictures: 1 x 1 and 3 x 3, stride 1, borders of zeros.
//!
//! Products of 3 x 3 with 16 and more channels go the way of Winograd's minimal filtering, others are
//! summed directly. Which way depends on the weights only. Steps of Winograd's way lie at multiples
//! of 4 px and read 6 x 6, so a picture that is cut there gives the same bits where all of that is whole.

mod cases;
mod direct;
mod winograd;

use super::case::Op;
use crate::error::expect;
use crate::lanes::{Lanes, Values};
use crate::planes::{BLOCK, PlanesMut, PlanesRef, same_size};
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "conv2d",
    about: "out = residual + scale * activation(weights * in + bias)",
    cases: cases::cases,
};

/// Input channels from which on Winograd's way is quicker.
const WINOGRAD_CHANNELS: usize = 16;

/// What follows the sum of a convolution.
#[derive(Debug, Clone, PartialEq)]
pub enum Activation {
    /// Nothing.
    None,
    /// `x` from 0 on, `slope * x` below (Maas et al. 2013).
    LeakyRelu(f32),
    /// The same with a slope for each channel (He et al., arXiv 1502.01852).
    Prelu(Vec<f32>),
}

/// Weights of a convolution, packed once.
pub struct Conv2d {
    /// Blocks of 16 channels of the input.
    in_blocks: usize,
    /// Channels of the output.
    outputs: usize,
    side: usize,
    /// For each block of outputs: bias, slope below 0.
    ends: Vec<(Values, Values)>,
    /// Whether slopes are other than 1.
    activated: bool,
    packed: Packed,
}

enum Packed {
    /// `[block of outputs][tap][channel]`.
    Direct {
        weights: Vec<Values>,
        /// The channels that are not padding.
        channels: Vec<usize>,
    },
    /// `[36 points][block of outputs][channel]`.
    Winograd(Vec<Values>),
}

impl std::fmt::Debug for Conv2d {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (side, way) = match self.packed {
            Packed::Direct { .. } => (self.side, "direct"),
            Packed::Winograd(_) => (self.side, "winograd"),
        };
        let inputs = self.in_blocks * BLOCK;
        write!(
            f,
            "Conv2d({inputs} -> {}, {side} x {side}, {way})",
            self.outputs
        )
    }
}

/// What is done with the activated sums.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConvEnd<'a> {
    /// `residual + scale * sums`.
    pub residual: Option<(f32, PlanesRef<'a>)>,
}

impl Conv2d {
    /// Packs `weights`, `[outputs, channels, side, side]`, with a `bias` of `[outputs]`.
    ///
    /// `segments`: how many channels lie together in the input. Each begins a new block of 16, so
    /// that what is concatenated need not be multiples of 16; their sum is `channels`.
    ///
    /// # Errors
    /// `Shape` when lengths do not go together or `side` is neither 1 nor 3.
    pub fn new(
        weights: &[f32],
        bias: &[f32],
        (segments, side): (&[usize], usize),
        activation: &Activation,
    ) -> Result<Self, TensorError> {
        const OP: &str = "conv2d";
        let outputs = bias.len();
        let channels: usize = segments.iter().sum();
        if side != 1 {
            expect(OP, "side of the kernel", side, 3)?;
        }
        expect(OP, "outputs > 0", usize::from(outputs > 0), 1)?;
        expect(OP, "input channels > 0", usize::from(channels > 0), 1)?;
        let taps = side * side;
        expect(
            OP,
            "length of weights",
            weights.len(),
            outputs * channels * taps,
        )?;
        if let Activation::Prelu(slopes) = activation {
            expect(OP, "length of slopes", slopes.len(), outputs)?;
        }
        let places = places(segments);
        let in_blocks = segments.iter().map(|count| count.div_ceil(BLOCK)).sum();
        let out_blocks = outputs.div_ceil(BLOCK);
        let mut ends = vec![(Values::ZERO, Values([1.0; BLOCK])); out_blocks];
        for (output, bias) in bias.iter().enumerate() {
            let (biases, slopes) = &mut ends[output / BLOCK];
            biases.0[output % BLOCK] = *bias;
            slopes.0[output % BLOCK] = match activation {
                Activation::None => 1.0,
                Activation::LeakyRelu(slope) => *slope,
                Activation::Prelu(slopes) => slopes[output],
            };
        }
        let source = Source {
            weights,
            outputs,
            places: &places,
            taps,
        };
        let packed = if side == 3 && channels >= WINOGRAD_CHANNELS {
            Packed::Winograd(winograd::pack(&source, in_blocks))
        } else {
            Packed::Direct {
                weights: direct::pack(&source),
                channels: places,
            }
        };
        Ok(Self {
            in_blocks,
            outputs,
            side,
            ends,
            activated: *activation != Activation::None,
            packed,
        })
    }

    /// Blocks of 16 channels that it reads.
    pub fn in_blocks(&self) -> usize {
        self.in_blocks
    }

    /// Blocks of 16 channels that it writes.
    pub fn out_blocks(&self) -> usize {
        self.ends.len()
    }

    /// Channels that it writes; those that fill up the last block are 0.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Bytes of the packed weights.
    pub fn packed_bytes(&self) -> usize {
        let (Packed::Direct { weights, .. } | Packed::Winograd(weights)) = &self.packed;
        size_of_val(weights.as_slice())
    }
}

/// Weights as a checkpoint has them.
struct Source<'a> {
    weights: &'a [f32],
    outputs: usize,
    /// Where each channel lies in the blocks.
    places: &'a [usize],
    taps: usize,
}

impl Source<'_> {
    /// The taps of one output and one channel.
    fn kernel(&self, output: usize, channel: usize) -> &[f32] {
        let start = (output * self.places.len() + channel) * self.taps;
        &self.weights[start..start + self.taps]
    }
}

/// Where each channel lies when every segment begins a new block.
fn places(segments: &[usize]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut start = 0;
    for &count in segments {
        places.extend(start..start + count);
        start += count.next_multiple_of(BLOCK);
    }
    places
}

/// Bias, activation and residual of one pixel and one block of outputs.
///
/// # Safety
/// As of [`Lanes`].
#[inline(always)]
unsafe fn finish<L: Lanes>(
    conv: &Conv2d,
    block: usize,
    sum: L::Floats,
    residual: Option<(f32, &Values)>,
    out: &mut Values,
) {
    let (bias, slope) = &conv.ends[block];
    // SAFETY: by the caller's promise.
    unsafe {
        let mut value = L::add(sum, L::load(bias));
        if conv.activated {
            let zero = L::splat(0.0);
            let below = L::mul(L::min(value, zero), L::load(slope));
            value = L::add(L::max(value, zero), below);
        }
        if let Some((scale, residual)) = residual {
            value = L::fused(value, L::splat(scale), L::load(residual));
        }
        L::store(out, value);
    }
}

/// `out = residual + scale * activation(conv * input + bias)`; without a residual the activated sums.
///
/// `input`: `conv.in_blocks()` blocks; `out` and residual: `conv.out_blocks()` blocks of the same
/// height and width. Accumulates in f32. Bits depend neither on threads nor on the instruction set;
/// of a pixel they depend on its neighbourhood, which by Winograd's way is the 6 x 6 px of its step.
///
/// # Errors
/// `Shape` when sizes do not go together.
pub fn conv2d(
    cpu: &Cpu,
    conv: &Conv2d,
    input: PlanesRef<'_>,
    end: ConvEnd<'_>,
    out: PlanesMut<'_>,
) -> Result<(), TensorError> {
    const OP: &str = "conv2d";
    expect(OP, "blocks of the input", input.size.blocks, conv.in_blocks)?;
    expect(OP, "blocks of out", out.size.blocks, conv.out_blocks())?;
    same_size(OP, out.size, input.size)?;
    if let Some((_, residual)) = end.residual {
        expect(
            OP,
            "blocks of the residual",
            residual.size.blocks,
            conv.out_blocks(),
        )?;
        same_size(OP, residual.size, input.size)?;
    }
    match &conv.packed {
        Packed::Direct { weights, channels } => {
            direct::run(cpu, conv, (weights, channels), input, end, out);
        }
        Packed::Winograd(weights) => winograd::run(cpu, conv, weights, input, end, out),
    }
    Ok(())
}
