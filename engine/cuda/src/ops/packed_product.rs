//! Products of 1 to 16 rows with weights of 4 bits, with what stands before and after them in a decoder fused.

use engine_tensor::ops::{self, Bound, Outcome};
use engine_tensor::{Cpu, DType, PackedMatrix};

use super::GEMV_ROWS;
use super::case::{Case, Op, from_bf16, numbers, to_bf16};
use super::elementwise::{fits, int};
use super::packed_gemv::{Kind, PackedWeights, TILE, chosen, launch, random_blocks};
use crate::args::pair;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const OP: Op = Op {
    name: "packed_product",
    cases,
};

/// What is done with the sums of a product with 4-bit weights.
#[derive(Debug, Clone, Copy)]
pub enum PackedEnd<'a> {
    /// `out = sums`, f32, of normed rows.
    Store,
    /// `out += sums`, f32.
    Add,
    /// `out = silu(gate) * up`, bf16, of weights made by [`PackedWeights::gate_up`].
    Gate,
    /// As [`super::GemvEnd::Best`].
    Best(&'a Buffer),
}

/// One product with 4-bit weights and activations as in [`super::Gemv`].
#[derive(Debug, Clone, Copy)]
pub struct PackedProduct<'a> {
    /// `[n, k]`.
    pub weights: &'a PackedWeights,
    /// `[rows, k]`, bf16; with a norm f32.
    pub x: &'a Buffer,
    /// As of [`super::Gemv`]; all ends but [`PackedEnd::Add`] have one.
    pub norm: Option<(&'a Buffer, f32)>,
    /// `[n]`, f32.
    pub bias: Option<&'a Buffer>,
    /// What follows.
    pub end: PackedEnd<'a>,
    /// `[rows, n]`; after a gate half as wide.
    pub out: &'a Buffer,
    /// 1 to 16.
    pub rows: usize,
}

/// Runs a product. Codes are exact; accumulates in f32. An output's bits depend on its own rows alone.
///
/// # Errors
/// `Shape`; those of a launch.
pub fn packed_product(device: &Device, product: &PackedProduct<'_>) -> Result<(), CudaError> {
    const OP: &str = "packed_gemv";
    let (rows, n, k) = (product.rows, product.weights.n, product.weights.k);
    let Kind::Bits4(group) = product.weights.kind else {
        return ensure(false, OP, "bits of the weights", 8, 4);
    };
    ensure((1..=GEMV_ROWS).contains(&rows), OP, "rows", rows, "1 to 16")?;
    ensure(k.is_multiple_of(32), OP, "k", k, "a multiple of 32")?;
    fits(
        OP,
        "x",
        product.x,
        rows * k,
        if product.norm.is_some() { 4 } else { 2 },
    )?;
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
    let (mut best, mut width, mut size) = (0, n, 4);
    let end = match (product.end, product.norm.is_some()) {
        (PackedEnd::Store, true) => "norm_store",
        (PackedEnd::Add, false) => "add",
        (PackedEnd::Gate, true) => {
            let known = n.is_multiple_of(TILE) && product.bias.is_none();
            ensure(known, OP, "n", n, "a multiple of 16, without bias")?;
            (width, size) = (n / 2, 2);
            "norm_gate"
        }
        (PackedEnd::Best(to), true) => {
            fits(OP, "best", to, rows, 8)?;
            best = to.address();
            "norm_best"
        }
        (_, normed) => {
            let expected = "none before a sum, one before all else";
            return ensure(false, OP, "norm", usize::from(normed), expected);
        }
    };
    fits(OP, "out", product.out, rows * width, size)?;
    macro_rules! kernels {
        ($group:literal, $end:literal) => {
            (
                [
                    concat!("gemv_q4_g", $group, "_", $end),
                    concat!("gemv_q4_g", $group, "_", $end, "_many"),
                    concat!("gemv_q4_g", $group, "_", $end, "_ring"),
                ],
                concat!("gemv_q4_g", $group, "_", $end, "_16"),
            )
        };
    }
    let (few, many) = match (group, end) {
        (64, "norm_store") => kernels!("64", "norm_store"),
        (64, "add") => (
            ["gemv_q4_g64_add", "gemv_q4_g64_add", "gemv_q4_g64_add_ring"],
            "gemv_q4_g64_add_16",
        ),
        (64, "norm_gate") => kernels!("64", "norm_gate"),
        (64, _) => kernels!("64", "norm_best"),
        (_, "norm_store") => kernels!("32", "norm_store"),
        (_, "add") => (
            ["gemv_q4_g32_add", "gemv_q4_g32_add", "gemv_q4_g32_add_ring"],
            "gemv_q4_g32_add_16",
        ),
        (_, "norm_gate") => kernels!("32", "norm_gate"),
        (_, _) => kernels!("32", "norm_best"),
    };
    let places = [
        product.weights.codes.address(),
        product.weights.scales.address(),
        product.x.address(),
        norm,
        product.bias.map_or(0, Buffer::address),
        product.out.address(),
        best,
        pair(int(OP, "rows", rows)?, int(OP, "n", width)?),
        pair(int(OP, "k", k)?, epsilon),
    ];
    let which = chosen(device, few, many, (rows, n, k), group)?;
    launch(device, which, places, (rows, n, k))
}

fn cases() -> Vec<Case> {
    let shapes = [
        (1, 16, 32),
        (3, 160, 64),
        (8, 48, 576),
        (9, 64, 1024),
        (16, 384, 160),
        (1, 96, 4096),
        (5, 48, 14336),
        // More outputs than blocks that run at once: rings that go over the bounds of outputs, and wrap.
        (3, 20_000, 160),
        (1, 7_000, 640),
        (2, 4_400, 1_952),
    ];
    let mut cases = Vec::new();
    for (rows, n, k) in shapes {
        for (what, bound) in [
            ("add", 1e-5),
            ("store", 6e-3),
            ("gate", 2e-2),
            ("best", 6e-3),
        ] {
            let name = format!("{rows} x {k} to {n}, {what}");
            cases.push(Case::new(
                name,
                Bound::Relative(bound),
                move |device, cpu| run_case(device, cpu, (rows, n, k), what),
            ));
        }
    }
    cases
}

fn by_cpu(
    cpu: &Cpu,
    x: &[f32],
    blocks: &[u8],
    (n, k): (usize, usize),
) -> Result<Vec<f32>, CudaError> {
    let matrix = PackedMatrix::new("w", DType::Q4_1, n, k, blocks.to_vec().into())?;
    let mut out = vec![0.0; x.len() / k * n];
    let input = ops::Input {
        values: x,
        quant: None,
    };
    let product = ops::Product {
        weights: &matrix,
        bias: None,
        out: &mut out,
    };
    ops::matmul(cpu, input, &mut [product])?;
    Ok(out)
}

fn run_case(
    device: &Device,
    cpu: &Cpu,
    (rows, n, k): (usize, usize, usize),
    what: &str,
) -> Result<Outcome, CudaError> {
    let blocks = random_blocks(DType::Q4_1, n, k, 7);
    let (values, norm) = (numbers(1, rows * k), numbers(4, k));
    let rounded = to_bf16(&values);
    let mut turned = vec![0.0; values.len()];
    if what == "add" {
        turned = from_bf16(&rounded);
    } else {
        ops::rms_norm(cpu, &values, &norm, 1e-5, &mut turned)?;
    }
    let mut reference = by_cpu(cpu, &turned, &blocks, (n, k))?;
    let weights = if what == "gate" {
        let up = random_blocks(DType::Q4_1, n, k, 9);
        let product = by_cpu(cpu, &turned, &up, (n, k))?;
        ops::silu_mul(cpu, &mut reference, &product)?;
        PackedWeights::gate_up(device, DType::Q4_1, (n, k), &blocks, &up)?
    } else {
        PackedWeights::from_blocks(device, DType::Q4_1, (n, k), &blocks)?
    };
    let x = match what {
        "add" => device.upload(&rounded)?,
        _ => device.upload(&values)?,
    };
    let before = numbers(3, rows * n);
    let (norm, best) = (device.upload(&norm)?, device.zeros(rows * 8)?);
    let out = device.upload(&before)?;
    let end = match what {
        "add" => PackedEnd::Add,
        "store" => PackedEnd::Store,
        "gate" => PackedEnd::Gate,
        _ => PackedEnd::Best(&best),
    };
    let product = PackedProduct {
        weights: &weights,
        x: &x,
        norm: (what != "add").then_some((&norm, 1e-5)),
        bias: None,
        end,
        out: &out,
        rows,
    };
    packed_product(device, &product)?;
    if what == "gate" {
        let fast = from_bf16(&device.read(&out, 0, rows * n)?);
        return Ok(Outcome { fast, reference });
    }
    if what == "add" {
        for (to, before) in reference.iter_mut().zip(&before) {
            *to += before;
        }
    }
    let fast: Vec<f32> = device.read(&out, 0, rows * n)?;
    if what == "best" {
        // The choice must be that of the device's own logits.
        let chosen: Vec<u64> = device.read(&best, 0, rows)?;
        for (row, best) in fast.chunks_exact(n).zip(&chosen) {
            if ops::argmax(row) != Some(!(*best as u32) as usize) {
                reference.push(f32::NAN);
            }
        }
    }
    Ok(Outcome { fast, reference })
}
