//! Pictures at twice the size, every pixel four times.

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::planes::{Planes, PlanesMut, PlanesRef};
use crate::shared::SharedSlice;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "upsample_nearest",
    about: "out[y, x] = in[y / 2, x / 2]",
    cases,
};

/// `out[y, x] = input[y / 2, x / 2]`: `out` has twice the height and width.
///
/// # Errors
/// `Shape` when sizes do not go together.
pub fn upsample_nearest(
    cpu: &Cpu,
    input: PlanesRef<'_>,
    out: PlanesMut<'_>,
) -> Result<(), TensorError> {
    const OP: &str = "upsample_nearest";
    let PlanesMut { data, size: to } = out;
    let from = input.size;
    expect(OP, "blocks of out", to.blocks, from.blocks)?;
    expect(OP, "height of out", to.height, 2 * from.height)?;
    expect(OP, "width of out", to.width, 2 * from.width)?;
    let out = SharedSlice::new(data);
    cpu.threads().run(to.blocks * to.height, &|task| {
        let (block, y) = (task / to.height, task % to.height);
        let start = to.at(block, y, 0);
        // SAFETY: each task has its own row.
        let row = unsafe { out.part(start..start + to.width) };
        let start = from.at(block, y / 2, 0);
        for (pair, pixel) in row.chunks_exact_mut(2).zip(&input.data[start..]) {
            pair.fill(*pixel);
        }
    });
    Ok(())
}

fn cases() -> Vec<Case> {
    [(1, 1, 1), (2, 3, 5)]
        .into_iter()
        .map(|(blocks, height, width)| {
            let name = format!("{blocks} blocks of {width} x {height} px");
            Case::new(name, Bound::Equal, move |cpu| {
                let channels = blocks * 16;
                let values = numbers(1, channels * height * width);
                let mut from = Planes::zeros(blocks, height, width)?;
                from.fill(&values)?;
                let mut to = Planes::zeros(blocks, 2 * height, 2 * width)?;
                upsample_nearest(cpu, from.all(), to.all_mut())?;
                let mut reference = Vec::new();
                for row in 0..channels * 2 * height {
                    let from = row / (2 * height) * height + row % (2 * height) / 2;
                    reference.extend((0..2 * width).map(|x| values[from * width + x / 2]));
                }
                Ok(Outcome {
                    fast: to.values(channels)?,
                    reference,
                })
            })
        })
        .collect()
}
