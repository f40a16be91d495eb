//! Encoders of prompts: CLIP's text model, T5 and UMT5, and models that read pictures too.

mod clip;
mod qwen2_5_vl;
mod qwen3_vl;
mod t5;
mod vision;
mod vl;
mod vl_text;

use engine_tensor::Cpu;
use engine_weights::Checkpoint;
use serde_json::Value;

pub use self::clip::{ClipText, ClipTextConfig, ClipTextStates};
pub use self::t5::{T5Config, T5Encoder};
pub use self::vl::{PromptPicture, VL_FAMILIES, VlEncoder};
use self::vl::{VlPicture, VlTower, language_tensors, vision_tensors};
pub use self::vl_text::VlStates;
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

/// A model of pictures and words from the tensors whose names begin with `prefix`; `config` is its
/// `config.json`, whose `model_type` says which of [`VL_FAMILIES`] it is.
///
/// # Errors
/// As [`load_clip_text`]; `UnknownFamily`.
pub fn load_vl_encoder(
    checkpoint: &dyn Checkpoint,
    prefix: &str,
    config: &Value,
    cpu: &Cpu,
) -> Result<VlEncoder, LoadError> {
    VlEncoder::load(&Tensors::new(checkpoint, prefix), config, cpu)
}
