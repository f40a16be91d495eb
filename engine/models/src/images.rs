//! Models that draw pictures: transformers that turn noise into latents, and autoencoders.
//!
//! A family is one file under `images`. Parts are loaded from the tensors of a checkpoint below a prefix,
//! so that one file may hold several.

mod causal_vae;
mod cross_blocks;
mod flux2;
mod flux3;
mod group_blocks;
pub(crate) mod kit;
mod kl_vae;
mod pixel_blocks;
mod qwen_image;
mod qwen_image_21;
mod residual_vae;
mod tensors;
mod tiny_vae;
mod unet;
mod unet_config;
mod z_image;

use engine_tensor::Cpu;
use engine_weights::Checkpoint;

pub use self::causal_vae::{CausalVae, CausalVaeConfig};
pub use self::flux2::{Flux2, Flux2Config, PlacedRows};
pub use self::flux3::{Flux3, Flux3Config, Flux3Input};
pub use self::kl_vae::{KlVae, KlVaeConfig};
pub use self::qwen_image::{QwenImage, QwenImageConfig};
pub use self::qwen_image_21::{Condition, Prefix, QwenImage21, QwenImage21Config};
pub use self::residual_vae::{Posterior, ResidualVae, ResidualVaeConfig};
pub(crate) use self::tensors::Tensors;
pub use self::tiny_vae::{TinyVae, TinyVaeConfig};
pub use self::unet::{UNet, UNetInput};
pub use self::unet_config::{PerLevel, UNetConfig};
pub use self::z_image::{ZImage, ZImageConfig};
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

/// The autoencoder of Stable Diffusion, FLUX.2 and others from the tensors whose names begin with `prefix`.
///
/// # Errors
/// As [`load_qwen_image_21`].
pub fn load_kl_vae(
    checkpoint: &dyn Checkpoint,
    prefix: &str,
    config: &KlVaeConfig,
    cpu: &Cpu,
) -> Result<KlVae, LoadError> {
    KlVae::load(&Tensors::new(checkpoint, prefix), config, cpu)
}

/// The transformer of FLUX.2 from the tensors whose names begin with `prefix`.
///
/// # Errors
/// As [`load_qwen_image_21`].
pub fn load_flux2(
    checkpoint: &dyn Checkpoint,
    prefix: &str,
    config: &Flux2Config,
    cpu: &Cpu,
) -> Result<Flux2, LoadError> {
    Flux2::load(&Tensors::new(checkpoint, prefix), config, cpu)
}

/// The transformer of Z-Image from the tensors whose names begin with `prefix`.
///
/// # Errors
/// As [`load_qwen_image_21`].
pub fn load_z_image(
    checkpoint: &dyn Checkpoint,
    prefix: &str,
    config: &ZImageConfig,
    cpu: &Cpu,
) -> Result<ZImage, LoadError> {
    ZImage::load(&Tensors::new(checkpoint, prefix), config, cpu)
}

/// The transformer of FLUX.3 from the tensors whose names begin with `prefix`.
///
/// # Errors
/// As [`load_qwen_image_21`].
pub fn load_flux3(
    checkpoint: &dyn Checkpoint,
    prefix: &str,
    config: &Flux3Config,
    cpu: &Cpu,
) -> Result<Flux3, LoadError> {
    Flux3::load(&Tensors::new(checkpoint, prefix), config, cpu)
}

/// The transformer of Qwen-Image from the tensors whose names begin with `prefix`.
///
/// # Errors
/// As [`load_qwen_image_21`].
pub fn load_qwen_image(
    checkpoint: &dyn Checkpoint,
    prefix: &str,
    config: &QwenImageConfig,
    cpu: &Cpu,
) -> Result<QwenImage, LoadError> {
    QwenImage::load(&Tensors::new(checkpoint, prefix), config, cpu)
}

/// The autoencoder of Qwen-Image from the tensors whose names begin with `prefix`.
///
/// # Errors
/// As [`load_qwen_image_21`].
pub fn load_causal_vae(
    checkpoint: &dyn Checkpoint,
    prefix: &str,
    config: &CausalVaeConfig,
    cpu: &Cpu,
) -> Result<CausalVae, LoadError> {
    CausalVae::load(&Tensors::new(checkpoint, prefix), config, cpu)
}

/// The U-Net of Stable Diffusion 1.5 or SDXL from the tensors whose names begin with `prefix`.
///
/// # Errors
/// As [`load_qwen_image_21`].
pub fn load_unet(
    checkpoint: &dyn Checkpoint,
    prefix: &str,
    config: &UNetConfig,
    cpu: &Cpu,
) -> Result<UNet, LoadError> {
    UNet::load(&Tensors::new(checkpoint, prefix), config, cpu)
}

/// The small autoencoder for previews from the tensors whose names begin with `prefix`.
///
/// # Errors
/// As [`load_qwen_image_21`].
pub fn load_tiny_vae(
    checkpoint: &dyn Checkpoint,
    prefix: &str,
    config: &TinyVaeConfig,
    cpu: &Cpu,
) -> Result<TinyVae, LoadError> {
    TinyVae::load(&Tensors::new(checkpoint, prefix), config, cpu)
}
