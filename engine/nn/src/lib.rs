//! Layers of models, and the token sampler.
//!
//! Duty: what several families share: linear layers over packed weights, norms, attention with its
//! KV cache, the gated feed-forward layer, how tokens are drawn; noise schedules and samplers of
//! pictures. It must not know families, configuration files or text.
//!
//! Entry points: [`Linear`], [`RmsNorm`], [`SelfAttention`], [`SwiGlu`], [`KvCache`], all run
//! through a [`Runner`]; [`TokenModel`] is what a language model is to its users.

mod attention;
mod dit;
mod flow;
mod k_diffusion;
mod kv_cache;
mod linear;
mod norm;
mod runner;
mod swiglu;
mod token_model;
mod token_sampler;
mod uni_pc;

pub use attention::{AttentionShape, AttentionTensors, SelfAttention};
pub use dit::{AxesRope, TimestepWaves, modulated_layer_norm, rms_norm_in_place};
pub use flow::{
    FlowMu, FlowShift, ScheduleError, even_sigmas, flow_sigmas, flow_step, flux2_mu,
    guided_keeping_norm, h3_sigmas, h3_step, linear_sigmas,
};
pub use k_diffusion::{DpmSolver, KRun, Prediction, Spacing, TrainedNoise, karras_sigmas};
pub use kv_cache::{KvCache, StreamRow};
pub use linear::Linear;
pub use norm::RmsNorm;
pub use runner::{Activations, LayerError, Runner};
pub use swiglu::SwiGlu;
pub use token_model::{ModelError, TokenModel};
pub use token_sampler::{SampleError, Sampling, TokenSampler};
pub use uni_pc::UniPc;
