//! Speech: a text in, sound and the times of its words out.

mod error;

pub use error::SpeechError;
