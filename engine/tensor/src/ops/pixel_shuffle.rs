//! Channels to pixels (Shi et al., arXiv 1609.05158), on top of the picture itself.

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::planes::{BLOCK, Planes, PlanesRef};
use crate::shared::SharedSlice;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "pixel_shuffle",
    about: "out[c, s y + i, s x + j] = in[c s s + i s + j, y, x] + base[c, y, x]",
    cases,
};

/// `out[c, s*y + i, s*x + j] = input[c*s*s + i*s + j, y, x] + base[c, y, x]`, with `s` = `scale`.
///
/// `base`: `[channels, height, width]` where there is one; `out`: `[channels, s * height, s * width]`.
///
/// # Errors
/// `Shape` when lengths do not go together.
pub fn pixel_shuffle(
    cpu: &Cpu,
    input: PlanesRef<'_>,
    scale: usize,
    base: Option<&[f32]>,
    out: &mut [f32],
) -> Result<(), TensorError> {
    const OP: &str = "pixel_shuffle";
    let size = input.size;
    let (height, width) = (size.height, size.width);
    let plane = height * width * scale * scale;
    expect(OP, "scale > 0", usize::from(scale > 0), 1)?;
    let channels = out.len() / plane;
    expect(OP, "length of out", out.len(), channels * plane)?;
    let needed = (channels * scale * scale).div_ceil(BLOCK);
    if size.blocks < needed {
        expect(OP, "blocks of the input", size.blocks, needed)?;
    }
    if let Some(base) = base {
        expect(OP, "length of base", base.len(), channels * height * width)?;
    }
    let row_len = width * scale;
    let out = SharedSlice::new(out);
    cpu.threads().run(channels * height, &|task| {
        let (channel, y) = (task / height, task % height);
        let start = task * scale * row_len;
        // SAFETY: each task has its own rows.
        let rows = unsafe { out.part(start..start + scale * row_len) };
        let base = base.map(|base| &base[task * width..(task + 1) * width]);
        for (i, row) in rows.chunks_exact_mut(row_len).enumerate() {
            for (x, pixels) in row.chunks_exact_mut(scale).enumerate() {
                let base = base.map_or(0.0, |base| base[x]);
                for (j, pixel) in pixels.iter_mut().enumerate() {
                    let from = (channel * scale + i) * scale + j;
                    let at = size.at(from / BLOCK, y, x);
                    *pixel = input.data[at].0[from % BLOCK] + base;
                }
            }
        }
    });
    Ok(())
}

fn cases() -> Vec<Case> {
    [
        (3, 2, 3, 5, true),
        (3, 4, 2, 1, true),
        (1, 1, 4, 4, false),
        (3, 3, 1, 7, false),
    ]
    .into_iter()
    .map(|(channels, scale, height, width, with_base)| {
        let name = format!("{channels} channels x {scale}, {width} x {height} px");
        Case::new(name, Bound::Equal, move |cpu| {
            let parts = channels * scale * scale;
            let values = numbers(1, parts * height * width);
            let base = numbers(2, channels * height * width);
            let mut from = Planes::zeros(parts.div_ceil(BLOCK), height, width)?;
            from.fill(&values)?;
            let mut fast = vec![0.0; values.len()];
            let with = with_base.then_some(base.as_slice());
            pixel_shuffle(cpu, from.all(), scale, with, &mut fast)?;
            let mut reference = vec![0.0; values.len()];
            for (at, value) in values.iter().enumerate() {
                let (part, y, x) = (at / width / height, at / width % height, at % width);
                let (channel, i, j) = (part / scale / scale, part / scale % scale, part % scale);
                let base = if with_base {
                    base[(channel * height + y) * width + x]
                } else {
                    0.0
                };
                let row = channel * scale * height + scale * y + i;
                reference[row * scale * width + scale * x + j] = value + base;
            }
            Ok(Outcome { fast, reference })
        })
    })
    .collect()
}
