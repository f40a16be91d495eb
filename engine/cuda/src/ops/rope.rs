//! Rotary position embedding.

use engine_tensor::ops::{self, Bound, Outcome, RopePairs, RopeScaling, RopeTable};

use super::case::{Case, Op, numbers};
use super::elementwise::{fits, int, kernel};
use crate::args::Args;
use crate::driver::Grid;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const OP: Op = Op {
    name: "rope",
    cases,
};

/// Turns the first `dims` of each head of `x: [rows, heads, head_dim]`, f32, in place, row `r` by `positions[r]`.
///
/// `turns: [table_positions, dims]`, f32: `dims / 2` cosines, then as many sines; `positions: [rows]`, i32. Rows whose
/// position the table does not reach stay as they are.
///
/// # Errors
/// `Shape`; those of a launch.
pub fn rope(
    device: &Device,
    x: &Buffer,
    (rows, heads, head_dim): (usize, usize, usize),
    (turns, dims, pairs): (&Buffer, usize, RopePairs),
    positions: &Buffer,
) -> Result<(), CudaError> {
    const OP: &str = "rope";
    ensure(
        dims > 0 && dims.is_multiple_of(2) && dims <= head_dim,
        OP,
        "dims",
        dims,
        format_args!("even and at most {head_dim}"),
    )?;
    ensure(rows > 0, OP, "rows", rows, "over 0")?;
    fits(OP, "x", x, rows * heads * head_dim, 4)?;
    fits(OP, "positions", positions, rows, 4)?;
    let table = turns.len_bytes() / 4 / dims;
    let grid = Grid {
        blocks: (int(OP, "rows", rows)?.cast_unsigned(), 1, 1),
        threads: 256,
        shared_bytes: 0,
        early: false,
    };
    let args = Args::new()
        .with(x.address())
        .with(turns.address())
        .with(positions.address())
        .with(int(OP, "heads", heads)?)
        .with(int(OP, "head_dim", head_dim)?)
        .with(int(OP, "dims", dims)?)
        .with(i32::from(pairs == RopePairs::Neighbours))
        .with(int(OP, "positions of the table", table)?);
    // SAFETY: lengths were checked above; the kernel checks positions against the table.
    unsafe {
        device.launch(
            kernel("rope_f32"),
            grid,
            args,
            (OP, &[rows, heads, head_dim, dims]),
        )
    }
}

/// The table of `positions` positions, as kernels read it.
///
/// # Errors
/// `Tensor` for odd `dims`.
pub(crate) fn turns(
    dims: usize,
    base: f64,
    scaling: RopeScaling,
    positions: usize,
) -> Result<Vec<f32>, CudaError> {
    // Turning a one and a zero by each position gives its cosines and sines.
    let mut table = RopeTable::new(dims, base, scaling, RopePairs::Halves)?;
    table.extend(positions);
    let mut ones = vec![0.0; positions * dims];
    for row in ones.chunks_exact_mut(dims) {
        row[..dims / 2].fill(1.0);
    }
    let all: Vec<usize> = (0..positions).collect();
    ops::rope(&table, &mut ones, dims, &all)?;
    Ok(ones)
}

fn cases() -> Vec<Case> {
    let scalings = [
        RopeScaling::None,
        RopeScaling::Llama3 {
            factor: 8.0,
            low: 1.0,
            high: 4.0,
            original_tokens: 128.0,
        },
    ];
    let mut cases = Vec::new();
    for pairs in [RopePairs::Halves, RopePairs::Neighbours] {
        for scaling in scalings {
            for (heads, head_dim, dims) in [(2, 20, 16), (3, 64, 64), (8, 128, 128)] {
                let name =
                    format!("{heads} heads of {head_dim}, {dims} turned, {pairs:?}, {scaling:?}");
                cases.push(Case::new(
                    name,
                    Bound::Relative(1e-6),
                    move |device, _cpu| {
                        let positions = [0usize, 1, 17, 300, 299];
                        let mut x = numbers(1, positions.len() * heads * head_dim);
                        let mut table = RopeTable::new(dims, 1e4, scaling, pairs)?;
                        table.extend(301);
                        let there = device.upload(&x)?;
                        ops::rope(&table, &mut x, head_dim, &positions)?;
                        let turns = device.upload(&turns(dims, 1e4, scaling, 301)?)?;
                        let at: Vec<i32> = positions.iter().map(|at| *at as i32).collect();
                        let at = device.upload(&at)?;
                        let shape = (positions.len(), heads, head_dim);
                        rope(device, &there, shape, (&turns, dims, pairs), &at)?;
                        let fast = device.read(&there, 0, x.len())?;
                        Ok(Outcome { fast, reference: x })
                    },
                ));
            }
        }
    }
    cases
}
