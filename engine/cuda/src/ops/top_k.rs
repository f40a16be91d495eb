//! The largest values of a row.

use engine_tensor::ops::{Bound, Outcome};

use super::case::{Case, Op, numbers};
use super::elementwise::{fits, int};
use crate::args::Args;
use crate::device::Kernel;
use crate::driver::Grid;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const OP: Op = Op {
    name: "top_k",
    cases,
};

/// For each row of `values: [rows, cols]`, f32, the `k` (at most 256) largest, largest first, of equals the smaller
/// index first. `out_values: [rows, k]`, f32; `out_indices: [rows, k]`, i32.
///
/// # Errors
/// `Shape`; those of a launch.
pub fn top_k(
    device: &Device,
    values: &Buffer,
    (rows, cols): (usize, usize),
    k: usize,
    (out_values, out_indices): (&Buffer, &Buffer),
) -> Result<(), CudaError> {
    const OP: &str = "top_k";
    ensure(rows > 0, OP, "rows", rows, "over 0")?;
    ensure(
        (1..=256.min(cols)).contains(&k),
        OP,
        "k",
        k,
        "1 to 256 and at most cols",
    )?;
    fits(OP, "values", values, rows * cols, 4)?;
    fits(OP, "out_values", out_values, rows * k, 4)?;
    fits(OP, "out_indices", out_indices, rows * k, 4)?;
    let grid = Grid {
        blocks: (int(OP, "rows", rows)?.cast_unsigned(), 1, 1),
        threads: 1024,
        shared_bytes: 0,
        early: false,
    };
    let args = Args::new()
        .with(values.address())
        .with(out_values.address())
        .with(out_indices.address())
        .with(int(OP, "cols", cols)?)
        .with(int(OP, "k", k)?);
    let kernel = Kernel {
        source: "sampling",
        name: "top_k_f32",
    };
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel, grid, args, (OP, &[rows, cols, k])) }
}

fn cases() -> Vec<Case> {
    let mut tied = numbers(3, 2000);
    for at in (5..2000).step_by(3) {
        tied[at] = 0.5;
    }
    [
        (numbers(5, 1), 1),
        (numbers(6, 1000), 40),
        (tied, 200),
        (numbers(7, 151_936), 64),
        (numbers(8, 300), 256),
    ]
    .into_iter()
    .map(|(values, k)| {
        let name = format!("{k} of {} values", values.len());
        Case::new(name, Bound::Equal, move |device, _cpu| {
            let mut order: Vec<usize> = (0..values.len()).collect();
            order.sort_by(|a, b| values[*b].total_cmp(&values[*a]).then(a.cmp(b)));
            order.truncate(k);
            let mut reference: Vec<f32> = order.iter().map(|at| values[*at]).collect();
            reference.extend(order.iter().map(|at| *at as f32));
            let there = device.upload(&values)?;
            let (best, indices) = (device.alloc(4 * k)?, device.alloc(4 * k)?);
            top_k(device, &there, (1, values.len()), k, (&best, &indices))?;
            let mut fast: Vec<f32> = device.read(&best, 0, k)?;
            fast.extend(
                device
                    .read::<i32>(&indices, 0, k)?
                    .iter()
                    .map(|at| *at as f32),
            );
            Ok(Outcome { fast, reference })
        })
    })
    .collect()
}
