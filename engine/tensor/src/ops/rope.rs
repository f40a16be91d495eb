//! Rotary position embedding (Su et al., arXiv 2104.09864).

use std::f64::consts::TAU;

use super::case::{Bound, Case, Op, Outcome, numbers};
use crate::error::expect;
use crate::{Cpu, TensorError};

pub(super) const OP: Op = Op {
    name: "rope",
    about: "pairs of a head turned by their position",
    cases,
};

/// Which elements of a head form a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RopePairs {
    /// `i` and `i + dims / 2`: checkpoints of transformers.
    Halves,
    /// `2i` and `2i + 1`: llama files in GGUF, whose rows are permuted for it.
    Neighbours,
}

/// How frequencies are stretched for long contexts.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RopeScaling {
    /// As trained.
    None,
    /// All frequencies over `factor`.
    Linear {
        /// `rope_scaling.factor`.
        factor: f64,
    },
    /// Low frequencies over `factor`, high ones kept, those between blended (Llama 3.1).
    Llama3 {
        /// `factor`.
        factor: f64,
        /// `low_freq_factor`.
        low: f64,
        /// `high_freq_factor`.
        high: f64,
        /// `original_max_position_embeddings`.
        original_tokens: f64,
    },
    /// `NTK by parts` with a temperature (Peng et al., arXiv 2309.00071).
    Yarn {
        /// `factor`.
        factor: f64,
        /// `original_max_position_embeddings`.
        original_tokens: f64,
        /// `beta_fast`.
        fast: f64,
        /// `beta_slow`.
        slow: f64,
    },
}

/// Cosines and sines of positions.
#[derive(Debug, Clone)]
pub struct RopeTable {
    dims: usize,
    pairs: RopePairs,
    frequencies: Vec<f64>,
    magnitude: f64,
    /// `[positions, dims / 2]` cosines, then as many sines, for each position.
    turns: Vec<f32>,
}

impl RopeTable {
    /// For `dims` (even) turned elements of each head.
    ///
    /// # Errors
    /// `Shape` for an odd number of them.
    pub fn new(
        dims: usize,
        base: f64,
        scaling: RopeScaling,
        pairs: RopePairs,
    ) -> Result<Self, TensorError> {
        expect("rope", "dims % 2", dims % 2, 0)?;
        let mut magnitude = 1.0;
        let plain = (0..dims / 2).map(|pair| base.powf(-2.0 * pair as f64 / dims as f64));
        let frequencies = match scaling {
            RopeScaling::None => plain.collect(),
            RopeScaling::Linear { factor } => plain.map(|frequency| frequency / factor).collect(),
            RopeScaling::Llama3 {
                factor,
                low,
                high,
                original_tokens,
            } => plain
                .map(|frequency| {
                    let waves = original_tokens * frequency / TAU;
                    let share = ((waves - low) / (high - low)).clamp(0.0, 1.0);
                    frequency * (share + (1.0 - share) / factor)
                })
                .collect(),
            RopeScaling::Yarn {
                factor,
                original_tokens,
                fast,
                slow,
            } => {
                if factor > 1.0 {
                    magnitude = 0.1 * factor.ln() + 1.0;
                }
                let dim_of = |turns: f64| {
                    dims as f64 * (original_tokens / (turns * TAU)).ln() / (2.0 * base.ln())
                };
                let first = dim_of(fast).floor().max(0.0);
                let last = dim_of(slow).ceil().min(dims as f64 - 1.0);
                let span = if last > first { last - first } else { 0.001 };
                plain
                    .enumerate()
                    .map(|(pair, frequency)| {
                        let stretched = ((pair as f64 - first) / span).clamp(0.0, 1.0);
                        frequency * (1.0 - stretched + stretched / factor)
                    })
                    .collect()
            }
        };
        Ok(Self {
            dims,
            pairs,
            frequencies,
            magnitude,
            turns: Vec::new(),
        })
    }

    /// Divides frequency `i` by `factors[i]`, as files with a tensor `rope_freqs` ask for.
    ///
    /// # Errors
    /// `Shape` for another number of factors.
    pub fn divide(&mut self, factors: &[f32]) -> Result<(), TensorError> {
        expect("rope", "factors", factors.len(), self.frequencies.len())?;
        for (frequency, factor) in self.frequencies.iter_mut().zip(factors) {
            *frequency /= f64::from(*factor);
        }
        self.turns.clear();
        Ok(())
    }

    /// Makes sure that positions under `positions` are there.
    pub fn extend(&mut self, positions: usize) {
        let have = self.turns.len().checked_div(self.dims).unwrap_or(positions);
        for position in have..positions {
            let angle = |frequency: &f64| position as f64 * frequency;
            let (frequencies, magnitude) = (&self.frequencies, self.magnitude);
            let cosines = frequencies
                .iter()
                .map(|f| (angle(f).cos() * magnitude) as f32);
            self.turns.extend(cosines);
            let sines = frequencies
                .iter()
                .map(|f| (angle(f).sin() * magnitude) as f32);
            self.turns.extend(sines);
        }
    }
}

/// Turns the first dims of each head of `x: [rows, heads, head_dim]`, row `r` by `positions[r]`.
///
/// # Errors
/// `Shape` when lengths do not go together or the table does not reach a position.
pub fn rope(
    table: &RopeTable,
    x: &mut [f32],
    head_dim: usize,
    positions: &[usize],
) -> Result<(), TensorError> {
    const OP: &str = "rope";
    let (dims, rows) = (table.dims, positions.len());
    expect(OP, "dims <= head_dim", usize::from(dims <= head_dim), 1)?;
    expect(OP, "head_dim > 0", usize::from(head_dim > 0), 1)?;
    expect(OP, "rows > 0", usize::from(rows > 0), 1)?;
    expect(
        OP,
        "length of x % (rows * head_dim)",
        x.len() % (rows * head_dim),
        0,
    )?;
    let row_len = x.len() / rows;
    for (row, position) in x.chunks_exact_mut(row_len.max(1)).zip(positions) {
        let turns = table.turns.get(position * dims..(position + 1) * dims);
        let Some((cosines, sines)) = turns.map(|turns| turns.split_at(dims / 2)) else {
            return Err(TensorError::Shape {
                op: OP,
                what: "positions of the table",
                got: table.turns.len() / dims.max(1),
                expected: position + 1,
            });
        };
        for head in row.chunks_exact_mut(head_dim) {
            let head = &mut head[..dims];
            match table.pairs {
                RopePairs::Halves => {
                    let (first, second) = head.split_at_mut(dims / 2);
                    for at in 0..dims / 2 {
                        let (a, b) = (first[at], second[at]);
                        first[at] = a * cosines[at] - b * sines[at];
                        second[at] = a * sines[at] + b * cosines[at];
                    }
                }
                RopePairs::Neighbours => {
                    for (at, pair) in head.chunks_exact_mut(2).enumerate() {
                        let (a, b) = (pair[0], pair[1]);
                        pair[0] = a * cosines[at] - b * sines[at];
                        pair[1] = a * sines[at] + b * cosines[at];
                    }
                }
            }
        }
    }
    Ok(())
}

fn cases() -> Vec<Case> {
    let llama3 = RopeScaling::Llama3 {
        factor: 8.0,
        low: 1.0,
        high: 4.0,
        original_tokens: 64.0,
    };
    let mut cases = Vec::new();
    for pairs in [RopePairs::Halves, RopePairs::Neighbours] {
        for scaling in [
            RopeScaling::None,
            RopeScaling::Linear { factor: 4.0 },
            llama3,
        ] {
            let name = format!("{pairs:?} {scaling:?}");
            cases.push(Case::new(name, Bound::Relative(2e-6), move |_: &Cpu| {
                let x = numbers(9, 3 * 2 * 20);
                let positions = [0, 7, 300];
                let mut table = RopeTable::new(16, 1e4, scaling, pairs)?;
                table.extend(301);
                let mut fast = x.clone();
                rope(&table, &mut fast, 20, &positions)?;
                let mut reference = x.clone();
                for (at, head) in reference.chunks_exact_mut(20).enumerate() {
                    for pair in 0..8 {
                        let (i, j) = match pairs {
                            RopePairs::Halves => (pair, pair + 8),
                            RopePairs::Neighbours => (2 * pair, 2 * pair + 1),
                        };
                        let angle = positions[at / 2] as f64 * reference_frequency(pair, scaling);
                        let (a, b) = (f64::from(head[i]), f64::from(head[j]));
                        head[i] = (a * angle.cos() - b * angle.sin()) as f32;
                        head[j] = (a * angle.sin() + b * angle.cos()) as f32;
                    }
                }
                Ok(Outcome { fast, reference })
            }));
        }
    }
    cases
}

/// Frequency of a pair of 16 dims with base 10,000, by wavelength as the papers put it.
fn reference_frequency(pair: usize, scaling: RopeScaling) -> f64 {
    let plain = 1.0 / 1e4f64.powf(pair as f64 / 8.0);
    match scaling {
        RopeScaling::Linear { factor } => plain / factor,
        RopeScaling::Llama3 {
            factor,
            low,
            high,
            original_tokens,
        } => {
            let wavelength = TAU / plain;
            if wavelength < original_tokens / high {
                plain
            } else if wavelength > original_tokens / low {
                plain / factor
            } else {
                let smooth = (original_tokens / wavelength - low) / (high - low);
                (1.0 - smooth) * plain / factor + smooth * plain
            }
        }
        _ => plain,
    }
}
