//! Networks in ONNX files, run on the CPU by an ONNX Runtime library that is loaded at run time.
//!
//! Duty: finding and loading the library, opening a model, named tensors in, named tensors out. The
//! only crate that names `ort`. It must not know what a network is for, where files are fetched
//! from, or how inputs are made.
//!
//! Entry points: [`runtime_path`], [`OnnxRuntime::open`], [`OnnxSession::load`],
//! [`OnnxSession::run`].
//!
//! Invariants: no fault of a library, a model file or an input panics. A process uses one library.
//! Outputs depend on the inputs and the machine's kind of processor only: a run takes one thread, and
//! several runs of one network go on beside each other.

mod config;
mod error;
mod outputs;
mod probe;
mod runtime;
mod session;
mod tensor;

pub use config::runtime_path;
pub use error::OnnxError;
pub use runtime::OnnxRuntime;
pub use session::{OnnxOptions, OnnxPort, OnnxSession};
pub use tensor::{OnnxData, OnnxTensor, OnnxType};
