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

pub(crate) use engine_tensor::ops::{numbers, words};

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
