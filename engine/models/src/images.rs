//! Models that draw pictures: transformers that turn noise into latents, and autoencoders.
//!
//! A family is one file under `images`. Parts are loaded from the tensors of a checkpoint below a prefix,
//! so that one file may hold several.

mod qwen_image_21;
mod residual_vae;
mod tensors;

use engine_tensor::Cpu;
use engine_weights::Checkpoint;

pub use self::qwen_image_21::{Condition, Prefix, QwenImage21, QwenImage21Config};
pub use self::residual_vae::{Posterior, ResidualVae, ResidualVaeConfig};
use self::tensors::Tensors;
use crate::LoadError;

/// The transformer of Qwen-Image 2.1 from the tensors whose names begin with `prefix`.
///
/// # Errors
/// [`LoadError`]: a configuration that cannot be, tensors that are missing, have another shape or hold
/// values that are no numbers.
pub fn load_qwen_image_21(
    checkpoint: &dyn Checkpoint,
    prefix: &str,
    config: &QwenImage21Config,
    cpu: &Cpu,
) -> Result<QwenImage21, LoadError> {
    QwenImage21::load(&Tensors::new(checkpoint, prefix), config, cpu)
}

/// The autoencoder of Qwen-Image 2.1 from the tensors whose names begin with `prefix`.
///
/// # Errors
/// As [`load_qwen_image_21`].
pub fn load_residual_vae(
    checkpoint: &dyn Checkpoint,
    prefix: &str,
    config: &ResidualVaeConfig,
    cpu: &Cpu,
) -> Result<ResidualVae, LoadError> {
    ResidualVae::load(&Tensors::new(checkpoint, prefix), config, cpu)
}
