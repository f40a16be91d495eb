//! Layers of models, and the token sampler.
//!
//! Duty: what several families share: linear layers over packed weights, norms, attention with its
//! KV cache, the gated feed-forward layer, and how tokens are drawn. It must not know families,
//! configuration files or text.
//!
//! Entry points: [`Linear`], [`RmsNorm`], [`SelfAttention`], [`SwiGlu`], [`KvCache`], all run
//! through a [`Runner`]; [`TokenModel`] is what a language model is to its users.

mod attention;
mod dit;
mod flow;
mod kv_cache;
mod linear;
mod norm;
mod runner;
mod swiglu;
mod token_model;
mod token_sampler;

pub use attention::{AttentionShape, AttentionTensors, SelfAttention};
pub use dit::{AxesRope, TimestepWaves, modulated_layer_norm, rms_norm_in_place};
pub use flow::{FlowMu, FlowShift, ScheduleError, flow_sigmas, flow_step, flux2_mu, linear_sigmas};
pub use kv_cache::{KvCache, StreamRow};
pub use linear::Linear;
pub use norm::RmsNorm;
pub use runner::{Activations, LayerError, Runner};
pub use swiglu::SwiGlu;
pub use token_model::{ModelError, TokenModel};
pub use token_sampler::{SampleError, Sampling, TokenSampler};
