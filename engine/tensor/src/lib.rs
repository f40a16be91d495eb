//! dtypes, shapes, bytes, and the op set with its CPU reference.
//!
//! stub
mod bytes;
mod dtype;

pub use bytes::Bytes;
pub use dtype::DType;
