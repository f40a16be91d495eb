//! stub

mod token_model;

pub use token_model::{ModelError, TokenModel};
