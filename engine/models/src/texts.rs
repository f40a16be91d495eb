//! Encoders of prompts that are no decoders: CLIP's text model, T5 and UMT5.

mod clip;
mod t5;

use engine_tensor::Cpu;
use engine_weights::Checkpoint;

pub use self::clip::{ClipText, ClipTextConfig, ClipTextStates};
pub use self::t5::{T5Config, T5Encoder};
use crate::LoadError;
use crate::images::Tensors;

/// CLIP's text model from the tensors whose names begin with `prefix`.
///
/// # Errors
/// [`LoadError`]: a configuration that cannot be, tensors that are missing, have another shape or hold
/// values that are no numbers.
pub fn load_clip_text(
    checkpoint: &dyn Checkpoint,
    prefix: &str,
    config: &ClipTextConfig,
    cpu: &Cpu,
) -> Result<ClipText, LoadError> {
    ClipText::load(&Tensors::new(checkpoint, prefix), config, cpu)
}

/// The encoder of a T5 or UMT5 from the tensors whose names begin with `prefix`.
///
/// # Errors
/// As [`load_clip_text`].
pub fn load_t5_encoder(
    checkpoint: &dyn Checkpoint,
    prefix: &str,
    config: &T5Config,
    cpu: &Cpu,
) -> Result<T5Encoder, LoadError> {
    T5Encoder::load(&Tensors::new(checkpoint, prefix), config, cpu)
}
