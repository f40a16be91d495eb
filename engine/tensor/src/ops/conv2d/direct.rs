//! The direct way: each output adds its products up, tap after tap, channel after channel.

use super::{Conv2d, ConvEnd, Source, finish};
use crate::Cpu;
use crate::lanes::{Lanes, Values};
use crate::planes::{BLOCK, PlanesMut, PlanesRef, Size};
use crate::shared::SharedSlice;
use crate::simd::by_simd;

/// Neighbouring pixels that are summed together.
const RUN: usize = 6;

/// `[block of outputs][tap][channel]`.
pub(super) fn pack(source: &Source<'_>) -> Vec<Values> {
    let channels = source.places.len();
    let blocks = source.outputs.div_ceil(BLOCK);
    let mut packed = vec![Values::ZERO; blocks * source.taps * channels];
    for output in 0..source.outputs {
        for channel in 0..channels {
            for (tap, value) in source.kernel(output, channel).iter().enumerate() {
                let at = (output / BLOCK * source.taps + tap) * channels + channel;
                packed[at].0[output % BLOCK] = *value;
            }
        }
    }
    packed
}

struct Work<'a> {
    conv: &'a Conv2d,
    weights: &'a [Values],
    channels: &'a [usize],
    input: PlanesRef<'a>,
    end: ConvEnd<'a>,
    out: SharedSlice<'a, Values>,
    size: Size,
}

pub(super) fn run(
    cpu: &Cpu,
    conv: &Conv2d,
    (weights, channels): (&[Values], &[usize]),
    input: PlanesRef<'_>,
    end: ConvEnd<'_>,
    out: PlanesMut<'_>,
) {
    let PlanesMut { data, size } = out;
    let work = Work {
        conv,
        weights,
        channels,
        input,
        end,
        out: SharedSlice::new(data),
        size,
    };
    cpu.threads()
        .run(size.height, &|y| row(cpu.simd(), &work, y));
}

by_simd! {
    fn row(work: &Work<'_>, y: usize) = row_body;
}

#[inline(always)]
fn row_body<L: Lanes>(work: &Work<'_>, y: usize) {
    let size = work.size;
    for block in 0..size.blocks {
        let start = size.at(block, y, 0);
        // SAFETY: each task has its own row of every block.
        let out = unsafe { work.out.part(start..start + size.width) };
        let mut x = 0;
        while x + RUN <= size.width {
            // SAFETY: `by_simd!` chose `L`.
            unsafe { pixels::<L, RUN>(work, block, (y, x), &mut out[x..x + RUN]) };
            x += RUN;
        }
        while x < size.width {
            // SAFETY: as above.
            unsafe { pixels::<L, 1>(work, block, (y, x), &mut out[x..=x]) };
            x += 1;
        }
    }
}

/// # Safety
/// As of [`Lanes`].
#[inline(always)]
unsafe fn pixels<L: Lanes, const N: usize>(
    work: &Work<'_>,
    block: usize,
    (y, x): (usize, usize),
    out: &mut [Values],
) {
    let side = work.conv.side;
    let count = work.channels.len();
    let input = work.input;
    // SAFETY: by the caller's promise.
    unsafe {
        let mut sums = [L::splat(0.0); N];
        for tap in 0..side * side {
            // The border begins 1 px before the picture; a kernel of 1 x 1 does not reach there.
            let inset = usize::from(side == 1);
            let (row, column) = (y + tap / side + inset, x + tap % side + inset);
            let start = (block * side * side + tap) * count;
            let weights = &work.weights[start..start + count];
            for (&channel, weights) in work.channels.iter().zip(weights) {
                let at = channel / BLOCK * input.size.plane + row * input.size.pitch + column;
                let pixels = &input.data[at..at + N];
                let weights = L::load(weights);
                for (sum, pixel) in sums.iter_mut().zip(pixels) {
                    *sum = L::fused(L::splat(pixel.0[channel % BLOCK]), weights, *sum);
                }
            }
        }
        for (at, (sum, out)) in sums.into_iter().zip(out).enumerate() {
            let residual = work.end.residual.map(|(scale, residual)| {
                (scale, &residual.data[residual.size.at(block, y, x + at)])
            });
            finish::<L>(work.conv, block, sum, residual, out);
        }
    }
}
