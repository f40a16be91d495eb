//! Winograd's way for 3 x 3: 4 x 4 outputs from 6 x 6 inputs with 36 products instead of 144
//! (Lavin and Gray, arXiv 1509.09308, F(4 x 4, 3 x 3) at the points 0, 1, -1, 2, -2).
//!
//! Tiles are taken in groups that fit a core's cache: inputs are turned, one product of small matrices
//! is taken at each of the 36 points, and the sums are turned back.

use std::cell::RefCell;

use super::{Conv2d, ConvEnd, Source, finish};
use crate::Cpu;
use crate::lanes::{Lanes, Values};
use crate::planes::{BLOCK, PlanesMut, PlanesRef, STEP, Size};
use crate::shared::SharedSlice;
use crate::simd::by_simd;

/// Inputs of a tile, along each side.
const SIDE: usize = STEP + 2;
const POINTS: usize = SIDE * SIDE;
/// Tiles that are multiplied together are a multiple of this.
const TILES: usize = 12;
/// What a group of tiles may take, in bytes: a good part of a core's second cache.
const GROUP_BYTES: usize = 640 << 10;

/// `[36 points][block of outputs][channel]`: kernels turned in f64 and rounded once.
pub(super) fn pack(source: &Source<'_>, in_blocks: usize) -> Vec<Values> {
    const TURN: [[f64; 3]; SIDE] = [
        [1.0 / 4.0, 0.0, 0.0],
        [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
        [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
        [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
        [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
        [0.0, 0.0, 1.0],
    ];
    let blocks = source.outputs.div_ceil(BLOCK);
    let channels = in_blocks * BLOCK;
    let mut packed = vec![Values::ZERO; POINTS * blocks * channels];
    for output in 0..source.outputs {
        for (channel, &place) in source.places.iter().enumerate() {
            let kernel = source.kernel(output, channel);
            let turned: [[f64; 3]; SIDE] = std::array::from_fn(|i| {
                std::array::from_fn(|x| {
                    (0..3)
                        .map(|y| TURN[i][y] * f64::from(kernel[3 * y + x]))
                        .sum()
                })
            });
            for (i, row) in turned.iter().enumerate() {
                for (j, turn) in TURN.iter().enumerate() {
                    let value: f64 = row.iter().zip(turn).map(|(a, b)| a * b).sum();
                    let at = ((i * SIDE + j) * blocks + output / BLOCK) * channels + place;
                    packed[at].0[output % BLOCK] = value as f32;
                }
            }
        }
    }
    packed
}

struct Work<'a> {
    conv: &'a Conv2d,
    weights: &'a [Values],
    input: PlanesRef<'a>,
    end: ConvEnd<'a>,
    out: SharedSlice<'a, Values>,
    size: Size,
    /// Tiles in a row of tiles.
    across: usize,
    /// Tiles of all rows.
    tiles: usize,
    /// Tiles of a group.
    group: usize,
}

/// Memory of a thread for the group it works on.
#[derive(Default)]
struct Scratch {
    /// `[36 points][tile][block of inputs]`.
    turned: Vec<Values>,
    /// `[36 points][block of outputs][tile]`.
    sums: Vec<Values>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

pub(super) fn run(
    cpu: &Cpu,
    conv: &Conv2d,
    weights: &[Values],
    input: PlanesRef<'_>,
    end: ConvEnd<'_>,
    out: PlanesMut<'_>,
) {
    let PlanesMut { data, size } = out;
    let across = size.width.div_ceil(STEP);
    let tiles = across * size.height.div_ceil(STEP);
    let tile_bytes = POINTS * (input.size.blocks + size.blocks) * size_of::<Values>();
    let group = (GROUP_BYTES / tile_bytes / TILES).max(1) * TILES;
    let work = Work {
        conv,
        weights,
        input,
        end,
        out: SharedSlice::new(data),
        size,
        across,
        tiles,
        group,
    };
    cpu.threads().run(tiles.div_ceil(group), &|task| {
        SCRATCH.with_borrow_mut(|scratch| run_group(cpu.simd(), &work, task, scratch));
    });
}

by_simd! {
    fn run_group(work: &Work<'_>, task: usize, scratch: &mut Scratch) = group_body;
}

#[inline(always)]
fn group_body<L: Lanes>(work: &Work<'_>, task: usize, scratch: &mut Scratch) {
    let first = task * work.group;
    let count = work.group.min(work.tiles - first);
    // Tiles that fill up the last run are products of what lay there, and nobody reads their sums.
    let padded = count.next_multiple_of(TILES);
    let (ins, outs) = (work.input.size.blocks, work.size.blocks);
    scratch
        .turned
        .resize(POINTS * work.group * ins, Values::ZERO);
    scratch
        .sums
        .resize(POINTS * work.group * outs, Values::ZERO);
    // SAFETY: `by_simd!` chose `L`.
    unsafe {
        for tile in 0..count {
            let (row, column) = ((first + tile) / work.across, (first + tile) % work.across);
            for block in 0..ins {
                let at = block * work.input.size.plane
                    + row * STEP * work.input.size.pitch
                    + column * STEP;
                let to = &mut scratch.turned[tile * ins + block..];
                turn_input::<L>(
                    &work.input.data[at..],
                    work.input.size.pitch,
                    to,
                    padded * ins,
                );
            }
        }
        for point in 0..POINTS {
            let turned = &scratch.turned[point * padded * ins..][..padded * ins];
            let sums = &mut scratch.sums[point * padded * outs..][..padded * outs];
            let weights = &work.weights[point * outs * ins * BLOCK..][..outs * ins * BLOCK];
            multiply::<L>(weights, turned, (ins, outs, padded), sums);
        }
        for tile in 0..count {
            let place = ((first + tile) / work.across, (first + tile) % work.across);
            for block in 0..outs {
                let sums = &scratch.sums[block * padded + tile..];
                turn_back::<L>(work, block, place, sums, padded * outs);
            }
        }
    }
}

/// `B^T d` along one side.
#[inline(always)]
unsafe fn turn_six<L: Lanes>(d: [L::Floats; SIDE]) -> [L::Floats; SIDE] {
    // SAFETY: by the caller's promise.
    unsafe {
        let (two, four) = (L::splat(2.0), L::splat(4.0));
        let (minus_four, minus_five) = (L::splat(-4.0), L::splat(-5.0));
        let a = L::fused(d[2], minus_four, d[4]);
        let b = L::fused(d[1], minus_four, d[3]);
        let c = L::sub(d[4], d[2]);
        let e = L::mul(L::sub(d[3], d[1]), two);
        [
            L::fused(d[0], four, L::fused(d[2], minus_five, d[4])),
            L::add(a, b),
            L::sub(a, b),
            L::add(c, e),
            L::sub(c, e),
            L::fused(d[1], four, L::fused(d[3], minus_five, d[5])),
        ]
    }
}

/// `A^T m` along one side.
#[inline(always)]
unsafe fn turn_back_six<L: Lanes>(m: [L::Floats; SIDE]) -> [L::Floats; STEP] {
    // SAFETY: by the caller's promise.
    unsafe {
        let sum = L::add(m[1], m[2]);
        let difference = L::sub(m[1], m[2]);
        let far_sum = L::add(m[3], m[4]);
        let far_difference = L::sub(m[3], m[4]);
        [
            L::add(L::add(m[0], sum), far_sum),
            L::fused(far_difference, L::splat(2.0), difference),
            L::fused(far_sum, L::splat(4.0), sum),
            L::fused(far_difference, L::splat(8.0), L::add(difference, m[5])),
        ]
    }
}

/// One tile of one block: `B^T d B`, each point `step` after the one before.
#[inline(always)]
unsafe fn turn_input<L: Lanes>(from: &[Values], pitch: usize, to: &mut [Values], step: usize) {
    let mut half = [[Values::ZERO; SIDE]; SIDE];
    // SAFETY: by the caller's promise.
    unsafe {
        for (row, half) in half.iter_mut().enumerate() {
            let from = &from[row * pitch..row * pitch + SIDE];
            let turned = turn_six::<L>([
                L::load(&from[0]),
                L::load(&from[1]),
                L::load(&from[2]),
                L::load(&from[3]),
                L::load(&from[4]),
                L::load(&from[5]),
            ]);
            for (half, value) in half.iter_mut().zip(turned) {
                L::store(half, value);
            }
        }
        for column in 0..SIDE {
            let turned = turn_six::<L>([
                L::load(&half[0][column]),
                L::load(&half[1][column]),
                L::load(&half[2][column]),
                L::load(&half[3][column]),
                L::load(&half[4][column]),
                L::load(&half[5][column]),
            ]);
            for (row, value) in turned.into_iter().enumerate() {
                L::store(&mut to[(row * SIDE + column) * step], value);
            }
        }
    }
}

/// The sums of one tile and one block of outputs, turned back and finished.
#[inline(always)]
unsafe fn turn_back<L: Lanes>(
    work: &Work<'_>,
    block: usize,
    (row, column): (usize, usize),
    sums: &[Values],
    step: usize,
) {
    let size = work.size;
    let mut half = [[Values::ZERO; SIDE]; STEP];
    // SAFETY: by the caller's promise.
    unsafe {
        for at in 0..SIDE {
            let turned = turn_back_six::<L>([
                L::load(&sums[at * step]),
                L::load(&sums[(SIDE + at) * step]),
                L::load(&sums[(2 * SIDE + at) * step]),
                L::load(&sums[(3 * SIDE + at) * step]),
                L::load(&sums[(4 * SIDE + at) * step]),
                L::load(&sums[(5 * SIDE + at) * step]),
            ]);
            for (half, value) in half.iter_mut().zip(turned) {
                L::store(&mut half[at], value);
            }
        }
        let (y, x) = (row * STEP, column * STEP);
        let rows = STEP.min(size.height - y);
        let columns = STEP.min(size.width - x);
        for (down, half) in half.iter().enumerate().take(rows) {
            let values = turn_back_six::<L>([
                L::load(&half[0]),
                L::load(&half[1]),
                L::load(&half[2]),
                L::load(&half[3]),
                L::load(&half[4]),
                L::load(&half[5]),
            ]);
            let start = size.at(block, y + down, x);
            // Each tile writes its own pixels.
            let out = work.out.part(start..start + columns);
            for ((along, out), value) in out.iter_mut().enumerate().zip(values) {
                let residual = work.end.residual.map(|(scale, residual)| {
                    let at = residual.size.at(block, y + down, x + along);
                    (scale, &residual.data[at])
                });
                finish::<L>(work.conv, block, value, residual, out);
            }
        }
    }
}

/// At one point: `sums[block of outputs][tile] = weights[block of outputs][channel] x turned[tile]
/// [channel]`, channels in their order.
#[inline(always)]
unsafe fn multiply<L: Lanes>(
    weights: &[Values],
    turned: &[Values],
    (ins, outs, tiles): (usize, usize, usize),
    sums: &mut [Values],
) {
    let channels = ins * BLOCK;
    // SAFETY: by the caller's promise.
    unsafe {
        let mut block = 0;
        while L::SUMS >= 24 && block + 2 <= outs {
            let weights = &weights[block * channels..(block + 2) * channels];
            let sums = &mut sums[block * tiles..(block + 2) * tiles];
            for tile in (0..tiles).step_by(12) {
                let turned = &turned[tile * ins..(tile + 12) * ins];
                multiply_some::<L, 2, 12>(weights, turned, channels, &mut sums[tile..], tiles);
            }
            block += 2;
        }
        while block < outs {
            let weights = &weights[block * channels..(block + 1) * channels];
            let sums = &mut sums[block * tiles..(block + 1) * tiles];
            if L::SUMS >= 24 {
                for tile in (0..tiles).step_by(12) {
                    let turned = &turned[tile * ins..(tile + 12) * ins];
                    multiply_some::<L, 1, 12>(weights, turned, channels, &mut sums[tile..], tiles);
                }
            } else {
                for tile in (0..tiles).step_by(6) {
                    let turned = &turned[tile * ins..(tile + 6) * ins];
                    multiply_some::<L, 1, 6>(weights, turned, channels, &mut sums[tile..], tiles);
                }
            }
            block += 1;
        }
    }
}

/// `BLOCKS` blocks of outputs for `COUNT` tiles, in registers.
#[inline(always)]
unsafe fn multiply_some<L: Lanes, const BLOCKS: usize, const COUNT: usize>(
    weights: &[Values],
    turned: &[Values],
    channels: usize,
    sums: &mut [Values],
    step: usize,
) {
    assert!(
        weights.len() == BLOCKS * channels && turned.len() * BLOCK == COUNT * channels,
        "whole runs"
    );
    let values = turned.as_ptr().cast::<f32>();
    // SAFETY: by the caller's promise; `turned` holds `COUNT * channels` floats.
    unsafe {
        let mut totals = [[L::splat(0.0); BLOCKS]; COUNT];
        for channel in 0..channels {
            let weights: [L::Floats; BLOCKS] = std::array::from_fn(|block| {
                L::load(weights.get_unchecked(block * channels + channel))
            });
            for (tile, totals) in totals.iter_mut().enumerate() {
                let value = L::splat(*values.add(tile * channels + channel));
                for (total, weight) in totals.iter_mut().zip(weights) {
                    *total = L::fused(weight, value, *total);
                }
            }
        }
        for (tile, totals) in totals.into_iter().enumerate() {
            for (block, total) in totals.into_iter().enumerate() {
                L::store(&mut sums[block * step + tile], total);
            }
        }
    }
}
