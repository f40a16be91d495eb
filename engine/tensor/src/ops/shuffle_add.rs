//! Channels to pixels on top of what is there: the shortcuts of residual autoencoders
//! (Chen et al., "Deep compression autoencoder", arXiv 2410.10733, section 3.2).

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::planes::{BLOCK, Planes, PlanesMut, PlanesRef};
use crate::shared::SharedSlice;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "shuffle_add",
    about: "out[c, 2y + i, 2x + j] += in[source[c][2i + j], y, x]",
    cases,
};

/// `out[c, 2y + i, 2x + j] += input[sources[c][2i + j], y, x]`; `out` has twice the height and width.
///
/// # Errors
/// `Shape` when sizes do not go together or a source is outside.
pub fn shuffle_add(
    cpu: &Cpu,
    input: PlanesRef<'_>,
    sources: &[[usize; 4]],
    out: PlanesMut<'_>,
) -> Result<(), TensorError> {
    const OP: &str = "shuffle_add";
    let PlanesMut { data, size: to } = out;
    let from = input.size;
    expect(OP, "height of out", to.height, 2 * from.height)?;
    expect(OP, "width of out", to.width, 2 * from.width)?;
    expect(
        OP,
        "blocks of out",
        to.blocks,
        sources.len().div_ceil(BLOCK),
    )?;
    let last = sources.as_flattened().iter().max().copied().unwrap_or(0);
    let inside = usize::from(last < BLOCK * from.blocks);
    expect(OP, "sources inside the input", inside, 1)?;
    let out = SharedSlice::new(data);
    cpu.threads().run(to.blocks * to.height, &|task| {
        let (block, y) = (task / to.height, task % to.height);
        let start = to.at(block, y, 0);
        // SAFETY: each task has its own row.
        let row = unsafe { out.part(start..start + to.width) };
        let channels = &sources[block * BLOCK..((block + 1) * BLOCK).min(sources.len())];
        let (i, base) = (y % 2, from.at(0, y / 2, 0));
        for (lane, source) in channels.iter().enumerate() {
            let of = |j: usize| {
                let source = source[2 * i + j];
                (base + source / BLOCK * from.plane, source % BLOCK)
            };
            let ((left, left_lane), (right, right_lane)) = (of(0), of(1));
            for (x, pair) in row.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                pair[0].0[lane] += input.data[left + x].0[left_lane];
                pair[1].0[lane] += input.data[right + x].0[right_lane];
            }
        }
    });
    Ok(())
}

fn cases() -> Vec<Case> {
    [(16, 16, 1, 1), (48, 20, 3, 5)]
        .into_iter()
        .map(|(inputs, outputs, height, width)| {
            let name = format!("{inputs} to {outputs} channels, {width} x {height} px");
            Case::new(name, Bound::Equal, move |cpu| {
                let values = numbers(1, inputs * height * width);
                let base = numbers(2, outputs * 4 * height * width);
                let sources: Vec<[usize; 4]> = (0..outputs)
                    .map(|c| std::array::from_fn(|at| (7 * c + at) % inputs))
                    .collect();
                let mut from = Planes::zeros(inputs.div_ceil(BLOCK), height, width)?;
                from.fill(&values)?;
                let mut to = Planes::zeros(outputs.div_ceil(BLOCK), 2 * height, 2 * width)?;
                to.fill(&base)?;
                shuffle_add(cpu, from.all(), &sources, to.all_mut())?;
                let mut reference = base.clone();
                for (at, value) in reference.iter_mut().enumerate() {
                    let (x, rest) = (at % (2 * width), at / (2 * width));
                    let (y, c) = (rest % (2 * height), rest / (2 * height));
                    let source = sources[c][2 * (y % 2) + x % 2];
                    *value += values[(source * height + y / 2) * width + x / 2];
                }
                Ok(Outcome {
                    fast: to.values(outputs)?,
                    reference,
                })
            })
        })
        .collect()
}
