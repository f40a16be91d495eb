//! Convolutions of pictures with many channels, in f16 or bf16, with what follows them fused.

mod cases;

use super::case::{Op, from_bf16, from_half, to_bf16, to_half};
use super::conv3x3::{ConvWay, Picture, picture_pitch_px};
use super::elementwise::{fits, int};
use crate::args::{Args, pair};
use crate::device::Kernel;
use crate::driver::Grid;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const OP: Op = Op {
    name: "conv_stream",
    cases: cases::cases,
};

const NAME: &str = "conv_stream";
/// Rows of the matrix that a tile multiplies with.
const ROWS: usize = 64;
const STRIP: usize = 128;
/// Groups of warps of a block.
const GROUPS: usize = 4;
/// Pixels of a tile of the kernels for any target.
const TILE: usize = 64;

/// The 16-bit floats that pictures and weights are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Floats {
    Half,
    Bf16,
}

impl Floats {
    pub(crate) fn bits(self, values: &[f32]) -> Vec<u16> {
        match self {
            Self::Half => to_half(values),
            Self::Bf16 => to_bf16(values),
        }
    }

    fn values(self, bits: &[u16]) -> Vec<f32> {
        match self {
            Self::Half => from_half(bits),
            Self::Bf16 => from_bf16(bits),
        }
    }
}

/// What a convolution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// 3 x 3.
    Three,
    /// 1 x 1.
    One,
    /// 3 x 3 over the nearest pixels at twice the size.
    Doubled,
    /// 3 x 3 to three planes.
    Planes,
}

/// How the kernels of a kind take the picture.
#[derive(Debug, Clone, Copy)]
struct Walk {
    names: [&'static str; 4],
    taps: (usize, usize),
    /// Rows of pixels that a tile's matrix makes.
    rows: usize,
    slots: usize,
}

impl Walk {
    fn of(kind: StreamKind, outputs: usize) -> Self {
        match kind {
            StreamKind::Three if outputs == ROWS / 2 => Self {
                names: [
                    "stream_3x3_two_rows_half",
                    "stream_3x3_two_rows_bf",
                    "stream_3x3_two_rows_half_any",
                    "stream_3x3_two_rows_bf_any",
                ],
                taps: (4, 3),
                rows: 2,
                slots: 3,
            },
            StreamKind::Three => Self {
                names: [
                    "stream_3x3_half",
                    "stream_3x3_bf",
                    "stream_3x3_half_any",
                    "stream_3x3_bf_any",
                ],
                taps: (3, 3),
                rows: 1,
                slots: 5,
            },
            StreamKind::One => Self {
                names: [
                    "stream_1x1_half",
                    "stream_1x1_bf",
                    "stream_1x1_half_any",
                    "stream_1x1_bf_any",
                ],
                taps: (1, 1),
                rows: 1,
                slots: 6,
            },
            StreamKind::Doubled => Self {
                names: [
                    "stream_double_half",
                    "stream_double_bf",
                    "stream_double_half_any",
                    "stream_double_bf_any",
                ],
                taps: (2, 2),
                rows: 1,
                slots: 5,
            },
            StreamKind::Planes => Self {
                names: [
                    "stream_planes_half",
                    "stream_planes_bf",
                    "stream_planes_half_any",
                    "stream_planes_bf_any",
                ],
                taps: (3, 3),
                rows: 1,
                slots: 5,
            },
        }
    }

    fn weights_bytes(&self) -> usize {
        self.taps.0 * self.taps.1 * 2 * ROWS * 16
    }

    /// Shared memory of a block.
    fn shared_bytes(&self, fast: bool) -> usize {
        let lines = |strip: usize, lines: usize| lines * 2 * (strip + self.taps.1 - 1) * 16;
        if fast {
            let count = self.rows * (GROUPS - 1) + self.taps.0;
            let slot = (self.weights_bytes() + lines(STRIP, count)).next_multiple_of(128);
            self.slots * (slot + 16)
        } else {
            2 * (self.weights_bytes() + lines(TILE, self.taps.0))
        }
    }
}

/// A convolution's weights on the device.
#[derive(Debug)]
pub(crate) struct StreamConv {
    kind: StreamKind,
    floats: Floats,
    weights: Buffer,
    bias: Buffer,
    inputs: usize,
    outputs: usize,
}

/// Rows (or columns) of a 3 x 3 kernel that tap `tap` of pixels of parity `parity` sees at twice the size.
fn doubled(parity: usize, tap: usize) -> &'static [usize] {
    match (parity, tap) {
        (0, 0) => &[0],
        (0, _) => &[1, 2],
        (_, 0) => &[0, 1],
        _ => &[2],
    }
}

impl StreamConv {
    /// Of `weights: [outputs, inputs, side, side]` and `bias: [outputs]`. Outputs are 32, multiples of 64, or with
    /// [`StreamKind::Planes`] 3.
    pub(crate) fn new(
        device: &Device,
        (kind, floats): (StreamKind, Floats),
        (outputs, inputs): (usize, usize),
        weights: &[f32],
        bias: &[f32],
    ) -> Result<Self, CudaError> {
        let side = if kind == StreamKind::One { 1 } else { 3 };
        let known = match kind {
            StreamKind::Planes => outputs == 3,
            StreamKind::Three if outputs == ROWS / 2 => true,
            _ => outputs > 0 && outputs.is_multiple_of(ROWS),
        };
        let expected = "32 (3 x 3 only) or a multiple of 64, 3 for planes";
        ensure(known, NAME, "outputs", outputs, expected)?;
        ensure(inputs > 0, NAME, "inputs", inputs, "over 0")?;
        let count = outputs * inputs * side * side;
        ensure(
            weights.len() == count,
            NAME,
            "weights",
            weights.len(),
            count,
        )?;
        ensure(bias.len() == outputs, NAME, "bias", bias.len(), outputs)?;
        let walk = Walk::of(kind, outputs);
        let (pairs, groups) = (inputs.div_ceil(16), outputs.div_ceil(ROWS));
        let (down, across) = walk.taps;
        let kinds = if kind == StreamKind::Doubled { 4 } else { 1 };
        let value = |output: usize, input: usize, y: usize, x: usize| {
            weights[((output * inputs + input) * side + y) * side + x]
        };
        let mut packed = Vec::with_capacity(kinds * groups * pairs * down * across * ROWS * 16);
        for at in 0..kinds * groups * pairs * down * across * 2 * ROWS * 8 {
            let input = (at / (8 * ROWS * 2 * down * across) % pairs) * 16
                + at / (8 * ROWS) % 2 * 8
                + at % 8;
            let (row, tap) = (at / 8 % ROWS, at / (8 * ROWS * 2) % (down * across));
            let group = at / (8 * ROWS * 2 * down * across * pairs);
            let (parity, group) = (group / groups, group % groups);
            let (y, x) = (tap / across, tap % across);
            let (output, below) = match walk.rows {
                2 => (row % (ROWS / 2), row / (ROWS / 2)),
                _ => (group * ROWS + row, 0),
            };
            let outside = input >= inputs || output >= outputs || y < below || y - below >= side;
            packed.push(match kind {
                _ if outside => 0.0,
                StreamKind::Doubled => {
                    let rows = doubled(parity / 2, y);
                    let columns = doubled(parity % 2, x);
                    let all = rows
                        .iter()
                        .flat_map(|y| columns.iter().map(move |x| (y, x)));
                    all.map(|(y, x)| value(output, input, *y, *x)).sum()
                }
                _ => value(output, input, y - below, x),
            });
        }
        let mut biases: Vec<f32> = bias.to_vec();
        if walk.rows == 2 {
            biases.extend(bias);
        }
        biases.resize(groups * ROWS, 0.0);
        Ok(Self {
            kind,
            floats,
            weights: device.upload(&floats.bits(&packed))?,
            bias: device.upload(&biases)?,
            inputs,
            outputs,
        })
    }
}

impl StreamConv {
    /// Channels in.
    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }
}

/// Where sums go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StreamTo<'a> {
    /// Into a picture, from a channel on.
    Picture(&'a Picture, usize),
    /// `[3, height, width]`, f16; nothing is activated or added.
    Planes(&'a Buffer),
}

/// What follows sums: `own * activated + factor * picture + …`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamEnd<'a> {
    pub(crate) to: StreamTo<'a>,
    /// Factor of values below zero; 1 where nothing is activated.
    pub(crate) slope: f32,
    pub(crate) own: f32,
    /// Pictures that are added, whose channels begin with those of the outputs.
    pub(crate) first: Option<(&'a Picture, f32)>,
    pub(crate) second: Option<(&'a Picture, f32)>,
}

impl<'a> StreamEnd<'a> {
    pub(crate) fn plain(to: StreamTo<'a>) -> Self {
        Self {
            to,
            slope: 1.0,
            own: 1.0,
            first: None,
            second: None,
        }
    }
}

/// Address, stride and factor of a picture that is added to what `conv` gives at `size`.
fn added(
    conv: &StreamConv,
    size: (usize, usize),
    added: Option<(&Picture, f32)>,
) -> Result<(u64, usize, f32), CudaError> {
    let Some((picture, factor)) = added else {
        return Ok((0, 0, 0.0));
    };
    let fitting = picture.size() == size
        && picture.channels() >= conv.outputs
        && !matches!(conv.kind, StreamKind::Doubled | StreamKind::Planes);
    let expected = format_args!("{} at the same size", conv.outputs);
    let what = "channels of what is added";
    ensure(fitting, NAME, what, picture.channels(), expected)?;
    Ok((picture.address(), picture.stride(), factor))
}

/// Runs a convolution over the first channels of `input`; products of 16-bit floats, sums in f32.
pub(crate) fn conv_stream(
    device: &Device,
    conv: &StreamConv,
    input: &Picture,
    end: StreamEnd<'_>,
    way: ConvWay,
) -> Result<(), CudaError> {
    let (height, width) = input.size();
    let pairs = conv.inputs.div_ceil(16);
    ensure(
        input.channels() >= 16 * pairs,
        NAME,
        "channels of the input",
        input.channels(),
        format_args!("at least {}", 16 * pairs),
    )?;
    let larger = if conv.kind == StreamKind::Doubled {
        2
    } else {
        1
    };
    let size = (larger * height, larger * width);
    let (out, out_stride, out_chunk) = match end.to {
        StreamTo::Picture(out, channel) => {
            let holds = conv.kind != StreamKind::Planes
                && channel.is_multiple_of(8)
                && channel + conv.outputs <= out.channels();
            let expected = format_args!("at least {} from {channel} on", conv.outputs);
            ensure(holds, NAME, "channels of out", out.channels(), expected)?;
            ensure(
                out.size() == size,
                NAME,
                "height of out",
                out.size().0,
                size.0,
            )?;
            (out.address(), out.stride(), channel / 8)
        }
        StreamTo::Planes(out) => {
            let outputs = conv.outputs;
            ensure(conv.kind == StreamKind::Planes, NAME, "outputs", outputs, 3)?;
            fits(NAME, "out", out, 3 * height * width, 2)?;
            (out.address(), 0, 0)
        }
    };
    let (first, first_stride, of_first) = added(conv, size, end.first)?;
    let (second, second_stride, of_second) = added(conv, size, end.second)?;
    let walk = Walk::of(conv.kind, conv.outputs);
    let info = device.info();
    let fast = way == ConvWay::Best && info.capability == (9, 0);
    let groups = conv.outputs.div_ceil(ROWS);
    let kinds = groups * larger * larger;
    let (tiles, resident) = if fast {
        let bands = height.div_ceil(GROUPS * walk.rows);
        (width.div_ceil(STRIP) * bands * kinds, 1)
    } else {
        let down = height.div_ceil(walk.rows);
        let resident = (info.shared_bytes / walk.shared_bytes(false)).clamp(1, 8);
        (width.div_ceil(TILE) * down * kinds, resident)
    };
    let count = |what, value| int(NAME, what, value);
    let places = [
        input.address(),
        conv.weights.address(),
        conv.bias.address(),
        first,
        second,
        out,
        pair(end.slope, end.own),
        pair(of_first, of_second),
        pair(count("height", height)?, count("width", width)?),
        pair(
            count("stride", input.stride())?,
            count("pitch", picture_pitch_px(width))?,
        ),
        pair(count("inputs", pairs)?, count("outputs", groups)?),
        pair(
            count("stride", out_stride)?,
            count("pitch", picture_pitch_px(size.1))?,
        ),
        pair(count("channel", out_chunk)?, count("stride", first_stride)?),
        pair(count("stride", second_stride)?, 0i32),
    ];
    let blocks = tiles.min(info.processors as usize * resident).max(1);
    let grid = Grid {
        blocks: (count("blocks", blocks)?.cast_unsigned(), 1, 1),
        threads: if fast {
            32 * (4 * GROUPS as u32 + 1)
        } else {
            128
        },
        shared_bytes: count("shared bytes", walk.shared_bytes(fast))?.cast_unsigned(),
        early: true,
    };
    let which = usize::from(conv.floats == Floats::Bf16) + if fast { 0 } else { 2 };
    let kernel = Kernel {
        source: "conv_stream",
        name: walk.names[which],
    };
    let shape = [conv.inputs, conv.outputs, height, width];
    // SAFETY: lengths were checked above, those of pictures and weights when they were made.
    unsafe {
        device.launch(
            kernel,
            grid,
            Args::new().with_struct(&places),
            (NAME, &shape),
        )
    }
}

/// `rgb: [3, side * height, side * width]`, f16, into a picture whose channels are the pixels of squares.
pub(crate) fn unshuffle_rgb(
    device: &Device,
    rgb: &Buffer,
    side: usize,
    to: &Picture,
) -> Result<(), CudaError> {
    const OP: &str = "unshuffle_rgb";
    let (height, width) = to.size();
    let known = matches!(side, 1 | 2 | 4) && to.channels() >= 3 * side * side;
    ensure(known, OP, "side", side, "1, 2 or 4, and as many channels")?;
    fits(OP, "rgb", rgb, 3 * side * side * height * width, 2)?;
    let count = |what, value| int(OP, what, value);
    let grid = Grid {
        blocks: (
            count("width", width.div_ceil(128))?.cast_unsigned(),
            count("height", height)?.cast_unsigned(),
            count("channels", to.channels() / 8)?.cast_unsigned(),
        ),
        threads: 128,
        shared_bytes: 0,
        early: false,
    };
    let args = Args::new()
        .with(rgb.address())
        .with(to.address())
        .with(count("height", height)?)
        .with(count("width", width)?)
        .with(count("stride", to.stride())?)
        .with(count("pitch", picture_pitch_px(width))?)
        .with(count("side", side)?);
    let kernel = Kernel {
        source: "conv_stream",
        name: "picture_unshuffle",
    };
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel, grid, args, (OP, &[side, height, width])) }
}

#[cfg(test)]
mod tests {
    use super::super::case::numbers;
    use super::*;

    #[test]
    fn tiles_fit_the_memory_of_a_block() {
        let kinds = [
            StreamKind::Three,
            StreamKind::One,
            StreamKind::Doubled,
            StreamKind::Planes,
        ];
        for kind in kinds {
            for outputs in [32, 64] {
                let walk = Walk::of(kind, outputs);
                assert!(walk.shared_bytes(true) <= 232_448, "{kind:?}");
                assert!(walk.shared_bytes(false) <= 99 << 10, "{kind:?}");
            }
        }
    }

    #[test]
    fn what_is_seen_at_twice_the_size_is_the_nearest_pixels() {
        // A kernel over doubled pixels, and sums of it over the pixels themselves.
        let row: Vec<f32> = numbers(1, 6);
        let weights = numbers(2, 3);
        let at = |x: isize| {
            usize::try_from(x)
                .ok()
                .and_then(|x| row.get(x))
                .map_or(0.0, |v| *v)
        };
        for x in 0..12isize {
            let plain: f32 = (0..3isize)
                .map(|tap| weights[tap as usize] * at((x + tap - 1).div_euclid(2)))
                .sum();
            let parity = x as usize % 2;
            let summed: f32 = (0..2usize)
                .map(|tap| {
                    let weight: f32 = doubled(parity, tap).iter().map(|at| weights[*at]).sum();
                    weight * at(x / 2 - 1 + parity as isize + tap as isize)
                })
                .sum();
            assert!((plain - summed).abs() < 1e-6, "{x}: {plain} {summed}");
        }
    }
}
