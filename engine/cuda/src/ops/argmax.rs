//! Where the largest value of a row is.

use engine_tensor::ops::{self, Bound, Outcome};

use super::case::{Case, Op, numbers};
use super::elementwise::{fits, int};
use crate::args::Args;
use crate::device::Kernel;
use crate::driver::Grid;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const OP: Op = Op {
    name: "argmax",
    cases,
};

/// For each row of `values: [rows, cols]`, f32, the index of the largest, the first of equals; -1 where nothing is a
/// number. `out: [rows]`, i32.
///
/// # Errors
/// `Shape`; those of a launch.
pub fn argmax(
    device: &Device,
    values: &Buffer,
    (rows, cols): (usize, usize),
    out: &Buffer,
) -> Result<(), CudaError> {
    const OP: &str = "argmax";
    ensure(
        rows > 0 && cols > 0,
        OP,
        "rows and cols",
        rows.min(cols),
        "over 0",
    )?;
    fits(OP, "values", values, rows * cols, 4)?;
    fits(OP, "out", out, rows, 4)?;
    let grid = Grid {
        blocks: (int(OP, "rows", rows)?.cast_unsigned(), 1, 1),
        threads: 1024,
        shared_bytes: 0,
        early: false,
    };
    let args = Args::new()
        .with(values.address())
        .with(out.address())
        .with(int(OP, "cols", cols)?);
    let kernel = Kernel {
        source: "sampling",
        name: "argmax_f32",
    };
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel, grid, args, (OP, &[rows, cols])) }
}

fn cases() -> Vec<Case> {
    let mut tied = numbers(3, 200);
    tied[70] = 2.0;
    tied[130] = 2.0;
    let mut holes = numbers(4, 130);
    holes[0] = f32::NAN;
    holes[129] = 3.0;
    let least = vec![f32::NAN, f32::NEG_INFINITY];
    [
        numbers(5, 1),
        numbers(6, 1000),
        tied,
        holes,
        least,
        numbers(7, 128_256),
    ]
    .into_iter()
    .map(|values| {
        let name = format!("{} values", values.len());
        Case::new(name, Bound::Equal, move |device, _cpu| {
            let there = device.upload(&values)?;
            let out = device.alloc(4)?;
            argmax(device, &there, (1, values.len()), &out)?;
            let at: Vec<i32> = device.read(&out, 0, 1)?;
            Ok(Outcome {
                fast: at.iter().map(|at| *at as f32).collect(),
                reference: vec![ops::argmax(&values).map_or(-1.0, |at| at as f32)],
            })
        })
    })
    .collect()
}
