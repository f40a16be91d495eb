//! Norms of groups of channels of bf16 pictures, and what attention over pixels needs beside products.

use engine_tensor::ops::{Bound, Outcome};

use super::case::{Case, Op, from_bf16, numbers, to_bf16};
use super::conv3x3::{Picture, picture_pitch_px};
use super::elementwise::{fits, int};
use crate::args::Args;
use crate::device::Kernel;
use crate::driver::Grid;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const GROUP_NORM: Op = Op {
    name: "group_norm",
    cases: norm_cases,
};
pub(super) const SOFTMAX: Op = Op {
    name: "softmax_rows",
    cases: softmax_cases,
};

/// Groups of a norm.
const GROUPS: usize = 32;
/// Rows of pixels whose sums one block makes.
const BAND: usize = 8;

fn kernel(name: &'static str) -> Kernel {
    Kernel {
        source: "normalize",
        name,
    }
}

fn grid(
    op: &'static str,
    (x, y, z): (usize, usize, usize),
    threads: u32,
) -> Result<Grid, CudaError> {
    ensure(
        y < 1 << 16 && z < 1 << 16,
        op,
        "rows",
        y.max(z),
        "under 65536",
    )?;
    let count = |value| int(op, "blocks", value).map(i32::cast_unsigned);
    Ok(Grid {
        blocks: (count(x)?, count(y)?, count(z)?),
        threads,
        shared_bytes: 0,
        early: true,
    })
}

/// Memory that norms of pictures of up to `channels` and `height` take between their launches.
#[derive(Debug)]
pub(crate) struct NormMemory {
    sums: Buffer,
    factors: Buffer,
}

impl NormMemory {
    pub(crate) fn new(device: &Device, channels: usize, height: usize) -> Result<Self, CudaError> {
        Ok(Self {
            sums: device.alloc(channels / 4 * height.div_ceil(BAND) * 8)?,
            factors: device.alloc(channels * 8)?,
        })
    }
}

/// Where normed values go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NormTo<'a> {
    /// Activated by SiLU, to the first channels of a picture.
    Picture(&'a Picture),
    /// As they are, to `[height * width, channels]`, bf16.
    Tokens(&'a Buffer),
}

/// Norms the first `channels` of `input` in 32 groups; `weight` and `bias`: `[channels]`, f32.
pub(crate) fn group_norm(
    device: &Device,
    (input, channels): (&Picture, usize),
    (weight, bias): (&Buffer, &Buffer),
    epsilon: f32,
    to: NormTo<'_>,
    memory: &NormMemory,
) -> Result<(), CudaError> {
    const OP: &str = "group_norm";
    let (height, width) = input.size();
    let known = matches!(channels / GROUPS, 4 | 8 | 16) && channels.is_multiple_of(GROUPS);
    ensure(known, OP, "channels", channels, "128, 256 or 512")?;
    let expected = format_args!("at least {channels}");
    ensure(
        input.channels() >= channels,
        OP,
        "channels",
        input.channels(),
        expected,
    )?;
    fits(OP, "weight", weight, channels, 4)?;
    fits(OP, "bias", bias, channels, 4)?;
    let bands = height.div_ceil(BAND);
    fits(OP, "sums", &memory.sums, channels / 4 * bands, 8)?;
    fits(OP, "factors", &memory.factors, channels, 8)?;
    let count = |what, value| int(OP, what, value);
    let (stride, pitch) = (
        count("stride", input.stride())?,
        count("pitch", picture_pitch_px(width))?,
    );
    let shape = [channels, height, width];
    let args = Args::new()
        .with(input.address())
        .with(memory.sums.address())
        .with(count("height", height)?)
        .with(count("width", width)?)
        .with(stride)
        .with(pitch)
        .with(count("rows", BAND)?);
    let blocks = grid(OP, (bands, channels / 8, 1), 256)?;
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel("group_sums"), blocks, args, (OP, &shape)) }?;
    let args = Args::new()
        .with(memory.sums.address())
        .with(weight.address())
        .with(bias.address())
        .with(memory.factors.address())
        .with(count("channels", channels)?)
        .with(count("bands", bands)?)
        .with((channels / GROUPS * height * width) as f32)
        .with(epsilon);
    let blocks = grid(OP, (GROUPS, 1, 1), 32)?;
    // SAFETY: as above.
    unsafe { device.launch(kernel("group_factors"), blocks, args, (OP, &shape)) }?;
    let (name, out, out_stride) = match to {
        NormTo::Picture(out) => {
            let fitting = out.size() == (height, width) && out.channels() >= channels;
            ensure(fitting, OP, "channels of out", out.channels(), expected)?;
            ("group_apply_silu", out.address(), out.stride())
        }
        NormTo::Tokens(out) => {
            fits(OP, "out", out, channels * height * width, 2)?;
            ("group_apply_tokens", out.address(), 0)
        }
    };
    let args = Args::new()
        .with(input.address())
        .with(memory.factors.address())
        .with(out)
        .with(count("channels", channels)?)
        .with(count("height", height)?)
        .with(count("width", width)?)
        .with(stride)
        .with(pitch)
        .with(count("stride", out_stride)?);
    let blocks = grid(OP, (width.div_ceil(512), height, channels / 8), 128)?;
    // SAFETY: as above.
    unsafe { device.launch(kernel(name), blocks, args, (OP, &shape)) }
}

/// `picture += tokens + bias`; tokens: `[height * width, channels]`, bf16; bias: `[channels]`, f32.
pub(crate) fn add_tokens(
    device: &Device,
    (tokens, bias): (&Buffer, &Buffer),
    (picture, channels): (&Picture, usize),
) -> Result<(), CudaError> {
    const OP: &str = "add_tokens";
    let (height, width) = picture.size();
    let fitting = channels.is_multiple_of(8) && channels <= picture.channels();
    ensure(fitting, OP, "channels", channels, picture.channels())?;
    fits(OP, "tokens", tokens, channels * height * width, 2)?;
    fits(OP, "bias", bias, channels, 4)?;
    let count = |what, value| int(OP, what, value);
    let args = Args::new()
        .with(tokens.address())
        .with(bias.address())
        .with(picture.address())
        .with(count("channels", channels)?)
        .with(count("height", height)?)
        .with(count("width", width)?)
        .with(count("stride", picture.stride())?)
        .with(count("pitch", picture_pitch_px(width))?);
    let blocks = grid(OP, (width.div_ceil(128), height, channels / 8), 128)?;
    let shape = [channels, height, width];
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel("add_tokens"), blocks, args, (OP, &shape)) }
}

/// `rows: [count, n]`, bf16, plus `bias: [n]`, f32; `n` is even.
pub(crate) fn add_bias(
    device: &Device,
    rows: &Buffer,
    bias: &Buffer,
    (count, n): (usize, usize),
) -> Result<(), CudaError> {
    const OP: &str = "add_bias";
    ensure(n > 0 && n.is_multiple_of(2), OP, "n", n, "even")?;
    fits(OP, "rows", rows, count * n, 2)?;
    fits(OP, "bias", bias, n, 4)?;
    let pairs = count * n / 2;
    let args = Args::new()
        .with(rows.address())
        .with(bias.address())
        .with(pairs as u64)
        .with(int(OP, "n", n)?);
    let blocks = grid(OP, (pairs.div_ceil(256), 1, 1), 256)?;
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel("add_bias_bf"), blocks, args, (OP, &[count, n])) }
}

/// `out = softmax(scale * row)` of each of `count` rows of `n`, f32 to bf16; `n` is a multiple of 4.
pub(crate) fn softmax_rows(
    device: &Device,
    input: &Buffer,
    out: &Buffer,
    (count, n): (usize, usize),
    scale: f32,
) -> Result<(), CudaError> {
    const OP: &str = "softmax_rows";
    ensure(n > 0 && n.is_multiple_of(4), OP, "n", n, "a multiple of 4")?;
    fits(OP, "input", input, count * n, 4)?;
    fits(OP, "out", out, count * n, 2)?;
    let args = Args::new()
        .with(input.address())
        .with(out.address())
        .with(int(OP, "n", n)?)
        .with(scale);
    let blocks = grid(OP, (count, 1, 1), 512)?;
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel("softmax_rows"), blocks, args, (OP, &[count, n])) }
}

fn norm_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for channels in [128, 256, 512] {
        for (height, width) in [(1, 1), (9, 130), (17, 33)] {
            for tokens in [false, true] {
                let name = format!("{channels} channels, {width} x {height} px, tokens {tokens}");
                cases.push(Case::new(name, Bound::Relative(8e-3), move |device, _| {
                    norm_case(device, channels, (height, width), tokens)
                }));
            }
        }
    }
    cases
}

fn norm_case(
    device: &Device,
    channels: usize,
    (height, width): (usize, usize),
    tokens: bool,
) -> Result<Outcome, CudaError> {
    let plane = height * width;
    // Far from zero, so that sums of squares alone would not do.
    let values: Vec<f32> = numbers(1, channels * plane)
        .iter()
        .map(|v| v + 1.5)
        .collect();
    let values = from_bf16(&to_bf16(&values));
    let (weight, bias) = (numbers(2, channels), numbers(3, channels));
    let group = channels / GROUPS * plane;
    let mut reference = vec![0.0f32; values.len()];
    let groups: Vec<(f64, f64)> = values
        .chunks_exact(group)
        .map(|of_group| {
            let mean = of_group.iter().map(|v| f64::from(*v)).sum::<f64>() / group as f64;
            let off = of_group.iter().map(|v| (f64::from(*v) - mean).powi(2));
            (mean, (off.sum::<f64>() / group as f64 + 1e-6).sqrt())
        })
        .collect();
    for (at, value) in values.iter().enumerate() {
        let (mean, root) = groups[at / group];
        let channel = at / plane;
        let normed = (f64::from(*value) - mean) / root * f64::from(weight[channel])
            + f64::from(bias[channel]);
        if tokens {
            reference[at % plane * channels + channel] = normed as f32;
        } else {
            reference[at] = (normed / (1.0 + (-normed).exp())) as f32;
        }
    }
    let input = Picture::zeros(device, channels + 8, (height, width))?;
    input.write(device, &to_bf16(&values))?;
    let (weight, bias) = (device.upload(&weight)?, device.upload(&bias)?);
    let memory = NormMemory::new(device, channels, height)?;
    let from = (&input, channels);
    if tokens {
        let out = device.alloc(2 * values.len())?;
        device.fill(&out, 0xff)?;
        let to = NormTo::Tokens(&out);
        group_norm(device, from, (&weight, &bias), 1e-6, to, &memory)?;
        let fast = from_bf16(&device.read(&out, 0, values.len())?);
        return Ok(Outcome { fast, reference });
    }
    let out = Picture::zeros(device, channels, (height, width))?;
    let to = NormTo::Picture(&out);
    group_norm(device, from, (&weight, &bias), 1e-6, to, &memory)?;
    let (bits, border) = out.read(device)?;
    let mut fast = from_bf16(&bits);
    if !border {
        fast.push(f32::NAN);
    }
    reference.resize(fast.len(), 0.0);
    Ok(Outcome { fast, reference })
}

fn softmax_cases() -> Vec<Case> {
    [(1, 4), (3, 1000), (2, 16384)]
        .into_iter()
        .map(|(count, n)| {
            Case::new(
                format!("{count} x {n}"),
                Bound::Relative(6e-3),
                move |device, _| {
                    let values: Vec<f32> = numbers(1, count * n).iter().map(|v| v * 40.0).collect();
                    let mut reference = Vec::new();
                    for row in values.chunks_exact(n) {
                        let most = row.iter().copied().fold(f32::MIN, f32::max);
                        let powers: Vec<f64> = row
                            .iter()
                            .map(|v| f64::from((v - most) * 0.25).exp())
                            .collect();
                        let sum: f64 = powers.iter().sum();
                        reference.extend(powers.iter().map(|power| (power / sum) as f32));
                    }
                    let (there, out) = (device.upload(&values)?, device.alloc(2 * count * n)?);
                    device.fill(&out, 0xff)?;
                    softmax_rows(device, &there, &out, (count, n), 0.25)?;
                    let fast = from_bf16(&device.read(&out, 0, count * n)?);
                    Ok(Outcome { fast, reference })
                },
            )
        })
        .collect()
}
