//! Tables of cases by which ops on the device are held to the CPU's.

use engine_tensor::ops::{Bound, Outcome};
use engine_tensor::{Cpu, bf16_to_f32};

use crate::{CudaError, Device};

type RunCase = Box<dyn Fn(&Device, &Cpu) -> Result<Outcome, CudaError>>;

/// One set of inputs.
pub struct Case {
    /// What is special about it.
    pub name: String,
    /// How close the device's results are to the CPU's.
    pub bound: Bound,
    /// Runs both; `fast` is the device's.
    pub run: RunCase,
}

impl Case {
    pub(crate) fn new(
        name: impl Into<String>,
        bound: Bound,
        run: impl Fn(&Device, &Cpu) -> Result<Outcome, CudaError> + 'static,
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
    /// Its cases.
    pub cases: fn() -> Vec<Case>,
}

/// Numbers for cases: -1 to 1, from a seed (SplitMix64).
pub(crate) fn numbers(seed: u64, count: usize) -> Vec<f32> {
    words(seed, count)
        .map(|word| (word >> 40) as f32 / 8_388_608.0 - 1.0)
        .collect()
}

/// Words for cases.
pub(crate) fn words(seed: u64, count: usize) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..count).map(move |_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    })
}

/// As bfloat16, nearest.
pub(crate) fn to_bf16(values: &[f32]) -> Vec<u16> {
    values
        .iter()
        .map(|value| half::bf16::from_f32(*value).to_bits())
        .collect()
}

pub(crate) fn from_bf16(bits: &[u16]) -> Vec<f32> {
    bits.iter().map(|bits| bf16_to_f32(*bits)).collect()
}

/// As halves, nearest.
pub(crate) fn to_half(values: &[f32]) -> Vec<u16> {
    values
        .iter()
        .map(|value| engine_tensor::f32_to_f16(*value))
        .collect()
}

pub(crate) fn from_half(bits: &[u16]) -> Vec<f32> {
    bits.iter()
        .map(|bits| engine_tensor::f16_to_f32(*bits))
        .collect()
}

pub(crate) fn le_bytes(bits: &[u16]) -> Vec<u8> {
    bits.iter().flat_map(|bits| bits.to_le_bytes()).collect()
}
