//! stub
mod config;
mod error;
mod owner;
pub use error::StudioError;
