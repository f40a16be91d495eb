//! Element types, shapes, bytes, and the op set with its CPU reference.
//!
//! Duty: the numeric ops that models are made of, on the CPU: one file per op under `ops`, each
//! with its shape rule, a plain reference, a fast path and a table of cases. It must not know
//! files, model families or token streams.
//!
//! Entry points: [`Cpu`] (threads and instruction set), [`PackedMatrix`] (weights as they lie in a
//! file), [`ops`].
//!
//! Invariants: every result is a function of the inputs alone. The order of additions of each
//! output is fixed and does not depend on the number of rows in a call, on threads or on the
//! instruction set, so the fast paths equal the plain ones bit for bit wherever a case table says
//! so.
#![allow(
    unsafe_code,
    reason = "vector instructions, and threads that write disjoint parts of one output"
)]

mod bytes;
mod cpu;
mod dtype;
mod error;
mod half_bits;
mod lanes;
mod math;
pub mod ops;
mod packed;
mod planes;
mod quant_rows;
mod shared;
mod simd;
mod threads;
mod tile;

pub use bytes::Bytes;
pub use cpu::Cpu;
pub use dtype::DType;
pub use error::TensorError;
pub use half_bits::{bf16_to_f32, f16_to_f32, f32_to_f16};
pub use packed::PackedMatrix;
pub use planes::{Planes, PlanesMut, PlanesRef};
pub use quant_rows::QuantRows;
pub use simd::Simd;
pub use threads::{Affinity, Threads};
