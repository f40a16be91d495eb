//! Tables of cases by which every fast path is held to its plain reference.

use crate::{Cpu, TensorError};

/// How close fast results are to the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Bit for bit.
    Equal,
    /// Largest difference, in parts of the largest magnitude of the reference.
    Relative(f32),
}

/// What a case gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// By the fast path.
    pub fast: Vec<f32>,
    /// By the plain reference.
    pub reference: Vec<f32>,
}

impl Outcome {
    /// Largest difference in parts of the reference's largest magnitude; infinite when lengths
    /// differ or something is no number.
    pub fn error(&self) -> f32 {
        let largest = self.reference.iter().fold(1e-30f32, |a, b| a.max(b.abs()));
        let finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
        if self.fast.len() != self.reference.len()
            || !finite(&self.fast)
            || !finite(&self.reference)
        {
            return f32::INFINITY;
        }
        let pairs = self.fast.iter().zip(&self.reference);
        pairs.fold(0.0, |worst: f32, (a, b)| worst.max((a - b).abs() / largest))
    }

    /// Whether it keeps `bound`.
    pub fn keeps(&self, bound: Bound) -> bool {
        match bound {
            Bound::Equal => {
                let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                bits(&self.fast) == bits(&self.reference)
            }
            Bound::Relative(limit) => self.error() <= limit,
        }
    }
}

/// What runs a case.
type RunCase = Box<dyn Fn(&Cpu) -> Result<Outcome, TensorError>>;

/// One set of inputs.
pub struct Case {
    /// What is special about it.
    pub name: String,
    /// How close the results are.
    pub bound: Bound,
    /// Runs both paths.
    pub run: RunCase,
}

impl Case {
    pub(crate) fn new(
        name: impl Into<String>,
        bound: Bound,
        run: impl Fn(&Cpu) -> Result<Outcome, TensorError> + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            bound,
            run: Box::new(run),
        }
    }
}

/// An op, as its file describes it.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Its cases.
    pub cases: fn() -> Vec<Case>,
}

/// Numbers for cases: -1 to 1, from a seed.
pub fn numbers(seed: u64, count: usize) -> Vec<f32> {
    words(seed, count)
        .map(|word| (word >> 40) as f32 / 8_388_608.0 - 1.0)
        .collect()
}

/// Words for cases (SplitMix64).
pub fn words(seed: u64, count: usize) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..count).map(move |_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    })
}
