//! The ops: one file each, which holds its shape rule, a plain reference, the fast path and a table
//! of cases.
//!
//! A new op is one file and one line in [`OPS`].

mod add;
mod argmax;
mod attention;
mod case;
mod embedding;
mod layer_norm;
mod matmul;
mod rms_norm;
mod rope;
mod silu_mul;
mod softmax;

pub use add::add;
pub use argmax::argmax;
pub use attention::{AttentionSpec, KvKind, KvRows, QueryRow, attention};
pub use case::{Bound, Case, Op, Outcome};
pub use embedding::embedding;
pub use layer_norm::layer_norm;
pub use matmul::{Input, Product, matmul};
pub use rms_norm::rms_norm;
pub use rope::{RopePairs, RopeScaling, RopeTable, rope};
pub use silu_mul::silu_mul;
pub use softmax::softmax;

/// All ops.
pub const OPS: &[Op] = &[
    add::OP,
    argmax::OP,
    attention::OP,
    embedding::OP,
    layer_norm::OP,
    matmul::OP,
    rms_norm::OP,
    rope::OP,
    silu_mul::OP,
    softmax::OP,
];
