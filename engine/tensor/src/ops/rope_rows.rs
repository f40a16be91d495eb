//! Rotary positions with a table row for each row of input: positions along several axes
//! (Su et al., arXiv 2104.09864, axis by axis).

use super::case::{Bound, Case, Op, Outcome, numbers};
use super::rope::RopePairs;
use crate::error::expect;
use crate::shared::SharedSlice;
use crate::simd::by_simd;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "rope_rows",
    about: "pairs of a head turned by the angles of their row",
    cases,
};

/// Angles of rows: cosines and sines, each `[rows, dims / 2]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RopeRows {
    /// Turned elements of each head.
    pub dims: usize,
    /// `[rows, dims / 2]`.
    pub cosines: Vec<f32>,
    /// `[rows, dims / 2]`.
    pub sines: Vec<f32>,
}

impl RopeRows {
    /// Of `angles: [rows, dims / 2]`.
    pub fn of_angles(dims: usize, angles: &[f64]) -> Self {
        Self {
            dims,
            cosines: angles.iter().map(|angle| angle.cos() as f32).collect(),
            sines: angles.iter().map(|angle| angle.sin() as f32).collect(),
        }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.cosines.len().checked_div(self.dims / 2).unwrap_or(0)
    }

    /// The rows of `self`, then those of `other`, which turns as many elements.
    pub fn extend(&mut self, other: &Self) {
        self.cosines.extend_from_slice(&other.cosines);
        self.sines.extend_from_slice(&other.sines);
    }
}

/// Turns the first dims of each head of `x: [rows, heads, head_dim]`, row `r` by row `r` of `turns`.
///
/// # Errors
/// `Shape` when lengths do not go together.
pub fn rope_rows(
    cpu: &Cpu,
    turns: &RopeRows,
    pairs: RopePairs,
    head_dim: usize,
    x: &mut [f32],
) -> Result<(), TensorError> {
    const OP: &str = "rope_rows";
    const PART: usize = 16;
    let half = turns.dims / 2;
    expect(OP, "dims % 2", turns.dims % 2, 0)?;
    expect(OP, "dims > 0", usize::from(half > 0), 1)?;
    expect(
        OP,
        "dims <= head_dim",
        usize::from(turns.dims <= head_dim),
        1,
    )?;
    expect(
        OP,
        "length of sines",
        turns.sines.len(),
        turns.cosines.len(),
    )?;
    let rows = turns.rows();
    expect(OP, "rows > 0", usize::from(rows > 0), 1)?;
    expect(
        OP,
        "length of x % (rows * head_dim)",
        x.len() % (rows * head_dim),
        0,
    )?;
    let row_len = x.len() / rows;
    let x = SharedSlice::new(x);
    cpu.threads().run(rows.div_ceil(PART), &|part| {
        for row in part * PART..((part + 1) * PART).min(rows) {
            // SAFETY: each task has its own rows.
            let x = unsafe { x.part(row * row_len..(row + 1) * row_len) };
            let range = row * half..(row + 1) * half;
            let (cosines, sines) = (&turns.cosines[range.clone()], &turns.sines[range]);
            turn(cpu.simd(), x, (cosines, sines), pairs, head_dim);
        }
    });
    Ok(())
}

by_simd! {
    fn turn(x: &mut [f32], by: (&[f32], &[f32]), pairs: RopePairs, head_dim: usize) = loops turn_body;
}

#[inline(always)]
fn turn_body(x: &mut [f32], (cosines, sines): (&[f32], &[f32]), pairs: RopePairs, head_dim: usize) {
    let half = cosines.len();
    for head in x.chunks_exact_mut(head_dim) {
        let head = &mut head[..2 * half];
        match pairs {
            RopePairs::Halves => {
                let (first, second) = head.split_at_mut(half);
                for at in 0..half {
                    let (a, b) = (first[at], second[at]);
                    first[at] = a * cosines[at] - b * sines[at];
                    second[at] = a * sines[at] + b * cosines[at];
                }
            }
            RopePairs::Neighbours => {
                for (at, pair) in head.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                    let [a, b] = *pair;
                    *pair = [
                        a * cosines[at] - b * sines[at],
                        a * sines[at] + b * cosines[at],
                    ];
                }
            }
        }
    }
}

fn cases() -> Vec<Case> {
    [(RopePairs::Halves, 16), (RopePairs::Neighbours, 20)]
        .into_iter()
        .map(|(pairs, head_dim)| {
            let name = format!("{pairs:?} of heads of {head_dim}");
            Case::new(name, Bound::Relative(2e-6), move |cpu| {
                let (rows, heads, half) = (37, 3, 8);
                let x = numbers(1, rows * heads * head_dim);
                let angles: Vec<f64> = numbers(2, rows * half)
                    .iter()
                    .map(|angle| 30.0 * f64::from(*angle))
                    .collect();
                let mut fast = x.clone();
                let turns = RopeRows::of_angles(2 * half, &angles);
                rope_rows(cpu, &turns, pairs, head_dim, &mut fast)?;
                let mut reference = x.clone();
                for (at, head) in reference.chunks_exact_mut(head_dim).enumerate() {
                    for pair in 0..half {
                        let (i, j) = match pairs {
                            RopePairs::Halves => (pair, pair + half),
                            RopePairs::Neighbours => (2 * pair, 2 * pair + 1),
                        };
                        let (sin, cos) = angles[at / heads * half + pair].sin_cos();
                        let (a, b) = (f64::from(head[i]), f64::from(head[j]));
                        head[i] = (a * cos - b * sin) as f32;
                        head[j] = (a * sin + b * cos) as f32;
                    }
                }
                Ok(Outcome { fast, reference })
            })
        })
        .collect()
}
