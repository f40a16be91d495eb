//! Convolutions 3 x 3 of pictures of 64 channels, with what follows them fused.

use engine_tensor::ops::{self, Activation, Bound, Conv2d, ConvEnd, Outcome};
use engine_tensor::{Cpu, Planes};

use super::case::{Case, Op, from_half, numbers, to_half};
use super::elementwise::{fits, int};
use crate::args::{Args, pair};
use crate::device::Kernel;
use crate::driver::Grid;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const OP: Op = Op {
    name: "conv3x3",
    cases,
};

/// Channels between convolutions.
const FEATURES: usize = 64;
/// Pixels of the border before a row: rows begin at multiples of 128 bytes.
const LEFT: usize = 8;
/// Pixels of a strip.
const STRIP: usize = 128;
/// Rows that a block holds, and at the end of a network.
const SLOTS: (usize, usize) = (7, 6);
/// The most outputs at the end of a network.
const LAST_OUTPUTS: usize = 48;
/// Pixels of a tile of the kernels for any target.
const TILE: usize = 64;

/// Pixels of a row of a picture of `width` with its border.
pub fn picture_pitch_px(width: usize) -> usize {
    width.next_multiple_of(STRIP) + 2 * LEFT
}

/// Channels of pixels on the device: `[height + 2, channels / 8, pitch, 8]`, f16, with a border of zeros, eight pixels
/// before a row and as many or more after it.
#[derive(Debug)]
pub struct Picture {
    buffer: Buffer,
    chunks: usize,
    height: usize,
    width: usize,
}

impl Picture {
    /// Zeros: `channels` is a multiple of 8.
    ///
    /// # Errors
    /// `Shape`; those of an allocation.
    pub fn zeros(
        device: &Device,
        channels: usize,
        (height, width): (usize, usize),
    ) -> Result<Self, CudaError> {
        const OP: &str = "conv3x3";
        ensure(
            channels > 0 && channels.is_multiple_of(8),
            OP,
            "channels",
            channels,
            "a multiple of 8",
        )?;
        ensure(
            height > 0 && width > 0,
            OP,
            "height and width",
            height.min(width),
            "over 0",
        )?;
        let side = 1 << 16;
        ensure(
            height < side && width < side,
            OP,
            "height and width",
            height.max(width),
            "under 65536",
        )?;
        let chunks = channels / 8;
        let pixels = (height + 2) * chunks * picture_pitch_px(width);
        Ok(Self {
            buffer: device.zeros(pixels * 16)?,
            chunks,
            height,
            width,
        })
    }

    /// Height and width in pixels.
    pub fn size(&self) -> (usize, usize) {
        (self.height, self.width)
    }

    /// Channels.
    pub fn channels(&self) -> usize {
        self.chunks * 8
    }

    pub(crate) fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// Units of 16 bytes of a row of all channels.
    pub(crate) fn stride(&self) -> usize {
        self.chunks * picture_pitch_px(self.width)
    }

    fn at(&self, channel: usize, y: usize, x: usize) -> usize {
        let pitch = picture_pitch_px(self.width);
        (((y + 1) * self.chunks + channel / 8) * pitch + x + LEFT) * 8 + channel % 8
    }

    /// Writes `values: [channels, height, width]` (f16 bits) for as many channels as they are.
    pub(crate) fn write(&self, device: &Device, values: &[u16]) -> Result<(), CudaError> {
        let plane = self.height * self.width;
        let mut all = vec![0u16; self.buffer.len_bytes() / 2];
        for (at, value) in values.iter().enumerate() {
            all[self.at(at / plane, at % plane / self.width, at % self.width)] = *value;
        }
        device.write(&self.buffer, 0, &all)
    }

    /// Its values `[channels, height, width]`, and whether its border is zeros still.
    pub(super) fn read(&self, device: &Device) -> Result<(Vec<u16>, bool), CudaError> {
        let mut all: Vec<u16> = device.read(&self.buffer, 0, self.buffer.len_bytes() / 2)?;
        let mut values = Vec::new();
        for channel in 0..self.chunks * 8 {
            for y in 0..self.height {
                for x in 0..self.width {
                    values.push(std::mem::take(&mut all[self.at(channel, y, x)]));
                }
            }
        }
        Ok((values, all.iter().all(|value| *value == 0)))
    }
}

/// Weights of a convolution on the device.
#[derive(Debug)]
pub(crate) struct Convolution {
    weights: Buffer,
    bias: Buffer,
    slopes: Buffer,
    /// 3 or 64.
    inputs: usize,
    /// 64, or 3 times the scale's square at the end.
    outputs: usize,
}

impl Convolution {
    /// Of `weights: [outputs, inputs, 3, 3]`, `bias: [outputs]` and slopes below zero `[outputs]`, or none.
    pub(crate) fn new(
        device: &Device,
        (outputs, inputs): (usize, usize),
        weights: &[f32],
        bias: &[f32],
        slopes: Option<&[f32]>,
    ) -> Result<Self, CudaError> {
        const OP: &str = "conv3x3";
        let known = matches!(
            (inputs, outputs),
            (3 | FEATURES, FEATURES) | (FEATURES, 12 | LAST_OUTPUTS)
        );
        ensure(
            known,
            OP,
            "inputs",
            inputs,
            "3 to 64, or 64 to 64, 12 or 48 channels",
        )?;
        ensure(
            weights.len() == outputs * inputs * 9,
            OP,
            "weights",
            weights.len(),
            outputs * inputs * 9,
        )?;
        ensure(bias.len() == outputs, OP, "bias", bias.len(), outputs)?;
        if let Some(slopes) = slopes {
            ensure(slopes.len() == outputs, OP, "slopes", slopes.len(), outputs)?;
        }
        let chunks = inputs.div_ceil(8);
        // A tenth tap of zeros where taps are paired.
        let taps = if chunks == 1 { 10 } else { 9 };
        let mut packed = vec![0.0; taps * chunks * FEATURES * 8];
        for (at, value) in weights.iter().enumerate() {
            let (output, input, tap) = (at / 9 / inputs, at / 9 % inputs, at % 9);
            packed[((tap * chunks + input / 8) * FEATURES + output) * 8 + input % 8] = *value;
        }
        let padded = |values: Option<&[f32]>, rest: f32| {
            let mut all = vec![rest; FEATURES];
            if let Some(values) = values {
                all[..values.len()].copy_from_slice(values);
            }
            all
        };
        Ok(Self {
            weights: device.upload(&to_half(&packed))?,
            bias: device.upload(&padded(Some(bias), 0.0))?,
            slopes: device.upload(&padded(slopes, 1.0))?,
            inputs,
            outputs,
        })
    }

    pub(crate) fn is_last(&self) -> bool {
        self.outputs != FEATURES
    }

    /// How many times larger the picture becomes.
    pub(crate) fn scale(&self) -> usize {
        match self.outputs {
            12 => 2,
            LAST_OUTPUTS => 4,
            _ => 1,
        }
    }
}

/// Where the sums go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ConvTo<'a> {
    /// Activated, into a picture of 64 channels.
    Picture(&'a Picture),
    /// Shuffled to `scale` times the size with the picture (8 channels, its first three) added: `[3, scale * height,
    /// scale * width]`, f16.
    Shuffled(&'a Picture, &'a Buffer),
}

/// Which kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConvWay {
    /// The device's best.
    Best,
    /// Those for any target.
    Tiles,
}

/// `to = activation(weights * input + bias)`; products of f16, sums in f32.
pub(crate) fn conv3x3(
    device: &Device,
    conv: &Convolution,
    input: &Picture,
    to: ConvTo<'_>,
    way: ConvWay,
) -> Result<(), CudaError> {
    const OP: &str = "conv3x3";
    let chunks = conv.inputs.div_ceil(8);
    let (height, width) = input.size();
    ensure(
        input.chunks == chunks,
        OP,
        "channels of the input",
        input.chunks * 8,
        chunks * 8,
    )?;
    let (out, base) = match to {
        ConvTo::Picture(out) => {
            ensure(
                !conv.is_last() && out.chunks * 8 == FEATURES,
                OP,
                "channels of out",
                out.chunks * 8,
                FEATURES,
            )?;
            ensure(
                out.size() == (height, width),
                OP,
                "height of out",
                out.height,
                height,
            )?;
            (out.buffer.address(), 0)
        }
        ConvTo::Shuffled(base, out) => {
            ensure(
                conv.is_last() && base.chunks == 1,
                OP,
                "channels of the base",
                base.chunks * 8,
                8,
            )?;
            ensure(
                base.size() == (height, width),
                OP,
                "height of the base",
                base.height,
                height,
            )?;
            fits(OP, "out", out, conv.outputs * height * width, 2)?;
            (out.address(), base.buffer.address())
        }
    };
    let info = device.info();
    let strips = way == ConvWay::Best && info.capability == (9, 0);
    let (names, threads, work, shared) = if strips {
        let weights = if chunks == 1 { 10 } else { 9 * chunks } * FEATURES * 16;
        let slots = if conv.is_last() { SLOTS.1 } else { SLOTS.0 };
        let stage = if conv.is_last() {
            LAST_OUTPUTS * STRIP * 4
        } else {
            8 * STRIP * 16
        };
        let rows = width.div_ceil(STRIP) * height;
        let shared = weights + slots * chunks * (STRIP + 2) * 16 + 2 * stage + 8 * (2 * slots + 1);
        (
            ["conv_strips_3", "conv_strips_64", "conv_strips_64_last"],
            288,
            rows,
            shared,
        )
    } else {
        // Sums take the place of the rows they came from; with few channels that is more.
        let rows = (3 * chunks * (TILE + 2) * 16).max(8 * TILE * 16);
        let tiles = width.div_ceil(TILE) * height;
        (
            ["conv_tiles_3", "conv_tiles_64", "conv_tiles_64_last"],
            128,
            tiles,
            9 * chunks * FEATURES * 16 + rows,
        )
    };
    let resident = if strips {
        1
    } else {
        (info.shared_bytes / shared).clamp(1, 8)
    };
    let blocks = work.min(info.processors as usize * resident).max(1);
    // Strips are cut alike where that leaves few processors idle: a block that goes on with another strip was seen to
    // take a fifth longer.
    let across = width.div_ceil(STRIP);
    let parts = (blocks / across).min(height);
    let parts = if strips && parts * across * 10 >= blocks * 9 {
        parts
    } else {
        0
    };
    let blocks = if parts > 0 { parts * across } else { blocks };
    let places = [
        input.buffer.address(),
        conv.weights.address(),
        conv.bias.address(),
        conv.slopes.address(),
        out,
        base,
        pair(int(OP, "height", height)?, int(OP, "width", width)?),
        pair(
            int(OP, "pitch", picture_pitch_px(width))?,
            int(OP, "scale", conv.scale())?,
        ),
        pair(int(OP, "parts", parts)?, 0i32),
    ];
    let grid = Grid {
        blocks: (int(OP, "blocks", blocks)?.cast_unsigned(), 1, 1),
        threads,
        shared_bytes: int(OP, "shared bytes", shared)?.cast_unsigned(),
        early: true,
    };
    let kernel = Kernel {
        source: "conv3x3",
        name: names[if chunks == 1 {
            0
        } else {
            1 + usize::from(conv.is_last())
        }],
    };
    let shape = [conv.inputs, conv.outputs, height, width];
    // SAFETY: lengths were checked above, those of pictures and weights when they were made.
    unsafe { device.launch(kernel, grid, Args::new().with_struct(&places), (OP, &shape)) }
}

/// `rgb: [3, height, width]`, f16, into a picture of 8 channels.
pub(crate) fn pack_rgb(device: &Device, rgb: &Buffer, to: &Picture) -> Result<(), CudaError> {
    const OP: &str = "pack_rgb";
    let (height, width) = to.size();
    ensure(to.chunks == 1, OP, "channels", to.chunks * 8, 8)?;
    fits(OP, "rgb", rgb, 3 * height * width, 2)?;
    let grid = Grid {
        blocks: (
            int(OP, "width", width.div_ceil(256))?.cast_unsigned(),
            int(OP, "height", height)?.cast_unsigned(),
            1,
        ),
        threads: 256,
        shared_bytes: 0,
        early: false,
    };
    let args = Args::new()
        .with(rgb.address())
        .with(to.buffer.address())
        .with(int(OP, "height", height)?)
        .with(int(OP, "width", width)?)
        .with(int(OP, "pitch", picture_pitch_px(width))?);
    let kernel = Kernel {
        source: "conv3x3",
        name: "picture_pack_rgb",
    };
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel, grid, args, (OP, &[height, width])) }
}

fn cases() -> Vec<Case> {
    let sizes = [(1, 1), (7, 5), (3, 128), (9, 130), (40, 300), (2, 257)];
    let mut cases = Vec::new();
    for (height, width) in sizes {
        for (inputs, outputs) in [(3, 64), (64, 64), (64, 12), (64, 48)] {
            for way in [ConvWay::Best, ConvWay::Tiles] {
                let name =
                    format!("{inputs} to {outputs} channels, {width} x {height} px, {way:?}");
                cases.push(Case::new(
                    name,
                    Bound::Relative(2e-3),
                    move |device, cpu| {
                        run_case(device, cpu, (inputs, outputs), (height, width), way)
                    },
                ));
            }
        }
    }
    cases
}

fn run_case(
    device: &Device,
    cpu: &Cpu,
    (inputs, outputs): (usize, usize),
    (height, width): (usize, usize),
    way: ConvWay,
) -> Result<Outcome, CudaError> {
    let rounded = |seed, count| from_half(&to_half(&numbers(seed, count)));
    let pixels = rounded(1, inputs * height * width);
    let weights: Vec<f32> = rounded(2, outputs * inputs * 9)
        .iter()
        .map(|w| w / 16.0)
        .collect();
    let bias = numbers(3, outputs);
    let last = outputs != FEATURES;
    let slopes = numbers(4, outputs);
    let activation = if last {
        Activation::None
    } else {
        Activation::Prelu(slopes.clone())
    };
    let conv = Conv2d::new(&weights, &bias, (&[inputs], 3), &activation)?;
    let mut from = Planes::zeros(inputs.div_ceil(16), height, width)?;
    from.fill(&pixels)?;
    let mut to = Planes::zeros(outputs.div_ceil(16), height, width)?;
    ops::conv2d(cpu, &conv, from.all(), ConvEnd::default(), to.all_mut())?;
    let there = Convolution::new(
        device,
        (outputs, inputs),
        &weights,
        &bias,
        (!last).then_some(&slopes),
    )?;
    let input = Picture::zeros(device, if inputs == 3 { 8 } else { 64 }, (height, width))?;
    input.write(device, &to_half(&pixels))?;
    if last {
        let base = rounded(5, 3 * height * width);
        let mut reference = vec![0.0; outputs * height * width];
        ops::pixel_shuffle(cpu, to.all(), there.scale(), Some(&base), &mut reference)?;
        let rgb = device.upload(&to_half(&base))?;
        let picture = Picture::zeros(device, 8, (height, width))?;
        pack_rgb(device, &rgb, &picture)?;
        let out = device.alloc(2 * outputs * height * width)?;
        device.fill(&out, 0xff)?;
        conv3x3(
            device,
            &there,
            &input,
            ConvTo::Shuffled(&picture, &out),
            way,
        )?;
        let fast = from_half(&device.read(&out, 0, outputs * height * width)?);
        return Ok(Outcome { fast, reference });
    }
    let out = Picture::zeros(device, FEATURES, (height, width))?;
    conv3x3(device, &there, &input, ConvTo::Picture(&out), way)?;
    let (bits, border) = out.read(device)?;
    let mut fast = from_half(&bits);
    if !border {
        fast.push(f32::NAN);
    }
    let reference = to.values(outputs)?;
    Ok(Outcome { fast, reference })
}
