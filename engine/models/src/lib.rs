//! Model families: from a checkpoint's configuration to a forward pass.
//!
//! Duty: to recognise what family a checkpoint is of, to check its tensors, and to run it. It must
//! not know where files come from, text, or how tokens are drawn.
//!
//! Entry points: [`load_token_model`], or [`load_dense`] for several streams over one set of
//! weights; [`FAMILIES`]. A family is one file under `families` and one line in that list. Models
//! from picture to picture: [`load_picture_model`], [`PICTURE_FAMILIES`]. Parts of models that draw
//! pictures are loaded one by one: [`load_qwen_image_21`], [`load_residual_vae`] and their kin.

mod config;
mod dense;
mod error;
mod families;
mod images;
mod pictures;
mod texts;

pub use dense::{DenseModel, DenseStream, LoadReport, Trace};
pub use engine_nn::Activations;
pub use engine_tensor::Affinity;
pub use engine_tensor::ops::KvKind;
pub use error::LoadError;
pub use families::{FAMILIES, Family, family_of};
pub use images::{
    CausalVae, CausalVaeConfig, Condition, Flux2, Flux2Config, Flux3, Flux3Config, Flux3Input,
    KlVae, KlVaeConfig, PerLevel, PlacedRows, Posterior, Prefix, QwenImage, QwenImage21,
    QwenImage21Config, QwenImageConfig, ResidualVae, ResidualVaeConfig, TinyVae, TinyVaeConfig,
    UNet, UNetConfig, UNetInput, ZImage, ZImageConfig, load_causal_vae, load_flux2, load_flux3,
    load_kl_vae, load_qwen_image, load_qwen_image_21, load_residual_vae, load_tiny_vae, load_unet,
    load_z_image,
};
pub use pictures::{
    ConvWeights, DenseNetwork, PICTURE_FAMILIES, PictureError, PictureFamily, PictureMemory,
    PictureModel, PictureWeights, load_picture_model, picture_tensors_of_ncnn, picture_weights,
};
pub use texts::{
    ClipText, ClipTextConfig, ClipTextStates, PromptPicture, T5Config, T5Encoder, VL_FAMILIES,
    VlEncoder, VlStates, load_clip_text, load_t5_encoder, load_vl_encoder,
};

use std::sync::Arc;

use engine_nn::TokenModel;
use engine_weights::Checkpoint;

/// How a model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadOptions {
    /// Threads; 0 for one per processor. Results do not depend on it.
    pub threads: usize,
    /// Which processors the threads run on. Results do not depend on it.
    pub affinity: Affinity,
    /// Most tokens of a stream; the model's own limit when `None`.
    pub context_tokens: Option<usize>,
    /// How keys and values are kept.
    pub kv: KvKind,
    /// Inputs of products with packed weights.
    pub activations: Activations,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            threads: 0,
            affinity: Affinity::Free,
            context_tokens: None,
            kv: KvKind::F16,
            activations: Activations::Rounded,
        }
    }
}

/// A language model with one empty stream.
///
/// # Errors
/// [`LoadError`]: unknown family, bad configuration, tensors that are missing, have another shape
/// or hold values that are no numbers.
pub fn load_token_model(
    checkpoint: &dyn Checkpoint,
    options: &LoadOptions,
) -> Result<Box<dyn TokenModel>, LoadError> {
    Ok(Box::new(load_dense(checkpoint, options)?.stream()))
}

/// The family that runs a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedFamily {
    /// Its name.
    pub family: &'static str,
    /// Most tokens the model was made for.
    pub context_tokens: usize,
}

/// Recognise a checkpoint's family and check its configuration; no tensor is looked at.
///
/// # Errors
/// [`LoadError`]: unknown family, bad configuration.
pub fn check_family(checkpoint: &dyn Checkpoint) -> Result<CheckedFamily, LoadError> {
    let config = config::Config::of(checkpoint)?;
    let family = family_of(config.family_name())?;
    let plan = (family.plan)(&config, checkpoint)?;
    Ok(CheckedFamily {
        family: family.id,
        context_tokens: plan.context,
    })
}

/// A dense language model, from which streams are made.
///
/// # Errors
/// As [`load_token_model`].
pub fn load_dense(
    checkpoint: &dyn Checkpoint,
    options: &LoadOptions,
) -> Result<Arc<DenseModel>, LoadError> {
    let config = config::Config::of(checkpoint)?;
    let family = family_of(config.family_name())?;
    let plan = (family.plan)(&config, checkpoint)?;
    DenseModel::load(checkpoint, family.id, &plan, options).map(Arc::new)
}
