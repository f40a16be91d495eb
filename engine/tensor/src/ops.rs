//! The ops: one file each, which holds its shape rule, a plain reference, the fast path and a table
//! of cases.
//!
//! A new op is one file and one line in [`OPS`].

mod activate;
mod add;
mod argmax;
mod attention;
mod case;
mod channel_norm;
mod conv2d;
mod embedding;
mod gated_add;
mod group_norm;
mod halve;
mod layer_norm;
mod matmul;
mod pixel_shuffle;
mod pixel_unshuffle;
mod rms_norm;
mod rope;
mod rope_rows;
mod scaled_add;
mod shuffle_add;
mod silu_mul;
mod softmax;
mod upsample;

pub use activate::{Unary, activate};
pub use add::add;
pub use argmax::argmax;
pub use attention::{AttentionSpec, KvKind, KvRows, QueryRow, attention};
pub use case::{Bound, Case, Op, Outcome, numbers, words};
pub use channel_norm::channel_norm;
pub use conv2d::{Activation, Conv2d, ConvEnd, conv2d};
pub use embedding::embedding;
pub use gated_add::gated_add;
pub use group_norm::{GroupNormSpec, group_norm};
pub use halve::halve_bicubic;
pub use layer_norm::layer_norm;
pub use matmul::{Input, Product, matmul};
pub use pixel_shuffle::pixel_shuffle;
pub use pixel_unshuffle::pixel_unshuffle;
pub use rms_norm::rms_norm;
pub use rope::{RopePairs, RopeScaling, RopeTable, rope};
pub use rope_rows::{RopeRows, rope_rows};
pub use scaled_add::scaled_add;
pub use shuffle_add::shuffle_add;
pub use silu_mul::silu_mul;
pub use softmax::softmax;
pub use upsample::upsample_nearest;

/// All ops.
pub const OPS: &[Op] = &[
    activate::OP,
    add::OP,
    argmax::OP,
    attention::OP,
    channel_norm::OP,
    conv2d::OP,
    embedding::OP,
    gated_add::OP,
    group_norm::OP,
    halve::OP,
    layer_norm::OP,
    matmul::OP,
    pixel_shuffle::OP,
    pixel_unshuffle::OP,
    rms_norm::OP,
    rope::OP,
    rope_rows::OP,
    scaled_add::OP,
    shuffle_add::OP,
    silu_mul::OP,
    softmax::OP,
    upsample::OP,
];
