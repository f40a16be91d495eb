//! stub

mod token_model;
mod token_sampler;

pub use token_model::{ModelError, TokenModel};
pub use token_sampler::{SampleError, Sampling, TokenSampler};
