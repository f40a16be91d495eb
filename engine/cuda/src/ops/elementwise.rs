//! Sums, norms and gates of rows, and numbers made on the device.

use engine_tensor::ops::{self, Bound, Outcome};

use super::case::{Case, Op, numbers};
use crate::args::Args;
use crate::device::Kernel;
use crate::driver::Grid;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const RMS_NORM: Op = Op {
    name: "rms_norm",
    cases: rms_norm_cases,
};
pub(super) const ADD_RMS_NORM: Op = Op {
    name: "add_rms_norm",
    cases: add_rms_norm_cases,
};
pub(super) const SILU_MUL: Op = Op {
    name: "silu_mul",
    cases: silu_mul_cases,
};
pub(super) const ADD: Op = Op {
    name: "add",
    cases: add_cases,
};

const THREADS: u32 = 256;

pub(crate) fn kernel(name: &'static str) -> Kernel {
    Kernel {
        source: "elementwise",
        name,
    }
}

fn blocks(count: usize, op: &'static str) -> Result<Grid, CudaError> {
    let blocks = count.div_ceil(THREADS as usize);
    let fitting = u32::try_from(blocks).ok().filter(|n| *n <= 1 << 30);
    ensure(fitting.is_some(), op, "elements", count, "fewer")?;
    Ok(Grid {
        blocks: (fitting.unwrap_or(1).max(1), 1, 1),
        threads: THREADS,
        shared_bytes: 0,
        early: false,
    })
}

/// A count that kernels take as `int`.
pub(crate) fn int(op: &'static str, what: &'static str, value: usize) -> Result<i32, CudaError> {
    let fitting = i32::try_from(value);
    ensure(fitting.is_ok(), op, what, value, "under 2^31")?;
    Ok(fitting.unwrap_or(0))
}

pub(crate) fn fits(
    op: &'static str,
    what: &'static str,
    buffer: &Buffer,
    count: usize,
    size: usize,
) -> Result<(), CudaError> {
    ensure(
        buffer.holds(count, size),
        op,
        what,
        buffer.len_bytes(),
        format_args!("at least {count} x {size} bytes"),
    )
}

/// `out = x / sqrt(mean(x^2) + epsilon) * weight`, for each row. `x: [rows, cols]`, `weight: [cols]`, f32;
/// `out: [rows, cols]`, f32, or bf16 when `bf16`. Bits do not depend on the number of rows.
///
/// # Errors
/// `Shape`; those of a launch.
pub fn rms_norm(
    device: &Device,
    (x, weight): (&Buffer, &Buffer),
    (rows, cols): (usize, usize),
    epsilon: f32,
    (out, bf16): (&Buffer, bool),
) -> Result<(), CudaError> {
    norm(
        device,
        (x, None, weight),
        (rows, cols),
        epsilon,
        (out, bf16),
    )
}

/// `x += add`, then as [`rms_norm`]. `add: [rows, cols]`, f32.
///
/// # Errors
/// `Shape`; those of a launch.
pub fn add_rms_norm(
    device: &Device,
    (x, add, weight): (&Buffer, &Buffer, &Buffer),
    shape: (usize, usize),
    epsilon: f32,
    out: (&Buffer, bool),
) -> Result<(), CudaError> {
    norm(device, (x, Some(add), weight), shape, epsilon, out)
}

fn norm(
    device: &Device,
    (x, add, weight): (&Buffer, Option<&Buffer>, &Buffer),
    (rows, cols): (usize, usize),
    epsilon: f32,
    (out, bf16): (&Buffer, bool),
) -> Result<(), CudaError> {
    const OP: &str = "rms_norm";
    ensure(
        rows > 0 && cols > 0,
        OP,
        "rows and cols",
        rows.min(cols),
        "over 0",
    )?;
    fits(OP, "x", x, rows * cols, 4)?;
    fits(OP, "weight", weight, cols, 4)?;
    fits(OP, "out", out, rows * cols, if bf16 { 2 } else { 4 })?;
    let mut args = Args::new().with(x.address());
    if let Some(add) = add {
        fits(OP, "add", add, rows * cols, 4)?;
        args = args.with(add.address());
    }
    let name = match (add.is_some(), bf16) {
        (false, false) => "rms_norm_f32",
        (false, true) => "rms_norm_bf16",
        (true, false) => "add_rms_norm_f32",
        (true, true) => "add_rms_norm_bf16",
    };
    let grid = Grid {
        blocks: (int(OP, "rows", rows)?.cast_unsigned(), 1, 1),
        threads: THREADS,
        shared_bytes: 0,
        early: true,
    };
    let args = args
        .with(weight.address())
        .with(out.address())
        .with(int(OP, "cols", cols)?)
        .with(epsilon);
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel(name), grid, args, (OP, &[rows, cols])) }
}

/// `gate = gate / (1 + e^-gate) * up`; both f32 of `len` elements.
///
/// # Errors
/// `Shape`; those of a launch.
pub fn silu_mul(device: &Device, gate: &Buffer, up: &Buffer, len: usize) -> Result<(), CudaError> {
    const OP: &str = "silu_mul";
    fits(OP, "gate", gate, len, 4)?;
    fits(OP, "up", up, len, 4)?;
    let args = Args::new()
        .with(gate.address())
        .with(up.address())
        .with(len as u64);
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel("silu_mul_f32"), blocks(len, OP)?, args, (OP, &[len])) }
}

/// `x += y`; both f32 of `len` elements.
///
/// # Errors
/// `Shape`; those of a launch.
pub fn add(device: &Device, x: &Buffer, y: &Buffer, len: usize) -> Result<(), CudaError> {
    const OP: &str = "add";
    fits(OP, "x", x, len, 4)?;
    fits(OP, "y", y, len, 4)?;
    let args = Args::new()
        .with(x.address())
        .with(y.address())
        .with(len as u64);
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel("add_f32"), blocks(len, OP)?, args, (OP, &[len])) }
}

/// Fills `to` with uniform bf16 in -`amplitude` to `amplitude`, from a seed: random weights without a copy.
///
/// # Errors
/// Those of a launch.
pub fn fill_bf16(device: &Device, to: &Buffer, seed: u32, amplitude: f32) -> Result<(), CudaError> {
    fill(device, "fill_bf16", to, seed, amplitude)
}

/// The same in f16.
///
/// # Errors
/// Those of a launch.
pub fn fill_half(device: &Device, to: &Buffer, seed: u32, amplitude: f32) -> Result<(), CudaError> {
    fill(device, "fill_half", to, seed, amplitude)
}

fn fill(
    device: &Device,
    name: &'static str,
    to: &Buffer,
    seed: u32,
    amplitude: f32,
) -> Result<(), CudaError> {
    let pairs = to.len_bytes() / 4;
    let args = Args::new()
        .with(to.address())
        .with(pairs as u64)
        .with(seed)
        .with(amplitude);
    let grid = Grid {
        blocks: (2048, 1, 1),
        threads: THREADS,
        shared_bytes: 0,
        early: false,
    };
    // SAFETY: writes `pairs` words of 4 bytes.
    unsafe { device.launch(kernel(name), grid, args, (name, &[pairs])) }
}

/// Reads all of `from` (in steps of 64 KiB) and keeps nothing: how fast memory can be read. `sink`: 4 bytes.
///
/// # Errors
/// `Shape`; those of a launch.
pub fn read_all(device: &Device, from: &Buffer, sink: &Buffer) -> Result<(), CudaError> {
    const OP: &str = "read_all";
    fits(OP, "sink", sink, 1, 4)?;
    let blocks = from.len_bytes() / (512 * 8 * 16);
    let grid = Grid {
        blocks: (int(OP, "blocks", blocks)?.cast_unsigned().max(1), 1, 1),
        threads: 512,
        shared_bytes: 0,
        early: false,
    };
    ensure(blocks > 0, OP, "bytes", from.len_bytes(), "at least 64 KiB")?;
    let args = Args::new().with(from.address()).with(sink.address());
    // SAFETY: each block reads 64 KiB, and there are as many as fit.
    unsafe { device.launch(kernel(OP), grid, args, (OP, &[blocks])) }
}

const NORM_SHAPES: [(usize, usize); 7] = [
    (1, 16),
    (3, 64),
    (2, 577),
    (1, 5),
    (16, 4096),
    (300, 576),
    (2, 8192),
];

fn rms_norm_cases() -> Vec<Case> {
    NORM_SHAPES
        .into_iter()
        .map(|(rows, cols)| {
            let name = format!("{rows} x {cols}");
            Case::new(name, Bound::Relative(2e-6), move |device, cpu| {
                let x = numbers(1, rows * cols);
                let weight = numbers(2, cols);
                let mut reference = vec![0.0; x.len()];
                ops::rms_norm(cpu, &x, &weight, 1e-5, &mut reference)?;
                let (x, weight) = (device.upload(&x)?, device.upload(&weight)?);
                let out = device.alloc(rows * cols * 4)?;
                device.fill(&out, 0xff)?;
                rms_norm(device, (&x, &weight), (rows, cols), 1e-5, (&out, false))?;
                let fast = device.read(&out, 0, rows * cols)?;
                Ok(Outcome { fast, reference })
            })
        })
        .collect()
}

fn add_rms_norm_cases() -> Vec<Case> {
    NORM_SHAPES
        .into_iter()
        .map(|(rows, cols)| {
            let name = format!("{rows} x {cols}");
            Case::new(name, Bound::Relative(2e-6), move |device, cpu| {
                let mut sum = numbers(1, rows * cols);
                let (more, weight) = (numbers(3, rows * cols), numbers(2, cols));
                let (x, weight_there) = (device.upload(&sum)?, device.upload(&weight)?);
                let more_there = device.upload(&more)?;
                ops::add(cpu, &mut sum, &more)?;
                let mut reference = vec![0.0; sum.len()];
                ops::rms_norm(cpu, &sum, &weight, 1e-5, &mut reference)?;
                reference.extend(&sum);
                let out = device.alloc(rows * cols * 4)?;
                device.fill(&out, 0xff)?;
                let with = (&x, &more_there, &weight_there);
                add_rms_norm(device, with, (rows, cols), 1e-5, (&out, false))?;
                let mut fast: Vec<f32> = device.read(&out, 0, rows * cols)?;
                fast.extend(device.read::<f32>(&x, 0, rows * cols)?);
                Ok(Outcome { fast, reference })
            })
        })
        .collect()
}

fn silu_mul_cases() -> Vec<Case> {
    [(1, 1.0), (160, 8.0), (20_000, 90.0)]
        .into_iter()
        .map(|(len, range)| {
            let name = format!("{len} elements up to {range}");
            Case::new(name, Bound::Relative(2e-6), move |device, cpu| {
                let mut gate: Vec<f32> = numbers(1, len).iter().map(|x| x * range).collect();
                let up = numbers(2, len);
                let (to, with) = (device.upload(&gate)?, device.upload(&up)?);
                ops::silu_mul(cpu, &mut gate, &up)?;
                silu_mul(device, &to, &with, len)?;
                let fast = device.read(&to, 0, len)?;
                Ok(Outcome {
                    fast,
                    reference: gate,
                })
            })
        })
        .collect()
}

fn add_cases() -> Vec<Case> {
    [1, 15, 16, 577]
        .into_iter()
        .map(|len| {
            let name = format!("{len} elements");
            Case::new(name, Bound::Equal, move |device, cpu| {
                let (mut x, y) = (numbers(1, len), numbers(2, len));
                let (to, with) = (device.upload(&x)?, device.upload(&y)?);
                ops::add(cpu, &mut x, &y)?;
                add(device, &to, &with, len)?;
                let fast = device.read(&to, 0, len)?;
                Ok(Outcome { fast, reference: x })
            })
        })
        .collect()
}
