//! Products of 1 to 16 rows with bf16 weights.

use engine_tensor::ops::{self, Bound, Input, Outcome, Product};
use engine_tensor::{Bytes, Cpu, DType, PackedMatrix};

use super::GEMV_ROWS;
use super::case::{Case, Op, from_bf16, le_bytes, numbers, to_bf16};
use super::elementwise::{fits, int};
use crate::args::{Args, pair};
use crate::device::Kernel;
use crate::driver::Grid;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const OP: Op = Op {
    name: "gemv",
    cases,
};

/// Most bytes of rows that a block keeps: three blocks share a processor.
const KEPT_BYTES: usize = 68 << 10;

/// What is done with the sums.
#[derive(Debug, Clone, Copy)]
pub enum GemvEnd<'a> {
    /// `out = sums`, f32.
    Store,
    /// `out += sums`, f32: the residual stream.
    Add,
    /// `out = silu(sums) * (x up^T)`, bf16; `up: [n, k]` bf16.
    Gate(&'a Buffer),
    /// `out = sums`, f32, and the largest of each row with its index into `best: [rows]`, u64, which must have been
    /// zeroed: the index is the complement of the lower half.
    Best(&'a Buffer),
}

/// One product: `sums[r, n] = sum_k x[r, k] weights[n, k]`.
#[derive(Debug, Clone, Copy)]
pub struct Gemv<'a> {
    /// `[n, k]`, bf16.
    pub weights: &'a Buffer,
    /// `[rows, k]`, bf16; with a norm f32.
    pub x: &'a Buffer,
    /// Normed first: the norm's weight `[k]`, f32, and its epsilon. `x * weight` is rounded to bf16 before the
    /// product, the root is divided out after it.
    pub norm: Option<(&'a Buffer, f32)>,
    /// `[n]`, f32.
    pub bias: Option<&'a Buffer>,
    /// What follows.
    pub end: GemvEnd<'a>,
    /// `[rows, n]`.
    pub out: &'a Buffer,
    /// 1 to 16.
    pub rows: usize,
    /// Outputs; multiples of 8 with [`GemvEnd::Gate`].
    pub n: usize,
    /// Inputs: a multiple of 32.
    pub k: usize,
}

/// Runs a product. Accumulates in f32. An output's bits depend on its own rows of `x` and weights alone.
///
/// # Errors
/// `Shape`, also for an end that has no kernel; those of a launch.
pub fn gemv(device: &Device, product: &Gemv<'_>) -> Result<(), CudaError> {
    const OP: &str = "gemv";
    let Gemv { rows, n, k, .. } = *product;
    ensure((1..=GEMV_ROWS).contains(&rows), OP, "rows", rows, "1 to 16")?;
    ensure(
        k > 0 && k.is_multiple_of(32),
        OP,
        "k",
        k,
        "a multiple of 32",
    )?;
    ensure(n > 0, OP, "n", n, "over 0")?;
    fits(OP, "weights", product.weights, n * k, 2)?;
    let x_size = if product.norm.is_some() { 4 } else { 2 };
    fits(OP, "x", product.x, rows * k, x_size)?;
    let (norm, epsilon) = match product.norm {
        Some((weight, epsilon)) => {
            fits(OP, "weight of the norm", weight, k, 4)?;
            (weight.address(), epsilon)
        }
        None => (0, 0.0),
    };
    if let Some(bias) = product.bias {
        fits(OP, "bias", bias, n, 4)?;
    }
    let (mut second, mut best, mut outputs, mut out_size) = (0, 0, 16, 4);
    let few = match (product.end, product.norm.is_some()) {
        (GemvEnd::Store, false) => ("gemv_store", "gemv_store_16"),
        (GemvEnd::Store, true) => ("gemv_norm_store", "gemv_norm_store_16"),
        (GemvEnd::Add, false) => ("gemv_add", "gemv_add_16"),
        (GemvEnd::Gate(up), true) => {
            ensure(
                n.is_multiple_of(8) && product.bias.is_none(),
                OP,
                "n",
                n,
                "a multiple of 8, without bias",
            )?;
            fits(OP, "up", up, n * k, 2)?;
            (second, outputs, out_size) = (up.address(), 8, 2);
            ("gemv_norm_gate", "gemv_norm_gate_16")
        }
        (GemvEnd::Best(to), true) => {
            fits(OP, "best", to, rows, 8)?;
            best = to.address();
            ("gemv_norm_best", "gemv_norm_best_16")
        }
        (_, normed) => {
            let expected = "a norm before a gate or a choice, none before a sum";
            return ensure(false, OP, "norm", usize::from(normed), expected);
        }
    };
    fits(OP, "out", product.out, rows * n, out_size)?;
    let places = [
        product.weights.address(),
        second,
        product.x.address(),
        norm,
        product.bias.map_or(0, Buffer::address),
        product.out.address(),
        best,
        pair(int(OP, "rows", rows)?, int(OP, "n", n)?),
        pair(int(OP, "k", k)?, epsilon),
    ];
    // Rows that are normed lie in shared memory where they fit.
    let kept = if product.norm.is_some() {
        rows * (k + 32) * 2
    } else {
        0
    };
    let is_few = rows <= 8 && kept <= KEPT_BYTES;
    let kernel = Kernel {
        source: "gemv",
        name: if is_few { few.0 } else { few.1 },
    };
    let grid = Grid {
        blocks: (int(OP, "n", n.div_ceil(outputs))?.cast_unsigned(), 1, 1),
        threads: 256,
        shared_bytes: if is_few {
            int(OP, "k", kept)?.cast_unsigned()
        } else {
            0
        },
        early: true,
    };
    let args = Args::new().with_struct(&places);
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel, grid, args, (kernel.name, &[rows, n, k])) }
}

/// Rows of inputs times `weights` by the CPU.
pub(super) fn by_cpu(
    cpu: &Cpu,
    x: &[f32],
    weights: &[u16],
    (n, k): (usize, usize),
) -> Result<Vec<f32>, CudaError> {
    let bytes = Bytes::from(le_bytes(weights));
    let weights = PackedMatrix::new("w", DType::BF16, n, k, bytes)?;
    let mut out = vec![0.0; x.len() / k * n];
    let input = Input {
        values: x,
        quant: None,
    };
    let product = Product {
        weights: &weights,
        bias: None,
        out: &mut out,
    };
    ops::matmul(cpu, input, &mut [product])?;
    Ok(out)
}

/// Shapes with tails: outputs that fill no tile, k that some warps have none of, rows of both kernels.
const SHAPES: [(usize, usize, usize); 10] = [
    (1, 64, 64),
    (3, 160, 64),
    (1, 24, 32),
    (8, 40, 576),
    (9, 64, 1024),
    (16, 384, 160),
    (1, 96, 4096),
    (5, 48, 14336),
    (16, 3072, 1024),
    (2, 8, 3072),
];

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (rows, n, k) in SHAPES {
        let shape = format!("{rows} x {k} to {n}");
        cases.push(Case::new(
            format!("{shape}, store"),
            Bound::Relative(1e-5),
            move |device, cpu| plain_case(device, cpu, (rows, n, k), false),
        ));
        cases.push(Case::new(
            format!("{shape}, add"),
            Bound::Relative(1e-5),
            move |device, cpu| plain_case(device, cpu, (rows, n, k), true),
        ));
        cases.push(Case::new(
            format!("{shape}, normed, best"),
            Bound::Relative(6e-3),
            move |device, cpu| {
                let (fast, best, reference) = normed(device, cpu, (rows, n, k), None)?;
                let mut whole = Outcome { fast, reference };
                // The choice must be that of the device's own logits.
                for (row, best) in whole.fast.chunks_exact(n).zip(&best) {
                    if ops::argmax(row) != Some(!(*best as u32) as usize) {
                        whole.reference.push(f32::NAN);
                    }
                }
                Ok(whole)
            },
        ));
        if n.is_multiple_of(8) {
            cases.push(Case::new(
                format!("{shape}, normed, gate"),
                Bound::Relative(2e-2),
                move |device, cpu| {
                    let up = to_bf16(&numbers(9, n * k));
                    let (fast, _, reference) = normed(device, cpu, (rows, n, k), Some(&up))?;
                    Ok(Outcome { fast, reference })
                },
            ));
        }
    }
    cases
}

fn plain_case(
    device: &Device,
    cpu: &Cpu,
    (rows, n, k): (usize, usize, usize),
    add: bool,
) -> Result<Outcome, CudaError> {
    let (x, weights) = (to_bf16(&numbers(1, rows * k)), to_bf16(&numbers(2, n * k)));
    let mut reference = by_cpu(cpu, &from_bf16(&x), &weights, (n, k))?;
    let before = numbers(3, if add { rows * n } else { n });
    for (at, value) in reference.iter_mut().enumerate() {
        *value += before[if add { at } else { at % n }];
    }
    let (x, weights) = (device.upload(&x)?, device.upload(&weights)?);
    let before = device.upload(&before)?;
    let fresh = device.alloc(rows * n * 4)?;
    device.fill(&fresh, 0xff)?;
    let out = if add { &before } else { &fresh };
    let product = Gemv {
        weights: &weights,
        x: &x,
        norm: None,
        bias: (!add).then_some(&before),
        end: if add { GemvEnd::Add } else { GemvEnd::Store },
        out,
        rows,
        n,
        k,
    };
    gemv(device, &product)?;
    let fast = device.read(out, 0, rows * n)?;
    Ok(Outcome { fast, reference })
}

type Normed = (Vec<f32>, Vec<u64>, Vec<f32>);

/// Outputs of the device, its choices, outputs of the CPU; with `up` the gate.
fn normed(
    device: &Device,
    cpu: &Cpu,
    (rows, n, k): (usize, usize, usize),
    up: Option<&[u16]>,
) -> Result<Normed, CudaError> {
    let (x, norm) = (numbers(1, rows * k), numbers(4, k));
    let weights = to_bf16(&numbers(2, n * k));
    let mut turned = vec![0.0; x.len()];
    ops::rms_norm(cpu, &x, &norm, 1e-5, &mut turned)?;
    let mut reference = by_cpu(cpu, &turned, &weights, (n, k))?;
    if let Some(up) = up {
        let up = by_cpu(cpu, &turned, up, (n, k))?;
        ops::silu_mul(cpu, &mut reference, &up)?;
    }
    let (x, norm) = (device.upload(&x)?, device.upload(&norm)?);
    let weights = device.upload(&weights)?;
    let up = up.map(|up| device.upload(up)).transpose()?;
    let (out, best) = (device.alloc(rows * n * 4)?, device.zeros(rows * 8)?);
    device.fill(&out, 0xff)?;
    let product = Gemv {
        weights: &weights,
        x: &x,
        norm: Some((&norm, 1e-5)),
        bias: None,
        end: match &up {
            Some(up) => GemvEnd::Gate(up),
            None => GemvEnd::Best(&best),
        },
        out: &out,
        rows,
        n,
        k,
    };
    gemv(device, &product)?;
    let fast = match up {
        Some(_) => from_bf16(&device.read(&out, 0, rows * n)?),
        None => device.read(&out, 0, rows * n)?,
    };
    Ok((fast, device.read(&best, 0, rows)?, reference))
}
