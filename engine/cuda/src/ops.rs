//! The ops on the device: one file each, which checks lengths, launches, and holds a table of cases against the
//! CPU's op.
//!
//! A new op is one file and one line in [`OPS`].

mod argmax;
mod attention;
mod case;
mod conv3x3;
mod conv_stream;
mod decode_attention;
mod elementwise;
mod gemv;
mod halve;
mod normalize;
mod packed_gemv;
mod packed_product;
mod raster;
mod rope;
mod top_k;

pub use argmax::argmax;
pub use attention::{Attention, attention};
pub use case::{Case, Op};
pub(crate) use conv_stream::{
    Floats, StreamConv, StreamEnd, StreamKind, StreamTo, conv_stream, unshuffle_rgb,
};
pub(crate) use conv3x3::{ConvTo, ConvWay, Convolution, conv3x3, pack_rgb};
pub use conv3x3::{Picture, picture_pitch_px};
pub use decode_attention::fault;
pub(crate) use decode_attention::{Begin, PAGE, Step, begin, decode_attention};
pub use elementwise::{add, add_rms_norm, fill_bf16, fill_half, read_all, rms_norm, silu_mul};
pub(crate) use elementwise::{fits, int, kernel as elementwise_kernel};
pub use gemv::{Gemv, GemvEnd, gemv};
pub use halve::halve_bicubic;
pub(crate) use normalize::{NormMemory, NormTo, add_bias, add_tokens, group_norm, softmax_rows};
pub use packed_gemv::{PACKED_WAY, PackedGemv, PackedWeights, packed_gemv};
pub use packed_product::{PackedEnd, PackedProduct, packed_product};
pub use raster::{RasterPart, planes_to_raster, raster_to_planes};
pub use rope::rope;
pub(crate) use rope::turns as rope_turns;
pub use top_k::top_k;

/// All ops.
pub const OPS: &[Op] = &[
    elementwise::ADD,
    elementwise::ADD_RMS_NORM,
    argmax::OP,
    attention::OP,
    conv3x3::OP,
    conv_stream::OP,
    decode_attention::OP,
    gemv::OP,
    halve::OP,
    normalize::GROUP_NORM,
    packed_gemv::OP,
    packed_product::OP,
    raster::OP,
    elementwise::RMS_NORM,
    rope::OP,
    elementwise::SILU_MUL,
    normalize::SOFTMAX,
    top_k::OP,
];

/// How many rows a product of few rows takes.
pub const GEMV_ROWS: usize = 16;
