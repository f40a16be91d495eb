//! Pictures at half the size.

use engine_tensor::ops::{self, Bound, Outcome};

use super::case::{Case, Op, from_half, numbers, to_half};
use super::elementwise::{fits, int};
use crate::args::Args;
use crate::device::Kernel;
use crate::driver::Grid;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const OP: Op = Op {
    name: "halve_bicubic",
    cases,
};

/// `[3, height, width]` to `[3, height / 2, width / 2]`, both f16, as the CPU's op of that name; sums in f32.
///
/// # Errors
/// `Shape`, also for odd sides; those of a launch.
pub fn halve_bicubic(
    device: &Device,
    values: &Buffer,
    (height, width): (usize, usize),
    out: &Buffer,
) -> Result<(), CudaError> {
    const OP: &str = "halve_bicubic";
    ensure(
        height > 0 && height.is_multiple_of(2),
        OP,
        "height",
        height,
        "even and over 0",
    )?;
    ensure(
        width > 0 && width.is_multiple_of(2),
        OP,
        "width",
        width,
        "even and over 0",
    )?;
    fits(OP, "values", values, 3 * height * width, 2)?;
    fits(OP, "out", out, 3 * height * width / 4, 2)?;
    let blocks = |what, count| int(OP, what, count).map(i32::cast_unsigned);
    let grid = Grid {
        // Four pixels a thread.
        blocks: (
            blocks("width", (width / 2).div_ceil(4 * 256))?,
            blocks("height", height / 2)?,
            3,
        ),
        threads: 256,
        shared_bytes: 0,
        early: true,
    };
    let args = Args::new()
        .with(values.address())
        .with(out.address())
        .with(int(OP, "height", height)?)
        .with(int(OP, "width", width)?);
    let kernel = Kernel {
        source: "conv3x3",
        name: "halve_bicubic_half",
    };
    // SAFETY: lengths were checked above.
    unsafe { device.launch(kernel, grid, args, (OP, &[height, width])) }
}

fn cases() -> Vec<Case> {
    [(2, 2), (4, 10), (32, 6), (20, 48), (6, 2056)]
        .into_iter()
        .map(|(height, width)| {
            let name = format!("{width} x {height} px");
            Case::new(name, Bound::Relative(1e-3), move |device, cpu| {
                let values = to_half(&numbers(1, 3 * height * width));
                let mut reference = vec![0.0; values.len() / 4];
                ops::halve_bicubic(cpu, &from_half(&values), (height, width), &mut reference)?;
                let (there, out) = (device.upload(&values)?, device.alloc(values.len() / 2)?);
                device.fill(&out, 0xff)?;
                halve_bicubic(device, &there, (height, width), &out)?;
                let fast = from_half(&device.read(&out, 0, values.len() / 4)?);
                Ok(Outcome { fast, reference })
            })
        })
        .collect()
}
