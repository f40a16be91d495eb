//! Pixels to channels: what [`pixel_shuffle`](super::pixel_shuffle()) undoes.

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::planes::{BLOCK, Planes, PlanesMut};
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "pixel_unshuffle",
    about: "out[c s s + i s + j, y, x] = in[c, s y + i, s x + j]",
    cases,
};

/// `out[c*s*s + i*s + j, y, x] = values[c, s*y + i, s*x + j]`, with `s` = `scale`.
///
/// `values`: `[channels, s * height, s * width]`, where `out` has planes of `height` x `width`.
///
/// # Errors
/// `Shape` when lengths do not go together.
pub fn pixel_unshuffle(
    _cpu: &Cpu,
    values: &[f32],
    scale: usize,
    out: PlanesMut<'_>,
) -> Result<(), TensorError> {
    const OP: &str = "pixel_unshuffle";
    let PlanesMut { data, size } = out;
    expect(OP, "scale > 0", usize::from(scale > 0), 1)?;
    let (height, width) = (size.height * scale, size.width * scale);
    let channels = values.len() / (height * width);
    expect(
        OP,
        "length of values",
        values.len(),
        channels * height * width,
    )?;
    let needed = (channels * scale * scale).div_ceil(BLOCK);
    if size.blocks < needed {
        expect(OP, "blocks of out", size.blocks, needed)?;
    }
    for (row, pixels) in values.chunks_exact(width).enumerate() {
        let (channel, y) = (row / height, row % height);
        for (x, pixel) in pixels.iter().enumerate() {
            let to = (channel * scale + y % scale) * scale + x % scale;
            let at = size.at(to / BLOCK, y / scale, x / scale);
            data[at].0[to % BLOCK] = *pixel;
        }
    }
    Ok(())
}

fn cases() -> Vec<Case> {
    [(3, 2, 3, 5), (3, 4, 2, 1), (3, 1, 4, 4)]
        .into_iter()
        .map(|(channels, scale, height, width)| {
            let name = format!("{channels} channels / {scale}, to {width} x {height} px");
            Case::new(name, Bound::Equal, move |cpu| {
                let parts = channels * scale * scale;
                let values = numbers(1, parts * height * width);
                let mut to = Planes::zeros(parts.div_ceil(BLOCK), height, width)?;
                pixel_unshuffle(cpu, &values, scale, to.all_mut())?;
                let mut reference = Vec::new();
                for part in 0..parts {
                    let (channel, i, j) =
                        (part / scale / scale, part / scale % scale, part % scale);
                    for y in 0..height {
                        let row = channel * scale * height + scale * y + i;
                        let start = row * scale * width + j;
                        reference.extend((0..width).map(|x| values[start + scale * x]));
                    }
                }
                Ok(Outcome {
                    fast: to.values(parts)?,
                    reference,
                })
            })
        })
        .collect()
}
