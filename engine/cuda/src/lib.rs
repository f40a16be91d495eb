//! The engine on NVIDIA GPUs.
//!
//! Duty: one device's memory, stream, graphs and kernels, and ops that equal the CPU's within the bounds of
//! their case tables. Kernels are header-free CUDA C++ under `kernels/`, compiled at run time for the
//! device at hand and kept on disk. It must not know files of weights, families or tokenizers.
//!
//! Entry points: [`probe`] (is there a device we can use, and if not, why), [`Device`], [`ops`];
//! composites that hold their buffers and launches together: [`Decoder`], [`PictureChain`].
//!
//! Invariants: CUDA's libraries are looked for at run time, so a machine without them starts and is told
//! what is missing. One stream a device: work runs in the order it was asked for. Sums are added in an
//! order that depends on shapes other than the number of rows, so rows of a call never change each other.
//!
//! # Safety
//! Raw addresses go to kernels only through [`ops`] and the composites, which check every length first.
#![allow(
    unsafe_code,
    reason = "calls into the driver and launches with raw addresses"
)]

mod args;
mod cache;
mod compile;
mod decoder;
mod device;
mod driver;
mod error;
mod graph;
mod host_memory;
pub mod kernels;
mod memory;
pub mod ops;
mod picture_chain;
mod picture_dense;
mod prefill;
mod probe;
mod products;
mod vae_decoder;

pub use cache::CubinCache;
pub use compile::{Compiled, compile, compiler_version};
pub use decoder::{
    Decoder, DecoderLayer, DecoderPart, DecoderShape, DecoderWeights, GateUp, Matrix,
};
pub use device::{Device, DeviceOptions};
pub use error::{CudaError, Missing};
pub use graph::{Graph, Timer};
pub use host_memory::{HostFigures, HostMemory};
pub use memory::{Buffer, MemoryFigures, Pinned};
pub use picture_chain::{ChainConv, PictureChain};
pub use picture_dense::{DenseChain, DenseWeights, PlainConv};
pub use probe::{DeviceInfo, probe};
pub use vae_decoder::{VaeDecoder, VaeShape, VaeTensors};
